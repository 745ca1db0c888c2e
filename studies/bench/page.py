"""The section of docs/performance.md on the speed of the kernels, from the newest recording of each GPU.

It has a figure for each GPU, and what memsim predicts now beside the times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memsim.data import data_folder
from memsim.views.canvas import CONFLICT, COUNTS, FAINT, IDEAL
from memsim.views.plain import table
from studies.bench import report
from studies.bench.recording import CUBLAS, BenchRecording, Size, newest_of_each_gpu
from studies.bench.table import PREDICTED_AT, Row, Speed, make_rows, unchanged
from studies.counted import shipped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

TRACES = data_folder("traces")
INTRODUCTION = f"""\
## How fast the kernels are

`python -m studies.bench --live --record` times every SGEMM of the catalogue with CUDA events: the
median of consecutive launches, without locking clocks or flushing caches. {CUBLAS} (float32, no TF32)
is timed before and after each kernel, and the percentage is relative to these times. Every product was
compared with {CUBLAS}'s.
*Wavefronts* are memsim's prediction for shared memory, at {report.named(PREDICTED_AT)}.

A multiprocessor serves one wavefront per cycle, so no kernel can be above the line *one wavefront a cycle* in
the picture, which is drawn for the highest clock. A kernel far below the line is limited by something else.
"""
INCHES = (13.0, 7.0)
TICKS = (0.5, 1, 2, 5, 10, 20, 50, 100)
NONE_AT = 0.7  # where a kernel without shared memory stands on a logarithmic axis


def recordings() -> list[BenchRecording]:
    """The newest recording of each GPU."""
    return newest_of_each_gpu(TRACES)


def rows_of(recording: BenchRecording) -> list[Row]:
    """Its times beside the predictions."""
    return make_rows(recording, {name: shipped().analysis(name) for name in unchanged(recording)})


def section() -> str:
    """The whole section; nothing if nothing is recorded."""
    return "\n".join([INTRODUCTION, *map(_of_gpu, found)]) if (found := recordings()) else ""


def _of_gpu(recording: BenchRecording) -> str:
    rows = rows_of(recording)
    parts = [
        f"### {recording.device.gpu}",
        f"![{alt(recording)}](pictures/{name(recording)}.png)",
        _table(recording, rows),
        f"TFLOP/s, and percent of {CUBLAS}. Recorded on {report.made_with(recording)}.",
    ]
    if report.changed(rows):
        parts.append(f"Changed since the recording: {', '.join(report.changed(rows))}.")
    return "\n\n".join(parts) + "\n"


def _table(recording: BenchRecording, rows: Sequence[Row]) -> str:
    sizes = recording.sizes
    heads = ["kernel", "wavefronts per 1000 FLOP", *map(report.named, sizes)]
    lines = [
        [code_named(row.kernel), report.per_kflop(row), *(cell(row.at(size)) for size in sizes)]
        for row in rows
    ]
    return table(heads, lines, "l" + "r" * (1 + len(sizes)))


def code_named(kernel: str) -> str:
    """A kernel's name as code; cuBLAS is none."""
    return kernel if kernel == CUBLAS else f"`{kernel}`"


def cell(speed: Speed | None) -> str:
    """TFLOP/s, and the share of cuBLAS's; nothing if it was not timed."""
    return f"{speed.tflops:.1f} ({report.percent(speed.of_cublas)})" if speed else ""


def name(recording: BenchRecording) -> str:
    """Of the picture's file, without its suffix."""
    return f"speed_{recording.device.slug.replace('-', '_')}"


def alt(recording: BenchRecording) -> str:
    """The picture in words."""
    return f"Speed against predicted wavefronts. {report.headline(recording, rows_of(recording))}"


def numbers(recording: BenchRecording) -> Any:
    """The numbers in the picture."""
    speeds = [
        [row.kernel, row.wavefronts, [[speed.size, speed.tflops] for speed in row.speeds]]
        for row in rows_of(recording)
    ]
    return [recording.device.gpu, wavefronts_per_second(recording), speeds]


def wavefronts_per_second(recording: BenchRecording) -> float:
    """What all multiprocessors could serve: one wavefront a cycle each, at the highest clock."""
    return recording.multiprocessors * recording.max_clock_mhz * 1e6


def draw(recording: BenchRecording) -> Figure:
    """Speed against predicted wavefronts, both logarithmic; the names are those of the last size."""
    from memsim.views.canvas import new_figure, style

    rows = rows_of(recording)
    figure = new_figure(*INCHES)
    figure.set_layout_engine("none")
    with style():
        axes = figure.add_axes((0.055, 0.08, 0.72, 0.84))
        axes.set_title(
            f"{recording.device.gpu}: speed against predicted wavefronts of shared memory", loc="left"
        )
        for size, colour in zip(recording.sizes, _colours(recording.sizes), strict=True):
            _draw_size(axes, rows, size, colour)
        _draw_names(axes, rows, recording.sizes[-1])
        _draw_limit(axes, rows, wavefronts_per_second(recording))
        axes.set(xscale="log", yscale="log", ylabel="TFLOP/s")
        axes.set_xlabel("predicted wavefronts of shared memory per 1000 FLOP")
        axes.minorticks_off()
        _label(axes.xaxis, axes.get_xlim(), {NONE_AT: "none"})
        _label(axes.yaxis, axes.get_ylim(), {})
        axes.legend(loc=(0.2, 0.03), frameon=False)
    return figure


def _colours(sizes: Sequence[Size]) -> list[str]:
    """From light to dark, the last size the darkest."""
    last = len(COUNTS) - 1
    return [COUNTS[max(0, last - (len(sizes) - 1 - number))] for number in range(len(sizes))]


def _points(rows: Sequence[Row], size: Size) -> list[tuple[str, float, float]]:
    """Name, wavefronts and TFLOP/s of every kernel that has both."""
    return [
        (row.kernel, row.wavefronts or NONE_AT, speed.tflops)
        for row in rows
        if row.wavefronts is not None and (speed := row.at(size))
    ]


def _draw_size(axes: Axes, rows: Sequence[Row], size: Size, colour: str) -> None:
    points = _points(rows, size)
    xs, ys = [x for _, x, _ in points], [y for *_, y in points]
    axes.scatter(xs, ys, s=26, color=colour, label=report.named(size), zorder=3)
    cublas = next(speed for row in rows if row.kernel == CUBLAS and (speed := row.at(size)))
    axes.axhline(cublas.tflops, color=colour, linewidth=1, linestyle="--", zorder=1)


def _draw_names(axes: Axes, rows: Sequence[Row], size: Size) -> None:
    """A column of names beside the plot, the fastest above, each with a line to its point; cuBLAS too."""
    named = [(kernel, x, y) for kernel, x, y in _points(rows, size)]
    cublas = next(speed for row in rows if row.kernel == CUBLAS and (speed := row.at(size)))
    right = max((x for _, x, _ in named), default=1.0) * 1.3
    axes.set_xlim(NONE_AT / 1.3, right)
    named = sorted([*named, (f"{CUBLAS} (dashed)", right, cublas.tflops)], key=lambda point: -point[2])
    for number, (kernel, x, y) in enumerate(named):
        axes.annotate(
            kernel,
            (x, y),
            (1.04, 1 - number / max(1, len(named) - 1)),
            textcoords="axes fraction",
            va="center",
            arrowprops={"arrowstyle": "-", "color": FAINT, "linewidth": 0.6},
        )


def _label(axis: Axis, limits: tuple[float, float], more: dict[float, str]) -> None:
    low, high = limits
    ticks = {
        tick: f"{tick:g}" for tick in TICKS if low <= tick <= high and (not more or tick > max(more) * 2)
    }
    axis.set_ticks([*more, *ticks], labels=[*more.values(), *ticks.values()])


def _draw_limit(axes: Axes, rows: Sequence[Row], per_second: float) -> None:
    """The line that one wavefront a cycle sets, as far as there are kernels near it."""
    low, high = axes.get_xlim()
    xs = [x for x in (low + (high - low) * step / 500 for step in range(501)) if x > NONE_AT * 1.2]
    ys = [1000 * per_second / x / 1e12 for x in xs]
    fastest = max(speed.tflops for row in rows for speed in row.speeds)
    shown = [(x, y) for x, y in zip(xs, ys, strict=True) if y < 2 * fastest]
    if shown:
        axes.plot(*zip(*shown, strict=True), color=CONFLICT, linewidth=1.2, label="one wavefront a cycle")
    axes.axvline(NONE_AT * 1.2, color=IDEAL, linewidth=0.5)
