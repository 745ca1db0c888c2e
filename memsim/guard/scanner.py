"""Reads a small language from left to right, and says with a caret where it stops making sense.

In: one line of text. Out: the pieces that a parser asks for, or a `MemsimError` with the column.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import NoReturn

from memsim.errors import MemsimError


class Scanner:
    """The text, and how far it is read; blanks between the pieces mean nothing."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.start = 0  # of the piece that was taken last

    def take(self, pattern: str) -> str | None:
        """The piece that `pattern` matches here, or None."""
        self.skip_blanks()
        match = re.compile(pattern).match(self.text, self.at)
        if match is None:
            return None
        self.start, self.at = self.at, match.end()
        return match[0]

    def one_of(self, pattern: str, known: tuple[str, ...], what: str) -> str:
        """The piece that `pattern` matches, which must be one of `known`."""
        piece = self.take(pattern)
        if piece is None:
            self.fail(f"expected {what}", hint=f"known: {', '.join(known)}")
        if piece not in known:
            near = get_close_matches(piece, known, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            self.fail_last(f"there is no {what} {piece!r}", hint=f"{hint}known: {', '.join(known)}")
        return piece

    def expect(self, pattern: str, what: str) -> str:
        """The piece that `pattern` matches, which must be there."""
        piece = self.take(pattern)
        if piece is None:
            self.fail(f"expected {what}")
        return piece

    def end(self) -> None:
        """Nothing may be left."""
        self.skip_blanks()
        if self.at < len(self.text):
            self.fail(f"{self.text[self.at :]!r} is too much")

    def fail(self, message: str, hint: str | None = None) -> NoReturn:
        """What is wrong with what comes next."""
        self.skip_blanks()
        raise MemsimError(message, column=self.at + 1, source=self.text, hint=hint)

    def fail_last(self, message: str, hint: str | None = None) -> NoReturn:
        """What is wrong with the piece that was taken last."""
        raise MemsimError(message, column=self.start + 1, source=self.text, hint=hint)

    def skip_blanks(self) -> None:
        """Goes on to the next piece."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
