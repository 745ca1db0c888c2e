"""How fast kernels are beside cuBLAS, as text and as records for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, TextIO

from memsim.views.screen import Column, Screen
from memsim.views.screen import Row as TableRow
from studies.bench.recording import CUBLAS, BenchRecording, Size
from studies.bench.table import PREDICTED_AT, Row

SCHEMA = 1
UNKNOWN = "-"


def headline(recording: BenchRecording, rows: Sequence[Row]) -> str:
    """The fastest kernel at the last size, and cuBLAS beside it."""
    size = recording.sizes[-1]
    there = [(row.kernel, speed) for row in rows if row.kernel != CUBLAS and (speed := row.at(size))]
    kernel, speed = max(there, key=lambda pair: pair[1].tflops)
    return (
        f"{recording.device.gpu}: the fastest at {named(size)} is {kernel}, {speed.tflops:.1f} TFLOP/s, "
        f"{percent(speed.of_cublas)} of {CUBLAS}"
    )


def named(size: Size) -> str:
    """`4096 cubed`, or `4096 x 4096 x 512`."""
    return f"{size[0]} cubed" if len(set(size)) == 1 else " x ".join(map(str, size))


def percent(share: float) -> str:
    """`97 %`, with a digit more near 100, where it matters which is faster."""
    digits = 1 if 0.95 < share < 1.05 else 0
    return f"{100 * share:.{digits}f} %"


def per_kflop(row: Row) -> str:
    """Predicted wavefronts per 1000 FLOP."""
    return UNKNOWN if row.wavefronts is None else f"{row.wavefronts:.2f}"


def made_with(recording: BenchRecording) -> str:
    """Where and when it was recorded."""
    device = recording.device
    return (
        f"{device.gpu}, {recording.date} (driver {device.driver}, CUDA {device.cuda}, CuPy {device.cupy}, "
        f"{CUBLAS} {recording.cublas})"
    )


def changed(rows: Sequence[Row]) -> list[str]:
    """The kernels that are not what they were when they were recorded."""
    return [row.kernel for row in rows if row.changed]


def write(recording: BenchRecording, rows: Sequence[Row], stream: TextIO) -> None:
    """The answer, a row for each kernel, and how it was measured."""
    screen = Screen(stream)
    screen.say(headline(recording, rows), "bold")
    screen.say()
    names = [name for size in recording.sizes for name in (f"{named(size)}: TFLOP/s", f"of {CUBLAS}")]
    numbers = ("wavefronts/1000 FLOP", *names, "spread")
    columns = [Column("kernel"), *(Column(name, right=True) for name in numbers)]
    screen.table(columns, [_cells(recording, row) for row in rows])
    screen.say()
    if changed(rows):
        screen.say(f"Changed since they were recorded, and not predicted: {', '.join(changed(rows))}.")
    screen.say(f"Recorded on {made_with(recording)}.")
    most = max(speed.launches for row in rows for speed in row.speeds)
    screen.say(
        f"Medians of up to {most} launches in a row, by CUDA events; caches and clocks as they come. "
        f"Spread: the middle half of the times, at the size where it is widest. {CUBLAS} is timed before and "
        "after each kernel, and the share is of its speed just then."
    )
    screen.say(
        f"Predicted: wavefronts of shared memory, at {named(PREDICTED_AT)}. "
        "Products were checked before they were timed."
    )


def _cells(recording: BenchRecording, row: Row) -> TableRow:
    cells = [row.kernel, per_kflop(row)]
    for speed in map(row.at, recording.sizes):
        cells += (f"{speed.tflops:.2f}", percent(speed.of_cublas)) if speed else (UNKNOWN, UNKNOWN)
    return TableRow((*cells, _spread(row)), "cyan" if row.kernel == CUBLAS else "")


def _spread(row: Row) -> str:
    spreads = [speed.spread for speed in row.speeds if speed.spread is not None]
    return f"{100 * max(spreads):.1f} %" if spreads else UNKNOWN


def to_dict(recording: BenchRecording, rows: Sequence[Row]) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "schema": SCHEMA,
        "device": asdict(recording.device),
        "cublas": recording.cublas,
        "date": recording.date,
        "verdict": headline(recording, rows),
        "kernels": [
            {
                "kernel": row.kernel,
                "wavefronts_per_kflop": row.wavefronts,
                "changed": row.changed,
                "speeds": [{**asdict(speed), "size": list(speed.size)} for speed in row.speeds],
            }
            for row in rows
        ],
    }
