"""How fast kernels are beside cuBLAS, as text and as records for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, TextIO

from memsim.views.plain import plain_console
from studies.bench.recording import CUBLAS, BenchRecording, Size
from studies.bench.table import PREDICTED_AT, Row, Speed

SCHEMA = 1
UNLIMITED = 1_000_000  # a console this wide never cuts
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
    from rich.table import Table
    from rich.text import Text

    console = plain_console(stream, width=UNLIMITED)
    console.print(Text(headline(recording, rows), style="bold"))
    console.print()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("kernel")
    table.add_column("wavefronts/1000 FLOP", justify="right")
    for size in recording.sizes:
        table.add_column(f"{named(size)}: TFLOP/s", justify="right")
        table.add_column(f"of {CUBLAS}", justify="right")
    table.add_column("spread", justify="right")
    for row in rows:
        speeds = [cell for size in recording.sizes for cell in _cells(row.at(size))]
        style = "cyan" if row.kernel == CUBLAS else ""
        table.add_row(row.kernel, per_kflop(row), *speeds, _spread(row), style=style)
    console.print(table)
    console.print()
    if changed(rows):
        names = ", ".join(changed(rows))
        console.print(f"Changed since they were recorded, and not predicted: {names}.")
    console.print(f"Recorded on {made_with(recording)}.")
    most = max(speed.launches for row in rows for speed in row.speeds)
    console.print(
        f"Medians of up to {most} launches in a row, by CUDA events; caches and clocks as they come. "
        f"Spread: the middle half of the times, at the size where it is widest. {CUBLAS} is timed before and "
        "after each kernel, and the share is of its speed just then."
    )
    console.print(
        f"Predicted: wavefronts of shared memory, at {named(PREDICTED_AT)}. "
        "Products were checked before they were timed."
    )


def _cells(speed: Speed | None) -> tuple[str, str]:
    return (f"{speed.tflops:.2f}", percent(speed.of_cublas)) if speed else (UNKNOWN, UNKNOWN)


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
