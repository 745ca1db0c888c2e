"""Runs other programs, compilers above all: with a limit of time, and where nothing is trusted, of memory,
and without the environment.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from memsim.boundary import confinement
from memsim.errors import MemsimError
from memsim.time_limit import time_left, took_too_long

MEMORY_VARIABLE = "MEMSIM_MEMORY_LIMIT"
GIGABYTES = 4.0
#: Of the environment, what programs are found by and where they may write. Tokens have other names.
KEPT = ("PATH", "LD_LIBRARY_PATH", "TMPDIR", "TMP", "TEMP", "SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT")
_LIMITED = Path(__file__).with_name("limited_program.py")


def run_program(
    command: Sequence[str | Path],
    what: str,
    *,
    file: str | None = None,
    given: bytes = b"",
    cwd: str | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """What a program prints and returns; `what` and `file` are its name, and what it reads, in errors.

    given: its standard input. It is ended with all that it has started when its time is up, or ours.

    Raises:
        MemsimError: it cannot be run, or did not finish in time.
    """
    seconds, environment = time_left(), None
    if confinement() is not None:
        environment = {name: value for name, value in os.environ.items() if name.upper() in KEPT}
        command = [*_limits(), *command]
    try:
        process = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise MemsimError(f"cannot run {command[0]}: {error.strerror}") from None
    with process:
        try:
            out, errors = process.communicate(given, timeout=seconds)
        except subprocess.TimeoutExpired:
            raise took_too_long(what, file) from None
        finally:
            if process.returncode is None:
                _end(process)
    return subprocess.CompletedProcess(process.args, process.returncode, out, errors)


def text_of(done: subprocess.CompletedProcess[bytes]) -> str:
    """What a program printed, as text with plain line ends."""
    return (done.stdout + done.stderr).decode(errors="replace").replace("\r\n", "\n")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and what it has started: nvcc is several."""
    if sys.platform == "win32":
        process.kill()
    else:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _limits() -> list[str | Path]:
    """The command line in front of a program that limits its memory; empty where the system cannot."""
    if sys.platform == "win32":
        return []
    text = os.environ.get(MEMORY_VARIABLE) or str(GIGABYTES)
    try:
        size = int(float(text) * (1 << 30))
    except (ValueError, OverflowError):
        size = 0
    if not 0 < size < 1 << 62:
        raise MemsimError(f"{MEMORY_VARIABLE} must be a number of gigabytes, not {text!r}")
    return [sys.executable, "-I", "-S", _LIMITED, str(size)]
