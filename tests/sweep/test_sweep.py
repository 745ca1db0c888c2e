"""Sweeps: what texts stand for, each variant's counts, the file that is gone on with, the frontier."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

import memsim
from memsim.sweep import analyze_variants as module
from memsim.sweep import results_shown
from memsim.sweep.results import Counts, VariantResult, frontier, groups, kept_in
from memsim.sweep.variants import alternatives, targets_of, variants
from memsim.targets.target import read_job
from tests.cli.conftest import memsim as run  # noqa: F401  # the fixture of the command line

LAYOUTS = """\
import memsim


def transpose(t, pad=1, layout=None):
    tile = memsim.SharedArray("tile", layout or (32, 32 + pad), "f32")
    tile[t.y, t.x].store()
    tile[t.x, t.y].load()
"""
TRANSPOSE = "layouts.py:transpose --block 32,32 --jobs 2"
CUDA = """\
extern "C" __global__ void tile(float *out) {
    __shared__ float s[32][32 + PAD];
    s[threadIdx.y][threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = s[threadIdx.x][threadIdx.y];
}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "layouts.py").write_text(LAYOUTS)
    (tmp_path / "tile.cu").write_text(CUDA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0..3", ("0", "1", "2", "3")),
        ("0..64..16", ("0", "16", "32", "48", "64")),
        ("-1..1", ("-1", "0", "1")),
        ("a|b", ("a", "b")),
        ("1..2|8", ("1", "2", "8")),
        ("16,16|32,32", ("16,16", "32,32")),
        ("(32,33):(33,1)", ("(32,33):(33,1)",)),
        ("@../matrix.npy", ("@../matrix.npy",)),
    ],
)
def test_what_a_text_stands_for(text: str, values: tuple[str, ...]) -> None:
    assert alternatives(text) == values


def test_ranges_with_nothing_in_them_and_too_much() -> None:
    for text in ("3..1", "0..8..0"):
        with pytest.raises(memsim.MemsimError, match="is an empty range"):
            alternatives(text)
    with pytest.raises(memsim.MemsimError, match="too many"):
        variants("layouts.py:f", {"block": "32", "options": ["-DA=0..999", "-DB=0..999"]})
    with pytest.raises(memsim.MemsimError, match="nothing varies"):
        variants("layouts.py:f", {"block": "32", "options": ["-DA=1"]})
    with pytest.raises(memsim.MemsimError, match="is not a list of integers"):
        variants("layouts.py:f", {"block": "32|x"})


def test_targets_by_pattern() -> None:
    assert targets_of("transpose_*") == ("transpose_naive", "transpose_padded", "transpose_xor")
    assert targets_of("kernel_v4|tile.cu") == ("kernel_v4", "tile.cu")
    with pytest.raises(memsim.MemsimError, match="no kernel of the catalogue"):
        targets_of("nothing_*")


def table(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_a_function_and_its_parameter(folder: Path, run: Any) -> None:  # noqa: F811
    done = run("sweep", TRANSPOSE, "-D pad=0..3 -o r.csv")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("4 variants; fewest wavefronts: 64 with pad 1, 4,224 shared bytes")
    rows = table(folder / "r.csv")
    assert [(row["pad"], row["wavefronts"], row["shared_bytes"]) for row in rows] == [
        ("0", "1056", "4096"), ("1", "64", "4224"), ("2", "96", "4352"), ("3", "64", "4480"),
    ]  # fmt: skip
    marks = {line.split()[1]: line[0] for line in done.out.splitlines() if line[:3] in ("*  ", "+  ")}
    assert marks == {"0": "+", "1": "*"}  # the worst of all is never starred


@pytest.mark.slow
def test_macros_of_a_kernel(folder: Path, run: Any) -> None:  # noqa: F811
    launch = "--grid 1 --block 32,32 --arg 'f32[1024]' -D PAD=0..1"
    done = run("sweep tile.cu", launch, "-o r.csv --jobs 1")
    assert (done.code, done.err) == (0, "")
    for row in table(folder / "r.csv"):
        module = memsim.load("tile.cu", options=[f"-DPAD={row['PAD']}"])
        analysis = memsim.analyze(module["tile"], 1, (32, 32), [memsim.ArrayArg((1024,))])
        assert int(row["wavefronts"]) == sum(site.wavefronts or 0 for site in analysis.sites)
        assert int(row["shared_bytes"]) == 32 * (32 + int(row["PAD"])) * 4


def test_layouts_sizes_and_the_catalogue(folder: Path, run: Any) -> None:  # noqa: F811
    layouts = "'layout=(32,32):(33,1)|Sw<5,0,5> o (32,32):(32,1)|(8,32):(32,1)'"
    done = run("sweep layouts.py:transpose --block 32,32 -D", layouts, "-j 1")
    assert done.code == 0
    assert "1 could not be analyzed" in done.out
    assert "index 8 of axis 0 is outside of tile" in done.out
    done = run("sweep 'transpose_*' --size '32,32|64,32' -j 1 -o r.csv")
    assert "fewest" not in done.out  # sizes are not compared with each other
    assert "of the same work" in done.out
    rows = table(folder / "r.csv")
    assert [(row["target"], row["size"]) for row in rows][:3] == [
        ("transpose_naive", "32,32"), ("transpose_naive", "64,32"), ("transpose_padded", "32,32"),
    ]  # fmt: skip
    assert int(rows[1]["wavefronts"]) == 2 * int(rows[0]["wavefronts"])


def test_what_is_there_is_not_analyzed_again(
    folder: Path,
    run: Any,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    analyzed: list[str] = []
    before = module.analyze_all

    def counted(targets: Any, *how: Any) -> Any:
        analyzed.extend(target.kernel.values["pad"] for target in targets)
        return before(targets, *how)

    monkeypatch.setattr(module, "analyze_all", counted)
    launch = "sweep layouts.py:transpose --block 32,32 -o r.csv -j 1"
    first = run(launch, "-D pad=0..2")
    assert analyzed == ["0", "1", "2"]
    assert run(launch, "-D pad=0..2").out == first.out
    assert analyzed == ["0", "1", "2"]
    run(launch, "-D pad=1..4")
    assert analyzed == ["0", "1", "2", "3", "4"]
    assert sorted(row["pad"] for row in table(folder / "r.csv")) == ["0", "1", "2", "3", "4"]

    # A line that was cut short is analyzed again; so is everything once the source has changed.
    text = (folder / "r.csv").read_text()
    (folder / "r.csv").write_text(text[:-10])
    del analyzed[:]
    run(launch, "-D pad=0..4")
    assert analyzed == [text.splitlines()[-1].partition(",")[0]]
    (folder / "layouts.py").write_text(LAYOUTS + "\n# changed\n")
    del analyzed[:]
    run(launch, "-D pad=0..2")
    assert analyzed == ["0", "1", "2"]
    assert sorted(row["pad"] for row in table(folder / "r.csv")) == ["0", "1", "2", "3", "4"]


def test_files_that_are_of_something_else(folder: Path, run: Any) -> None:  # noqa: F811
    launch = "sweep layouts.py:transpose --block 32,32 -j 1"
    (folder / "other.csv").write_text("a,b\n1,2\n")
    run(launch, "-D pad=0..1 -o other.csv").refused("not a file of a sweep over the same values")
    assert (folder / "other.csv").read_text() == "a,b\n1,2\n"
    assert "the suffix is not that of a results file" in run(launch, "-D pad=0..1 -o r.txt").err
    assert "cannot write the results" in run(launch, "-D pad=0..1 -o none/r.csv").err
    assert "cannot be written as .gif" in run(launch, "-D pad=0..1 --plot f.gif").err
    assert "nothing varies" in run(launch).err
    assert "needs --block" in run("sweep layouts.py:transpose -D pad=0..1").err
    failed = run(launch, "-D 'layout=(8,32):(32,1)|(9,32):(32,1)'")
    assert failed.code == 2
    assert "no variant could be analyzed" in failed.err


def test_the_plot(folder: Path, run: Any) -> None:  # noqa: F811
    launch = "sweep layouts.py:transpose --block 32,32 -D pad=0..3 -j 1"
    assert run(launch, "--plot f.svg").code == 0
    text = (folder / "f.svg").read_text("utf-8")
    assert "pad 1" in text
    assert "shared wavefronts" in text


def test_the_frontier() -> None:
    def result(needed: int, wavefronts: int | None, size: str = "1") -> VariantResult:
        counts = Counts(wavefronts=wavefronts, shared_bytes=needed)
        return VariantResult({"size": size, "PAD": "0"}, counts, "", work=(size,))

    points = [result(10, 5), result(8, 9), result(12, 5), result(9, 9), result(20, 2), result(7, None)]
    assert frontier(points) == [1, 0, 4]
    assert frontier([result(8, 9), result(8, 9)]) == [0, 1]
    both = [result(10, 5), result(10, 50, "2"), result(8, 60, "2")]
    assert groups(both) == [[0], [1, 2]]
    assert frontier(both) == [0, 2, 1]


@pytest.mark.parametrize(
    ("option", "macro", "label"),
    [
        ({"grid": "1|2"}, "grid", "-Dgrid"),
        ({"size": "32,32|64,32"}, "size", "-Dsize"),
        ({"blocks": "1|2"}, "blocks", "-Dblocks"),
        ({"args": ["1|2"]}, "arg", "arg"),
        ({"grid": "1|2"}, "gridpad", "gridpad"),
        ({"grid": "1|2"}, "wavefronts", "-Dwavefronts"),
    ],
)
def test_a_macro_that_is_named_like_an_option_is_no_option(
    option: dict[str, Any], macro: str, label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = read_job("transpose_naive", {})
    monkeypatch.setattr("memsim.sweep.variants.read_job", lambda *_, **__: job)

    def work(texts: dict[str, Any]) -> tuple[list[tuple[str, ...]], list[list[int]]]:
        found = variants("transpose_naive", texts)
        results = [VariantResult(one.values, Counts(), one.key, one.work) for one in found]
        return [tuple(one.values) for one in found], groups(results)

    own, macros = "arg 1" if "args" in option else next(iter(option)), {"options": [f"-D{macro}=1|2"]}
    assert work(option) == ([(own,)] * 2, [[0], [1]])
    assert work(macros)[1] == [[0, 1]]
    assert work(option | macros) == ([(own, label)] * 4, [[0, 1], [2, 3]])


def test_what_is_compared_is_known_of_a_file_that_is_gone_on_with(folder: Path, run: Any) -> None:  # noqa: F811
    (folder / "layouts.py").write_text(LAYOUTS.replace("pad", "grid"))
    launch = "sweep layouts.py:transpose --block 32,32 -j 1"
    macro = run(launch, "-D grid=0..1 -o macro.csv")
    assert macro.out.startswith("2 variants; fewest wavefronts: 64 with grid 1, 4,224 shared bytes")
    assert run(launch, "-D grid=0..1 -o macro.csv").out == macro.out
    both = run(launch, "--grid '1|2' -D grid=0..1 -o both.csv")
    assert "fewest wavefronts" not in both.out and "of the same work" in both.out
    assert run(launch, "--grid '1|2' -D grid=0..1 -o both.csv").out == both.out
    rows = [(row["grid"], row["-Dgrid"], row["wavefronts"]) for row in table(folder / "both.csv")]
    assert rows == [("1", "0", "1056"), ("1", "1", "64"), ("2", "0", "2112"), ("2", "1", "128")]


def test_variants_that_cost_as_little_as_the_best_are_marked_alike() -> None:
    def result(name: str, wavefronts: int, needed: int) -> VariantResult:
        return VariantResult({"layout": name}, Counts(wavefronts=wavefronts, shared_bytes=needed), "")

    one, same, lean, bad = result("a", 64, 9), result("b", 64, 9), result("c", 99, 8), result("d", 99, 9)
    assert marks_of(one, same) == ["*", "*"] and marks_of(one, same, lean) == ["*", "*", "+"]
    assert marks_of(bad, one, same) == ["", "*", "*"]


def marks_of(*results: VariantResult) -> list[str]:
    stream = io.StringIO()
    results_shown.write(results, stream)
    text = stream.getvalue()
    assert "with layout a, 9 shared bytes" in text
    assert ("\n+ costs more" in text) == any("+" in line[:1] for line in text.splitlines()[3:6])
    return [line[:1].strip() for line in text.splitlines()[3 : 3 + len(results)]]


def test_what_a_source_includes_is_a_part_of_it(folder: Path) -> None:
    (folder / "pitch.h").write_text("#define PITCH 33\n")
    (folder / "tile.cu").write_text('#include "pitch.h"\n' + CUDA)
    (folder / "in.npy").write_bytes(b"1")

    def keys(compiler: str) -> list[str]:
        texts = {"grid": "1", "block": "32,32", "args": ["@in.npy"], "options": ["-DPAD=0..1"]}
        return [variant.key for variant in variants("tile.cu", {**texts, "compiler": compiler})]

    for compiler in ("nvrtc", "nvcc"):
        before = keys(compiler)
        (folder / "other.h").write_text("#define PITCH 32\n")
        assert keys(compiler) == before
        for changed in ("pitch.h", "in.npy"):
            (folder / changed).write_text((folder / changed).read_text() + "\n")
            now = keys(compiler)
            assert not {*now} & {*before}
            before = now


def test_a_range_of_billions_is_refused(folder: Path) -> None:
    assert len(alternatives("1..1000000")) == 1_000_000
    for text in ("1..2000000000", f"-{10**18 - 1}..{10**18 - 1}"):
        with pytest.raises(memsim.MemsimError, match="values; at most 1,048,576"):
            alternatives(text)
    assert alternatives("1.." + "9" * 5000) == ("1.." + "9" * 5000,)


@pytest.mark.parametrize("value", ["1", "a\u2028b", "a\nb", 'a"b'])
def test_values_come_back_whatever_they_are_made_of(value: str, tmp_path: Path) -> None:
    file = kept_in(tmp_path / "r.csv", ("A",))
    result = VariantResult({"A": value}, Counts(wavefronts=1), "key")
    file.write([])
    file.add(result)
    assert file.read() == [result]


def test_a_file_that_is_no_csv(tmp_path: Path) -> None:
    file = kept_in(tmp_path / "r.csv", ("A",))
    file.write([VariantResult({"A": "x" * 1000}, Counts(), "key")])
    assert len(file.read()) == 1
    file.write([VariantResult({"A": "x" * 200_000}, Counts(), "key")])
    with pytest.raises(memsim.MemsimError, match="cannot read the results: field larger"):
        file.read()
