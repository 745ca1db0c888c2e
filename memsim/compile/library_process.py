"""NVIDIA's compiler libraries in a process of their own: see `memsim.compile.library_calls`."""

from __future__ import annotations

import marshal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memsim.compile import library_calls
from memsim.compile.libraries import Library
from memsim.errors import MemsimError
from memsim.programs import run_program, text_of

_PROGRAM = Path(library_calls.__file__)


def call_library(
    library: Library, function: str, *arguments: Any, what: str, file: str | None = None
) -> list[bytes] | None:
    """What a function of `library_calls` answers; None if the library is not installed.

    arguments: byte strings, and lists and tuples of them. what: its name in errors. file: what it reads.

    Raises:
        MemsimError: it did not finish in time, or crashed.
    """
    question = marshal.dumps((function, list(library.candidates()), arguments))
    done = run_program([sys.executable, "-I", "-S", _PROGRAM], what, file=file, given=question)
    if done.returncode != 0:
        hint = text_of(done).strip()
        raise MemsimError(f"{what} crashed ({done.returncode})", file=file, hint=hint[-2000:] or None)
    return list(_parts(done.stdout)) or None


def _parts(answer: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(answer):
        size = int.from_bytes(answer[at : at + 8], "little")
        yield answer[at + 8 : at + 8 + size]
        at += 8 + size
