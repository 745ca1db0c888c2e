"""How long a compiler, or a target of a check, may take: what comes from a pull request may take for ever."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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
    text = os.environ.get(VARIABLE) or str(SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < threading.TIMEOUT_MAX:
        raise MemsimError(f"{VARIABLE} must be a number of seconds, not {text!r}")
    return seconds


def time_left() -> float:
    """The seconds that a compiler may take: the limit, or what is left of that of its target."""
    ends = _ends.get()
    return time_limit() if ends is None else max(0.0, min(time_limit(), ends - time.monotonic()))


def took_too_long(what: str, file: str | None = None) -> MemsimError:
    """The error of something that was ended, with the way to allow it more."""
    seconds = time_limit()
    hint = f"{VARIABLE}={2 * seconds:g} in the environment allows it {2 * seconds:g} s"
    return MemsimError(f"{what} did not finish within {seconds:g} s", file=file, hint=hint)


@contextmanager
def within_time_limit(what: str) -> Iterator[None]:
    """Ends what is inside when the time is up, between two instructions of Python.

    Raises:
        MemsimError: it took longer.
    """
    thread, seconds, finished, lock = threading.get_ident(), time_limit(), threading.Event(), threading.Lock()

    def interrupt(kind: type[BaseException] | None) -> None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread), None if kind is None else ctypes.py_object(kind)
        )

    def watch() -> None:
        wait = seconds
        while not finished.wait(wait):
            with lock:
                if not finished.is_set():
                    interrupt(_TimeUp)
            wait = AGAIN

    token = _ends.set(time.monotonic() + seconds)
    try:
        threading.Thread(target=watch, daemon=True).start()
        try:
            yield
        finally:
            with lock:
                finished.set()
                interrupt(None)  # one that has not been raised yet
            _ends.reset(token)
    except _TimeUp:
        raise took_too_long(what) from None
