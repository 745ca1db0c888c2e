"""What a program launched, as a table: a row for each kernel and shape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, TextIO

from msgspec import Meta

from memsim.bound import percent
from memsim.document import Dim3, Document, DocumentPart, JsonObject, Line, Texts, plain
from memsim.driver.execute_launches import Launches, LaunchKind
from memsim.estimated_time import EstimatedTime, duration
from memsim.launch import Natural
from memsim.views.labels import count, dim3
from memsim.views.screen import Column, Row, Screen

COLUMNS = (
    Column("kernel", is_code=True),
    Column("grid"),
    Column("block"),
    Column("shared bytes", right=True, keep=3),
    Column("launches", right=True),
    Column("failed", right=True, keep=1),
    Column("remembered", right=True, keep=2),
    Column("seconds here", right=True, keep=2),
    Column("each on the chip, about", right=True, keep=1),
)
#: Kinds of launches that the table shows: those that took longest.
MOST_ROWS = 40


def write(launches: Launches, stream: TextIO) -> None:
    """Prints the table on `stream`, and below it what the first launch of each kind costs."""
    kinds = sorted(launches.kinds.values(), key=lambda kind: -kind.seconds)
    screen = Screen(stream)
    screen.say(headline(kinds), "bold")
    if launches.not_modelled:
        told = ", ".join(f"{name} {times:,}" for name, times in sorted(launches.not_modelled.items()))
        screen.say(f"not modelled, computed by numpy: calls of {told}")
    if not kinds:
        return
    screen.say()
    screen.table(COLUMNS, map(_row, kinds[:MOST_ROWS]))
    if len(kinds) > MOST_ROWS:
        screen.say(f"... and {len(kinds) - MOST_ROWS:,} more kinds, which took less")
    lines = list(_findings(kinds[:MOST_ROWS]))
    if lines:
        screen.say()
    for line in lines:
        screen.say(line)
    if launches.analyze:
        screen.say()
        screen.say(
            "Counts are of the first launch of each kind, as memsim analyze has them; all were executed."
        )
    if launches.time:
        screen.say(time_in_all(kinds))
    screen.say("Times that the program itself measures are those of its emulation, not of a GPU.")


class ExecutedKind(DocumentPart, frozen=True, kw_only=True):
    """The launches of one kernel with one shape."""

    kernel: str
    grid: Dim3
    block: Dim3
    cluster: Dim3 | None
    shared_bytes: Annotated[Natural, Meta(description="of dynamic shared memory")]
    launches: Natural
    failed: Natural
    remembered: Annotated[Natural, Meta(description="did what a launch before them did")]
    seconds: Annotated[float, Meta(ge=0, description="that they took here, on no GPU")]
    verdict: Annotated[str | None, Meta(description="with --analyze: what the first one costs")]
    time: Annotated[EstimatedTime | None, Meta(description="with --time: of the first one, an estimate")]
    not_counted: Annotated[str, Meta(description="with --analyze: why there is no verdict")]
    launch: Annotated[str | None, Meta(description="with --record: where the first one was written")]
    notes: Texts


class LaunchesDocument(Document, frozen=True, kw_only=True):
    """What a program launched."""

    answer: Line
    kinds: tuple[ExecutedKind, ...]
    not_modelled: Annotated[
        dict[str, Natural], Meta(description="calls of libraries that numpy computed, by function")
    ]


def to_dict(launches: Launches) -> JsonObject:
    """The table as plain values, those that took longest first."""
    kinds = sorted(launches.kinds.values(), key=lambda kind: -kind.seconds)
    found = (
        ExecutedKind.of(
            kind,
            grid=kind.shape.grid,
            block=kind.shape.block,
            cluster=kind.shape.cluster,
            shared_bytes=kind.shape.shared_bytes,
            launches=kind.times,
            verdict=None if kind.analysis is None else kind.analysis.verdict,
            time=None if kind.analysis is None else kind.analysis.estimate,
            not_counted=kind.why_not,
            launch=None if kind.recording is None else str(kind.recording),
            notes=tuple(kind.notes),
        )
        for kind in kinds
    )
    done = LaunchesDocument(
        answer=headline(kinds), kinds=tuple(found), not_modelled=dict(launches.not_modelled)
    )
    return plain(done)


def headline(kinds: list[LaunchKind]) -> str:
    """How many launches there were, and how they ended."""
    launches, failed = sum(kind.times for kind in kinds), sum(kind.failed for kind in kinds)
    if not launches:
        return "memsim: the program launched no kernel"
    seconds = sum(kind.seconds for kind in kinds)
    ended = f"{failed:,} of them failed" if failed else "all executed"
    made = f"{launches:,} launch{'es' * (launches > 1)} of {count(len(kinds), 'kind')}"
    return f"memsim: {made}, {ended}, in {seconds:.1f} s"


def _row(kind: LaunchKind) -> Row:
    shape = kind.shape
    failed = f"{kind.failed:,}" if kind.failed else ""
    shared = f"{shape.shared_bytes:,}" if shape.shared_bytes else ""
    remembered = f"{kind.remembered:,}" if kind.remembered else ""
    launches, seconds = f"{kind.times:,}", f"{kind.seconds:.2f}"
    estimated = _seconds(kind)
    each = "" if estimated is None else duration(estimated)
    shapes = dim3(shape.grid), dim3(shape.block), shared
    return Row((kind.name, *shapes, launches, failed, remembered, seconds, each), "red" * bool(kind.failed))


def _seconds(kind: LaunchKind) -> float | None:
    """The estimated time of a launch of this kind."""
    time = None if kind.analysis is None else kind.analysis.estimate
    return None if time is None else time.seconds


def time_in_all(kinds: Iterable[LaunchKind]) -> str:
    """The estimated time of all launches, one after the other, in a line."""
    each = [(kind, _seconds(kind)) for kind in kinds]
    known = [(kind, seconds) for kind, seconds in each if seconds is not None]
    if not known:
        return "The time of no launch is estimated."
    whole = sum(kind.times * seconds for kind, seconds in known)
    errors = [kind.analysis.estimate.error for kind, _ in known if kind.analysis and kind.analysis.estimate]
    made = f"{sum(kind.times for kind, _ in known):,} of {sum(kind.times for kind, _ in each):,} launches"
    return (
        f"On the chip {made} would take about {duration(whole)} in all, each as long as the first of its "
        f"kind, with a cold L2 cache (estimates, typically within {percent(max(errors))})."
    )


def _findings(kinds: Iterable[LaunchKind]) -> Iterator[str]:
    told: dict[str, None] = {}
    for kind in kinds:
        if kind.analysis is not None:
            told[kind.analysis.verdict.replace(kind.kernel, kind.name, 1)] = None
            time = kind.analysis.estimate
            if time is not None and (time.unknown or time.lacks):
                told[f"{kind.name}: time {time.verdict}"] = None
        elif kind.why_not:
            told[f"{kind.name}: not counted: {kind.why_not}"] = None
        told |= {f"{kind.name}: {note}": None for note in kind.notes}
    yield from told
