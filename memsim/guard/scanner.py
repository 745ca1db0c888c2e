"""A scanner for a small language, whose errors have a column."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import NoReturn

from memsim.errors import MemsimError


class Scanner:
    """A text and the current position; blanks between tokens are skipped."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.start = 0  # of the token taken last

    def take(self, pattern: str) -> str | None:
        """The token that matches `pattern` here, or None."""
        self.skip_blanks()
        match = re.compile(pattern).match(self.text, self.at)
        if match is None:
            return None
        self.start, self.at = self.at, match.end()
        return match[0]

    def one_of(self, known: tuple[str, ...], what: str) -> str:
        """The word that follows, which must be one of `known`."""
        piece = self.take(r"\w+")
        if piece is None:
            self.fail(f"expected {what}", hint=f"known: {', '.join(known)}")
        if piece not in known:
            near = get_close_matches(piece, known, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            self.fail_last(f"there is no {what} {piece!r}", hint=f"{hint}known: {', '.join(known)}")
        return piece

    def expect(self, pattern: str, what: str) -> str:
        """The token that matches `pattern`, which is required."""
        piece = self.take(pattern)
        if piece is None:
            self.fail(f"expected {what}")
        return piece

    def end(self) -> None:
        """Require the end of the text."""
        self.skip_blanks()
        if self.at < len(self.text):
            self.fail(f"unexpected {self.text[self.at :]!r}")

    def fail(self, message: str, hint: str | None = None) -> NoReturn:
        """Raise an error at the next token."""
        self.skip_blanks()
        raise MemsimError(message, column=self.at + 1, source=self.text, hint=hint)

    def fail_last(self, message: str, hint: str | None = None) -> NoReturn:
        """Raise an error at the token taken last."""
        raise MemsimError(message, column=self.start + 1, source=self.text, hint=hint)

    def skip_blanks(self) -> None:
        """Move to the next token."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
