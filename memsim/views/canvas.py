"""The colours of every picture, and what all figures share: creating one, writing one to a file, its text.

A number in, a colour as `#rrggbb` out. Trouble is what costs more than it has to: ways of a bank conflict, or
how many times as many wavefronts or sectors as needed. What is clean is pale, however much of it there is.
Scales get darker all the way, so that they can be read in grey and by the colour-blind; what is wrong is
never said by colour alone. The figures belong to no window and to no global state of matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from math import log2
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memsim.arch.units import BANKS, WARP
from memsim.errors import MemsimError
from memsim.files import open_replacement

if TYPE_CHECKING:
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure

MOST = WARP  # ways of a bank conflict

# 1 (clean), 2, 4, 8, 16, 32: after a pale grey the five of ColorBrewer's YlOrRd, the last one darker.
TROUBLE = ("#e6edf0", "#fecc5c", "#fd8d3c", "#f03b20", "#bd0026", "#67000d")
# 1, 2, 4, 8, 16, 32: the last six of ColorBrewer's seven YlGnBu, made for the colour-blind and for print.
COUNTS = ("#c7e9b4", "#7fcdbb", "#41b6c4", "#1d91c0", "#225ea8", "#0c2c84")
# Banks 0 to 31, another hue, so that nobody takes a bank for a count.
BANK_STEPS = ("#fdebd3", "#f7b794", "#e0798a", "#a9508c", "#642d78", "#2b1250")

CONFLICT = "#d55e00"  # vermilion of Okabe and Ito
IDEAL = "#4d4d4d"
FAINT = "#d0d0d0"


def colour_of_trouble(times: float) -> str:
    """The colour of 1 (clean) to 32 ways, or times what is needed, by its logarithm; "" for less than 1."""
    return "" if times < 1 else _between(TROUBLE, log2(min(times, MOST)) / log2(MOST))


def colour_of_count(count: float) -> str:
    """The colour of a wavefront's number, 1 to 32, by its logarithm; "" for less than 1."""
    return "" if count < 1 else _between(COUNTS, log2(min(count, MOST)) / log2(MOST))


def colour_of_bank(bank: int) -> str:
    """The colour of a bank, 0 to 31."""
    return _between(BANK_STEPS, bank / (BANKS - 1))


def ink_on(colour: str) -> str:
    """Black or white, whichever is easier to read on a colour."""
    return "#000000" if luminance(colour) > 0.18 else "#ffffff"


def luminance(colour: str) -> float:
    """Relative luminance, 0 to 1, as WCAG 2 defines it for sRGB."""
    linear = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _channels(colour))
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _between(steps: Sequence[str], share: float) -> str:
    """The colour at `share`, 0 to 1, of the way along steps of equal length."""
    place = share * (len(steps) - 1)
    low = min(int(place), len(steps) - 2)
    left, right = _channels(steps[low]), _channels(steps[low + 1])
    mixed = (a + (b - a) * (place - low) for a, b in zip(left, right, strict=True))
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in mixed)


def _channels(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


SUFFIXES = (".png", ".svg", ".pdf")
DPI = 100
STYLE: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "hatch.linewidth": 0.8,
    "svg.fonttype": "none",
    "svg.hashsalt": "memsim",
}


@cache
def _figure_class() -> type[Figure]:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MemsimError(
            f"pictures need matplotlib, which cannot be loaded: {error}", hint="pip install matplotlib"
        ) from None

    class NotebookFigure(Figure):
        """A figure that a notebook shows by itself, whether pyplot is loaded or not."""

        def _repr_png_(self) -> bytes:
            from io import BytesIO

            file = BytesIO()
            self.savefig(file, format="png", dpi=DPI)
            return file.getvalue()

    return NotebookFigure


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches.

    Raises:
        MemsimError: matplotlib is not installed.
    """
    return _figure_class()(figsize=(width, height), facecolor="white", layout="constrained")


def style() -> AbstractContextManager[None]:
    """The look of all figures, for as long as one is drawn or written."""
    from matplotlib import rc_context

    return rc_context(STYLE)


def check_suffix(path: Path, *others: str) -> None:
    """Whether a figure can be written to such a file.

    others: suffixes of what the caller can write besides, for the hint.

    Raises:
        MemsimError: not one of `SUFFIXES`.
    """
    if path.suffix not in SUFFIXES:
        raise MemsimError(
            f"a picture cannot be written as {path.suffix or 'a file without a suffix'}",
            file=str(path),
            hint=f"known: {', '.join((*SUFFIXES, *others))}",
        )


def save(figure: Figure, path: Path) -> None:
    """Writes a figure; the same figure always gives the same file.

    Raises:
        MemsimError: an unknown suffix, or the file cannot be written.
    """
    check_suffix(path)
    no_date = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix)
    with open_replacement(path, "the picture") as file, style():
        figure.savefig(file, format=path.suffix[1:], dpi=DPI, metadata=no_date)


def scale_of(steps: Sequence[str]) -> tuple[Colormap, Normalize]:
    """`colour_of_count` or `colour_of_trouble`, of its steps, for matplotlib; none below 1."""
    from matplotlib.colors import LinearSegmentedColormap, LogNorm

    colours = LinearSegmentedColormap.from_list("", steps)
    return colours.with_extremes(under="none", bad="none"), LogNorm(1, MOST)
