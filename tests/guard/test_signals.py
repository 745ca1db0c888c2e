"""Ctrl-C and SIGTERM: no process stays behind, and nobody sees a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes of Linux")

# Two targets that go round for long, in files of their own: those of one file are analyzed by one process.
SPIN = """\
extern "C" __global__ void k(float *o, const volatile int *a, int n) {
    unsigned x = threadIdx.x;
    #pragma unroll 1
    for (int j = 0; j < n; j++) x = x * 1664525u + a[x >> 20];
    o[x >> 22] = 1;
}
"""
TARGETS = "".join(
    f'[[targets]]\nname = "{name}"\nfile = "{name}.cu"\ngrid = 1\nblock = 32\n'
    'args = ["f32[1024]", "i32[4096]", 100_000_000]\nmax_steps = 2_000_000_000\nbudgets = ["requests < 1"]\n'
    for name in "ab"
).replace('"requests < 1"', '"sectors <= ideal"')


def children(parent: int) -> list[int]:
    """The processes whose parent this is."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            after = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(after[1]) == parent and after[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(condition, seconds: float = 60) -> bool:  # type: ignore[no-untyped-def]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_no_worker_stays_behind(tmp_path: Path, number: signal.Signals) -> None:
    for name in "ab":
        (tmp_path / f"{name}.cu").write_text(SPIN)
    (tmp_path / "memsim.toml").write_text(TARGETS)
    checking = subprocess.Popen(
        [sys.executable, "-m", "memsim", "check", "-j", "2", "--no-cache"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell starts what is in the background with Ctrl-C ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert until(lambda: len(children(checking.pid)) >= 2)
        workers = children(checking.pid)
        time.sleep(1)
        if number == signal.SIGINT:
            os.killpg(checking.pid, number)  # as a terminal does
        else:
            checking.send_signal(number)
        out, err = checking.communicate(timeout=60)
        assert until(lambda: not any(map(is_running, workers)))
    finally:
        if checking.poll() is None:
            os.killpg(checking.pid, signal.SIGKILL)
            checking.wait()
    assert "Traceback" not in out + err
    if number == signal.SIGINT:
        assert (checking.returncode, err) == (130, "interrupted\n")
    else:
        assert checking.returncode == -number
