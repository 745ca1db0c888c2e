"""What all figures share: creating one, writing one to a file, and the style of its text.

The figures belong to no window and to no global state of matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memsim.errors import MemsimError
from memsim.files import writing
from memsim.views.colours import COUNTS, MOST, TROUBLE

if TYPE_CHECKING:
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure

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
CODE: dict[str, Any] = {"family": "DejaVu Sans Mono", "fontsize": 8}


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
    return _figure_class()(figsize=(width, height), facecolor="white")


def style() -> AbstractContextManager[None]:
    """The look of all figures, for as long as one is drawn or written."""
    from matplotlib import rc_context

    return rc_context(STYLE)


def check_suffix(path: Path) -> None:
    """Whether a figure can be written to such a file.

    Raises:
        MemsimError: not one of `SUFFIXES`.
    """
    if path.suffix not in SUFFIXES:
        raise MemsimError(
            f"a picture cannot be written as {path.suffix or 'a file without a suffix'}",
            file=str(path),
            hint=f"known: {', '.join(SUFFIXES)}",
        )


def save(figure: Figure, path: Path) -> None:
    """Writes a figure; the same figure always gives the same file.

    Raises:
        MemsimError: an unknown suffix, or the file cannot be written.
    """
    check_suffix(path)
    no_date = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix)
    with writing(path, "the picture") as file, style():
        figure.savefig(file, format=path.suffix[1:], dpi=DPI, metadata=no_date)


def count_colours() -> tuple[Colormap, Normalize]:
    """`colour_of_count` as matplotlib takes it; less than 1 has no colour."""
    return _from_1_to_32("counts", COUNTS)


def trouble_colours() -> tuple[Colormap, Normalize]:
    """`colour_of_trouble` as matplotlib takes it; less than 1 has no colour."""
    return _from_1_to_32("trouble", TROUBLE)


def _from_1_to_32(name: str, steps: Sequence[str]) -> tuple[Colormap, Normalize]:
    from matplotlib.colors import LinearSegmentedColormap, LogNorm

    colours = LinearSegmentedColormap.from_list(name, steps)
    return colours.with_extremes(under="none", bad="none"), LogNorm(1, MOST)
