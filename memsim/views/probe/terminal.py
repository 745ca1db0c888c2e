"""What a probe found, as text and as records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, TextIO

from memsim.validate.probe.judge_rules import Held
from memsim.validate.probe.probe_recording import ProbeRecording
from memsim.views.probe.probe_report import answer, finding, show
from memsim.views.tables import Column

SCHEMA = 1
COLUMNS = (
    Column("instruction"),
    Column("access"),
    Column("patterns equal", keep=2),
    Column("counters equal", keep=1),
    Column(""),
)


def headline(recording: ProbeRecording, found: Sequence[Held]) -> str:
    """For how many instructions the rules hold, and which are the others."""
    fails = [held.name for held in found if not held.holds]
    return answer(recording.device.gpu, "the rules hold for {} of {} instructions", len(found), fails)


def write(recording: ProbeRecording, found: Sequence[Held], stream: TextIO) -> None:
    """The answer, a row for each instruction, and what was compared of those where something differs."""
    rows = []
    for held in found:
        cells = held.name, f"{held.space} {held.op.replace('_', '.')} {held.width} B"
        rows.append(finding((*cells, _of(held.figures), _of(held.counters)), held.holds))
    show(stream, headline(recording, found), COLUMNS, rows, _notes(recording, found))


def _notes(recording: ProbeRecording, found: Sequence[Held]) -> Iterator[str]:
    for held in found:
        for metric, (equal, compared) in {**held.figures, **held.counters}.items():
            if equal < compared:
                yield f"{held.name}: {metric}: {equal} of {compared} equal"
    device = recording.device
    yield (
        f"Recorded {recording.date} (driver {device.driver}, CUDA {device.cuda}, Nsight Compute "
        f"{recording.ncu}), seed {recording.seed}: one warp, one instruction for each pattern."
    )


def to_dict(recording: ProbeRecording, found: Sequence[Held]) -> dict[str, Any]:
    """The same as plain values; pairs are (equal, compared)."""
    return {
        "schema": SCHEMA,
        "device": asdict(recording.device),
        "ncu": recording.ncu,
        "date": recording.date,
        "verdict": headline(recording, found),
        "instructions": [{**asdict(held), "holds": held.holds} for held in found],
    }


def _of(counts: dict[str, tuple[int, int]]) -> str:
    equal, compared = (sum(pair[i] for pair in counts.values()) for i in (0, 1))
    return f"{equal:,} of {compared:,}" if compared else "-"
