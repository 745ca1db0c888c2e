"""How many cycles a launch takes at least, unit by unit: what bounds it, and what a cure could win.

In: an `Analysis` of machine code. Out: `Bound`. Each unit's work is divided evenly among all units of its
kind that the launch can use; nothing waits. So every figure is a lower bound, and the largest one says which
unit the kernel could at best keep busy all the time. Left out on purpose: latencies, arbitration between
warps, the L2 cache and DRAM, how many blocks fit on a multiprocessor, and the tail of the last wave.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import ceil

from memsim.analysis import Analysis
from memsim.errors import MemsimError
from memsim.launch import Launch
from memsim.model.pipes import EXECUTED, SCHEDULERS, PipeUse, pipe_use
from memsim.trace.trace import Trace

#: Multiprocessors of an H100 SXM and of an H200.
MULTIPROCESSORS = 132
#: Sectors of 32 bytes that a wavefront of the L1 data stage holds.
SECTORS_OF_A_WAVEFRONT = 4
#: Lines whose tags the L1 cache looks up in a cycle at most; of the same set, one.
TAGS_A_CYCLE = 4
#: What goes through that stage on its way from or to global memory; copies to shared memory do not.
THROUGH_THE_DATA_STAGE = ("load", "store")

_TITLES = {
    "issue": ("instruction issue", EXECUTED),
    "alu": ("ALU pipe", "sm__inst_executed_pipe_alu.sum"),
    "fma": ("FMA pipe", "sm__inst_executed_pipe_fma.sum"),
    "fp64": ("FP64 pipe", "sm__inst_executed_pipe_fp64.sum"),
    "xu": ("XU pipe", "sm__inst_executed_pipe_xu.sum"),
    "tensor": ("tensor pipe", "sm__inst_executed_pipe_tensor.sum"),
}
L1_DATA, L1_TAGS = "L1 data stage", "L1 tag stage"


@dataclass(frozen=True, slots=True)
class Unit:
    """One kind of unit. count: of ncu's `metric`; None where it is not known.

    cycles: for which each such unit is busy at least.
    """

    name: str
    metric: str
    count: int | None
    cycles: int


@dataclass(frozen=True, slots=True)
class Bound:
    """The least cycles of a launch.

    units: those with work, the busiest first. multiprocessors: how many the launch can use. unknown: opcodes
    whose work is not in it. incomplete: some accesses were not analyzed; the L1 data stage has more to do.
    without_conflicts: cycles of the L1 data stage if no request had a bank conflict.
    """

    units: tuple[Unit, ...]
    multiprocessors: int
    unknown: tuple[str, ...]
    incomplete: bool
    conflicts: int
    without_conflicts: int

    @property
    def cycles(self) -> int:
        """The lower bound of the whole launch."""
        return self.units[0].cycles if self.units else 0

    @property
    def gain(self) -> float:
        """The share of the bound, 0 to 1, that goes away if no request has a bank conflict."""
        if not self.cycles:
            return 0.0
        others = max((unit.cycles for unit in self.units if unit.name != L1_DATA), default=0)
        return 1 - max(others, self.without_conflicts) / self.cycles

    @property
    def verdict(self) -> str:
        """The answer in a line."""
        if not self.units:
            return "no instruction was executed"
        first = self.units[0]
        parts = [f"at least {self.cycles:,} cycles, bound by the {first.name}"]
        data = next((unit for unit in self.units if unit.name == L1_DATA), None)
        if data is not None and data is not first:
            parts.append(f"the {L1_DATA} is busy for {_percent(data.cycles / self.cycles)} of them")
        if self.conflicts:
            parts.append(
                f"without its {self.conflicts:,} bank conflicts the bound is {_percent(self.gain)} lower"
                if self.gain
                else f"removing all {self.conflicts:,} bank conflicts does not lower the bound"
            )
        return "; ".join(parts)


def bound_of(analysis: Analysis) -> Bound:
    """The lower bounds of a launch.

    Raises:
        MemsimError: it is not known how often each instruction was executed: PTX was read, not all
            blocks were replayed, or the trace is from another source.
    """
    trace = analysis.trace
    check_complete(trace)
    use = pipe_use(executed_forms(trace))
    wavefronts = least_wavefronts(analysis)
    conflicts = sum(site.wavefronts_of_conflicts for site in analysis.sites)
    multiprocessors = min(MULTIPROCESSORS, trace.launch.blocks)
    return Bound(
        units=units_of(use, wavefronts, tag_lookups(analysis), trace.launch),
        multiprocessors=multiprocessors,
        unknown=use.unknown,
        incomplete=any(site.unresolved is not None for site in analysis.sites),
        conflicts=conflicts,
        without_conflicts=ceil((wavefronts - conflicts) / multiprocessors),
    )


def units_of(use: PipeUse, wavefronts: int, tags: int, launch: Launch) -> tuple[Unit, ...]:
    """The units with work, the busiest first.

    wavefronts: of the L1 data stage, in the whole launch, one a cycle and multiprocessor; tags: look-ups of
    the L1 tag stage, up to four (traces/nvidia-h200/rates/, loops `lds_32` and `ldg_lines`).
    """
    multiprocessors = min(MULTIPROCESSORS, launch.blocks)
    partitions = min(SCHEDULERS * multiprocessors, launch.blocks * launch.warps)
    units = [
        Unit(title, metric, use.counters[metric], ceil(use.cycles[pipe] / partitions))
        for pipe, (title, metric) in _TITLES.items()
    ]
    units.append(
        Unit(L1_DATA, "l1tex__data_pipe_lsu_wavefronts.sum", None, ceil(wavefronts / multiprocessors))
    )
    units.append(
        Unit(L1_TAGS, "memory_l1_tag_requests_global", tags, ceil(tags / (TAGS_A_CYCLE * multiprocessors)))
    )
    return tuple(sorted((unit for unit in units if unit.cycles), key=lambda unit: -unit.cycles))


def least_wavefronts(analysis: Analysis) -> int:
    """The least wavefronts of the L1 data stage.

    Those of shared memory, one for each shuffle (the same, `shfl`), and of loads and stores one for each
    request, or as many as its distinct bytes fill.
    """
    shared = sum(site.wavefronts or 0 for site in analysis.sites)
    forms = executed_forms(analysis.trace)
    shuffles = sum(times for form, times in forms.items() if form.split(".")[0] == "SHFL")
    moved = sum(
        max(site.requests or 0, ceil((site.ideal_sectors or 0) / SECTORS_OF_A_WAVEFRONT))
        for site in analysis.sites
        if site.space == "global" and site.op in THROUGH_THE_DATA_STAGE
    )
    return shared + shuffles + moved


def tag_lookups(analysis: Analysis) -> int:
    """Look-ups of the L1 tag stage: a line of 128 bytes each."""
    return sum(site.lines or 0 for site in analysis.sites if site.op in THROUGH_THE_DATA_STAGE)


def check_complete(trace: Trace) -> None:
    """Is it known how often each machine instruction of the whole launch was executed?

    Raises:
        MemsimError: it is not.
    """
    if not len(trace.executed):
        raise MemsimError(
            "bounds in cycles need machine code: how often each instruction is executed is not known",
            hint="analyze the .cu file or a cubin; a trace has to be written by this version of memsim",
        )
    if trace.blocks_replayed < trace.launch.blocks:
        raise MemsimError(
            f"bounds in cycles need all blocks, not {trace.blocks_replayed} of {trace.launch.blocks}",
            hint="leave out --blocks",
        )


def executed_forms(trace: Trace) -> Counter[str]:
    """Opcode with modifiers -> how often a warp executed it."""
    found: Counter[str] = Counter()
    for (_, text, _, _), times in zip(trace.listing, trace.executed.tolist(), strict=True):
        words = text.split(maxsplit=2)
        found[words[1] if words[0].startswith("@") else words[0]] += times
    return found


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
