"""What terminals are given: lines that are cut nowhere, tables that fit, and coloured cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from memsim.views.colours import ink_on
from memsim.views.plain import plain_console, plain_line
from memsim.views.tables import UNLIMITED, Column, Row, fitted, room_of

if TYPE_CHECKING:
    from rich.text import Text


class Screen:
    """A stream that reports are printed on. room: how many columns its reader can see."""

    def __init__(self, stream: TextIO, **options: Any) -> None:
        """`options` are those of rich's consoles."""
        self._console = plain_console(stream, **options)
        self.room = room_of(self._console)
        self._console.width = UNLIMITED

    def say(self, text: str | Text = "", style: str = "") -> None:
        """Prints a line; nothing in it is markup, and nothing in it ends the line."""
        if isinstance(text, str):
            text = plain_line(text)
        elif "\n" in text.plain:
            text.plain = plain_line(text.plain)
        self._console.print(text, style=style, soft_wrap=True)

    def table(self, columns: Sequence[Column], rows: Iterable[Row]) -> None:
        """Prints a table at most as wide as the reader's terminal, if that is possible."""
        self._console.print(fitted(columns, rows, self.room))


def cell(text: str, colour: str, width: int) -> Text:
    """`text` on a colour, at the right of `width` columns; neighbours touch only where it fills them."""
    from rich.text import Text

    style = f"{ink_on(colour)} on {colour}" if colour else ""
    return Text(" " * (width - len(text))) + Text(text, style=style)
