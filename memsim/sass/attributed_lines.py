"""Source lines of inline assembly, where the line table is wrong: by the PTX's `.loc`s."""

from __future__ import annotations

import re
from collections.abc import Mapping

from memsim.source.library_files import Frame

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")


def assembly_places(ptx: str) -> Mapping[int, Frame]:
    """PTX line -> (file, line) of the source, for inline assembly whose `.loc`s are wrong.

    LLVM increments the line for each line of the assembly text, as if the text stood in the source like that.
    Only the first `.loc` in it is right.
    """
    files: dict[str, str] = {}
    found: dict[int, tuple[str, int]] = {}
    first: tuple[str, int] | None = None
    inside = wrong = False
    for number, line in enumerate(ptx.splitlines(), 1):
        if match := _FILE.match(line):
            files[match[1]] = match[2]
        elif line.endswith("// begin inline asm"):
            inside, first, wrong = True, None, False
        elif line.endswith("// end inline asm"):
            inside = False
        elif inside and (match := _LOC.match(line)):
            place = match[1], int(match[2])
            first = first or place
            wrong = place != first
        elif inside and wrong and first is not None:
            found[number] = first
    return {number: (files[file], line) for number, (file, line) in found.items() if file in files}
