"""Measured rates of the pipes beside the bounds, as text and as records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, TextIO

from memsim.validate.rates.judge_loops import Rated
from memsim.validate.rates.rates_recording import RateRecording
from memsim.views.probe.answer import answer

SCHEMA = 1


def headline(recording: RateRecording, found: Sequence[Rated]) -> str:
    """For how many launches the bounds hold, and which are the others."""
    fails = [rated.launch.name for rated in found if not rated.holds]
    return answer(recording.device.gpu, "the bounds hold for {} of {} launches", len(found), fails)


def write(recording: RateRecording, found: Sequence[Rated], stream: TextIO) -> None:
    """The answer, a row for each launch, and the counters that differ."""
    from rich.console import Console
    from rich.table import Table

    console = Console(file=stream, highlight=False, markup=False, emoji=False, width=1_000_000)
    console.print(headline(recording, found), style="bold")
    console.print()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("launch")
    table.add_column("bound by")
    for title in ("bound", "cycles", "cycles/bound", "counters equal"):
        table.add_column(title, justify="right")
    for rated in found:
        compared = rated.equal + len(rated.different)
        table.add_row(
            *(rated.launch.name, rated.by, f"{rated.bound:,}", f"{rated.cycles:,}"),
            *(f"{rated.cycles / rated.bound:.2f}", f"{rated.equal} of {compared}"),
            style="" if rated.holds else "red",
        )
    console.print(table)
    console.print()
    for rated in found:
        for metric, (predicted, measured) in rated.different.items():
            console.print(f"{rated.launch.name}: {metric}: {measured:,} and not {predicted:,}")
    device = recording.device
    console.print(
        f"Recorded {recording.date} (driver {device.driver}, CUDA {device.cuda}, Nsight Compute "
        f"{recording.ncu})."
    )


def to_dict(recording: RateRecording, found: Sequence[Rated]) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "schema": SCHEMA,
        "device": asdict(recording.device),
        "ncu": recording.ncu,
        "date": recording.date,
        "verdict": headline(recording, found),
        "launches": [{**asdict(rated), "holds": rated.holds} for rated in found],
    }
