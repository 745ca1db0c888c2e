"""The section of docs/performance.md on growth, from docs/growth/measured.json.

For each quantity it has a figure of time and memory, what that says in words, and the table.
"""

from __future__ import annotations

import json
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from docs.growth.measure import RECORD, RUNS, SHORT_S, WARPS
from memsim.views.canvas import CONFLICT, COUNTS
from memsim.views.plain import table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INCHES = (10.0, 3.8)
COLOURS = (COUNTS[-1], CONFLICT)


class Panel(NamedTuple):
    """A picture: what the horizontal axis is, and its lines by series."""

    axis: str
    lines: dict[str, str]


PANELS = {
    "growth_size": Panel("M = N = K", {"kernel_v4": "kernel_v4", "kernel_v1": "kernel_v1"}),
    "growth_blocks": Panel(
        "blocks of 256 threads", {"copy": "y[i] = x[i]", "gather": "y[i] = x[idx[i]], random"}
    ),
    "growth_patterns": Panel(f"distinct requests in {WARPS:,} warps", {"patterns": "y[i] = x[idx[i]]"}),
    "growth_code": Panel("instructions of the kernel", {"sass": "machine code"}),
}
INTRODUCTION = f"""\
## How time and memory grow

`python -m docs.growth` analyzes each launch in a separate process and records its peak memory and its
CPU time on one core: the least of {RUNS} runs, or a single run if it takes more than {SHORT_S:g} s.
Starting Python and running the disassembler are included; compiling is not. Random indices are a numpy
array of 4 bytes per thread, and count as memory.
"""


@cache
def measured() -> dict[str, Any]:
    """The kept figures."""
    record: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))
    return record


def _lines(name: str) -> list[tuple[str, list[dict[str, Any]]]]:
    return [(said, measured()["series"][series]) for series, said in PANELS[name].lines.items()]


def numbers(name: str) -> Any:
    """The numbers in a picture."""
    return [PANELS[name].axis, _lines(name)]


def alt(name: str) -> str:
    """A picture in words: the ends of each line."""
    said = []
    for line, points in _lines(name):
        first, last = points[0], points[-1]
        said.append(
            f"{line}: from {first['at']:,} to {last['at']:,}, {first['cpu_s']:.2f} to {last['cpu_s']:.2f} s"
            f" and {first['peak_mib']} to {last['peak_mib']} MiB"
        )
    return f"CPU time and peak memory against {PANELS[name].axis}. {'; '.join(said)}."


def section() -> str:
    """The whole section."""
    record = measured()
    made = f"Python {record['python']}, numpy {record['numpy']}, {record['processor']}."
    pictures = [f"![{alt(name)}](pictures/{name}.png)\n" for name in PANELS]
    return "\n".join([f"{INTRODUCTION.rstrip()} {made}\n", *pictures, _table()])


def _table() -> str:
    rows = []
    for name, panel in PANELS.items():
        for line, points in _lines(name):
            for point in (points[0], points[len(points) // 2], points[-1]):
                counts = f"{point['at']:,}", f"{point['requests']:,}"
                spent = f"{point['cpu_s']:.2f} s", f"{point['peak_mib']} MiB"
                rows.append((f"{panel.axis}: {line}", *counts, *spent))
    headings = ("what grows", "to", "requests counted", "CPU time", "peak memory")
    return table(headings, rows, "lrrrr") + "\n"


def draw(name: str) -> Figure:
    """Time on the left, memory on the right; the axes are logarithmic."""
    from memsim.views.canvas import new_figure, style

    figure = new_figure(*INCHES)
    with style():
        time, memory = figure.subplots(1, 2)
        _plot(time, name, "cpu_s", "CPU time, s")
        _plot(memory, name, "peak_mib", "peak memory, MiB")
    return figure


def _plot(axes: Axes, name: str, column: str, label: str) -> None:
    for (line, points), colour in zip(_lines(name), COLOURS):
        xs, ys = [point["at"] for point in points], [point[column] for point in points]
        axes.plot(xs, ys, "o-", color=colour, markersize=4, label=line)
    axes.set(xscale="log", yscale="log", xlabel=PANELS[name].axis, ylabel=label)
    low, high = (0.1, 10) if column == "cpu_s" else (10, 1000)
    bottom, top = axes.get_ylim()
    axes.set_ylim(min(low, bottom), max(high, top))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.grid(axis="y", alpha=0.3)
    axes.legend(frameon=False)
    if name == "growth_size":
        axes.minorticks_off()
        xs = [point["at"] for point in _lines(name)[0][1]]
        axes.set_xticks(xs, labels=[str(x) for x in xs])


DRAWINGS = {name: (partial(draw, name), partial(numbers, name), partial(alt, name)) for name in PANELS}
PARTS = {"growth": section}
