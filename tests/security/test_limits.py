"""What takes for ever is ended and named, with the way to allow it more; what does not is untouched."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from memsim.boundary import boundary_of, confined_to
from memsim.compile import assemble, libraries
from memsim.compile.cuda_source import compile_cubin
from memsim.errors import MemsimError
from memsim.programs import VARIABLE, run_program, time_left, within_time_limit
from tests.security.conftest import Place, Run

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
MACROS = "#define M0 +1\n" + "".join(f"#define M{n + 1} {f'M{n} ' * 10}\n" for n in range(8))
KERNEL = 'extern "C" __global__ void k(float *o) { o[threadIdx.x] = 0 SUM; }\n'
ENDLESS = MACROS + KERNEL.replace("SUM", "M8")
SLOW = """\
extern "C" __global__ void slow(float *o, int n) {
    float sum = 0;
    for (int i = 0; i < n; i++) sum += o[(i * 37 + threadIdx.x) % 1024];
    o[threadIdx.x] = sum;
}
"""
CONFIG = """\
[[targets]]
name = "NAME"
file = "slow.cu"
grid = 1
block = 32
args = ["f32[1024]", COUNT]
budgets = ["sectors_per_request <= 4"]
"""


@pytest.mark.parametrize("compiler", ["nvrtc", pytest.param("nvcc", marks=pytest.mark.slow)])
def test_a_compiler_is_ended(place: Place, monkeypatch: pytest.MonkeyPatch, compiler: str) -> None:
    """A hundred million tokens in nine lines; one compiles."""
    if compiler == "nvcc" and shutil.which("nvcc") is None:
        pytest.skip("needs nvcc")
    path = Path("k.cu")
    path.write_text(KERNEL.replace("SUM", "+1"))
    assert compile_cubin(path, compiler=compiler).cubin
    path.write_text(ENDLESS)
    monkeypatch.setenv(VARIABLE, "1")
    with pytest.raises(MemsimError, match="did not finish within 1 s") as caught:
        compile_cubin(path, compiler=compiler)
    assert caught.value.message.lower().startswith(compiler)
    assert caught.value.file == "k.cu"
    assert caught.value.hint == f"{VARIABLE}=2 in the environment allows it 2 s"


@pytest.mark.slow
@posix
def test_an_assembler_is_ended_with_what_it_started(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """nvcc and ptxas start others, which would go on alone."""
    tool, started = place.project / "ptxas", place.project / "started"
    tool.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exit\nsleep 60 & echo $! > {started}\nwait\n')
    tool.chmod(0o755)
    monkeypatch.setattr(assemble, "find_tools", lambda name, wheels_first: [tool])
    monkeypatch.setenv(VARIABLE, "1")
    with pytest.raises(MemsimError, match="ptxas did not finish within 1 s"):
        assemble.assemble_ptx(".target sm_90\n")
    sleeper = Path(f"/proc/{started.read_text().strip()}/stat")
    deadline = time.monotonic() + 10
    while sleeper.exists() and " Z " not in sleeper.read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not sleeper.exists() or " Z " in sleeper.read_text()


@posix
def test_a_library_that_crashes_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stack that overflows in NVRTC ends its process, and not ours."""
    program = tmp_path / "crash.py"
    program.write_text("import os; os.abort()\n")
    monkeypatch.setattr(libraries, "_PROGRAM", program)
    with pytest.raises(MemsimError, match="NVRTC crashed"):
        compile_cubin(KERNEL.replace("SUM", ""))


@pytest.mark.slow
def test_a_target_is_ended_and_the_others_are_checked(
    memsim: Run, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that runs for ever keeps no other from being judged."""
    Path("slow.cu").write_text(SLOW)
    targets = {"slow": "2000000000", "quick": "4"}
    texts = (CONFIG.replace("NAME", name).replace("COUNT", count) for name, count in targets.items())
    Path("memsim.toml").write_text("".join(texts))
    monkeypatch.setenv(VARIABLE, "2")
    done = memsim("check --no-cache")
    assert done.code == 2
    assert "slow: the analysis did not finish within 2 s" in done.out
    assert "MEMSIM_TIME_LIMIT=4 " in done.out
    assert "quick: budget broken: sectors_per_request <= 4" in done.out


def test_what_is_in_time_is_untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is raised afterwards, and compilers have what is left of the target's time."""
    monkeypatch.setenv(VARIABLE, "0.2")
    with within_time_limit("it"):
        assert 0 < time_left() <= 0.2
    time.sleep(0.3)
    assert time_left() == 0.2


def test_one_thread_watches_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shorter limit after a longer one is kept, by a thread that was there before."""
    monkeypatch.setenv(VARIABLE, "60")
    with within_time_limit("the first"):
        before = threading.active_count()
    for number in range(3):
        with within_time_limit(f"number {number}"):
            assert threading.active_count() == before
    monkeypatch.setenv(VARIABLE, "0.1")
    until = time.monotonic() + 30
    with pytest.raises(MemsimError, match="the endless did not finish"), within_time_limit("the endless"):
        while time.monotonic() < until:
            pass
    assert threading.active_count() == before


def test_a_profiler_sees_the_end_of_a_limit() -> None:
    """Python 3.11 traced nothing else once an exception had been taken back from a thread."""
    script = """
from memsim.programs import within_time_limit
with within_time_limit("it"):
    pass
print(sum(range(9)))
"""
    code = f"import cProfile; cProfile.run({script!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0 and done.stdout.startswith("36\n")


@pytest.mark.slow
def test_what_comes_too_late_is_raised_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that holds the interpreter past its time is told so when it ends, and then never again."""
    monkeypatch.setenv(VARIABLE, "0.1")
    for _ in range(3):
        with pytest.raises(MemsimError, match="did not finish"), within_time_limit("it"):
            time.sleep(0.3)
            for _ in range(1000):
                pass
        for _ in range(1000):
            pass


@pytest.mark.parametrize("text", ["0", "-1", "soon", "nan", "1e99"])
def test_a_limit_is_a_number(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anything else is an error, and no limit at all."""
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(MemsimError, match=f"{VARIABLE} must be a number of seconds"):
        time_left()


def test_a_program_has_no_environment_where_nothing_is_trusted(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens of a CI job are in the environment."""
    monkeypatch.setenv("A_TOKEN", "ghp_x")
    command = [sys.executable, "-c", "import os; print(*os.environ)"]
    assert "A_TOKEN" in run_program(command, "it").stdout.decode().split()
    with confined_to(boundary_of(place.project)):
        names = run_program(command, "it").stdout.decode().split()
    assert "A_TOKEN" not in names
    assert "PATH" in names


@posix
@pytest.mark.slow
def test_a_program_has_less_memory_where_nothing_is_trusted(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets no more, and says so itself; less than the limit it gets."""
    if sys.platform == "darwin":
        pytest.skip("macOS has no limit of memory")
    monkeypatch.setenv("MEMSIM_MEMORY_LIMIT", "0.5")
    command = [sys.executable, "-c", "import sys; bytearray(int(sys.argv[1]) << 20)"]
    with confined_to(boundary_of(place.project)):
        assert run_program([*command, "100"], "it").returncode == 0
        done = run_program([*command, "1000"], "it")
    assert b"MemoryError" in done.stderr
    assert run_program([*command, "1000"], "it").returncode == 0
