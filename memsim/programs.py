"""Runs other programs, compilers above all: with a limit of time, and where nothing is trusted, of memory,
and without the environment. What comes from a pull request may take for ever, so a target of a check has a
limit of time, too.
"""

from __future__ import annotations

import ctypes
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from memsim.boundary import confinement
from memsim.errors import MemsimError

VARIABLE = "MEMSIM_TIME_LIMIT"
SECONDS = 600.0
AGAIN = 5.0  # seconds: an exception that came while Python could not raise it is lost


class _TimeUp(BaseException):
    """Raised in the thread whose time is up, wherever it is."""


_ends: ContextVar[float | None] = ContextVar("time limit", default=None)


def time_limit() -> float:
    """The limit in seconds; `MEMSIM_TIME_LIMIT` sets another one.

    Raises:
        MemsimError: it is not a positive number.
    """
    return _number_in(VARIABLE, SECONDS, 0, threading.TIMEOUT_MAX, "seconds")


def _number_in(variable: str, default: float, least: float, most: float, unit: str) -> float:
    """The number between two others that the environment sets, else the default one."""
    text = os.environ.get(variable) or str(default)
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not least < number < most:
        raise MemsimError(f"{variable} must be a number of {unit}, not {text!r}")
    return number


def time_left() -> float:
    """The seconds that a compiler may take: the limit, or what is left of that of its target."""
    ends = _ends.get()
    return time_limit() if ends is None else max(0.0, min(time_limit(), ends - time.monotonic()))


def took_too_long(what: str, file: str | None = None) -> MemsimError:
    """The error of something that was ended, with the way to allow it more."""
    seconds = time_limit()
    hint = f"{VARIABLE}={2 * seconds:g} in the environment allows it {2 * seconds:g} s"
    return MemsimError(f"{what} did not finish within {seconds:g} s", file=file, hint=hint)


class _Watched:
    """What one thread does within a limit. due: when it is interrupted next; is_late: it was interrupted."""

    def __init__(self, watcher: _Watcher, due: float) -> None:
        self.watcher, self.due, self.thread = watcher, due, threading.get_ident()
        self.is_late = False

    def interrupt(self) -> None:
        """Raises `_TimeUp` in the thread, soon."""
        self.is_late = True
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.thread), ctypes.py_object(_TimeUp))

    def end(self) -> None:
        """It is done. What may still be on its way is raised here: were it taken back, Python 3.11 would look
        for it again and again, and under a profiler do nothing else.
        """
        with self.watcher.changed:
            self.watcher.running.discard(self)
        if self.is_late:
            with suppress(_TimeUp):
                self.interrupt()
                while True:
                    pass


class _Watcher:
    """One thread for all that is within a limit: many launches of a program are short."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.running: set[_Watched] = set()
        self.changed = threading.Condition(threading.Lock())
        self.wakes = 0.0
        threading.Thread(target=self._watch, daemon=True).start()

    def watch(self, seconds: float) -> _Watched:
        """Interrupts the calling thread after so many seconds, and again until it ends."""
        one = _Watched(self, time.monotonic() + seconds)
        with self.changed:
            self.running.add(one)
            if one.due < self.wakes:
                self.changed.notify()
        return one

    def _watch(self) -> None:
        with self.changed:
            while True:
                now = time.monotonic()
                for one in self.running:
                    if one.due <= now:
                        one.interrupt()
                        one.due = now + AGAIN
                self.wakes = min((one.due for one in self.running), default=math.inf)
                self.changed.wait(None if self.wakes == math.inf else self.wakes - now)


def _watcher() -> _Watcher:
    """That of this process: threads do not live on in a child."""
    with _starting:
        if not _watchers or _watchers[-1].process != os.getpid():
            _watchers[:] = [_Watcher()]
        return _watchers[-1]


_starting = threading.Lock()
_watchers: list[_Watcher] = []


@contextmanager
def within_time_limit(what: str) -> Iterator[None]:
    """Ends what is inside when the time is up, between two instructions of Python.

    Raises:
        MemsimError: it took longer.
    """
    seconds = time_limit()
    token = _ends.set(time.monotonic() + seconds)
    try:
        watched = _watcher().watch(seconds)
        try:
            yield
        finally:
            watched.end()
            _ends.reset(token)
    except _TimeUp:
        raise took_too_long(what) from None


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
        if sys.platform == "emscripten":
            hint = "save the launch with its machine code: memsim analyze launch.json --save-launch FOLDER"
            raise MemsimError(f"{what} does not run in a browser", hint=hint) from None
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
    gigabytes = _number_in(MEMORY_VARIABLE, GIGABYTES, 1 / (1 << 30), 1 << 32, "gigabytes")
    return [sys.executable, "-I", "-S", _LIMITED, str(int(gigabytes * (1 << 30)))]
