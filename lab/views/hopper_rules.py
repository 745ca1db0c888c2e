"""What the microbenchmarks of Hopper's instructions found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from lab.hopper.hopper_recording import HopperRecording
from lab.hopper.judge_hopper import HopperHeld
from lab.views.probe_report import ProbeReport, answer, finding
from memsim.views.tables import Column

COLUMNS = (Column("rule"), Column("launches equal", keep=1), Column(""))
#: Differences of a rule that are told one by one.
TOLD = 10


def report(recordings: Sequence[HopperRecording], found: Sequence[HopperHeld]) -> ProbeReport:
    """How many of the rules hold, and the counters that differ."""
    fails = [held.name for held in found if not held.holds]
    what = "{} of {} rules for Hopper's own instructions hold"
    return ProbeReport(
        headline=answer(recordings[0].about["gpu"], what, len(found), fails),
        columns=COLUMNS,
        rows=[finding((held.name, f"{held.equal:,} of {held.compared:,}"), held.holds) for held in found],
        notes=_notes(recordings, found),
        holds=not fails,
        about={"about": [one.about for one in recordings]},
        found={"rules": [{**asdict(held), "holds": held.holds} for held in found]},
    )


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
