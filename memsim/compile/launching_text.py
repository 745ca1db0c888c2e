"""The text in which the launches of a source file are read: as the options for the compiler make it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memsim.compile.options import macros_of, of_build
from memsim.files import read_bytes
from memsim.source.given_macros import with_macros


def launching_text(text: str, options: Sequence[str]) -> str:
    """A source's text with the macros of the options."""
    return with_macros(text, macros_of(options))


def read_launching_text(path: Path, options: Sequence[str]) -> str:
    """As `launching_text`, of a file, with its options in `compile_commands.json`, too.

    Raises:
        MemsimError: it cannot be read.
    """
    text = read_bytes(path).decode("utf-8", "replace")
    return launching_text(text, [*of_build(path.absolute())[0], *options])
