"""Predictions beside measurements, for each machine instruction and for the whole launch.

In: an analysis of a trace of machine code, and profiles of a launch of it. Out: `CodeComparison`: a row for
each instruction that touches memory, the launch's counters, and one verdict.
Left out on purpose: tolerance. A figure is equal, or a surplus of a counter is proven to be arbitration
(`memsim.validate.compare_lines`), or there is no rule for it, or it differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from memsim.analysis import Analysis
from memsim.arch import Arch
from memsim.errors import MemsimError
from memsim.trace.trace import Trace
from memsim.validate.code_profile import CodeProfile
from memsim.validate.compare_lines import (
    DIFFERENT,
    NOISE,
    UNMODELLED,
    MetricComparison,
    counter_figures,
)
from memsim.validate.predict import (
    EXECUTED,
    THREADS,
    Figures,
    PredictedAccess,
    access_name,
    accesses_of,
    predict,
)
from memsim.validate.profiles import CODE_METRICS, counter_of
from memsim.validate.sass import access_of

# What a launch is, best first; "not certain" where something differs and the analysis says what may.
EQUAL, ARBITRATION, PARTLY, UNSURE, DIFFERS = (
    "equal",
    "equal but for arbitration",
    "equal as far as modelled",
    "not certain",
    "differs",
)
COPY, BULK = "cp.async", "bulk"
CODE_VERDICTS = (EQUAL, ARBITRATION, PARTLY, UNSURE, DIFFERS)


@dataclass(frozen=True, slots=True)
class InstructionRow:
    """The figures of one instruction. `address`: its first byte, from the kernel's first one.

    `unresolved`: why some figures are not known.
    """

    address: int
    sass: str
    figures: tuple[MetricComparison, ...]
    unresolved: str | None = None

    @property
    def differs(self) -> bool:
        """Whether a figure is not as predicted."""
        return any(figure.verdict == DIFFERENT for figure in self.figures)

    @property
    def where(self) -> str:
        """`0x0d50 LDS.128 R68, [R3+UR5]`."""
        return f"{self.address:#06x} {self.sass}"


@dataclass(frozen=True, slots=True)
class CodeComparison:
    """One launch beside the prediction for it.

    unsure: why the counts are not certain; "" if they are.
    """

    rows: tuple[InstructionRow, ...]
    totals: tuple[MetricComparison, ...]
    unsure: str = ""

    @property
    def figures(self) -> Iterator[MetricComparison]:
        """All of them, instructions first."""
        for row in self.rows:
            yield from row.figures
        yield from self.totals

    @property
    def verdict(self) -> str:
        """One of `CODE_VERDICTS`."""
        count = Counter(figure.verdict for figure in self.figures)
        if count[DIFFERENT]:
            return UNSURE if self.unsure else DIFFERS
        if count[UNMODELLED]:
            return PARTLY
        return ARBITRATION if count[NOISE] else EQUAL

    @property
    def differences(self) -> dict[str, str]:
        """Where something differs (an instruction, or a counter) -> what was predicted and what measured."""
        found = {
            row.where: "; ".join(_said(figure) for figure in row.figures if figure.verdict == DIFFERENT)
            for row in self.rows
            if row.differs
        }
        return found | {figure.metric: _said(figure) for figure in self.totals if figure.verdict == DIFFERENT}

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why something is not compared, each once."""
        return tuple(dict.fromkeys(row.unresolved for row in self.rows if row.unresolved))


def compare_code(profiles: Sequence[CodeProfile], analysis: Analysis) -> CodeComparison:
    """Sets a prediction beside profiles of the same launch of the same code.

    Addresses in the profiles are counted from the kernel's first instruction. The first profile has
    the figures of the instructions. What was not collected is not compared.

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
    predicted = analysis.totals | _sums(rows, analysis.totals)
    totals = counter_figures(profiles, predicted, explained)
    known = [figure for figure in totals if counter_of(profiles, figure.metric) is not None]
    return CodeComparison(rows, tuple(known), "; ".join(trace.unsure))


def _rows(profile: CodeProfile, trace: Trace, arch: Arch) -> Iterator[InstructionRow]:
    """A row for each instruction that touches memory, by address."""
    collected = [name for name in CODE_METRICS if name in profile.figures]
    if not collected:
        return
    measured = dict(zip(profile.addresses, range(len(profile.addresses)), strict=True))
    accesses = accesses_by_address(trace)
    touching = {address for address, row in measured.items() if access_of(profile.sass[row])}
    for address in sorted({*accesses, *touching}):
        row = measured.get(address)
        mine = accesses.get(address, [])
        found: Figures = {name: (row is not None and profile.figure(name, row)) or 0 for name in collected}
        if not mine and not found.get(THREADS):
            continue  # no lane was ever on: it asked for nothing, and is not in the trace
        yield InstructionRow(
            address=address,
            sass=mine[0].site.instruction if mine or row is None else profile.sass[row],
            figures=tuple(_figures(collected, _predicted(mine, arch), found)),
            unresolved=next((access.site.unresolved for access in mine if access.site.unresolved), None),
        )


def _sums(rows: Iterable[InstructionRow], totals: Mapping[str, int | None]) -> dict[str, int | None]:
    """Totals that the profiler adds up from its instructions, where only the rows are known."""
    sums: dict[str, int | None] = {}
    for figure in (figure for row in rows for figure in row.figures):
        if figure.metric in totals and totals[figure.metric] is None:
            sum_so_far = sums.get(figure.metric, 0)
            known = figure.predicted is not None and sum_so_far is not None
            sums[figure.metric] = sum_so_far + figure.predicted if known else None  # type: ignore[operator]
    return sums


def _predicted(accesses: Sequence[PredictedAccess], arch: Arch) -> Figures:
    """The figures of one instruction.

    One that touches two spaces is one instruction. How often a generic access ran is not known then: the
    trace has it for each space.
    """
    figures = predict(accesses, arch).figures
    ops = {access_name(access.site) for access in accesses}
    if len(accesses) > 1 and COPY not in ops:
        first = accesses[0].site
        figures |= {EXECUTED: first.instructions if first.op.startswith(BULK) else None}
    return figures


def _figures(collected: Iterable[str], predicted: Figures, measured: Figures) -> Iterator[MetricComparison]:
    for name in collected:
        expected = predicted.get(name, 0)
        if name in predicted or measured[name]:
            yield MetricComparison(name, expected, measured[name])


def accesses_by_address(trace: Trace) -> dict[int, list[PredictedAccess]]:
    """The accesses of each machine instruction; of a copy both sides.

    Raises:
        MemsimError: the trace is not of machine code.
    """
    found: dict[int, list[PredictedAccess]] = {}
    for access in accesses_of(trace):
        if access.site.address < 0:
            raise MemsimError("PTX has no addresses to compare; instructions are of machine code")
        found.setdefault(access.site.address, []).append(access)
    return found


def _said(figure: MetricComparison) -> str:
    return f"{figure.metric} {figure.measured:,} and not {figure.predicted:,}"
