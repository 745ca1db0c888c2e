"""Where in the user's Python code an access is, and errors that point there."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType

from memsim.errors import MemsimError

PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"


@dataclass(frozen=True, slots=True)
class PythonLine:
    """A line of Python. position: of the bytecode, which distinguishes two accesses on a line."""

    path: str
    line: int
    position: int


def caller() -> PythonLine:
    """The innermost line outside of this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    assert frame is not None
    return PythonLine(frame.f_code.co_filename, frame.f_lineno, frame.f_lasti)


def shown_path(path: str) -> str:
    """The display name of a file: relative to the working folder if inside of it; a notebook cell
    as `In[3]`.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is not None:
        cell = shell.compile.format_code_name(path)
        if cell:
            return str(cell[1])
    try:
        return Path(path).resolve().relative_to(Path.cwd()).as_posix()
    except (OSError, ValueError):
        return path


def text_of(path: str) -> str:
    """The text of a source file or notebook cell; "" if unknown."""
    return "".join(linecache.getlines(path))


def line_of(path: str, line: int) -> str:
    """A line without its indentation, "" if unknown."""
    return linecache.getline(path, line).strip()


@contextmanager
def user_mistakes(names: dict[str, str]) -> Iterator[None]:
    """Turns exceptions in a user's function into a `MemsimError` with the line.

    names: display names of files, by path; others as in `shown_path`.
    """
    try:
        yield
    except Exception as error:
        place = _innermost(error.__traceback__)
        if place is None or (isinstance(error, MemsimError) and error.line is not None):
            raise
        message, hint = (
            (_with_source(error), error.hint) if isinstance(error, MemsimError) else _explained(error)
        )
        raise MemsimError(
            message,
            file=names.get(place.path) or shown_path(place.path),
            line=place.line,
            source=line_of(place.path, place.line) or None,
            hint=hint,
        ) from (None if isinstance(error, MemsimError) else error)


def _innermost(traceback: TracebackType | None) -> PythonLine | None:
    """The innermost line of a traceback that is neither in this package nor in a library."""
    found = None
    while traceback is not None:
        path = traceback.tb_frame.f_code.co_filename
        if not path.startswith(PACKAGE) and "site-packages" not in path:
            found = PythonLine(path, traceback.tb_lineno, traceback.tb_lasti)
        traceback = traceback.tb_next
    return found


def _with_source(error: MemsimError) -> str:
    """The message, with the text that it is about if there is one, such as a layout."""
    return error.message if error.source is None else f"{error.source!r}: {error.message}"


def _explained(error: Exception) -> tuple[str, str | None]:
    """What went wrong, and what to do about it."""
    if isinstance(error, ValueError) and "truth value of an array" in str(error):
        return (
            "an `if` or `while` decides once for all threads, but here each thread has its own value",
            "write `with t.when(condition):`, or give the access mask=condition",
        )
    if isinstance(error, TypeError) and "scalar" in str(error):
        return (
            "a single number is needed here, but each thread has its own",
            "a loop runs equally often for all threads; use t.when inside it",
        )
    return f"{type(error).__name__}: {error}", None
