"""Every door takes a function in Python: the command line, memsim.toml, pytest; and other tools' traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import memsim
from memsim.cli import main
from memsim.sketch.python_function import PythonFunction, value_of
from memsim.targets.target import split_target
from tests.cli.conftest import Done
from tests.cli.conftest import memsim as run  # noqa: F401  # the fixture of the command line

pytest_plugins = ("pytester",)

LAYOUTS = """\
import memsim


def transpose(t, pad=1, layout=None):
    tile = memsim.SharedArray("tile", layout or (32, 32 + pad), "f32")
    tile[t.y, t.x].store()
    t.sync()
    tile[t.x, t.y].load()


def copy(t, array):
    memsim.GlobalArray("a", 4096)[t.blockIdx.x * 32 + t.x * array].load()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "layouts.py").write_text(LAYOUTS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_analyze_and_its_parameters(folder: Path, run: Any) -> None:  # noqa: F811
    done: Done = run("analyze layouts.py:transpose --block 32,32")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("transpose: conflict-free: 64 shared wavefronts")
    assert "8  tile[t.x, t.y].load()" in done.out
    worse = run("analyze layouts.py:transpose --block 32,32 -D pad=0")
    assert "the load at layouts.py:8: 32-way bank conflict" in worse.out
    layout = "-D 'layout=Sw<5,0,5> o (32,32):(32,1)'"
    swizzled = run("analyze layouts.py --kernel transpose --block 32,32 --json", layout)
    assert json.loads(swizzled.out)["sites"][1]["max_ways"] == 1
    wide = run("analyze layouts.py:copy --grid 4 --block 32 --arg 2 --blocks 2")
    assert "2 of 4 blocks replayed" in wide.out
    assert "8.0 sectors per request" in wide.out


def test_pictures_and_pages(folder: Path, run: Any) -> None:  # noqa: F811
    target = "layouts.py:transpose --block 32,32 -D pad=0"
    assert "32!" in run("heatmap", target).out
    assert "tile[0][0] (lane 0) | tile[1][0] (lane 1)" in run("explain", target).out
    assert run("report", target, "-o r.html").code == 0
    assert "tile[t.x, t.y].load()" in (folder / "r.html").read_text("utf-8")
    compared = run("compare layouts.py:transpose transpose_naive --block 32,32")
    assert compared.code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("layouts.py:transpose", "needs --block"),
        ("layouts.py --block 32", "there are 2 functions in it"),
        ("layouts.py:nothing --block 32", "there is no function nothing in it"),
        ("none.py:transpose --block 32", "none.py: there is no such file"),
        ("layouts.py:transpose --block 32,32 -D pod=1", "transpose has no parameter pod"),
        ("layouts.py:transpose --block 32,32 -D pad", "does not set a parameter of a function"),
        ("layouts.py:transpose --block 32,32 --size 1", "--size does not apply to a function"),
        ("layouts.py:transpose --block 32,33 -D pad=0", "has 1056 threads"),
        ("layouts.py:transpose --block 33,31", "layouts.py:8: index 32"),
        ("layouts.py:transpose --block 32,32 -D 'layout=(8'", "layouts.py:5: '(8': expected , or )"),
        ("broken.py:f --block 32", "broken.py:1:"),
        ("raises.py:f --block 32", "raises.py:2: ZeroDivisionError"),
    ],
)
def test_mistakes_have_no_traceback(
    folder: Path,
    run: Any,  # noqa: F811
    arguments: str,
    message: str,
) -> None:
    (folder / "broken.py").write_text("def f(t:\n")
    (folder / "raises.py").write_text("def f(t):\n    1 / 0\n")
    run("analyze", arguments).refused(message)


def test_what_cannot_be_run(folder: Path, run: Any) -> None:  # noqa: F811
    run("validate layouts.py:transpose --live --block 32,32").refused("cannot be run")
    with pytest.raises(memsim.MemsimError, match="no machine code, only recorded accesses"):
        memsim.run(lambda t: None, 1, 32)  # type: ignore[arg-type]


TOML = """\
budgets = ["ways <= 1"]

[[targets]]
file = "layouts.py:transpose"
block = [32, 32]

[[targets]]
file = "layouts.py"
kernel = "transpose"
name = "unpadded"
options = ["-Dpad=0"]
block = [32, 32]

[[targets]]
file = "saved.traceg"
"""


@pytest.mark.slow
def test_check_and_its_baseline(folder: Path, run: Any) -> None:  # noqa: F811
    (folder / "memsim.toml").write_text(TOML)
    run("analyze layouts.py:transpose --block 32,32 --save-trace saved.traceg")
    done = run("check")
    assert done.code == 1
    assert "layouts.py:8: lanes 0-31 of warp 0, block (0,0,0) meet in bank 0: 32 different words" in done.out
    assert "FAILED: 1 of 3 checks failed, in unpadded" in done.out
    (folder / "memsim.toml").write_text(TOML.replace('budgets = ["ways <= 1"]', ""))
    assert run("baseline").code == 0
    assert 'read = "index math in Python' in (folder / "memsim-baseline.toml").read_text()
    assert run("check").code == 0
    (folder / "layouts.py").write_text(LAYOUTS.replace("pad=1", "pad=2"))
    assert run("check").code == 1
    assert run("check --jobs 2").code == 1


def test_the_project_names_a_target(folder: Path, run: Any) -> None:  # noqa: F811
    (folder / "memsim.toml").write_text(TOML.replace('[[targets]]\nfile = "saved.traceg"\n', ""))
    assert "32-way bank conflict" in run("analyze unpadded").out
    (folder / "memsim.toml").write_text(TOML.replace("layouts.py:transpose", "none.py:transpose"))
    done = run("check")
    assert done.code == 2
    assert "there is no file none.py" in done.out


def test_pytest(pytester: pytest.Pytester) -> None:
    (pytester.path / "layouts.py").write_text(LAYOUTS)
    pytester.makepyfile("""
        import pytest
        import memsim as m

        def transpose(t, pad):
            tile = m.SharedArray("tile", (32, 32 + pad))
            tile[t.y, t.x].store()
            tile[t.x, t.y].load()

        @pytest.mark.memsim("ways <= 1", file="layouts.py:transpose", block=(32, 32))
        def test_good():
            pass

        @pytest.mark.memsim("ways <= 1", file="layouts.py:transpose", block=(32, 32), options=["-Dpad=0"])
        def test_bad():
            pass

        def test_function(memsim):
            analysis = memsim.analyze(transpose, block=(32, 32), args=[1])
            memsim.check(analysis, "ways <= 1")

        def test_bad_function(memsim):
            memsim.check(memsim.analyze(transpose, block=(32, 32), args=[0]), "ways <= 1")

        def test_without_a_block(memsim):
            memsim.analyze(transpose, args=[1])
    """)
    result = pytester.runpytest_inprocess("--strict-markers", "-pno:cacheprovider", "-pno:xdist")
    result.assert_outcomes(passed=2, failed=3)
    result.stdout.fnmatch_lines(["*layouts.py:8*tile?t.x, t.y?.load()*", "*error: transpose needs block=*"])


def test_names_and_values() -> None:
    assert split_target("a/layouts.py:f") == ("a/layouts.py", "f")
    assert split_target("layouts.py") == ("layouts.py", None)
    assert split_target("kernel_v4") == ("kernel_v4", None)
    assert [value_of(text) for text in ("3", "(4, 5)", "0x10", "f16", "(8,64):(64,1)", "1.5")] == [
        3, (4, 5), 16, "f16", "(8,64):(64,1)", 1.5,
    ]  # fmt: skip
    for text in ("{[1]:2}", "-" * 100_000 + "1", "(" * 500):
        assert value_of(text) == text


def test_what_lies_beside_the_file_can_be_imported(folder: Path) -> None:
    (folder / "beside.py").write_text("PAD = 1\n")
    (folder / "uses.py").write_text(
        "import memsim\nfrom beside import PAD\n\n\ndef f(t):\n"
        '    memsim.SharedArray("tile", (32, 32 + PAD))[t.x, 0].load()\n'
    )
    source = PythonFunction(folder, "uses.py")
    from memsim.launch import Launch

    trace = source.trace(Launch((1, 1, 1), (32, 1, 1)), (), None, None)
    assert (trace.kernel, trace.sites[0].file, trace.sites[0].line) == ("f", "uses.py", 6)


def test_suggestions_for_index_math_are_exact_and_look_at_global_accesses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All requests are told apart, and those of the first block are where they lie; nothing is compiled."""
    (tmp_path / "t.py").write_text(
        "import memsim\n"
        "def f(t):\n"
        "    tile, out = memsim.SharedArray('tile', (32, 48)), memsim.GlobalArray('out', (32, 32))\n"
        "    tile[t.x, t.y].load()\n"
        "    out[t.x, t.y].store()\n"
    )
    assert main(["suggest", f"{tmp_path / 't.py'}:f", "--block", "32,32", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert all(proposal["certain"] for array in found["arrays"] for proposal in array["proposals"])
    (staging,) = found["staging"]
    assert (staging["array"], staging["sectors"]) == ("out", {"before": 1024, "after": 128})
    assert (found["proof"], found["remapped"]) == (None, [])
