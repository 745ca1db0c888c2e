"""What the probe of single requests found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from lab.probe.judge_rules import Held
from lab.probe.probe_recording import ProbeRecording
from lab.views.probe_report import ProbeReport, about_an_unknown_chip, answer, finding
from memsim.views.tables import Column

COLUMNS = (
    Column("instruction"),
    Column("access"),
    Column("patterns equal", keep=2),
    Column("counters equal", keep=1),
    Column(""),
)


def report(recording: ProbeRecording, found: Sequence[Held]) -> ProbeReport:
    """For how many instructions the rules hold, and what was compared of those where something differs.

    Pairs in the records are (equal, compared).
    """
    fails = [held.name for held in found if not held.holds]
    rows = []
    for held in found:
        cells = held.name, f"{held.space} {held.op.replace('_', '.')} {held.width} B"
        rows.append(finding((*cells, _of(held.figures), _of(held.counters)), held.holds))
    return ProbeReport(
        headline=answer(recording.device.gpu, "the rules hold for {} of {} instructions", len(found), fails),
        columns=COLUMNS,
        rows=rows,
        notes=_notes(recording, found),
        holds=not fails,
        about={"device": asdict(recording.device), "ncu": recording.ncu, "date": recording.date},
        found={"instructions": [{**asdict(held), "holds": held.holds} for held in found]},
    )


def _notes(recording: ProbeRecording, found: Sequence[Held]) -> Iterator[str]:
    yield from about_an_unknown_chip(recording.device.arch)
    for held in found:
        for metric, (equal, compared) in {**held.figures, **held.counters}.items():
            if equal < compared:
                yield f"{held.name}: {metric}: {equal} of {compared} equal"
    device = recording.device
    yield (
        f"Recorded {recording.date} (driver {device.driver}, CUDA {device.cuda}, Nsight Compute "
        f"{recording.ncu}), seed {recording.seed}: one warp, one instruction for each pattern."
    )


def _of(counts: dict[str, tuple[int, int]]) -> str:
    equal, compared = (sum(pair[i] for pair in counts.values()) for i in (0, 1))
    return f"{equal:,} of {compared:,}" if compared else "-"
