"""The layout of a shared array as cells, and how its words and their owners are named, for every format."""

from __future__ import annotations

from dataclasses import replace

from memsim.arch.units import BANKS, WARP
from memsim.pictures.array_layouts import WordLayout

MOST_ROWS, MOST_COLUMNS = 64, 144  # a picture shows the first of them and says so
CAPTION = "colour: bank; in a cell: warp:lane of the thread that wrote the word first"


def shown(layout: WordLayout, most_words: int = MOST_ROWS * MOST_COLUMNS) -> WordLayout:
    """The part of a layout that is shown: its first rows and columns, at least a row."""
    columns = min(layout.word.shape[1], MOST_COLUMNS)
    part = slice(max(1, min(MOST_ROWS, most_words // columns))), slice(columns)
    return replace(layout, word=layout.word[part], bank=layout.bank[part], writer=layout.writer[part])


def caption(layout: WordLayout, part: WordLayout) -> str:
    """`s_a: 8 rows of 128 words`, and which part of it is shown if not all is."""
    (rows, columns), (rows_shown, columns_shown) = layout.word.shape, part.word.shape
    kind = "words" if layout.declared else f"words, one in each of the {BANKS} banks"
    text = f"{layout.name}: {rows:,} {'row' if rows == 1 else 'rows'} of {columns:,} {kind}"
    limits = []
    if rows_shown < rows:
        limits.append("the first row" if rows_shown == 1 else f"the first {rows_shown} rows")
    if columns_shown < columns:
        limits.append(f"the first {columns_shown} words of {'it' if rows_shown == 1 else 'each'}")
    return f"{text} (shown: {', '.join(limits)})" if limits else text


def owner(writer: int) -> str:
    """`3:17` for lane 17 of warp 3; "" where nobody wrote."""
    return f"{writer // WARP}:{writer % WARP}" if writer >= 0 else ""
