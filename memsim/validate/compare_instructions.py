"""Compares predictions with measurements for each machine instruction and for the whole launch.

There is no tolerance: a value is equal, or a surplus is proven to be arbitration, or there is no rule for it,
or it differs. One that is predicted by limits lies within them, or differs.

Arbitration. If warps compete, shared accesses take more wavefronts. That does not depend on addresses,
differs in each run, and has its own counter, `l1tex__data_bank_conflicts_type_arbitration.sum`. A surplus
counts as arbitration only if

1. the source counters, which exclude arbitration, show the predicted values for every access, and
2. in the same pass over the kernel, wavefronts and conflicts exceed their predictions by the same number, and
   the arbitration counter is at least that number: in that pass too, or, for atomics, in any other, because
   ncu does not collect it together with their counters.

Products. While `wgmma` reads shared memory, loads and stores of other warps take more wavefronts, which are
no conflicts: of 12 launches of a kernel that does one, the other or both, only those that do both showed
them. So in a kernel with products wavefronts may exceed their prediction by more than conflicts do: then the
conflicts are arbitration, and for the wavefronts there is no rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from memsim.analysis import Analysis, Range
from memsim.arch import SM_90, Arch
from memsim.counts import Count
from memsim.errors import MemsimError
from memsim.trace.trace import Trace
from memsim.validate.predict import (
    EXECUTED,
    THREADS,
    Figures,
    PredictedAccess,
    access_name,
    accesses_of,
    predict,
    unreliable,
)
from memsim.validate.profiles import CODE_METRICS, CONTENDED, ONE_PASS, CodeProfile, access_of

#: Wavefronts of the products' operands.
PRODUCTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum"
EXACT = "exact"
NOISE = "arbitration"
WITHIN = "within its limits"
UNMODELLED = "not modelled"
DIFFERENT = "difference"
VERDICTS = (EXACT, NOISE, WITHIN, UNMODELLED, DIFFERENT)
# Verdicts on a launch, best first; "not certain" if something differs that the analysis marks as uncertain.
EQUAL, ARBITRATION, LIMITED, PARTLY, UNCERTAIN, DIFFERS = (
    "equal",
    "equal but for arbitration",
    "equal or within its limits",
    "equal as far as modelled",
    "not certain",
    "differs",
)
COPY, BULK = "cp.async", "bulk"


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """One value, predicted and measured.

    predicted: None if there is no rule, or only limits: then it is at least `least` and at most `most`, None
    if nothing limits it. arbitration: the part of the measured value proven to be arbitration. unreliable:
    the profiler may show something else, so that a value that differs says nothing.
    """

    metric: str
    predicted: int | None
    measured: int | float | None
    arbitration: int = 0
    unreliable: bool = False
    least: int | None = None
    most: int | None = None

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`."""
        if self.predicted is None and self.measured is not None and self.least is not None:
            below = self.most is None or self.measured <= self.most
            return WITHIN if self.least <= self.measured and below else DIFFERENT
        if self.predicted is None or self.measured is None:
            return UNMODELLED
        own = self.measured - self.arbitration
        if own == self.predicted:
            return NOISE if self.arbitration else EXACT
        return UNMODELLED if self.unreliable else DIFFERENT


@dataclass(frozen=True, slots=True)
class InstructionRow:
    """The metrics of one instruction. `address`: its offset from the kernel's first byte.

    `unresolved`: why some predictions are unknown.
    """

    address: int
    sass: str
    figures: tuple[MetricComparison, ...]
    unresolved: str | None = None

    @property
    def differs(self) -> bool:
        """Whether a value differs from its prediction."""
        return any(figure.verdict == DIFFERENT for figure in self.figures)

    @property
    def where(self) -> str:
        """`0x0d50 LDS.128 R68, [R3+UR5]`."""
        return f"{self.address:#06x} {self.sass}"


@dataclass(frozen=True, slots=True)
class CodeComparison:
    """One launch compared with its prediction.

    uncertain: why the counts are uncertain; "" if they are not.
    """

    rows: tuple[InstructionRow, ...]
    totals: tuple[MetricComparison, ...]
    uncertain: str = ""

    @property
    def figures(self) -> Iterator[MetricComparison]:
        """All compared values, instructions first."""
        for row in self.rows:
            yield from row.figures
        yield from self.totals

    @property
    def verdict(self) -> str:
        """`EQUAL`, `ARBITRATION`, `LIMITED`, `PARTLY`, `UNCERTAIN` or `DIFFERS`."""
        count = Counter(figure.verdict for figure in self.figures)
        if count[DIFFERENT]:
            return UNCERTAIN if self.uncertain else DIFFERS
        if count[UNMODELLED]:
            return PARTLY
        if count[WITHIN]:
            return LIMITED
        return ARBITRATION if count[NOISE] else EQUAL

    @property
    def differences(self) -> dict[str, str]:
        """Instructions and counters that differ -> predicted and measured values."""
        found = {
            row.where: "; ".join(_said(figure) for figure in row.figures if figure.verdict == DIFFERENT)
            for row in self.rows
            if row.differs
        }
        return found | {figure.metric: _said(figure) for figure in self.totals if figure.verdict == DIFFERENT}

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why something is not compared, without duplicates."""
        return tuple(dict.fromkeys(row.unresolved for row in self.rows if row.unresolved))


def compare_code(profiles: Sequence[CodeProfile], analysis: Analysis) -> CodeComparison:
    """Compare a prediction with profiles of the same launch of the same code.

    Addresses in the profiles count from the kernel's first instruction. The first profile has the metrics of
    instructions. What was not collected is not compared.

    Raises:
        MemsimError: the prediction is not for the whole grid, or not from machine code.
    """
    trace = analysis.trace
    if trace.blocks_replayed < trace.launch.blocks:
        raise MemsimError(
            f"{trace.blocks_replayed} of {trace.launch.blocks} blocks were replayed; the GPU ran all"
        )
    first = profiles[0]
    rows = tuple(_rows(first, trace, analysis.arch))
    explained = bool(first.figures) and not any(row.differs for row in rows)
    predicted = analysis.totals | _estimates(analysis)
    predicted |= _sums(rows, predicted)
    totals = counter_figures(profiles, predicted, explained, analysis.undecided)
    known = [figure for figure in totals if figure.measured is not None]
    return CodeComparison(rows, tuple(known), "; ".join(trace.uncertain))


def _rows(profile: CodeProfile, trace: Trace, arch: Arch) -> Iterator[InstructionRow]:
    """A row for each instruction that touches memory, by address."""
    collected = [name for name in CODE_METRICS if name in profile.figures]
    if not collected:
        return
    measured = dict(zip(profile.addresses, range(len(profile.addresses)), strict=True))
    accesses = accesses_by_address(trace, arch)
    executed = {place[0]: int(times) for place, times in zip(trace.listing, trace.executed)}
    touching = {address for address, row in measured.items() if access_of(profile.sass[row])}
    for address in sorted({*accesses, *touching}):
        row = measured.get(address)
        mine = accesses.get(address, [])
        found = {name: (row is not None and profile.figure(name, row)) or 0 for name in collected}
        if not mine and not found.get(THREADS):
            continue  # no lane was ever active: it is not in the trace
        yield InstructionRow(
            address=address,
            sass=mine[0].site.instruction if mine or row is None else profile.sass[row],
            figures=tuple(
                _figures(collected, _predicted(mine, arch, executed.get(address)), found, unreliable(mine))
            ),
            unresolved=next((access.site.unresolved for access in mine if access.site.unresolved), None),
        )


def _estimates(analysis: Analysis) -> dict[str, int]:
    """Totals in the order of warps that was executed: what the chip counts if that makes no difference."""
    if not analysis.trace.uncertain:
        return {}
    known = {metric: limits.estimate for metric, limits in analysis.undecided.items()}
    return {metric: estimate for metric, estimate in known.items() if estimate is not None}


def _sums(rows: Iterable[InstructionRow], totals: Mapping[str, int | None]) -> dict[str, int | None]:
    """Totals that the profiler adds up from its instructions, of which only the rows are predicted."""
    sums: dict[str, int | None] = {}
    for figure in (figure for row in rows for figure in row.figures):
        if figure.metric in totals and totals[figure.metric] is None:
            sum_so_far = sums.get(figure.metric, 0)
            known = figure.predicted is not None and sum_so_far is not None and not figure.unreliable
            sums[figure.metric] = sum_so_far + figure.predicted if known else None  # type: ignore[operator]
    return sums


def _predicted(accesses: Sequence[PredictedAccess], arch: Arch, executed: int | None) -> Figures:
    """The predictions for one instruction, which warps executed that often; None if that is unknown.

    A generic access to several spaces is one instruction, of which the trace has accesses for each space.
    """
    figures = predict(accesses, arch)
    ops = {access_name(access.site) for access in accesses}
    if len(accesses) > 1 and COPY not in ops:
        first = accesses[0].site
        figures |= {EXECUTED: executed}
        if first.op.startswith(BULK):  # both sides of one copy
            figures |= {EXECUTED: first.instructions, THREADS: first.lanes or None}
    return figures


def _figures(
    collected: Iterable[str], predicted: Figures, measured: Mapping[str, int], lost: Collection[str]
) -> Iterator[MetricComparison]:
    for name in collected:
        expected = predicted.get(name, 0)
        if name in predicted or measured[name]:
            yield _compared(name, expected, measured[name], name in lost)


def _compared(
    metric: str, known: Count | None, measured: int | float | None, lost: bool = False
) -> MetricComparison:
    """A value beside its prediction, or its limits."""
    if isinstance(known, Range):
        return MetricComparison(metric, None, measured, 0, lost, known.least, known.most)
    return MetricComparison(metric, known, measured, unreliable=lost)


def expected_text(figure: MetricComparison) -> str:
    """What is predicted: a number, or its limits; "" if there is no rule."""
    if figure.predicted is not None:
        return f"{figure.predicted:,}"
    return "" if figure.least is None else str(Range("", figure.least, figure.most))


def accesses_by_address(trace: Trace, arch: Arch = SM_90) -> dict[int, list[PredictedAccess]]:
    """The accesses of each machine instruction; for a copy both sides."""
    found: dict[int, list[PredictedAccess]] = {}
    for access in accesses_of(trace, arch):
        found.setdefault(access.site.address, []).append(access)
    return found


def _said(figure: MetricComparison) -> str:
    return f"{figure.metric} {figure.measured:,}, not {expected_text(figure)}"


def counter_figures(
    profiles: Sequence[CodeProfile],
    predicted: Mapping[str, int | None],
    explained: bool,
    undecided: Mapping[str, Range] | None = None,
) -> Iterator[MetricComparison]:
    """The hardware's counters.

    predicted: by ncu's names. explained: the source counters show the predicted values for every access.
    undecided: what is known of counters that are not predicted.
    """
    one_pass = {metric: metrics for metrics in ONE_PASS.values() for metric in metrics}
    for metric, expected in predicted.items():
        # If several runs have it, the first one's.
        measured = next((one.counters[metric].value for one in profiles if metric in one.counters), None)
        surplus = 0
        if expected is not None and metric in one_pass:
            together = _counted_together(profiles, set(one_pass[metric]))
            measured = together[metric] if together else measured
            surpluses = _arbitration(profiles, together, predicted) if together and explained else {}
            surplus = surpluses.get(metric, 0)
            if surpluses and metric not in surpluses:
                expected = None
        limits = (undecided or {}).get(metric)
        if expected is None and limits is not None and limits.is_limited:
            yield _compared(metric, limits, measured)
        else:
            yield MetricComparison(metric, expected, measured, surplus)


def _counted_together(profiles: Iterable[CodeProfile], metrics: Set[str]) -> dict[str, int | float] | None:
    """These counters if they were collected in the same pass over the kernel, else None."""
    for profile in profiles:
        if profile.passes == 1 and metrics <= set(profile.counters):
            return {metric: profile.counters[metric].value for metric in metrics}
    return None


def _arbitration(
    profiles: Sequence[CodeProfile], together: Mapping[str, int | float], predicted: Mapping[str, int | None]
) -> dict[str, int]:
    """The surpluses that are proven to be arbitration by counters of one pass, by metric; empty if none are.

    Without that of the wavefronts if it is larger than that of the conflicts, and there are products.
    """
    elsewhere = (one.counters[CONTENDED].value for one in profiles if CONTENDED in one.counters)
    arbitration = together.get(CONTENDED, max(elsewhere, default=0))
    expected = {metric: predicted.get(metric) for metric in together if metric != CONTENDED}
    surpluses = {
        metric: int(together[metric] - count) for metric, count in expected.items() if count is not None
    }
    least = min(surpluses.values(), default=-1)
    if None in expected.values() or not 0 <= least <= arbitration:
        return {}
    proven = {metric: surplus for metric, surplus in surpluses.items() if surplus == least}
    more = surpluses.keys() - proven.keys()
    explained = all("wavefronts" in metric and predicted.get(PRODUCTS) for metric in more)
    return proven if explained else {}
