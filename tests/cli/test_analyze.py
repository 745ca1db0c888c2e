"""`memsim analyze`, from the words typed to what is printed and returned."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from memsim.kernels import catalog
from memsim.trace.trace import Trace
from tests.assembler import needs_assembler
from tests.cli.conftest import Run

SMALL = "--size 128,128,16"
LAUNCH = "--grid 4 --block 64 --arg 'f32[200]' --arg 2.0 --arg 200"
MACROS = "-DN=64 -D STRIDE=2"
PROJECT = """
budgets = ["ways <= 4"]

[[targets]]
name = "double"
file = "FILE"
grid = [4]
block = [64]
args = ["f32[200]", "2.0", "200"]
options = ["-DN=64", "-DSTRIDE=2"]
"""


def test_a_catalogue_kernel(memsim: Run) -> None:
    done = memsim("analyze kernel_v4", SMALL)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("kernel_v4: conflict-free: ")
    assert "(kernel_v4.cu):" in done.out
    assert done.out.splitlines()[1].startswith("Time: about ") and "(an estimate, " in done.out
    assert done.out.splitlines()[-1].startswith("Not modelled in these counts: ")


@pytest.mark.slow
def test_totals_under_the_names_of_ncu(memsim: Run) -> None:
    metric = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
    assert metric in memsim("analyze kernel_v4", SMALL, "--metrics").out
    assert metric not in memsim("analyze kernel_v4", SMALL).out


@pytest.mark.slow
def test_the_order_of_the_rows(memsim: Run) -> None:
    first = {
        sort: memsim("analyze kernel_v4_colmajor", SMALL, "--sort", sort).out.splitlines()[6].split()[0]
        for sort in ("cost", "waste", "line")
    }
    assert first == {"cost": "52", "waste": "40", "line": "40"}


@pytest.mark.slow
def test_several_processes_say_the_same(memsim: Run, scale: Path) -> None:
    one = memsim("analyze", scale, LAUNCH, MACROS, "--no-cache --json")
    two = memsim("analyze", scale, LAUNCH, MACROS, "--no-cache --json -j 2")
    assert (two.code, two.err, two.document()) == (0, one.err, one.document())
    single = memsim("analyze", scale, LAUNCH.replace("grid 4", "grid 1"), MACROS, "--no-cache -j 2")
    assert "note: one process counts all blocks: it is one block" in single.err


@pytest.mark.slow
def test_json_has_the_same_records_as_python(memsim: Run) -> None:
    made = memsim("analyze kernel_v4_colmajor", SMALL, "--json").document()
    assert made == catalog()["kernel_v4_colmajor"].analyze(size=(128, 128, 16)).to_dict()
    assert "bank conflict" in made["verdict"]


@pytest.mark.slow
def test_size_changes_the_launch(memsim: Run) -> None:
    small = memsim("analyze kernel_v4", SMALL, "--json").document()
    wide = memsim("analyze kernel_v4 --size 128,256,16 --json").document()
    assert wide["launch"]["blocks"] == 2 * small["launch"]["blocks"]
    memsim("analyze kernel_v4 --size 128,128").refused("M,N,K")
    memsim("analyze kernel_v4 --size 128,128,x").refused("M,N,K")


@pytest.mark.slow
def test_fewer_blocks_are_said_in_the_answer(memsim: Run) -> None:
    size = "--size 256,256,16"
    some = memsim("analyze kernel_v4", size, "--blocks 2 --json").document()
    every = memsim("analyze kernel_v4", size, "--json").document()
    assert some["launch"]["blocks_replayed"] == 2
    assert some["verdict"].endswith("; 2 of 4 blocks replayed")
    assert "blocks replayed" not in every["verdict"]
    for metric, total in some["totals"].items():
        assert 2 * total == every["totals"][metric]
    memsim("analyze kernel_v4 --blocks 0").refused("--blocks")


def test_more_steps_than_allowed_are_refused(memsim: Run) -> None:
    assert memsim("analyze kernel_v4", SMALL, "--max-steps 100000 --json").document()["sites"]
    memsim("analyze kernel_v4", SMALL, "--max-steps 1000").refused("after 1,000 instr", "--max-steps")


@pytest.mark.slow
def test_a_cuda_file_with_macros_and_arguments(memsim: Run, scale: Path) -> None:
    made = memsim("analyze", scale, LAUNCH, MACROS, "--json").document()
    assert made["kernel"] == "scale"
    assert made["launch"]["grid"] == [4, 1, 1]
    (store,) = [site for site in made["sites"] if (site["space"], site["op"]) == ("shared", "store")]
    assert (store["line"], store["array"], store["max_ways"]) == (4, "tile", 2)
    assert store["source"] == "tile[threadIdx.x * STRIDE % N] = i < n ? data[i] : 0.0f;"
    assert [site["requests"] for site in made["sites"] if site["space"] == "global"] == [7, 7]

    without_stride = memsim("analyze", scale, LAUNCH, "-DN=64 -DSTRIDE=1 --json").document()
    assert without_stride["verdict"].startswith("scale: conflict-free")


@pytest.mark.slow
@needs_assembler
def test_a_ptx_file_takes_everything_but_macros(memsim: Run, scale: Path, tmp_path: Path) -> None:
    from studies.kernel_ptx import compile_cuda

    ptx = tmp_path / "scale.ptx"
    ptx.write_text(compile_cuda(scale, ["-DN=64", "-DSTRIDE=2"]))
    from_ptx = memsim("analyze", ptx, LAUNCH, "--json").document()
    from_source = memsim("analyze", scale, LAUNCH, MACROS, "--json").document()
    assert [name for name, _ in from_ptx["code"].pop("files")] == ["scale.ptx", "scale.cu"]
    assert from_source["code"].pop("files") == []
    assert from_ptx["code"]["form"] == from_source["code"]["form"] == "machine code"
    assert {site["line"] for site in from_ptx["sites"]} == {site["line"] for site in from_source["sites"]}
    memsim("analyze", ptx, LAUNCH, MACROS).refused("-D does not apply to a PTX file")


@pytest.mark.slow
def test_an_array_from_a_file_decides_addresses(memsim: Run, tmp_path: Path) -> None:
    gather = tmp_path / "gather.cu"
    gather.write_text(
        'extern "C" __global__ void gather(const int *index, const float *in, float *out) {\n'
        "    out[threadIdx.x] = in[index[threadIdx.x]];\n"
        "}\n"
    )
    np.save(tmp_path / "spread.npy", np.arange(32, dtype=np.int32) * 8)
    launch = "--grid 1 --block 32"
    rest = "--arg 'f32[256]' --arg 'f32[32]' --json"
    spread = memsim("analyze", gather, launch, "--arg", f"@{tmp_path / 'spread.npy'}", rest).document()
    near = memsim("analyze", gather, launch, "--arg 'i32[32]=iota'", rest).document()
    same = memsim("analyze", gather, launch, "--arg 'i32[32]=zeros'", rest).document()
    metric = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
    assert [made["totals"][metric] for made in (spread, near, same)] == [4 + 32, 4 + 4, 4 + 1]


def test_dynamic_shared_memory(memsim: Run, tmp_path: Path) -> None:
    path = tmp_path / "dynamic.cu"
    path.write_text(
        'extern "C" __global__ void k() { extern __shared__ int tile[]; tile[threadIdx.x] = 1; }\n'
    )
    launch = ("analyze", path, "--grid 1 --block 32 --json")
    assert memsim(*launch, "--shared-bytes 128").document()["launch"]["shared_bytes"] == 128
    memsim(*launch, "--shared-bytes 64").refused("shared")
    memsim(*launch, "--shared-bytes -1").refused("--shared-bytes")


@pytest.mark.slow
def test_kernel_is_needed_only_where_there_are_several(memsim: Run, scale: Path) -> None:
    one = memsim("analyze", scale, LAUNCH, MACROS, "--kernel scale --json").document()
    assert one["kernel"] == "scale"
    scale.write_text(scale.read_text() + 'extern "C" __global__ void other() {}\n')
    memsim("analyze", scale, LAUNCH, MACROS).refused("it contains 2 kernels", "--kernel", "other", "scale")
    assert memsim("analyze", scale, LAUNCH, MACROS, "--kernel scale --json").document() == one
    memsim("analyze", scale, LAUNCH, MACROS, "--kernel scal").refused("scal", "scale")
    scale.write_text("__device__ int nothing;\n")
    memsim("analyze", scale, LAUNCH).refused("no kernel")


@pytest.mark.slow
def test_a_saved_trace_gives_the_same_report(memsim: Run, tmp_path: Path) -> None:
    path = tmp_path / "v4.npz"
    direct = memsim("analyze kernel_v4", SMALL, "--save-trace", path)
    saved = memsim("analyze", path)
    assert (direct.code, saved.code) == (0, 0)
    timed, without = direct.out.splitlines(), saved.out.splitlines()
    assert timed.pop(1).startswith("Time: ") and timed == without  # a trace has no machine code
    assert isinstance(Trace.load(path), Trace)
    assert memsim("analyze", path, "--json").document()["verdict"] == saved.out.splitlines()[0]

    for name in ("v4.txt", "v4"):
        other = tmp_path / name
        memsim("analyze kernel_v4", SMALL, "--save-trace", other).refused(name, "name it v4.npz")
        assert not other.exists()

    path.write_bytes(path.read_bytes()[:100])
    memsim("analyze", path).refused("error: ", "not a complete memsim trace")
    memsim("analyze kernel_v4", SMALL, "--save-trace", tmp_path / "no" / "v4.npz").refused("cannot write")


def test_arch_is_checked(memsim: Run) -> None:
    assert memsim("analyze kernel_v4", SMALL, "--arch sm_90 --json").document()["arch"] == "sm_90"
    memsim("analyze kernel_v4", SMALL, "--arch sm_50").refused("sm_50", "known: sm_75, sm_80, sm_86")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("kernel_v4 --grid 8", "--grid does not apply to a catalogue kernel"),
        ("kernel_v4 --block 8", "--block does not apply to a catalogue kernel"),
        ("kernel_v4 --kernel k", "--kernel does not apply to a catalogue kernel"),
        ("kernel_v4 --arg 1", "--arg does not apply to a catalogue kernel"),
        ("kernel_v4 -DN=1", "-D does not apply to a catalogue kernel"),
        ("kernel_v4 --shared-bytes 0", "--shared-bytes does not apply to a catalogue kernel"),
        ("any.cu --size 8,8,8", "--size does not apply to a CUDA file"),
        ("any.npz --size 8,8,8", "--size does not apply to a saved trace"),
        ("any.npz --blocks 1", "--blocks does not apply to a saved trace"),
        ("any.npz --max-steps 1", "--max-steps does not apply to a saved trace"),
        ("any.cu --block 8", "k() needs --grid"),
        ("any.cu --grid 8,x --block 8", "'8,x' is not a list of integers"),
        ("any.cu --grid 0 --block 8", "grid must be one to three positive integers"),
        ("any.cu --grid 1,1,1,1 --block 8", "grid must be one to three positive integers"),
        ("any.cu --grid 8 --block 2048", "2048"),
        ("any.cu --grid 8 --block 8 --arg 1", "takes 0 arguments"),
        ("none.cu --grid 8 --block 8", "none.cu"),
        ("none.ptx --grid 8 --block 8", "none.ptx"),
        ("none.npz", "none.npz: there is no such file"),
        ("kernel_v44", "did you mean kernel_v4"),
        ("", "Missing argument 'TARGET'"),
        ("kernel_v4 --sise 1,1,1", "--size"),
    ],
)
def test_wrong_words_give_one_clear_error(
    memsim: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, message: str
) -> None:
    (tmp_path / "any.cu").write_text('extern "C" __global__ void k() {}\n')
    monkeypatch.chdir(tmp_path)
    memsim("analyze", words).refused(message)


def test_the_good_twin_of_the_wrong_words(
    memsim: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "any.cu").write_text('extern "C" __global__ void k() {}\n')
    monkeypatch.chdir(tmp_path)
    done = memsim("analyze any.cu --grid 8 --block 8")
    assert (done.code, done.out.splitlines()[0]) == (0, "k: no shared or global access was made")


@pytest.mark.slow
def test_the_folder_changes_nothing(memsim: Run, tmp_path: Path) -> None:
    here = memsim("analyze kernel_v4", SMALL, "--json").document()
    command = (sys.executable, *f"-m memsim analyze kernel_v4 {SMALL} --json".split())
    there = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(there.stdout) == here
    assert all(site["source"] and site["array"] for site in here["sites"])


@pytest.mark.slow
def test_a_target_of_the_project_goes_by_its_name(
    memsim: Run, scale: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memsim.toml").write_text(PROJECT.replace("FILE", scale.name))
    monkeypatch.chdir(tmp_path)
    found = memsim("analyze double --json").document()
    assert found["sites"] == memsim("analyze", scale.name, LAUNCH, MACROS, "--json").document()["sites"]
    assert "2 of 4 blocks replayed" in memsim("analyze double --blocks 2 --json").document()["verdict"]
    assert memsim("explain double --line 4").code == 0
    memsim("analyze double --grid 8").refused("--grid does not apply to a target of a project")
    memsim("analyze triple").refused("there is no kernel 'triple'")


@pytest.mark.slow
def test_machine_instructions_below_each_line(memsim: Run, scale: Path) -> None:
    found = memsim("analyze", scale, LAUNCH, MACROS, "--sass --json").document()
    for site in found["sites"]:
        assert [row["address"] % 16 for row in site["sass"]] == [0] * len(site["sass"])
        for count in ("instructions", "requests", "wavefronts", "sectors"):
            rows = [row[count] for row in site["sass"]]
            assert (None if None in rows else sum(rows)) == site[count]
    printed = memsim("analyze", scale, LAUNCH, MACROS, "--sass").out
    (store,) = [site for site in found["sites"] if (site["space"], site["op"]) == ("shared", "store")]
    assert all(f"{row['address']:#06x}" in printed and row["text"] in printed for row in store["sass"])
    assert "sass" not in memsim("analyze", scale, LAUNCH, MACROS, "--json").document()["sites"][0]


@pytest.mark.slow
def test_a_load_outside_of_arrays_can_be_allowed(memsim: Run, tmp_path: Path) -> None:
    source = tmp_path / "left.cu"
    source.write_text(
        'extern "C" __global__ void left(const float *in, float *out)'
        "{ int i = threadIdx.x; out[i] = in[i - 1]; }"
    )
    launch = (source, "--grid 1 --block 32 --arg 'f32[32]' --arg 'f32[32]'")
    memsim("analyze", *launch).refused(
        "out-of-bounds LDG.E of 4 bytes, 4 bytes before in", "--allow-out-of-bounds"
    )
    allowed = memsim("analyze", *launch, "--allow-out-of-bounds --json").document()
    assert [site["requests"] for site in allowed["sites"]] == [1, 1]
    assert allowed["notes"] == ["reads outside of every array (1 requests)"]
