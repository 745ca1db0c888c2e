"""The section of docs/tuning.md on every size, from the newest recordings and the bounds that are kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memsim.data import data_folder
from studies.bench import report
from studies.bench.page import table_row
from studies.bench.recording import CUBLAS, BenchRecording, Timing, load_bench
from studies.bench.table import speed_of
from studies.sizes import FOLDER
from studies.sizes.bounds import Limit, kept

HEADS = ("M x N x K", "kernel", "parts of K", "TFLOP/s", f"of {CUBLAS}", "at least", "of that", "bound by")


def recordings(traces: Path | None = None) -> list[BenchRecording]:
    """The newest of each GPU, by the GPU's name."""
    found: dict[str, BenchRecording] = {}
    for path in sorted((traces or data_folder("traces")).glob(f"*/{FOLDER}/*.json")):
        recording = load_bench(path)
        gpu = recording.device.slug
        if gpu not in found or found[gpu].date < recording.date:
            found[gpu] = recording
    return [found[gpu] for gpu in sorted(found)]


def table() -> str:
    """A row for each size: what was picked, how fast it was, and its bound."""
    parts = []
    for recording in recordings():
        limits = kept()
        lines = [
            table_row(HEADS),
            "|---|---|---:|---:|---:|---:|---:|---|",
            *(_row(recording, timing, limits[timing.size]) for timing in _picked(recording)),
        ]
        note = (
            f"\n*At least*: microseconds by memsim's bound, at {recording.max_clock_mhz} MHz; "
            f"*of that*: the measured time as a multiple of it. Recorded on {report.made_with(recording)}.\n"
        )
        parts.append("\n".join(lines) + "\n" + note)
    return "\n".join(parts)


def shortfall() -> str:
    """Where it is slower than cuBLAS, by how much, and what is next."""
    sentences = []
    for recording in recordings():
        slower = [timing for timing in _picked(recording) if speed_of(timing).of_cublas < 1.0]
        total = len(_picked(recording))
        sentences.append(
            f"On {recording.device.gpu} it is at least as fast as {CUBLAS} at {total - len(slower)} of "
            f"{total} sizes."
        )
        sentences += [_next(recording, timing) for timing in slower]
    return "\n".join(sentences) + "\n"


def _picked(recording: BenchRecording) -> list[Timing]:
    return [timing for timing in recording.timings if timing.kernel != CUBLAS]


def _row(recording: BenchRecording, timing: Timing, limits: Sequence[Limit]) -> str:
    speed = speed_of(timing)
    least = microseconds(recording, limits)
    units = limits[0].units
    bound = units[0][0] + "".join(f"; {name} {100 * share:.0f} %" for name, share in units[1:])
    return table_row(
        [
            " x ".join(map(str, timing.size)),
            f"`{timing.kernel}`" + (f"; `{timing.rest.kernel}`" if timing.rest else ""),
            _parts(timing),
            f"{speed.tflops:.1f}",
            report.percent(speed.of_cublas),
            f"{least:,.1f}",
            f"{1000 * speed.median_ms / least:.2f}",
            bound,
        ]
    )


def _parts(timing: Timing) -> str:
    """Among how many blocks K is divided, and for which rows if not for all."""
    first = str(timing.parts) if timing.parts > 1 else ""
    if timing.rest is None:
        return first
    return f"{first or 1}; {timing.rest.parts} of the last {timing.rest.rows:,} rows"


def _next(recording: BenchRecording, timing: Timing) -> str:
    speed, limits = speed_of(timing), kept()[timing.size]
    least = microseconds(recording, limits)
    over = 1000 * speed.median_ms / least
    slower, (first, second) = 100 * (1 / speed.of_cublas - 1), limits[0].units
    return (
        f"- {report.named(timing.size)}: {slower:.1f} % slower. It is bound by {first[0]}, {least:,.1f} "
        f"microseconds, and takes {over:.2f} times as long; next is the {second[0]}, "
        f"{100 * second[1]:.0f} % of that."
    )


def microseconds(recording: BenchRecording, limits: Sequence[Limit]) -> float:
    """What the launches of a size take at least, one after the other, at the highest clock."""
    return sum(limit.cycles for limit in limits) / recording.max_clock_mhz


PARTS = {"sizes: table": table, "sizes: shortfall": shortfall}
