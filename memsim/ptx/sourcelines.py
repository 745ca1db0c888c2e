"""CUDA source lines of instructions: `.file`, `.loc` and the names in `.debug_str`.

Code that was inlined from a header of the CUDA toolkit (`y[i] = x` of `__half2` is a function in
`cuda_fp16.hpp`) is attributed to the line that called it, because users cannot change such a header. Other
debug information is ignored.

Forms: PTX ISA, "Debugging Directives". `.file` and `.debug_str` may come after the code that uses them, so
they are read first.
"""

from __future__ import annotations

import re

from memsim.ptx.lexer import NAME, Cursor, PtxText, literal
from memsim.ptx.program import SourceLine

_FILE = re.compile(r'\.file\s+(\d+)\s+"((?:[^"\\\n]|\\.)*)"')
_DEBUG_STRINGS = re.compile(r"\.section\s+\.debug_str\s*\{([^}]*)\}")
_BYTE = r"(?:0[xX][0-9a-fA-F]+|[1-9]\d*|0[0-7]*)(?!\w)"
_LABEL = re.compile(rf"({NAME})\s*:|\.b8\s+({_BYTE}(?:\s*,\s*{_BYTE})*)", re.ASCII)
_LOC = re.compile(
    rf"\s*\.loc\s+(\d+)\s+(\d+)(?:\s+(\d+))?"
    rf"(?:\s*,\s*function_name\s+({NAME})(?:\s*\+\s*(\d+))?\s*,"
    r"\s*inlined_at\s+(\d+)\s+(\d+)(?:\s+(\d+))?)?"
)

# Where the toolkit's headers are: CUDA's pip packages, toolkits on Linux and Windows, NVRTC's built-in ones.
_TOOLKIT = re.compile(
    r"/(nvidia/(cuda_runtime|cu\d+)|targets/[\w-]+|cuda(-[\d.]+)?|CUDA/v[\d.]+)/include/"
    r"|(^|/)__nv_nvrtc_builtin_header\.h$"
)


class SourceLines:
    """The `.loc` directives of one module."""

    def __init__(self, source: PtxText) -> None:
        text = source.text
        self.files = {int(number): _unescape(path) for number, path in _FILE.findall(text)}
        self.strings, self.labels = _debug_strings(text)
        self.latest: dict[tuple[int, int, int], SourceLine | None] = {}

    def loc(self, cursor: Cursor) -> SourceLine | None:
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
        number, line, column, label, addend, *call = match.groups()
        place = int(number), int(line), int(column or 0)
        if not place[1]:
            self.latest[place] = None
            return None
        function, inlined_at = None, None
        if label:
            at = int(call[0]), int(call[1]), int(call[2] or 0)
            function = self._string(label, int(addend or 0))
            inlined_at = self.latest.get(at) or self._line(at)
        found = self._line(place, function, inlined_at)
        self.latest[place] = found
        return _outside_the_toolkit(found)

    def _line(
        self,
        place: tuple[int, int, int],
        function: str | None = None,
        inlined_at: SourceLine | None = None,
    ) -> SourceLine:
        number, line, column = place
        return SourceLine(self.files.get(number, f"<file {number}>"), line, column, function, inlined_at)

    def _string(self, label: str, addend: int) -> str | None:
        if label not in self.labels:
            return None
        start = self.labels[label] + addend
        return self.strings[start:].partition(b"\0")[0].decode(errors="replace")


def is_of_toolkit(file: str) -> bool:
    """Whether a path is that of a CUDA toolkit header."""
    return _TOOLKIT.search(file.replace("\\", "/")) is not None


def _outside_the_toolkit(line: SourceLine) -> SourceLine:
    while line.inlined_at is not None and is_of_toolkit(line.file):
        line = line.inlined_at
    return line


def _debug_strings(text: str) -> tuple[bytes, dict[str, int]]:
    """The bytes of `.section .debug_str`, and the offset of each label in them."""
    strings, labels = bytearray(), {}
    for section in _DEBUG_STRINGS.findall(text):
        for label, values in _LABEL.findall(section):
            if label:
                labels[label] = len(strings)
            else:
                strings.extend(int(literal(value.strip())) & 0xFF for value in values.split(","))
    return bytes(strings), labels


def _unescape(path: str) -> str:
    return path.replace('\\"', '"').replace("\\\\", "\\")
