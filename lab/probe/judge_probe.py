"""Tests the model's rules against a probe recording, for each instruction.

There is no tolerance. Not compared, because the model has no rule: conflicts of `cp.async.ca` from scattered
addresses, whose data are not in the cache; the hardware's sectors of `cp.async.cg`, because lanes write to
the same address; the sectors of global atomics in the hardware's counters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lab.experiment import verdict_cell
from lab.probe.instructions import EMPTY, INSTRUCTIONS, ProbedInstruction
from lab.probe.run_probe import CONFLICTS, GLOBAL, WAVEFRONTS, Probed, ProbeRecording
from memsim.arch import ARCHS, SM_90, Arch
from memsim.model import (
    bypass_access,
    bypass_source_page,
    copy_access,
    copy_source_page,
    global_access,
    global_source_page,
    shared_access,
    shared_source_page,
)
from memsim.model.cp_async import is_certain, overlaps
from memsim.model.operations import operation
from memsim.model.sourcepage import UNKNOWN
from memsim.validate.predict import SECTORS, TAGS
from memsim.validate.predict import WAVEFRONTS as PAGE_WAVEFRONTS
from memsim.validate.profiles import SOURCE_METRICS

Columns = dict[str, np.ndarray]

LOADS = f"{GLOBAL}_ld.sum"


@dataclass(frozen=True, slots=True)
class Held:
    """One instruction: for each ncu metric, (equal, compared) over patterns or launches."""

    name: str
    space: str
    op: str
    width: int
    figures: dict[str, tuple[int, int]]
    counters: dict[str, tuple[int, int]]

    @property
    def key(self) -> tuple[str, str, int]:
        """Space, operation and width of its access."""
        return self.space, self.op, self.width

    @property
    def compared(self) -> int:
        """The number of values and counters compared."""
        return sum(compared for _, compared in (*self.figures.values(), *self.counters.values()))

    @property
    def holds(self) -> bool:
        """Whether everything compared is equal."""
        return all(equal == compared for equal, compared in (*self.figures.values(), *self.counters.values()))

    @property
    def cells(self) -> tuple[str, ...]:
        """Its row of the table."""
        access = f"{self.space} {self.op.replace('_', '.')} {self.width} B"
        return self.name, access, _sums(self.figures), _sums(self.counters), verdict_cell(self.holds)

    def differences(self) -> Iterator[str]:
        """The figures and counters that differ somewhere."""
        for metric, (equal, compared) in {**self.figures, **self.counters}.items():
            if equal < compared:
                yield f"{self.name}: {metric}: {equal} of {compared} equal"


def _sums(counts: dict[str, tuple[int, int]]) -> str:
    equal, compared = (sum(pair[i] for pair in counts.values()) for i in (0, 1))
    return f"{equal:,} of {compared:,}" if compared else "-"


def judge_probe(recording: ProbeRecording) -> list[Held]:
    """The result for each probed instruction. An unknown chip is tested by the rules of sm_90."""
    arch = ARCHS.get(recording.device.arch, SM_90)
    return [_judge(recording, INSTRUCTIONS[name], arch) for name in recording.probed if name in INSTRUCTIONS]


def _judge(recording: ProbeRecording, instruction: ProbedInstruction, arch: Arch) -> Held:
    probed = recording.probed[instruction.name]
    harness = recording.probed[EMPTY.name].counters[0]
    figures, counters = _expected(instruction, probed, arch)

    equal_figures = {}
    for metric, expected in figures.items():
        measured = probed.figures[..., SOURCE_METRICS.index(metric)]
        known = (measured >= 0) & (expected != UNKNOWN)
        equal_figures[metric] = int((measured == expected)[known].sum()), int(known.sum())
    equal_counters = {}
    for metric, expected in counters.items():
        column = recording.metrics.index(metric)
        measured = probed.counters[:, column]
        known = measured >= 0
        tables = 2 if instruction.copies and metric.endswith(LOADS) else 1  # both are loaded in the same way
        equal = measured - tables * harness[column] == expected.sum(axis=1)
        equal_counters[metric] = int(equal[known].sum()), int(known.sum())
    return Held(
        *(instruction.name, instruction.space, instruction.op, instruction.width),
        figures=equal_figures,
        counters=equal_counters,
    )


def _expected(instruction: ProbedInstruction, probed: Probed, arch: Arch) -> tuple[Columns, Columns]:
    """Values for each pattern and counters as sums of patterns; arrays [launches, patterns]."""
    if instruction.copies:
        return _expected_of_copy(instruction, probed, arch)
    request = probed.addresses, instruction.width, instruction.op, probed.active, arch
    if instruction.space == "shared":
        page, cost = shared_source_page(*request), shared_access(*request)
        return (
            {PAGE_WAVEFRONTS: page.wavefronts, f"{PAGE_WAVEFRONTS}_ideal": page.ideal},
            {
                f"{WAVEFRONTS}_op_{instruction.counter}.sum": cost.wavefronts,
                f"{CONFLICTS}_op_{instruction.counter}.sum": cost.conflicts,
            },
        )
    figures, counters = _global_side(probed.addresses, instruction, probed, arch)
    if instruction.counter in ("atom", "red"):
        counters = {metric: counts for metric, counts in counters.items() if "t_requests" in metric}
    return figures, counters


def _expected_of_copy(instruction: ProbedInstruction, probed: Probed, arch: Arch) -> tuple[Columns, Columns]:
    """Its reads count as loads. `.cg` bypasses the L1 cache and counts nothing in shared memory."""
    figures, counters = _global_side(probed.origins, instruction, probed, arch)
    width, active = instruction.width, probed.active
    sides = probed.addresses, probed.origins
    conflicts = f"{CONFLICTS}_op_{instruction.counter}.sum"
    if operation("global", instruction.op).bypass:
        cost = bypass_access(*sides, active, arch)
        counters[f"l1tex__t_set_accesses_{LOADS}"] = cost.lines
        counters[f"l1tex__t_sectors_{LOADS}"] = cost.sectors
        if overlaps(probed.addresses, active).any():
            del counters[f"l1tex__t_sectors_{LOADS}"]
        shared, outside = bypass_source_page(*sides, arch=arch)  # lanes switched off by a guard count, too
        figures = {TAGS: figures[TAGS], SECTORS: outside.sectors, f"{SECTORS}_ideal": outside.ideal}
        figures |= {PAGE_WAVEFRONTS: shared.wavefronts, f"{PAGE_WAVEFRONTS}_ideal": shared.ideal}
        return figures, {**counters, conflicts: np.zeros_like(cost.lines)}
    page = copy_source_page(*sides, width, active, arch=arch)
    figures |= {PAGE_WAVEFRONTS: page.wavefronts, f"{PAGE_WAVEFRONTS}_ideal": page.ideal}
    if is_certain(probed.origins, width, active, active, arch).all():
        counters[conflicts] = copy_access(*sides, width, active, arch=arch).conflicts
    return figures, counters


def _global_side(
    addresses: np.ndarray, instruction: ProbedInstruction, probed: Probed, arch: Arch
) -> tuple[Columns, Columns]:
    counter = "ld" if instruction.copies else instruction.counter
    request = addresses, instruction.width, instruction.op, probed.active, arch
    page, cost = global_source_page(*request), global_access(*request)
    return (
        {SECTORS: page.sectors, f"{SECTORS}_ideal": page.ideal, TAGS: page.tag_requests},
        {
            f"l1tex__t_requests_{GLOBAL}_{counter}.sum": np.asarray(np.any(probed.active, axis=2)),
            f"l1tex__t_sectors_{GLOBAL}_{counter}.sum": cost.sectors,
            f"l1tex__t_set_accesses_{GLOBAL}_{counter}.sum": cost.lines,
        },
    )
