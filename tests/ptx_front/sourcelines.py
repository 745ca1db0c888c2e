"""CUDA source lines of instructions: `.file` and `.loc`.

Code that was inlined from a library is attributed to the line that called it
(`memsim.compile.shown_sources`). Other debug information is ignored.

Forms: PTX ISA, "Debugging Directives". `.file` may come after the code that uses it, so it is read first.
"""

from __future__ import annotations

import re
from dataclasses import replace

from memsim.compile.shown_sources import in_library
from memsim.instruction import Place
from tests.ptx_front.lexer import NAME, Cursor, PtxText

_FILE = re.compile(r'\.file\s+(\d+)\s+"((?:[^"\\\n]|\\.)*)"')
_LOC = re.compile(
    rf"\s*\.loc\s+(\d+)\s+(\d+)(?:\s+(\d+))?"
    rf"(?:\s*,\s*function_name\s+{NAME}(?:\s*\+\s*\d+)?\s*,"
    r"\s*inlined_at\s+(\d+)\s+(\d+)(?:\s+(\d+))?)?"
)


class SourceLines:
    """The `.loc` directives of one module."""

    def __init__(self, source: PtxText) -> None:
        text = source.text
        self.files = {int(number): _unescape(path) for number, path in _FILE.findall(text)}
        #: By file, line and column: the line itself, and the one that it is attributed to.
        self.latest: dict[tuple[int, int, int], tuple[Place, Place] | None] = {}

    def loc(self, cursor: Cursor) -> Place | None:
        """Consume a `.loc`. Line 0 means no source line: None.

        A function inlined into an inlined one names the call by file, line and column; the latest `.loc` of
        that place tells where that call itself was inlined.
        """
        match = _LOC.match(cursor.text, cursor.position)
        if match is None:
            cursor.take()
            if cursor.peek_kind() == "number":
                cursor.take()
            raise cursor.expected("file number, line and column")
        cursor.position = match.end()
        number, line, column, *call = (int(one or 0) for one in match.groups())
        at = number, line, column
        if not line:
            self.latest[at] = None
            return None
        found = shown = self._place(*at)
        if match[4]:
            caller = call[0], call[1], call[2]
            outer, outer_shown = self.latest.get(caller) or 2 * (self._place(*caller),)
            found = replace(found, callers=((outer.file, outer.line), *outer.callers))
            shown = outer_shown if in_library(found.file) else found
        self.latest[at] = found, shown
        return shown

    def _place(self, number: int, line: int, column: int) -> Place:
        return Place(self.files.get(number, f"<file {number}>"), line, column)


def _unescape(path: str) -> str:
    return path.replace('\\"', '"').replace("\\\\", "\\")
