"""What terminals are given: a console that cuts nothing, and coloured cells.

A stream in, a rich console out; and cells with the colours of `memsim.views.colours`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TextIO

from memsim.views.colours import ink_on
from memsim.views.plain import plain_console
from memsim.views.tables import UNLIMITED, room_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def open_console(stream: TextIO, **options: Any) -> tuple[Console, int]:
    """A console that cuts nothing, and how many columns a reader can see; `options` are rich's."""
    console = plain_console(stream, **options)
    room = room_of(console)
    console.width = UNLIMITED
    return console, room


def cell(text: str, colour: str, width: int) -> Text:
    """`text` on a colour, at the right of `width` columns; neighbours touch only where it fills them."""
    from rich.text import Text

    style = f"{ink_on(colour)} on {colour}" if colour else ""
    return Text(" " * (width - len(text))) + Text(text, style=style)
