"""Lower bounds of a launch's cycles for each unit: what bounds it, and what removing conflicts could save.

Each unit's work is divided evenly among all units of its kind that the launch can use, and nothing waits. If
all blocks execute the same, blocks are not divided: the multiprocessor with most of them has the most work.
So every number is a lower bound, and the largest one belongs to the unit that the kernel could at best keep
busy all the time. Latencies, arbitration between warps, and repeated DRAM transfers are not modelled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Annotated

from msgspec import Meta

from memsim.arch import ASSUMED, SM_90, Arch
from memsim.counts import SiteCounts, assumed_of_copies, unknown_accesses
from memsim.document import Count, DocumentPart, JsonObject, Line, Texts, plain
from memsim.launch import Launch, Natural
from memsim.least_work import (
    NO_SECTORS,
    L2Sectors,
    dram_bytes,
    executed_forms,
    least_l2_sectors,
    least_wavefronts,
    tag_lookups,
)
from memsim.model.occupancy import Needs, Occupancy, next_cliffs, occupancy, room_left
from memsim.model.pipes import EXECUTED, PipeUse, pipe_use
from memsim.trace.footprint import Footprint
from memsim.trace.trace import Trace

#: Maximum number of lines whose tags the L1 cache looks up per cycle; one of the same set.
TAGS_A_CYCLE = 4
_PIPES = {
    "issue": ("instruction issue", EXECUTED),
    "alu": ("ALU pipe", "sm__inst_executed_pipe_alu.sum"),
    "fma": ("FMA pipe", "sm__inst_executed_pipe_fma.sum"),
    "fp64": ("FP64 pipe", "sm__inst_executed_pipe_fp64.sum"),
    "xu": ("XU pipe", "sm__inst_executed_pipe_xu.sum"),
    "tensor": ("tensor pipe", "sm__inst_executed_pipe_tensor.sum"),
    "uniform": ("uniform pipe", "sm__inst_executed_pipe_uniform.sum"),
}
L1_DATA, SHARED, L1_TAGS, L2, DRAM = "L1 data stage", "shared wavefronts", "L1 tag stage", "L2 cache", "DRAM"
#: DRAM of a chip on which its rate was not measured.
DRAM_BY_SHEET = "DRAM (data sheet?)"
_STAGES = {
    "l1_data": (L1_DATA, "l1tex__data_pipe_lsu_wavefronts.sum"),
    "shared": (SHARED, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"),
    "l1_tags": (L1_TAGS, "memory_l1_tag_requests_global"),
    "l2": (L2, "lts__t_sectors_srcunit_tex.sum"),
    "dram": (DRAM, "dram__sectors_read.sum"),
}
#: Names of the units in budgets.
UNITS = (*_PIPES, *_STAGES)
#: Units below this share of the bound are omitted in the verdict.
WORTH_A_WORD = 0.25


@dataclass(frozen=True, slots=True)
class Unit:
    """One kind of unit. count: of ncu's `metric`; None if the counter's value is not predicted.

    key: its name in budgets. cycles: for which the busiest such unit is busy at least.
    """

    key: str
    name: str
    metric: str
    count: Natural | None
    cycles: Natural


@dataclass(frozen=True, slots=True)
class Waves:
    """How the blocks of a launch are distributed over multiprocessors.

    most: blocks of the multiprocessor with most of them. waves: how often all of them are filled, including a
    partial last wave.
    """

    most: int
    waves: float


class Room(DocumentPart, frozen=True, kw_only=True):
    """Resources of a block."""

    registers: Annotated[Natural, Meta(description="per thread")]
    shared_bytes: Annotated[Natural, Meta(description="per block")]


class Cliff(Room, frozen=True, kw_only=True):
    """Resources of a block with which more are resident."""

    resident_blocks: Natural


class BoundFigures(DocumentPart, frozen=True, kw_only=True):
    """The least cycles of a launch, unit by unit; with `lacks`, an estimate."""

    verdict: Line
    cycles: Annotated[Natural, Meta(description="that the launch takes at least")]
    gain_without_conflicts: Annotated[
        float, Meta(ge=0, le=1, description="share of the bound that bank conflicts make")
    ]
    units: Annotated[tuple[Unit, ...], Meta(description="the one that needs the most cycles first")]
    chip: Annotated[str, Meta(description="whose rates were used")]
    multiprocessors: Annotated[Natural, Meta(description="that have blocks")]
    whole_blocks: Annotated[
        bool, Meta(description="all blocks are alike: the busiest multiprocessor's work is whole blocks")
    ]
    not_measured: Annotated[Texts, Meta(description="instructions whose rate was not measured")]
    lacks: Annotated[Texts, Meta(description="why it is an estimate")]
    resident_blocks: Annotated[Count, Meta(description="that a multiprocessor holds; null: not known")]
    limits_of_resident_blocks: Annotated[
        dict[str, Count] | None, Meta(description="as each resource alone allows them; null: not known")
    ]
    next_cliffs: tuple[Cliff, ...]
    room: Annotated[Room | None, Meta(description="with which as many blocks are resident; null: not known")]
    waves: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="blocks of the grid by those resident on the whole chip; null: not known"),
    ]
    global_sectors: Annotated[Footprint | None, Meta(description="that the launch touches; null: not known")]


@dataclass(frozen=True, slots=True)
class Bound:
    """The lower bound of a launch's cycles.

    units: those with work, the busiest first. has_instructions: instruction counts are known; else only
    accesses are counted. multiprocessors: how many the launch can use. whole_blocks: all blocks execute the
    same, and the busiest multiprocessor's count. not_counted: what has
    unknown work, in words.
    unknown: opcodes whose work is not included. lacks: why it is not a bound of the whole launch, or an
    estimate; empty if it is one. occupancy: None if registers are unknown. cliffs: the smallest reductions
    that make more blocks resident. room: the most registers and the most shared memory that leave as many;
    None if no block fits. without_conflicts: cycles of the L1 data stage if no request had a bank conflict.
    footprint: sectors of global memory that the launch touches; None unless all of it was replayed.
    """

    units: tuple[Unit, ...]
    has_instructions: bool
    chip: str
    multiprocessors: int
    whole_blocks: bool
    not_counted: tuple[str, ...]
    unknown: tuple[str, ...]
    lacks: tuple[str, ...]
    conflicts: int
    without_conflicts: int
    occupancy: Occupancy | None
    cliffs: tuple[tuple[Needs, int], ...]
    room: Needs | None
    waves: Waves | None
    footprint: Footprint | None

    @property
    def cycles(self) -> int:
        """The lower bound of the whole launch."""
        return self.units[0].cycles if self.units else 0

    def cycles_of(self, key: str) -> int:
        """Cycles of one unit by its key; 0 if it has no work."""
        return next((unit.cycles for unit in self.units if unit.key == key), 0)

    @property
    def gain(self) -> float:
        """The share of the bound, 0 to 1, that is saved if no request has a bank conflict."""
        if not self.cycles:
            return 0.0
        others = max((unit.cycles for unit in self.units if unit.key not in ("l1_data", "shared")), default=0)
        return 1 - max(others, self.without_conflicts) / self.cycles

    @property
    def figures(self) -> BoundFigures:
        """What documents say of it."""
        occupancy, room = self.occupancy, self.room
        return BoundFigures.of(
            self,
            gain_without_conflicts=self.gain,
            not_measured=self.unknown,
            resident_blocks=None if occupancy is None else occupancy.blocks,
            limits_of_resident_blocks=None if occupancy is None else occupancy.limits,
            next_cliffs=tuple(Cliff.of(less, resident_blocks=blocks) for less, blocks in self.cliffs),
            room=None if room is None else Room.of(room),
            waves=None if self.waves is None else self.waves.waves,
            global_sectors=self.footprint,
        )

    def to_dict(self) -> JsonObject:
        """As plain values."""
        return plain(self.figures)

    @property
    def verdict(self) -> str:
        """The answer in a line."""
        if not self.units:
            return "the work of the launch is unknown"
        first, *others = self.units
        estimate = "an estimate: " if self.lacks else ""
        parts = [*self.not_counted, f"{estimate}at least {self.cycles:,} cycles, bound by {first.name}"]
        busy = [unit for unit in others if unit.cycles >= WORTH_A_WORD * self.cycles]
        if busy:
            parts.append(", ".join(f"{unit.name} {percent(unit.cycles / self.cycles)}" for unit in busy))
        if self.conflicts:
            parts.append(
                f"without its {self.conflicts:,} bank conflicts the bound is {percent(self.gain)} lower"
                if self.gain
                else f"removing all {self.conflicts:,} bank conflicts would not lower the bound"
            )
        return "; ".join(parts)


def bound_of(
    trace: Trace, rows: Sequence[SiteCounts], totals: Mapping[str, int | None], chip: Arch = SM_90
) -> Bound:
    """The lower bounds of a launch, whose trace has the counts `rows` and `totals`, by ncu's names; unknown
    parts are omitted.
    """
    launch, share = trace.launch, trace.blocks_replayed / trace.launch.blocks
    not_counted = tuple(_not_counted(trace, rows))
    use = pipe_use(executed_forms(trace), chip.clocked)
    whole = trace.blocks_alike and share == 1 and len(trace.executed) > 0
    wavefronts = least_wavefronts(trace, rows)
    conflicts = sum(row.wavefronts_of_conflicts for row in rows)
    shared = sum(row.wavefronts or 0 for row in rows)
    multiprocessors = min(chip.multiprocessors, launch.blocks)
    footprint = trace.footprint if share == 1 else None
    traffic = least_l2_sectors(footprint, rows), dram_bytes(footprint, chip)
    held = None
    cliffs: tuple[tuple[Needs, int], ...] = ()
    room = None
    if trace.resources is not None and chip.resident_warps >= launch.warps:
        held = occupancy(_needs(trace), chip)
        cliffs = next_cliffs(held.needs, chip)
        room = room_left(held.needs, chip) if held.blocks else None
    return Bound(
        units=units_of(
            use, wavefronts, tag_lookups(rows), launch, chip, whole, shared, share, *traffic, totals
        ),
        has_instructions=len(trace.executed) > 0,
        chip=chip.chip,
        multiprocessors=multiprocessors,
        whole_blocks=whole,
        not_counted=not_counted,
        unknown=use.unknown,
        lacks=(
            *_assumptions(trace, chip),
            *assumed_of_copies(rows),
            *(f"{what}, so the true bound is higher" for what in not_counted),
        ),
        conflicts=conflicts,
        without_conflicts=ceil((wavefronts - conflicts) / share / multiprocessors),
        occupancy=held,
        cliffs=cliffs,
        room=room,
        waves=_waves(launch, held.blocks, chip) if held is not None and held.blocks else None,
        footprint=footprint,
    )


def units_of(
    use: PipeUse,
    wavefronts: int,
    tags: int,
    launch: Launch,
    chip: Arch = SM_90,
    whole_blocks: bool = False,
    shared: int = 0,
    share: float = 1,
    l2: L2Sectors = NO_SECTORS,
    dram: int = 0,
    totals: Mapping[str, int | None] | None = None,
) -> tuple[Unit, ...]:
    """The units with work, the busiest first.

    wavefronts: of the L1 data stage in the whole launch, one per cycle and multiprocessor, `shared` of them
    for shared memory; tags: look-ups of the L1 tag stage, up to four per cycle (traces/nvidia-h200/rates/,
    loops `lds_32` and `ldg_lines`). whole_blocks: all execute the same. share: the share of the launch's
    blocks. l2: sectors, dram: bytes, that are transferred for all of it. totals: predicted counters.
    """
    multiprocessors = min(chip.multiprocessors, launch.blocks)
    of_busiest = _most_blocks(launch, chip)
    # of the launch's work, a partition of the busiest multiprocessor does one part in so many
    partitions = (
        min(chip.partitions, of_busiest * launch.warps) * launch.blocks / of_busiest
        if whole_blocks
        else min(chip.partitions * multiprocessors, launch.blocks * launch.warps)
    )
    known = {**use.counters, **(totals or {})} if share == 1 else {}
    units = [
        Unit(pipe, title, metric, known.get(metric),
             ceil(use.cycles[pipe] / share / partitions))
        for pipe, (title, metric) in _PIPES.items()
    ]  # fmt: skip
    stages = {
        "l1_data": wavefronts / multiprocessors,
        "shared": shared / multiprocessors,
        "l1_tags": tags / (TAGS_A_CYCLE * multiprocessors),
        "l2": _l2_cycles(l2, multiprocessors, chip) * share,
        "dram": dram / chip.dram_bytes_a_cycle * share,
    }
    for key, work in stages.items():
        name, metric = _STAGES[key]
        units.append(Unit(key, name, metric, known.get(metric), ceil(work / share)))
    if chip.memory is None:
        units = [replace(unit, name=DRAM_BY_SHEET) if unit.key == "dram" else unit for unit in units]
    return tuple(sorted((unit for unit in units if unit.cycles), key=lambda unit: -unit.cycles))


def _l2_cycles(sectors: L2Sectors, multiprocessors: int, chip: Arch) -> float:
    """Cycles in which that many multiprocessors can transfer sectors; 0 if the rates are unknown."""
    rates = chip.memory
    if rates is None:
        return 0
    return max(
        sectors.read / min(rates.l2_read, rates.l2_read_of_one * multiprocessors),
        sectors.written / min(rates.l2_written, rates.l2_written_of_one * multiprocessors),
    )


def percent(share: float) -> str:
    """`61 %`: a share of 0 to 1, or a change; whole percents, and never 100 for a share that is only near."""
    text = f"{100 * share:.0f}"
    return "over 99 %" if text == "100" and share < 1 else f"{text} %"


def _assumptions(trace: Trace, chip: Arch) -> Iterator[str]:
    """What is taken for granted, in words."""
    if not len(trace.executed):
        yield "instruction counts are unknown, so only memory accesses are counted"
    if trace.blocks_replayed < trace.launch.blocks:
        yield (
            f"{trace.blocks_replayed:,} of {trace.launch.blocks:,} blocks were replayed; the others are "
            "assumed to do the same"
        )
    if trace.uncertain:
        yield "some counts are uncertain, and taken as they were executed"
    if chip.rates == ASSUMED:
        yield f"pipe rates were not measured on {chip}; those of {SM_90} are used"


def _not_counted(trace: Trace, rows: Sequence[SiteCounts]) -> Iterator[str]:
    """What makes work that is in no unit's, in words."""
    if trace.not_counted:
        yield trace.not_counted
    yield from unknown_accesses(rows)
    if any(row.space == "texture" for row in rows):
        yield "the work of texture units is not included"


def _needs(trace: Trace) -> Needs:
    """The resources that a block of the launch needs."""
    assert trace.resources is not None
    held = trace.resources
    return Needs(
        trace.launch.threads, held.registers, held.static_shared + trace.launch.shared_bytes, held.barriers
    )


def _most_blocks(launch: Launch, chip: Arch) -> int:
    """The fewest blocks that the multiprocessor with most of them can have."""
    return ceil(launch.blocks / chip.multiprocessors)


def _waves(launch: Launch, resident: int, chip: Arch) -> Waves:
    return Waves(_most_blocks(launch, chip), launch.blocks / (resident * chip.multiprocessors))
