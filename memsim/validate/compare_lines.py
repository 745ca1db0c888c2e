"""Compares predictions with measurements for each source line and for the whole launch.

There is no tolerance: a value is equal, or a surplus is proven to be arbitration, or it is a difference. The
code that ran was compiled from PTX, which does not tell where ptxas uses predication instead of branches:
execution counts are compared by instruction (`memsim.validate.compare_instructions`), not here.

Arbitration. If warps compete, shared accesses take more wavefronts. That does not depend on addresses,
differs in each run, and has its own counter, `l1tex__data_bank_conflicts_type_arbitration.sum`. A surplus
counts as arbitration only if

1. the source counters, which exclude arbitration, show the predicted values for every access, and
2. in the same pass over the kernel, wavefronts and conflicts exceed their predictions by the same number, and
   the arbitration counter is at least that number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from memsim.analysis import Analysis
from memsim.arch import Arch
from memsim.errors import MemsimError
from memsim.validate.live import ARBITRATION, ONE_PASS
from memsim.validate.predict import (
    EXECUTED,
    LineAccess,
    PredictedAccess,
    accesses_by_place,
    predict,
)
from memsim.validate.profiles import SOURCE_METRICS, ProfilerRun, SassRow, counted_together, counter_of
from memsim.validate.recording import Recording
from memsim.validate.sass import access_of, never_runs

EXACT = "exact"
NOISE = "arbitration"
UNMODELLED = "not modelled"
DIFFERENT = "difference"
VERDICTS = (EXACT, NOISE, UNMODELLED, DIFFERENT)

#: Metrics of a source line that are compared: those of memory, and of active lanes.
LINE_METRICS = tuple(metric for metric in SOURCE_METRICS if metric != EXECUTED)
TOGETHER = "ncu attributes inlined instructions to their own line or to that of the call"

Calls = Mapping[tuple[str, int], Set[tuple[str, int]]]


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """One value, predicted and measured.

    predicted: None if there is no rule. arbitration: the part of the measured value proven to be arbitration.
    """

    metric: str
    predicted: int | None
    measured: int | float | None
    arbitration: int = 0

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`."""
        if self.predicted is None or self.measured is None:
            return UNMODELLED
        own = self.measured - self.arbitration
        if own == self.predicted:
            return NOISE if self.arbitration else EXACT
        return DIFFERENT


@dataclass(frozen=True, slots=True)
class LineComparison:
    """The metrics of one source line and kind of access, or of several lines together.

    wavefronts: predicted for the hardware, where the metrics follow the profiler's formula; None unless
    shared.
    """

    places: tuple[LineAccess, ...]
    figures: tuple[MetricComparison, ...]
    wavefronts: int | None

    @property
    def differs(self) -> bool:
        """Whether a value differs from its prediction."""
        return any(figure.verdict == DIFFERENT for figure in self.figures)

    @property
    def happened(self) -> bool:
        """Whether anything was, or should have been, executed."""
        return any(figure.predicted or figure.measured for figure in self.figures)

    @property
    def where(self) -> str:
        """`kernels/kernel_v4.cu:53 shared load`; lines that are counted together are joined by +."""
        by_file: dict[str, list[str]] = defaultdict(list)
        for place in self.places:
            by_file[place.file].append(str(place.line))
        files = (f"{file}:{'+'.join(lines)}" for file, lines in by_file.items())
        return f"{' '.join(files)} {self.places[0].access}"


@dataclass(frozen=True, slots=True)
class RecordingComparison:
    """One recording compared with its prediction."""

    recording: Recording
    lines: tuple[LineComparison, ...]
    totals: tuple[MetricComparison, ...]
    notes: tuple[str, ...]

    @property
    def differences(self) -> tuple[str, ...]:
        """Source lines with accesses, and metrics, that differ from their predictions."""
        lines = [line.where for line in self.lines if line.differs]
        return *lines, *(figure.metric for figure in self.totals if figure.verdict == DIFFERENT)

    @property
    def passed(self) -> bool:
        """Whether everything is as predicted."""
        return not self.differences

    @property
    def figures(self) -> Iterator[MetricComparison]:
        """All compared values, lines first."""
        for line in self.lines:
            yield from line.figures
        yield from self.totals


def compare(recording: Recording, analysis: Analysis, calls: Calls) -> RecordingComparison:
    """Compare a prediction with a recording of the same launch.

    `calls`: for a line (file, line) of an inlined function, the lines that call it.

    Raises:
        MemsimError: they are of different launches, or the prediction is not for the whole grid.
    """
    _check_same_launch(recording, analysis)
    accesses = accesses_by_place(analysis.trace)
    rows: dict[LineAccess, list[SassRow]] = defaultdict(list)
    fillers = 0
    for row in recording.rows:
        fillers += never_runs(row.sass)
        if not never_runs(row.sass):
            rows[LineAccess(row.file, row.line, access_of(row.sass) or "")].append(row)

    def comparison(places: Sequence[LineAccess]) -> LineComparison:
        together = [access for place in places for access in accesses.get(place, ())]
        ran = [row for place in places for row in rows.get(place, ())]
        return _compare_lines(places, together, ran, analysis.arch)

    alone = {place: comparison([place]) for place in sorted({*accesses, *rows})}
    open_places = [place for place, line in alone.items() if line.differs]
    compared = [line for place, line in alone.items() if place not in open_places]
    compared += [comparison(group) for group in _connected(open_places, calls)]
    compared.sort(key=lambda line: line.places)

    lines = tuple(line for line in compared if line.happened)
    explained = not any(line.differs for line in lines)
    totals = tuple(
        figure
        for figure in counter_figures(recording.profiles, analysis.totals, explained)
        if counter_of(recording.profiles, figure.metric) is not None  # if it was collected
    )
    notes = [f"{line.where}: {TOGETHER}" for line in lines if len(line.places) > 1]
    if fillers:
        notes.append(f"ptxas inserted {fillers} instructions that never execute (@!PT)")
    return RecordingComparison(recording, lines, totals, tuple(notes))


def _check_same_launch(recording: Recording, analysis: Analysis) -> None:
    launch, trace = recording.launch, analysis.trace
    mine = (trace.launch.grid, trace.launch.block, trace.launch.shared_bytes)
    if mine != (launch.grid, launch.block, launch.shared_bytes):
        raise MemsimError(
            f"{recording.kernel} was recorded with another launch: grid {launch.grid}, block {launch.block}"
        )
    if trace.blocks_replayed < trace.launch.blocks:
        raise MemsimError(
            f"{trace.blocks_replayed} of {trace.launch.blocks} blocks were replayed; the GPU ran all"
        )
    if analysis.arch.name != recording.device.arch:
        raise MemsimError(f"the prediction is for {analysis.arch}, the recording of {recording.device.arch}")


def _compare_lines(
    places: Sequence[LineAccess], accesses: Sequence[PredictedAccess], rows: Sequence[SassRow], arch: Arch
) -> LineComparison:
    measured = {metric: sum(row.count(metric) or 0 for row in rows) for metric in LINE_METRICS}
    predicted = predict(accesses, arch)
    figures = tuple(
        MetricComparison(name, predicted.figures.get(name, 0), measured[name])
        for name in LINE_METRICS
        if name in predicted.figures or measured[name]
    )
    return LineComparison(tuple(places), figures, predicted.wavefronts)


def _connected(places: Sequence[LineAccess], calls: Calls) -> list[list[LineAccess]]:
    """Lines of one kind of access that are connected by inlining: ncu attributes an instruction to any of
    them.
    """
    import networkx

    graph: networkx.Graph[LineAccess] = networkx.Graph()
    graph.add_nodes_from(places)
    for place in places:
        for file, line in calls.get((place.file, place.line), ()):
            caller = LineAccess(file, line, place.access)
            if caller in graph:
                graph.add_edge(place, caller)
    return [sorted(group) for group in networkx.connected_components(graph)]


def counter_figures(
    profiles: Sequence[ProfilerRun],
    predicted: Mapping[str, int | None],
    explained: bool,
) -> Iterator[MetricComparison]:
    """The hardware's counters.

    predicted: by ncu's names. explained: the source counters show the predicted values for every access.
    """
    one_pass = {metric: metrics for metrics in ONE_PASS.values() for metric in metrics}
    for metric, expected in predicted.items():
        measured = counter_of(profiles, metric)
        surplus = 0
        if expected is not None and metric in one_pass:
            together = counted_together(profiles, set(one_pass[metric]))
            measured = together[metric] if together else measured
            surplus = _arbitration(together, predicted) if together and explained else 0
        yield MetricComparison(metric, expected, measured, surplus)


def _arbitration(together: Mapping[str, int | float], predicted: Mapping[str, int | None]) -> int:
    """The surplus that is proven to be arbitration by counters of one pass; else 0."""
    expected = {metric: predicted.get(metric) for metric in together if metric != ARBITRATION}
    surplus = {together[metric] - count for metric, count in expected.items() if count is not None}
    proven = (
        None not in expected.values() and len(surplus) == 1 and 0 <= max(surplus) <= together[ARBITRATION]
    )
    return int(max(surplus)) if proven else 0
