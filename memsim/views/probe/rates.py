"""Measured rates of the pipes beside the bounds, as text and as records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, TextIO

from memsim.validate.rates.judge_loops import Rated
from memsim.validate.rates.rates_recording import RateRecording
from memsim.views.probe.probe_report import answer, show
from memsim.views.tables import Column, Row

SCHEMA = 1
COLUMNS = (
    Column("launch"),
    Column("bound by", keep=1),
    Column("bound", right=True, keep=3),
    Column("cycles", right=True, keep=3),
    Column("cycles/bound", right=True),
    Column("counters equal", right=True, keep=2),
)


def headline(recording: RateRecording, found: Sequence[Rated]) -> str:
    """For how many launches the bounds hold, and which are the others."""
    fails = [*(rated.launch.name for rated in found if not rated.holds), *recording.failed]
    compared = len(found) + len(recording.failed)
    return answer(recording.device.gpu, "the bounds hold for {} of {} launches", compared, fails)


def write(recording: RateRecording, found: Sequence[Rated], stream: TextIO) -> None:
    """The answer, a row for each launch, and the counters that differ."""
    rows = []
    for rated in found:
        cells = rated.launch.name, rated.by, f"{rated.bound:,}", f"{rated.cycles:,}"
        equal = f"{rated.equal} of {rated.equal + len(rated.different)}"
        style = "" if rated.holds else "red"
        rows.append(Row((*cells, f"{rated.cycles / rated.bound:.2f}", equal), style))
    show(stream, headline(recording, found), COLUMNS, rows, _notes(recording, found))


def _notes(recording: RateRecording, found: Sequence[Rated]) -> Iterator[str]:
    for rated in found:
        for metric, (predicted, measured) in rated.different.items():
            yield f"{rated.launch.name}: {metric}: {measured:,} and not {predicted:,}"
    for name, error in recording.failed.items():
        yield f"{name}: not measured: {error}"
    device = recording.device
    yield (
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
        "failed": recording.failed,
        "launches": [{**asdict(rated), "holds": rated.holds} for rated in found],
    }
