"""What a probe by clock found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from lab.clock.clock_recording import ClockRecording
from lab.clock.judge_clock import SHUFFLE, ByClock, cycles_of_a_wavefront
from lab.views.probe_report import ProbeReport, about_an_unknown_chip, answer, finding
from memsim.views.tables import Column

COLUMNS = (
    Column("instruction"),
    Column("access or opcode"),
    Column("equal", keep=1),
    Column("predicted", right=True, keep=2),
    Column("by clock", right=True, keep=2),
    Column(""),
)
#: Patterns that differ which are told one by one, of each instruction.
TOLD = 5


def report(recording: ClockRecording, found: Sequence[ByClock]) -> ProbeReport:
    """For how many instructions cycles are as predicted, and the patterns where they are not."""
    fails = [held.name for held in found if not held.holds]
    rows = []
    for held in found:
        cells = held.name, held.what, f"{held.equal:,} of {held.compared:,}"
        rows.append(finding((*cells, _range(held.predicted), _range(held.exact)), held.holds))
    what = "by clock, the rules and rates hold for {} of {} instructions"
    about = ("gpu", "compute_capability", "driver", "cuda", "date", "refused")
    return ProbeReport(
        headline=answer(recording.gpu, what, len(found), fails),
        columns=COLUMNS,
        rows=rows,
        notes=_notes(recording, found),
        holds=not fails,
        about={name: getattr(recording, name) for name in about},
        found={
            "cycles_of_a_wavefront": cycles_of_a_wavefront(recording),
            "instructions": [{**asdict(held), "holds": held.holds} for held in found],
        },
    )


def _notes(recording: ClockRecording, found: Sequence[ByClock]) -> Iterator[str]:
    yield from about_an_unknown_chip(recording.arch)
    for held in found:
        wrong = [
            f"{exact} and not {predicted} (pattern {number})"
            for number, (predicted, measured, exact) in enumerate(
                zip(held.predicted, held.measured, held.exact, strict=True)
            )
            if predicted != measured
        ]
        if wrong:
            more = f", and {len(wrong) - TOLD:,} more" if len(wrong) > TOLD else ""
            yield f"{held.name}: {', '.join(wrong[:TOLD])}{more}"
    others = [held.what for held in found if held.key is None and not held.holds]
    if others and SHUFFLE not in others:
        yield "Rates that differ from sm_90's are used for this chip as they were measured (docs/chips.md)."
    for name, why in recording.refused.items():
        yield f"{name}: not measured: {why}"
    cycles = cycles_of_a_wavefront(recording)
    yield (
        f"Recorded {recording.date} (driver {recording.driver}, CUDA {recording.cuda}), without counters: "
        f"for accesses, wavefronts of a request, {cycles} cycle{'s' * (cycles > 1)} each; for arithmetic, "
        "cycles of a partition for an instruction."
    )


def _range(values: Sequence[float]) -> str:
    """`1 to 32`."""
    low, high = min(values), max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
