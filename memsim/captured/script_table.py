"""The launches of a script as one table: what each wastes, where, and how configurations rank.

Launches of the same code with the same shape are one row, which the first of them is analyzed for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TextIO

from msgspec import Meta

from memsim.analysis import Analysis, SiteCounts
from memsim.bound import percent
from memsim.captured.launched import Launched
from memsim.captured.saved_launch import read_launch
from memsim.document import Count, Dim3, Document, DocumentPart, Line, plain
from memsim.errors import MemsimError
from memsim.estimated_time import EstimatedTime
from memsim.launch import Natural
from memsim.views.labels import count, dim3
from memsim.views.screen import Column, Row, Screen

COLUMNS = (
    Column("kernel", is_code=True),
    Column("configuration"),
    Column("grid", keep=3),
    Column("block", keep=4),
    Column("launches", right=True, keep=2),
    Column("worst line"),
    Column("conflicts", right=True),
    Column("needless sectors", right=True),
    Column("cycles at least", right=True, keep=5),
    Column("about", right=True),
    Column("rank", right=True, keep=1),
)


@dataclass
class ScriptLaunch:
    """Launches that are alike. path: where the first one was saved. note: its configuration.

    rank: among the configurations of its kernel by the estimated time, from 1; 0 if there is only one, or one
    without an estimate.
    """

    path: Path
    kernel: str
    grid: Dim3
    block: Dim3
    note: str
    times: int = 1
    analysis: Analysis | None = None
    why_not: str = ""
    rank: int = 0

    @property
    def worst(self) -> SiteCounts | None:
        """The access that wastes most; None if none does."""
        sites = () if self.analysis is None else self.analysis.sites
        worst = max(sites, key=lambda site: site.badness, default=None)
        wastes = worst is not None and (worst.wavefronts_of_conflicts or worst.needless_sectors)
        return worst if wastes else None

    @property
    def cycles(self) -> int | None:
        """The lower bound; None where it lacks the instructions."""
        bound = None if self.analysis is None else self.analysis.bound
        return bound.cycles if bound is not None and bound.has_instructions else None

    @property
    def time(self) -> EstimatedTime | None:
        """The estimate; None: there is none."""
        time = None if self.analysis is None else self.analysis.estimate
        return None if time is None or time.cycles is None else time

    @property
    def about(self) -> int | None:
        """The estimated cycles; None: there is no estimate."""
        return None if self.time is None else self.time.cycles

    def count(self, name: str) -> int | None:
        """A count of the analysis, by its name; None: not certain, or not counted."""
        return None if self.analysis is None else getattr(self.analysis, name)


class ScriptLaunches:
    """The launches of a script, as they are kept."""

    def __init__(self) -> None:
        self.kinds: dict[tuple[object, ...], ScriptLaunch] = {}

    def add(self, launched: Launched, path: Path) -> None:
        """One more, saved at a path."""
        kernel, shape = launched.kernel, (launched.grid, launched.block)
        key = kernel.origin.digest, kernel.name, shape, launched.shared_bytes, launched.note
        kind = self.kinds.get(key)
        if kind is None:
            self.kinds[key] = ScriptLaunch(path, kernel.title, *shape, launched.note)
        else:
            kind.times += 1

    def analyze(self) -> Iterator[float]:
        """Counts one after the other; yields the share that is done. Then they are ranked."""
        for number, kind in enumerate(self.kinds.values(), 1):
            try:
                kind.analysis = read_launch(kind.path).analyze().timed
            except MemsimError as error:
                kind.why_not = error.message
            yield number / len(self.kinds)
        for name in {kind.kernel for kind in self.kinds.values()}:
            alike = [kind for kind in self.kinds.values() if kind.kernel == name]
            costs = [kind.about for kind in alike if kind.about is not None]
            if len({kind.note for kind in alike}) > 1 and len(costs) == len(alike):
                for kind in alike:
                    kind.rank = sorted(costs).index(kind.about or 0) + 1


def write(kinds: Sequence[ScriptLaunch], stream: TextIO) -> None:
    """Prints the table, kernels together, the best configuration first."""
    screen = Screen(stream)
    screen.say(headline(kinds), "bold")
    if not kinds:
        return
    screen.say()
    screen.table(COLUMNS, map(_row, _ordered(kinds)))
    for kind in kinds:
        if kind.why_not:
            screen.say(f"{kind.path}: not counted: {kind.why_not}", "yellow")
    errors = [kind.time.error for kind in kinds if kind.rank and kind.time is not None]
    if errors:
        screen.say()
        screen.say(
            "Configurations rank by estimated cycles, with a cold L2 cache. The median error of such "
            f"estimates was {percent(max(errors))} where they were measured (docs/time.md): ranks that are "
            "closer say nothing. The script went on with the first configuration, as none is timed here."
        )


def headline(kinds: Sequence[ScriptLaunch]) -> str:
    """How many, and the worst line of all."""
    launches = sum(kind.times for kind in kinds)
    if not launches:
        return "the script launched no kernel that could be captured"
    made = f"{launches:,} launch{'es' * (launches > 1)} of {count(len(kinds), 'kind')}"
    wasteful = [(kind.worst, kind.kernel) for kind in kinds if kind.worst is not None]
    if not wasteful:
        return f"{made}, no access that wastes anything"
    site, kernel = max(wasteful, key=lambda one: one[0].badness)
    return f"{made}; the worst line is {_place(site)} in {kernel}"


def _ordered(kinds: Iterable[ScriptLaunch]) -> list[ScriptLaunch]:
    first: dict[str, int] = {}
    for kind in kinds:
        first.setdefault(kind.kernel, len(first))
    return sorted(kinds, key=lambda kind: (first[kind.kernel], kind.rank))


def _row(kind: ScriptLaunch) -> Row:
    conflicts, needless = _share(kind, "conflicts", "wavefronts"), _share(kind, "needless_sectors", "sectors")
    worst = "-" if kind.worst is None else _place(kind.worst)
    cycles, about = ("?" if each is None else f"{each:,}" for each in (kind.cycles, kind.about))
    cells = (kind.kernel, kind.note, dim3(kind.grid), dim3(kind.block), f"{kind.times:,}", worst)
    return Row(
        (*cells, conflicts, needless, cycles, about, str(kind.rank or "")), "red" if kind.why_not else ""
    )


def _share(kind: ScriptLaunch, part: str, whole: str) -> str:
    lost, all_of_them = kind.count(part), kind.count(whole)
    if lost is None or all_of_them is None:
        return "?"
    return percent(lost / all_of_them) if all_of_them else "-"


def _place(site: SiteCounts) -> str:
    return f"{Path(site.file).name}:{site.line}"


class ScriptKind(DocumentPart, frozen=True, kw_only=True):
    """Launches of a script that are alike; counts are null without --analyze, and if they are not certain."""

    launch: Annotated[str, Meta(description="where the first one was saved")]
    kernel: str
    configuration: str
    grid: Dim3
    block: Dim3
    launches: Natural
    verdict: str | None
    worst: Annotated[str | None, Meta(description="FILE:LINE of what wastes most")]
    wavefronts: Count
    conflicts: Count
    sectors: Count
    needless_sectors: Count
    cycles_at_least: Annotated[Count, Meta(description="a lower bound, no time")]
    cycles_about: Annotated[Count, Meta(description="estimated; null: not estimated")]
    estimate_error: Annotated[
        float | None, Meta(description="median error of estimates where measured, a share")
    ]
    rank: Annotated[Count, Meta(description="among its kernel's configurations, by the estimate")]
    not_counted: str


class ScriptDocument(Document, frozen=True, kw_only=True):
    """What a script launched."""

    answer: Line
    kinds: tuple[ScriptKind, ...]


def to_dict(kinds: Sequence[ScriptLaunch], answer: str) -> dict[str, object]:
    """The table as plain values."""
    return plain(ScriptDocument(answer=answer, kinds=tuple(map(_kind, _ordered(kinds)))))


def _kind(kind: ScriptLaunch) -> ScriptKind:
    return ScriptKind.of(
        kind,
        launch=str(kind.path),
        configuration=kind.note,
        launches=kind.times,
        verdict=None if kind.analysis is None else kind.analysis.verdict,
        worst=None if kind.worst is None else _place(kind.worst),
        **{name: kind.count(name) for name in ("wavefronts", "conflicts", "sectors", "needless_sectors")},
        cycles_at_least=kind.cycles,
        cycles_about=kind.about,
        estimate_error=None if kind.time is None else kind.time.error,
        rank=kind.rank or None,
        not_counted=kind.why_not,
    )
