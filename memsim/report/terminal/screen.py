"""What the terminal pictures share: a console that cuts nothing, and coloured cells.

In: a stream. Out: a rich console, and cells with the colours of `memsim.report.colours`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from memsim.report.colours import colour_of_count, ink_on
from memsim.report.plain import plain_console

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

UNLIMITED = 1_000_000  # a console this wide never cuts


def open_console(stream: TextIO) -> tuple[Console, int]:
    """A console that leaves text as it is, and how many columns a reader can see."""
    console = plain_console(stream, soft_wrap=True)
    room = console.width if console.is_terminal else UNLIMITED
    console.width = UNLIMITED
    return console, room


def cell(text: str, count: float, width: int) -> Text:
    """`text` at the right of `width` columns, on the colour of a count."""
    from rich.text import Text

    colour = colour_of_count(count)
    return Text(text.rjust(width), style=f"{ink_on(colour)} on {colour}" if colour else "")


def shorten(text: str, room: int) -> str:
    """`text`, cut to `room` columns with dots at the end."""
    return text if len(text) <= room else text[: max(room - 3, 0)] + "..."
