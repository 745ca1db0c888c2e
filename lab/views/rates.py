"""Measured rates of the pipes beside the bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from lab.rates.judge_loops import Rated
from lab.rates.rates_recording import RateRecording
from lab.views.probe_report import ProbeReport, answer
from memsim.views.tables import Column, Row

COLUMNS = (
    Column("launch"),
    Column("bound by", keep=1),
    Column("bound", right=True, keep=3),
    Column("cycles", right=True, keep=3),
    Column("cycles/bound", right=True),
    Column("counters equal", right=True, keep=2),
)


def report(recording: RateRecording, found: Sequence[Rated]) -> ProbeReport:
    """For how many launches the bounds hold, and the counters that differ."""
    fails = [*(rated.launch.name for rated in found if not rated.holds), *recording.failed]
    compared = len(found) + len(recording.failed)
    rows = []
    for rated in found:
        cells = rated.launch.name, rated.by, f"{rated.bound:,}", f"{rated.cycles:,}"
        equal = f"{rated.equal} of {rated.equal + len(rated.different)}"
        style = "" if rated.holds else "red"
        rows.append(Row((*cells, f"{rated.cycles / rated.bound:.2f}", equal), style))
    return ProbeReport(
        headline=answer(recording.device.gpu, "the bounds hold for {} of {} launches", compared, fails),
        columns=COLUMNS,
        rows=rows,
        notes=_notes(recording, found),
        holds=not fails,
        about={"device": asdict(recording.device), "ncu": recording.ncu, "date": recording.date},
        found={
            "failed": recording.failed,
            "launches": [{**asdict(rated), "holds": rated.holds} for rated in found],
        },
    )


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
