"""What the microbenchmarks of Hopper's instructions found, as text and as records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, TextIO

from memsim.validate.hopper.hopper_recording import HopperRecording
from memsim.validate.hopper.judge_hopper import HopperHeld
from memsim.views.probe.probe_report import answer, finding, show
from memsim.views.tables import Column

SCHEMA = 1
COLUMNS = (Column("rule"), Column("launches equal", keep=1), Column(""))
#: Differences of a rule that are told one by one.
TOLD = 10


def headline(recordings: Sequence[HopperRecording], found: Sequence[HopperHeld]) -> str:
    """How many of the rules hold, and which do not."""
    fails = [held.name for held in found if not held.holds]
    return answer(
        recordings[0].about["gpu"], "{} of {} rules for Hopper's own instructions hold", len(found), fails
    )


def write(recordings: Sequence[HopperRecording], found: Sequence[HopperHeld], stream: TextIO) -> None:
    """The answer, a row for each rule, and the counters that differ."""
    rows = [finding((held.name, f"{held.equal:,} of {held.compared:,}"), held.holds) for held in found]
    show(stream, headline(recordings, found), COLUMNS, rows, _notes(recordings, found))


def _notes(recordings: Sequence[HopperRecording], found: Sequence[HopperHeld]) -> Iterator[str]:
    for held in found:
        for kernel, metric, predicted, measured in held.different[:TOLD]:
            yield f"{held.name}: {kernel}: {metric}: {measured:,} and not {predicted:,}"
        if len(held.different) > TOLD:
            yield f"{held.name}: and {len(held.different) - TOLD:,} more"
    for about in (one.about for one in recordings):
        yield (
            f"Recorded {about['date']} (driver {about['driver']}, Nsight Compute {about['ncu']}): one launch"
            " of a small kernel for each configuration."
        )


def to_dict(recordings: Sequence[HopperRecording], found: Sequence[HopperHeld]) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "schema": SCHEMA,
        "about": [one.about for one in recordings],
        "verdict": headline(recordings, found),
        "rules": [{**asdict(held), "holds": held.holds} for held in found],
    }
