"""A figure of the words of a shared array: each with its bank as colour, and the thread that wrote it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from memsim.arch.units import BANKS, WARP
from memsim.pictures.array_layouts import WordLayout
from memsim.views.canvas import BANK_STEPS, colour_of_bank, ink_on, new_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


CELL_INCHES = 0.25
NARROWEST = 9.5


def layout(kernel: str, array: WordLayout) -> Figure:
    """The figure of a shared array of `kernel`.

    Behind the first image are the banks drawn, -1 where there is no word.

    Raises:
        MemsimError: matplotlib is not installed.
    """
    part = shown_part(array)
    rows, columns = part.bank.shape
    width, height = max(NARROWEST, CELL_INCHES * columns + 1.2), CELL_INCHES * rows + 1.7
    figure = new_figure(width, height)
    with style():
        box = (0.7 / width, 0.75 / height, CELL_INCHES * columns / width, CELL_INCHES * rows / height)
        _draw_words(figure.add_axes(box), part)
        title = f"{kernel}, {caption(array, part)}"
        figure.text(0.1 / width, 1 - 0.15 / height, title, fontsize=12, fontweight="bold", va="top")
        figure.text(0.1 / width, 1 - 0.42 / height, CAPTION, va="top")
        _draw_banks(figure.add_axes((0.7 / width, 0.15 / height, BANKS * CELL_INCHES / width, 0.25 / height)))
    return figure


def _draw_words(axes: Axes, part: WordLayout) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("banks", BANK_STEPS, N=BANKS).with_extremes(bad="none")
    banks = np.ma.masked_less(part.bank, 0)
    axes.imshow(banks, cmap=colours, vmin=0, vmax=BANKS - 1, aspect="auto", interpolation="none")
    for (row, column), bank in np.ndenumerate(part.bank):
        if bank >= 0:
            text, ink = owner(int(part.writer[row, column])), ink_on(colour_of_bank(int(bank)))
            axes.text(column, row, text, ha="center", va="center", fontsize=5.5, color=ink)
    axes.set_yticks(range(0, len(part.bank), max(1, len(part.bank) // 16)))
    axes.set_xticks(range(0, part.bank.shape[1], 8))
    axes.xaxis.tick_top()
    axes.tick_params(length=2, labelsize=7)
    axes.set_ylabel("row")
    axes.set_xlabel("word of 4 bytes", loc="right", fontsize=8)
    axes.xaxis.set_label_position("top")


def _draw_banks(axes: Axes) -> None:
    """The legend: a cell for each bank."""
    from matplotlib.patches import Rectangle

    axes.set_xlim(0, BANKS)
    axes.set_ylim(0, 1)
    axes.axis("off")
    axes.text(-0.3, 0.5, "bank", ha="right", va="center")
    for bank in range(BANKS):
        colour = colour_of_bank(bank)
        axes.add_patch(Rectangle((bank, 0), 1, 1, color=colour))
        axes.text(bank + 0.5, 0.5, str(bank), ha="center", va="center", fontsize=7, color=ink_on(colour))


MOST_ROWS, MOST_COLUMNS = 64, 144  # a picture shows the first of them and says so
CAPTION = "colour: bank; in a cell: warp:lane of the thread that wrote the word first"


def shown_part(layout: WordLayout, most_words: int = MOST_ROWS * MOST_COLUMNS) -> WordLayout:
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
