"""Where in the user's Python an access stands, and what the mistakes in it become.

In: frames and exceptions. Out: file, line and text; `MemsimError`s with them.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType

from memsim.errors import MemsimError
from memsim.ptx.program import SourceLine

HERE = str(Path(__file__).parent)


@dataclass(frozen=True, slots=True)
class Statement:
    """The line of Python that makes an access, as a trace names an instruction."""

    text: str
    source: SourceLine
    address: int = -1  # it has none

    @property
    def line(self) -> int:
        """Of the source."""
        return self.source.line

    @property
    def column(self) -> int:
        """Of the source."""
        return self.source.column

    @property
    def name(self) -> str:
        """What it is called in a story."""
        return self.text


@dataclass(frozen=True, slots=True)
class Place:
    """A line of Python. position: of the bytecode, which tells two accesses of a line apart."""

    path: str
    line: int
    position: int


def caller() -> Place:
    """The innermost line that is not of this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(HERE):
        frame = frame.f_back
    assert frame is not None
    return Place(frame.f_code.co_filename, frame.f_lineno, frame.f_lasti)


def shown_path(path: str) -> str:
    """A file as reports name it: relative to the working folder if it lies in there; a cell as `In[3]`."""
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
    """The text of a source file, of a cell of a notebook too; "" if it is not known."""
    return "".join(linecache.getlines(path))


def line_of(path: str, line: int) -> str:
    """A line without its indentation, "" if it is not known."""
    return linecache.getline(path, line).strip()


@contextmanager
def user_mistakes(names: dict[str, str]) -> Iterator[None]:
    """What goes wrong in a user's function becomes a `MemsimError` with the line.

    names: what files are called, by path; others as `shown_path` says.
    """
    try:
        yield
    except Exception as error:
        place = _innermost(error.__traceback__)
        if place is None or (isinstance(error, MemsimError) and error.line is not None):
            raise
        message, hint = (_told(error), error.hint) if isinstance(error, MemsimError) else _explained(error)
        raise MemsimError(
            message,
            file=names.get(place.path) or shown_path(place.path),
            line=place.line,
            source=line_of(place.path, place.line) or None,
            hint=hint,
        ) from (None if isinstance(error, MemsimError) else error)


def _innermost(traceback: TracebackType | None) -> Place | None:
    """The last line on the way to an error that is neither of this package nor of a library."""
    found = None
    while traceback is not None:
        path = traceback.tb_frame.f_code.co_filename
        if not path.startswith(HERE) and "site-packages" not in path and not _is_memsim(path):
            found = Place(path, traceback.tb_lineno, traceback.tb_lasti)
        traceback = traceback.tb_next
    return found


def _is_memsim(path: str) -> bool:
    return path.startswith(str(Path(HERE).parent))


def _told(error: MemsimError) -> str:
    """The message, with the text that it is about if there is one: that of a layout."""
    return error.message if error.source is None else f"{error.source!r}: {error.message}"


def _explained(error: Exception) -> tuple[str, str | None]:
    """What went wrong, and what to do about it."""
    if isinstance(error, ValueError) and "truth value of an array" in str(error):
        return (
            "an `if` or `while` decides once, and here every thread has a value of its own",
            "write `with t.when(condition):`, or give the access mask=condition",
        )
    if isinstance(error, TypeError) and "scalar" in str(error):
        return (
            "one number is needed here, and every thread has a number of its own",
            "a loop runs as often for all threads; use t.when inside it",
        )
    return f"{type(error).__name__}: {error}", None
