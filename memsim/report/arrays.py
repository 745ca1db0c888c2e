"""The layout of a shared array as cells, the same for every format.

In: a `Layout` and the launch. Out: what is shown of it, and how words and owners are called.
Left out on purpose: colours and drawing.
"""

from __future__ import annotations

from memsim.details.layout import BANKS, Layout
from memsim.launch import WARP

MOST_ROWS, MOST_COLUMNS = 64, 144  # a picture shows the first of them and says so
CAPTION = "colour: bank; in a cell: warp.lane of the thread that wrote the word first"


def caption(layout: Layout) -> str:
    """`s_a: 8 rows of 128 words`, and what is not shown."""
    rows, columns = layout.word.shape
    kind = "words" if layout.declared else f"words, one in each of the {BANKS} banks"
    text = f"{layout.name}: {rows} row{'s' * (rows > 1)} of {columns} {kind}"
    hidden = []
    if rows > MOST_ROWS:
        hidden.append(f"the first {MOST_ROWS} rows")
    if columns > MOST_COLUMNS:
        hidden.append(f"the first {MOST_COLUMNS} words of each")
    return f"{text} (shown: {', '.join(hidden)})" if hidden else text


def owner(writer: int) -> str:
    """`3.17` for lane 17 of warp 3; "" where nobody wrote."""
    return f"{writer // WARP}.{writer % WARP}" if writer >= 0 else ""


def shown(layout: Layout) -> Layout:
    """The part of a layout that is shown."""
    from dataclasses import replace

    part = (slice(MOST_ROWS), slice(MOST_COLUMNS))
    return replace(layout, word=layout.word[part], bank=layout.bank[part], writer=layout.writer[part])
