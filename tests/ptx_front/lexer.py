"""Tokenizer for PTX, with errors that point at a token.

`PtxText` holds the text with comments blanked, so that offsets stay valid; `Cursor` reads tokens on demand.

Token forms: PTX ISA, chapter "Syntax" (identifiers, integer and floating-point literals).
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right

from memsim.arch.units import WARP
from memsim.errors import MemsimError

NAME = r"(?:[A-Za-z][\w$]*|[_$%][\w$]+)"

# Skipped by the parser: both kinds of comment, preprocessor lines, legacy debug data.
# Strings are listed so that a `//` inside one is kept.
_UNREAD = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|/\*|\#[^\n]*|@@DWARF[^\n]*', re.DOTALL)
_NOT_NEWLINE = re.compile(r"[^\n]")
# No number in PTX has so many digits; Python parses at most 4,300.
_TOO_LONG = re.compile(r"\d{1000}", re.ASCII)

_TOKEN = re.compile(
    rf"""\s*(?:
      (?P<name>{NAME}|_)
    | (?P<number>
          0[fF][0-9a-fA-F]{{8}}(?!\w) | 0[dD][0-9a-fA-F]{{16}}(?!\w)
        | (?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?(?!\w) | \d+[eE][+-]?\d+(?!\w)
        | (?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)U?(?!\w))
    | (?P<directive>\.[A-Za-z]\w*(?:::\w+)*)
    | (?P<string>"(?:[^"\\\n]|\\.)*")
    | (?P<punctuation><<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^~!?:;,()\[\]{{}}<>=@])
    | (?P<end>\Z)
    )""",
    re.VERBOSE | re.ASCII,
)
_HEX_FLOATS = {"0f": ">f", "0d": ">d"}
_ANYTHING = re.compile(r"\s*([\w$%.]+|\S)?")


def literal(text: str) -> int | float:
    """The value of one number token: `12`, `0x1F`, `017`, `0b11`, `5U`, `1.5`, `0f3F800000`, `0d...`."""
    prefix = text[:2].lower()
    if prefix in _HEX_FLOATS:
        (value,) = struct.unpack(_HEX_FLOATS[prefix], bytes.fromhex(text[2:]))
        return float(value)
    digits = text.rstrip("U")
    if prefix in ("0x", "0b"):
        return int(digits, 0)
    if "." in text or "e" in text or "E" in text:
        return float(text)
    return int(digits, 8 if digits.startswith("0") else 10)


class PtxText:
    """A PTX text, with lines and columns for offsets."""

    def __init__(self, text: str, path: str) -> None:
        self.original = text
        self.path = path
        self.line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.text = _UNREAD.sub(self._blank, text)
        if too_long := _TOO_LONG.search(self.text):
            raise self.error("this number is too long for PTX", too_long.start())

    def _blank(self, match: re.Match[str]) -> str:
        unread = match[0]
        if unread.startswith('"'):
            return unread
        if unread == "/*":
            raise self.error("this comment is never closed", match.start(), hint="expected '*/'")
        return _NOT_NEWLINE.sub(" ", unread)

    def position(self, offset: int) -> tuple[int, int]:
        """1-based line and column of an offset."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def error(self, message: str, offset: int, hint: str | None = None) -> MemsimError:
        """A MemsimError that shows the line with a caret under `offset`."""
        line, column = self.position(offset)
        ends = self.line_starts[line] if line < len(self.line_starts) else len(self.original)
        text = self.original[self.line_starts[line - 1] : ends].rstrip("\r\n")
        return MemsimError(message, file=self.path, line=line, column=column, source=text, hint=hint)


class Cursor:
    """A position in a `PtxText` and the next token there. Assign `position` to move it."""

    def __init__(self, source: PtxText) -> None:
        self.source = source
        self.text = source.text
        self.position = 0
        self._match: re.Match[str] | None = None
        self._matched_at = -1

    def token(self) -> re.Match[str]:
        """The next token, not consumed. `lastgroup` is its kind, that group its text."""
        if self._match is None or self._matched_at != self.position:
            self._match = _TOKEN.match(self.text, self.position)
            self._matched_at = self.position
            if self._match is None:
                found = _ANYTHING.match(self.text, self.position)
                raise self.error(f"'{found[1] if found else ''}' is not PTX")
        return self._match

    def peek(self) -> str:
        """Text of the next token, "" at the end."""
        match = self.token()
        return match[match.lastgroup or 0]

    def peek_kind(self) -> str:
        """Kind of the next token: name, number, directive, string, punctuation or end."""
        return self.token().lastgroup or ""

    def take(self) -> str:
        """Consume the next token."""
        match = self.token()
        self.position = match.end()
        return match[match.lastgroup or 0]

    def accept(self, text: str) -> bool:
        """Consume the next token if it is `text`."""
        match = self.token()
        if match[match.lastgroup or 0] != text:
            return False
        self.position = match.end()
        return True

    def expect(self, text: str, why: str = "") -> None:
        """Consume `text`, or raise that it was expected (`why`: "after the operand")."""
        if not self.accept(text):
            raise self.expected(f"'{text}' {why}".rstrip())

    def take_kind(self, kind: str, expected: str) -> str:
        """Consume a token of that kind, or raise what was expected."""
        match = self.token()
        if match.lastgroup != kind:
            raise self.expected(expected)
        self.position = match.end()
        return match[kind]

    def take_integer(self, expected: str = "an integer") -> int:
        """Consume an unsigned integer literal."""
        text = self.take_kind("number", expected)
        if not text.isdigit():
            raise self.expected(expected)
        return int(text)

    def take_constant(self, expected: str = "an operand") -> int | float:
        """Consume a number with or without a sign, or `WARP_SZ`.

        Compilers write numbers; expressions (`2 * WARP_SZ`) are not read.
        """
        if self.accept("WARP_SZ"):
            return WARP
        sign = -1 if self.accept("-") else 1
        start = self.start()
        value = literal(self.take_kind("number", expected))
        if isinstance(value, int) and value >= 1 << 64:
            raise self.error("this integer does not fit into 64 bits", start)
        return sign * value

    def take_offset(self) -> int:
        """Consume a constant that is a number of bytes."""
        start = self.start()
        value = self.take_constant("an offset in bytes")
        if isinstance(value, float):
            raise self.error("an offset must be a whole number of bytes", start)
        return value

    def skip_group(self, opening: str, closing: str) -> None:
        """Consume a bracketed group, whatever it contains."""
        start = self.start()
        self.expect(opening)
        depth = 1
        while depth:
            token = self.take()
            if not token:
                raise self.source.error(f"this '{opening}' is never closed", start)
            depth += (token == opening) - (token == closing)

    def start(self) -> int:
        """Offset of the next token (the end of the text if there is none)."""
        match = _ANYTHING.match(self.text, self.position)
        assert match is not None
        return match.start(1) if match[1] else len(self.text.rstrip())

    def expected(self, what: str, hint: str | None = None) -> MemsimError:
        """The error for a token other than the expected one."""
        match = _ANYTHING.match(self.text, self.position)
        found = f"found '{match[1]}'" if match and match[1] else "the text ends here"
        return self.source.error(f"expected {what}, {found}", self.start(), hint)

    def error(self, message: str, offset: int | None = None, hint: str | None = None) -> MemsimError:
        """An error at `offset`, or at the next token."""
        return self.source.error(message, self.start() if offset is None else offset, hint)
