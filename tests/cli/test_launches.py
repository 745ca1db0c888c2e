"""Launches on the command line: saved, read again, from Triton's cache, and of scripts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from memsim.argument_types import ArrayArg
from memsim.captured import session
from memsim.compile.cuda_source import compile_cubin
from tests.assembler import needs_assembler
from tests.cli.conftest import Done, Run

OPTIONS = "-DN=64 -DSTRIDE=2"
LAUNCH = "--grid 4 --block 64 --arg 'f32[200]' --arg 2.0 --arg 200"


def counts(done: Done) -> object:
    assert (done.code, done.err) == (0, "")
    return [(s["line"], s["op"], s["array"], s["requests"]) for s in json.loads(done.out)["sites"]]


def test_a_saved_launch_is_analyzed_again(memsim: Run, scale: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "data.npy", np.zeros(200, np.float32))
    launch = f"--grid 4 --block 64 --arg @{tmp_path / 'data.npy'} --arg 2.0 --arg 200"
    saved = tmp_path / "saved"
    first = memsim("analyze", scale, launch, OPTIONS, "--json --save-launch", saved)
    files = {path.name for path in saved.iterdir()}
    assert files >= {"launch.json", "kernel.cubin", "array0.npy", "scale.cu"}
    scale.unlink()
    assert counts(memsim("analyze", saved / "launch.json", "--json")) == counts(first)
    shown = memsim("analyze", saved / "launch.json").out
    assert "(scale.cu):" in shown and "if (i < n) data[i] = factor *" in shown
    assert "1 of 4 blocks replayed" in memsim("analyze", saved / "launch.json", "--blocks 1").out
    assert counts(memsim("analyze", saved, "--json")) == counts(first)
    (saved / "launch.json").rename(saved / "other.json")
    memsim("analyze", saved).refused("it is a folder", "memsim list FILE")


@pytest.mark.some(2)
def test_a_launch_has_its_own_shape(memsim: Run, scale: Path, tmp_path: Path) -> None:
    assert memsim("analyze", scale, LAUNCH, OPTIONS, "--save-launch", tmp_path / "l").code == 0
    for option in (("--grid", "4"), ("--arg", "1"), ("-D", "N=1")):
        memsim("analyze", tmp_path / "l" / "launch.json", *option).refused(
            f"{option[0]} does not apply to a launch"
        )


def test_a_launch_that_reads_a_little_too_far(memsim: Run, tmp_path: Path) -> None:
    source, saved = tmp_path / "far.cu", tmp_path / "saved"
    source.write_text(
        'extern "C" __global__ void far(const float *in, float *out)'
        "{ out[threadIdx.x] = in[threadIdx.x + 1]; }"
    )
    launch = "--grid 1 --block 32 --arg 'f32[32]' --arg 'f32[32]'"
    allow = "--allow-out-of-bounds"
    first = memsim("analyze", source, launch, allow, "--json --save-launch", saved)
    memsim("analyze", saved / "launch.json").refused("out-of-bounds", allow)
    assert counts(memsim("analyze", saved / "launch.json", allow, "--json")) == counts(first)


def test_a_saved_trace_has_no_launch_to_save(memsim: Run, tmp_path: Path) -> None:
    trace = tmp_path / "t.npz"
    assert memsim("analyze transpose_xor --size 64,64 --save-trace", trace).code == 0
    assert memsim("analyze", trace).code == 0
    memsim("analyze", trace, "--save-launch", tmp_path / "l").refused("a saved trace has no launch to save")


@pytest.mark.slow
@needs_assembler
def test_a_launch_with_ptx_only_is_assembled(memsim: Run, scale: Path, tmp_path: Path) -> None:
    from studies.kernel_ptx import compile_cuda

    done = memsim("analyze", scale, LAUNCH, OPTIONS, "--save-launch", tmp_path)
    assert done.code == 0
    record = json.loads((tmp_path / "launch.json").read_text("utf-8"))
    (tmp_path / "kernel.ptx").write_text(compile_cuda(scale, ["-DN=64", "-DSTRIDE=2"], name="scale.cu"))
    only = {key: value for key, value in record.items() if key not in ("listing", "made_by")}
    (tmp_path / "launch.json").write_text(json.dumps({**only, "code": "kernel.ptx"}))
    again = memsim("analyze", tmp_path / "launch.json")
    assert "Code: machine code of sm_90" in again.out


# --- Triton's cache, as it lies on disk

CACHED = """
extern "C" __global__ void add(const float *x, float *out, int n, char *global_scratch, char *more) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + (global_scratch ? global_scratch[i] : 0);
}"""
TTIR = """module {
  tt.func public @add(%x: !tt.ptr<f32> loc("x"(#loc)), %out: !tt.ptr<f32> {tt.divisibility = 16}, %n: i32) {
"""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / "ABCDEF"
    folder.mkdir()
    (folder / "add.cubin").write_bytes(compile_cubin(CACHED).cubin)
    (folder / "add.ttir").write_text(TTIR)
    metadata = {"name": "add", "num_warps": 2, "num_ctas": 1, "shared": 0, "triton_version": "3.9.0"}
    (folder / "add.json").write_text(json.dumps(metadata))
    (folder / "__grp__add.json").write_text("{}")
    return folder


def test_a_folder_of_tritons_cache(memsim: Run, cache: Path) -> None:
    arrays = "--arg 'f32[250]' --arg 'f32[250]'"
    launch = f"--grid 4 {arrays} --arg 250"
    done = memsim("analyze", cache, launch)
    done.fine()
    assert done.out.startswith("add: coalesced: 64 global sectors")
    assert "block (64,1,1)" in done.out and "made by Triton 3.9.0 (ptxas" in done.out
    for wrong, message in (
        (f"{arrays} --arg 250", "needs --grid"),
        (f"--grid 4 {arrays}", "takes 3 arguments (x: u64, out: u64, n: u32)"),
        (f"{launch} --block 64", "--block does not apply to a folder of Triton's cache"),
        (f"{launch} --kernel sub", "there is no kernel 'sub' in it"),
    ):
        memsim("analyze", cache, wrong).refused(message)


def test_scratch_that_triton_asks_for_is_there(memsim: Run, cache: Path) -> None:
    metadata = json.loads((cache / "add.json").read_text())
    (cache / "add.json").write_text(json.dumps({**metadata, "global_scratch_size": 64}))
    done = memsim("analyze", cache, "--grid 4 --arg 'f32[256]' --arg 'f32[256]' --arg 256")
    assert "global_scratch" in done.out
    (cache / "add.json").write_text("{}")
    memsim("analyze", cache, "--grid 4").refused("this is not a Triton kernel description")


def test_a_folder_that_is_no_cache_is_none(memsim: Run, tmp_path: Path) -> None:
    memsim("analyze", tmp_path).refused("it is a folder", "memsim list FILE")


# --- scripts


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package whose kernels are launched by `launch(...)`, and what captures it."""
    from contextlib import contextmanager

    from memsim.api.loading import from_cubin
    from memsim.captured.launched import Launched

    package, capturing = ModuleType("fakepack"), ModuleType("fakepack_capturing")

    @contextmanager
    def capture(keep: Callable[[Launched], None], arch: str):  # type: ignore[no-untyped-def]
        kernel = from_cubin(compile_cubin(CACHED).cubin)["add"]
        args = (ArrayArg((64,)), ArrayArg((64,)), 64, None, None)
        package.launch = lambda grid: keep(Launched(kernel, (grid, 1, 1), (64, 1, 1), args, note="n=64"))  # type: ignore[attr-defined]
        yield

    capturing.capture_launches = capture  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fakepack", package)
    monkeypatch.setitem(sys.modules, "fakepack_capturing", capturing)
    monkeypatch.setattr(session, "PACKAGES", {"fakepack": "fakepack_capturing"})
    monkeypatch.setattr("memsim.captured.session.PACKAGES", {"fakepack": "fakepack_capturing"})


@pytest.mark.usefixtures("package")
def test_a_script_is_captured(memsim: Run, tmp_path: Path) -> None:
    script, run = tmp_path / "s.py", tmp_path / "run"
    (tmp_path / "grids.py").write_text("GRID = 2")
    script.write_text(
        "import sys, grids, fakepack\nfakepack.launch(grids.GRID)\nfakepack.launch(len(sys.argv))\n"
    )
    done = memsim("capture -o", run, script, "--flag more")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        f"{run / '000_add' / 'launch.json'}  grid (2,1,1), block (64,1,1)  n=64",
        f"{run / '001_add' / 'launch.json'}  grid (3,1,1), block (64,1,1)  n=64",
        f"2 launches of {script}",
    ]
    assert memsim("analyze", run / "001_add" / "launch.json").out.startswith(
        "add: coalesced: 16 global sectors"
    )


@pytest.mark.some(1)
@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("import fakepack\nfakepack.launch(1)\n1 / 0\n", 2, "s.py:3: the script ends with ZeroDivisionError"),
        ("import sys\nsys.exit(3)\n", 2, "the script exits with 3"),
        ("import sys\nsys.exit(0)\n", 0, ""),
        ("def\n", 2, "the script ends with SyntaxError"),
    ],
)
def test_a_script_that_ends_badly(memsim: Run, tmp_path: Path, text: str, code: int, message: str) -> None:
    script, before = tmp_path / "s.py", (list(sys.argv), list(sys.path))
    script.write_text(text)
    done = memsim("capture -o", tmp_path / "run", script)
    assert done.code == code and message in done.err and "Traceback" not in done.err
    assert (tmp_path / "run" / "000_add" / "launch.json").is_file() == ("launch" in text)
    assert (sys.argv, sys.path) == before


@pytest.mark.some(1)
@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("raise RuntimeError('Found no NVIDIA driver on your system')", True),
        ("raise AssertionError('Torch not compiled with CUDA enabled')", True),
        ("class X: is_cuda = False\nassert X().is_cuda", True),
        ("1 // 0  # blocks of a GPU", False),
        ("raise AttributeError(\"'GPUTarget' object has no attribute 'is_cuda_backend'\")", False),
        ("raise ValueError('n is negative')", False),
    ],
)
def test_a_hint_about_a_gpu_is_given_where_it_fits(
    memsim: Run, tmp_path: Path, text: str, hint: bool
) -> None:
    (tmp_path / "s.py").write_text(text + "\n")
    done = memsim("capture -o", tmp_path / "run", tmp_path / "s.py")
    assert done.code == 2 and "the script ends with" in done.err
    assert ("hint: without a GPU, tensors must be on the CPU" in done.err) == hint == ("hint:" in done.err)


LATE = """
import atexit, os, sys
class Late:
    def __del__(self, write=os.write): write(2, b"leaked 45 lines")
sys.late = Late()
{script}
from memsim.cli import main
sys.argv[1:] = ["list", "absent.cu"]
code = main()
atexit.register(lambda: print("goodbye", file=sys.stderr))
sys.exit(code)
"""


@pytest.mark.some(1)
@pytest.mark.parametrize("script", ["", "import memsim.cli.capture"])
def test_libraries_of_a_script_do_not_hide_its_last_lines(script: str) -> None:
    """What Python's end makes them write is left out; what the script itself writes then is not."""
    done = subprocess.run(
        [sys.executable, "-c", LATE.format(script=script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and done.stderr.startswith("error: ") and "\ngoodbye\n" in done.stderr
    assert ("leaked 45 lines" in done.stderr) == (not script)


def test_the_help_of_capture_names_what_can_be_captured(memsim: Run) -> None:
    names = {
        "triton": "Triton",
        "warp": "Warp",
        "cutlass": "CuTe DSL",
    }
    assert set(names) == set(session.PACKAGES)
    said = " ".join(memsim("capture --help").out.split())
    assert [name for name in names.values() if name not in said] == []


@pytest.mark.usefixtures("package")
def test_a_folder_with_something_in_it_is_not_written_to(memsim: Run, tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text("")
    memsim("capture -o", tmp_path, tmp_path / "s.py").refused("the output folder is not empty")
    memsim("capture -o", tmp_path / "run", tmp_path / "none.py").refused("there is no file")
