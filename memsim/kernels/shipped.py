"""Kernels as they ship: machine code, its listing, and what both were made from.

A zip file beside the sources holds `kernel.cubin`, its listing `kernel.sass`, and `made.json`: compiler,
chip, options, and the SHA-256 of the source, of every header, and of the PTX that the same compiler makes. It
is used only if it matches the source.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from memsim.errors import MemsimError


@dataclass(frozen=True, slots=True)
class Made:
    """What a shipped form was made from. sources: SHA-256 by name, including headers; ptx: of the
    PTX text.
    """

    compiler: str
    arch: str
    options: tuple[str, ...]
    sources: dict[str, str]
    ptx: str


@dataclass(frozen=True, slots=True)
class Shipped:
    """A kernel's machine code, its listing, and what they were made from."""

    cubin: bytes = field(repr=False)
    listing: str = field(repr=False)
    made: Made

    def fits(self, sources: Mapping[str, str], options: tuple[str, ...]) -> bool:
        """Was it made from these texts (by name) with these options?"""
        now = {name: digest(text) for name, text in sources.items()}
        return now == self.made.sources and options == self.made.options


def digest(text: str) -> str:
    """SHA-256 of a text in UTF-8."""
    return sha256(text.encode()).hexdigest()


def read_shipped(path: Path) -> Shipped:
    """The shipped form in a file.

    Raises:
        MemsimError: no such file, or a damaged one.
    """
    try:
        with zipfile.ZipFile(path) as file:
            made = json.loads(file.read("made.json"))
            made["options"] = tuple(made["options"])
            return Shipped(file.read("kernel.cubin"), file.read("kernel.sass").decode(), Made(**made))
    except (OSError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise MemsimError(f"this is not a compiled kernel: {error}", file=str(path)) from None
