"""What the units of a multiprocessor need to know of each instruction of a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import NamedTuple

from memsim.arch.units import LINE, WARP
from memsim.counts import SiteCounts
from memsim.isa.definitions import meaning_of
from memsim.isa.op import UNIFORM, Address, Constant, Flow, Immediate, Predicate, Register, Trait
from memsim.isa.program import Op
from memsim.isa.warpgroup import wait_for_products
from memsim.least_work import SECTORS_OF_A_WAVEFRONT
from memsim.model.pipes import CYCLES, pipe_of, tensor_cycles
from memsim.time.control_codes import AT_BARRIER, ControlCode
from memsim.time.l1_cache import CostOfRequest
from memsim.time.l1_lookups import TAGS_A_CYCLE
from memsim.time.latencies import Latencies

#: Parts of a cycle in which the memory pipe's stages count: an access's cost is a mean, and no integer.
PARTS = 8
#: Opcodes whose result comes beside the memory pipe, and what their latency is.
_BESIDE = {
    **dict.fromkeys("S2R B2R".split(), "special"),
    **dict.fromkeys("LDC ULDC".split(), "constant"),
    **dict.fromkeys("R2UR VOTEU CS2R MATCH".split(), "match"),
    "S2UR": "special_uniform",
    "REDUX": "redux",
}
_FETCHES = frozenset("TEX TLD TLD4 TXD".split())
#: They read addresses as arithmetic reads its operands, and leave the reuse cache as it is. Stores mostly
#: find cycles in which a bank is not read. Measured: both among FFMAs (docs/validation/register_reads.json).
_LOADS = frozenset("LDS LDSM LDG LD LDL LDGSTS".split())
#: Slots of the registers of each bank.
_EVEN, _ODD = (sum(1 << slot for slot in range(odd, UNIFORM, 2)) for odd in (0, 1))
_VECTOR = _EVEN | _ODD
_HALVES = ("HADD2", "HFMA2", "HMUL2")
#: What is not modelled, by opcode, in words.
_NOT_MODELLED = {
    **dict.fromkeys("UTMAPF UBLKPF".split(), "bulk prefetches (TMA)"),
    **dict.fromkeys("NANOSLEEP".split(), "sleeping"),
    **dict.fromkeys("TEX TLD TLD4 TXD TMML SULD SUST SUATOM SURED".split(), "texture units"),
}
#: Modifiers of atomics that fail where others were first: a launch on a chip takes ten times as long.
_SWAPS = frozenset(("CAS", "CAST"))
#: Ends a group of copies to shared memory (`cp.async.commit_group`).
COMMIT = "LDGDEPBAR"
_AT_MBARRIERS = frozenset(("SYNCS", "ARRIVES"))
#: Cycles of the texture units for the fetch of a warp: four lanes each (NVIDIA H100 whitepaper).
FETCH = 8
#: Sectors that L2 serves together to a copy in bulk. Measured: boxes of 16, 32 and 64 bytes a row take the
#: same time if all multiprocessors read them (H200, lab/time/bulk.cu).
BULK_SECTORS = 2
#: Pipes whose instructions a warp issues although others have not arrived at its barrier. Measured: 29
#: instructions behind one (lab/time/barriers.py).
_PASS_BARRIERS = frozenset(("alu", "fma", "fp64", "tensor"))
#: In place of a barrier's number that a register has: that of each group of as many warps as it is for.
BARRIER_OF_GROUP = 16
#: Of a load of a line that nobody was ahead of; who was is told in so many steps.
LATEST, STEPS = 100, 8


@dataclass(slots=True, eq=False)
class TimedInstruction:
    """One instruction. Cycles; `wavefronts`, `tags`, `sectors` and `lines` in parts of one (`PARTS`).

    index: its number in the program. pipe: "fma", "fma heavy", "alu", ..., "memory", "special", or "" for
    none. busy: for which it occupies the pipe. even, odd: registers read from each bank; kept: those that the
    reuse cache has instead. wavefronts: of the data stage; copied: of those in which a copy to shared memory
    writes what has arrived, also in parts. sends: cycles in which its registers are sent to the memory pipe,
    64 bytes in each; returned: registers that a load gets. widens: what it moves beyond 128 bytes, as
    wavefronts. tags: of L1's tag stage. sectors: that load or store at L2. turns: of an atomic that L2 takes
    one after the other, with those of all multiprocessors. late: % of the time from L2 to DRAM that a load
    waits for them if L2 is cold. lines: until L2 was asked for all lines of those. moves: as of
    `CostOfRequest`. latency: from the end of its service to its result. follows: the load that brings some of
    its sectors, and how many executions that is ahead; followed: it is such a load. why: ncu's reason of
    those who wait for its result, or until its registers are read. barrier: number of a block barrier;
    arrives: it does not wait there; expected: warps, 0 for all. copies, products: for those that wait for
    groups of copies or of products of a warpgroup, how many may be under way; -1 if it does not. is_copy,
    is_product: of such a group; closes: the last of one. fences: cycles of a fence. fetches: it is a fetch of
    a texture. constant: the place of one that it reads, as `ConstantCache.fetch`; -1 if there is none.
    hands_over: as of `hands_over`; follows_copies: it arrives at an mbarrier when copies to shared
    memory do. bulk: of the engine that copies in bulk, also in parts; received: sectors that it brings to all
    its blocks. fills: it copies through L1, to which what is missing there is written first, in one more
    wavefront. holds: cycles after its stall count before the next one, if that follows it: of a call of
    printf, which has no code here, until lanes have met, or of a jump to where others go on later.
    """

    index: int
    stall: int = 1
    result: int | None = None
    operands: int | None = None
    waits: tuple[int, ...] = ()
    pipe: str = ""
    busy: int = 1
    even: int = 0
    odd: int = 0
    kept_even: int = 0
    kept_odd: int = 0
    wavefronts: int = 0
    copied: int = 0
    sends: int = 1
    returned: int = 0
    widens: int = 0
    tags: int = 0
    sectors: int = 0
    turns: int = 0
    late: int = LATEST
    lines: int = 0
    moves: int = 1
    is_global: bool = False
    writes: bool = False
    latency: int = 0
    follows: tuple[int, int] | None = None
    followed: bool = False
    why: str = "short_scoreboard"
    barrier: int = -1
    arrives: bool = False
    expected: int = 0
    copies: int = -1
    products: int = -1
    is_copy: bool = False
    is_product: bool = False
    closes: bool = False
    fences: int = 0
    branches: bool = False
    fetches: bool = False
    constant: int = -1
    hands_over: bool = False
    follows_copies: bool = False
    bulk: int = 0
    received: int = 0
    fills: bool = False
    holds: int = 0

    @property
    def is_plain(self) -> bool:
        """Does it neither wait for others nor belong to a group, and does the next one follow it?"""
        waits = max(self.barrier, self.copies, self.products, self.constant) >= 0 or self.fences
        joins = self.is_copy or self.is_product or self.closes or self.hands_over
        return not (waits or joins or self.branches or self.holds)


def timed_instructions(
    ops: Sequence[Op],
    codes: Sequence[ControlCode],
    costs: Mapping[int, Sequence[SiteCounts]],
    set_to: Latencies,
    in_cluster: int = 1,
) -> tuple[list[TimedInstruction], tuple[str, ...]]:
    """The instructions of a program, and what of them is not modelled, in words.

    costs: of the accesses of each instruction, by address, in the block that stands for all: an access is
    given the mean of them. in_cluster: blocks of a cluster, to all of which a multicast is taken to go.
    """
    made: list[TimedInstruction] = []
    lacking: list[str] = []
    kept: dict[tuple[int, int], int] = {}
    for op, code in zip(ops, codes):
        one = TimedInstruction(op.index, max(code.stall, 1), code.result, code.operands, code.waits)
        _set_registers(one, op, code, kept)
        one.sends = max(2 * _registers_sent(op), 1)
        _set_pipe(one, op, set_to)
        _set_control(one, op, set_to)
        for row in costs.get(op.address, ()):
            if row.op.startswith("bulk_") and row.space == "global":
                _set_bulk(one, row, in_cluster if row.op == "bulk_multicast" else 1, set_to)
            elif not row.op.startswith("bulk_"):
                _set_access(one, row, op, set_to)
            lacking += ["accesses with unknown addresses"] * (row.unresolved is not None)
        lacking.append(_NOT_MODELLED.get(op.form.opcode, ""))
        lacking += ["compare-and-swaps that are tried again"] * (not _SWAPS.isdisjoint(op.form.modifiers))
        made.append(one)
    wait_behind_barriers(made, [passes_barriers(op) for op in ops])
    return made, tuple(dict.fromkeys(filter(None, lacking)))


def passes_barriers(op: Op) -> bool:
    """Is it arithmetic, which a warp issues before its block's barrier is over?"""
    return not op.is_product and pipe_of(op.form.opcode, list(op.form.modifiers)) in _PASS_BARRIERS


def wait_behind_barriers(made: Sequence[TimedInstruction], passes: Sequence[bool]) -> None:
    """Let the first instruction behind each barrier of the block that does not pass it wait for its end.

    No branch passes it, so that no other one can be the first.
    """
    is_behind = False
    for one, goes_on in zip(made, passes):
        if is_behind and not goes_on:
            one.waits, is_behind = (*one.waits, AT_BARRIER), False
        is_behind = is_behind or (one.barrier >= 0 and not one.arrives)


def hands_over(op: Op) -> bool:
    """Do warps hand something over, or wait for it: in memory, or at the barrier of a cluster?"""
    of_cluster = op.flow in (Flow.ARRIVE_CLUSTER, Flow.WAIT_CLUSTER)
    return op.is_bulk or of_cluster or op.form.opcode in _AT_MBARRIERS


class CostSetting(NamedTuple):
    """How requests are served in a launch. finds_all: L1 has what was asked before. ahead: instructions that
    a warp executes while DRAM serves a load. turn: cycles of an atomic's turn at L2, with those of all
    multiprocessors that come between.
    """

    finds_all: bool
    ahead: float
    turn: float
    set_to: Latencies


def with_cost(
    one: TimedInstruction, cost: CostOfRequest, is_followed: bool, setting: CostSetting
) -> TimedInstruction:
    """The same instruction, making a request that costs so much."""
    set_to, behind = setting.set_to, cost.behind - 1
    waits = round(STEPS * max(1 - behind / setting.ahead, 0)) / STEPS if behind else 1.0
    slowest = LATEST + set_to.rows * cost.rows - set_to.alone * (cost.missing == 1)
    missing = cost.missing if setting.finds_all else cost.sectors
    longer = (cost.partial + cost.turns) * (set_to.partial - 100) + cost.gaps * set_to.gap
    return replace(
        one,
        wavefronts=cost.wavefronts * PARTS if not one.is_copy else one.wavefronts,
        tags=cost.tags * PARTS,
        sectors=max(missing, cost.turns) * PARTS + longer * PARTS // 100,
        turns=ceil(cost.turns * setting.turn * PARTS),
        late=round(waits * slowest),
        lines=cost.lines * PARTS * set_to.line // 100,
        moves=cost.moves,
        follows=cost.follows if cost.follows[0] >= 0 and setting.finds_all else None,
        followed=is_followed,
    )


def _registers_sent(op: Op) -> int:
    """Registers that the memory pipe is sent; the two of an address of 64 bits as one. Measured: stores of 4
    and 16 bytes a lane and compare-and-swaps, of shared memory by one warp, take 4, 10 and 6 cycles each, and
    stores of 4 bytes to global memory 4 (traces/*/time.json); of 16 bytes they take 12, and not 10.
    """
    pairs = sum(isinstance(operand, Address) and operand.pair for operand in op.form.operands)
    return (meaning_of(op.form).reads & _VECTOR).bit_count() - pairs


def _set_registers(
    one: TimedInstruction, op: Op, code: ControlCode, kept: dict[tuple[int, int], int]
) -> None:
    """Set what is read from the banks. kept: what the reuse cache has, for each place of a source and each
    bank one register, until another one is read there.
    """
    meaning = meaning_of(op.form)
    if op.form.opcode in _LOADS:
        one.even, one.odd = ((meaning.reads & bank).bit_count() for bank in (_EVEN, _ODD))
        return
    if pipe_of(op.form.opcode, list(op.form.modifiers)) in ("", "uniform", None):
        return
    if op.is_product:  # they read and write their registers by the way
        return
    place = 0
    read: set[int] = set()
    for token, operand in meaning.sources:
        if operand is None or isinstance(operand, Predicate):
            continue
        if isinstance(operand, Register) and operand.slot is not None and operand.slot < UNIFORM:
            for number in range(operand.slot, operand.slot + token.span):
                is_odd = number & 1
                is_kept = kept.get((place, is_odd)) == number
                if code.reuse >> place & 1:
                    kept[place, is_odd] = number
                else:
                    kept.pop((place, is_odd), None)
                if number in read:  # one read serves all places
                    continue
                read.add(number)
                if is_kept:
                    one.kept_odd, one.kept_even = one.kept_odd + is_odd, one.kept_even + 1 - is_odd
                else:
                    one.odd, one.even = one.odd + is_odd, one.even + 1 - is_odd
        place += 1


def _set_pipe(one: TimedInstruction, op: Op, set_to: Latencies) -> None:
    """Set the pipe, and for how long it is busy."""
    opcode, modifiers = op.form.opcode, list(op.form.modifiers)
    pipe = pipe_of(opcode, modifiers)
    if opcode in _FETCHES:
        one.pipe, one.wavefronts, one.latency = "memory", PARTS * FETCH, set_to.fetch
        one.fetches, one.why = True, "long_scoreboard"
    elif opcode in _AT_MBARRIERS:
        one.pipe, one.latency, one.why = "memory", set_to.phase_check, "long_scoreboard"
        one.wavefronts = PARTS * set_to.mbarrier
    elif opcode in _BESIDE:
        one.pipe, one.latency = "special", getattr(set_to, _BESIDE[opcode])
    elif opcode == "SHFL":
        one.pipe, one.wavefronts, one.latency = "memory", PARTS, set_to.shuffle
    elif pipe == "fma" and opcode in ("IMAD", "IDP"):
        one.pipe, one.busy = "fma heavy", 4 if {"WIDE", "HI"} & set(modifiers) else 2
    elif pipe == "fma":
        one.pipe, one.busy = ("fma both", 2) if opcode in _HALVES else ("fma", 2)
    elif pipe == "tensor":
        one.pipe, one.busy = pipe, tensor_cycles(opcode, modifiers) or CYCLES["alu"]
        one.latency = set_to.product if op.is_product else set_to.double
    elif pipe:
        one.pipe, one.busy = pipe, CYCLES[pipe]
        one.latency = set_to.multi_function if pipe == "xu" else set_to.double


def _set_control(one: TimedInstruction, op: Op, set_to: Latencies) -> None:
    """Set what holds back warps: barriers, and groups of copies."""
    opcode = op.form.opcode
    numbers = [operand.value for operand in op.form.operands if isinstance(operand, Immediate)]
    constants = [operand for operand in op.form.operands if isinstance(operand, Constant) and operand.bank]
    one.constant = constants[0].bank << 16 | constants[0].offset if constants else -1
    one.branches = op.flow in (Flow.BRANCH, Flow.BRANCH_ANY, Flow.INDEXED, Flow.CALL, Flow.RETURN)
    if op.flow is Flow.CALL and Trait.ABSOLUTE in op.traits:
        one.holds = set_to.printf
    elif op.flow is Flow.WAIT_BARRIER:
        one.holds = set_to.meet
    elif op.flow is Flow.BRANCH and op.guard is None:
        one.holds = set_to.branch  # even if it is the other way's code that follows it
    if op.flow is Flow.BLOCK_BARRIER:
        is_known = isinstance(op.form.operands[0], Immediate) if op.form.operands else True
        number, *count = numbers if is_known else (BARRIER_OF_GROUP, *numbers)
        one.barrier = int(number)
        one.expected = int(count[0]) // WARP if count else 0
        one.arrives = Trait.ARRIVES in op.traits
    elif opcode == "DEPBAR":
        one.copies = int(numbers[-1]) if numbers else 0
    elif op.builder is wait_for_products:
        one.products = int(numbers[-1]) if numbers else 0
    elif Trait.FENCES in op.traits:
        one.fences = set_to.fence
    one.is_copy, one.is_product = "cp_async" in op.accesses, op.is_product
    one.hands_over, one.follows_copies = hands_over(op), opcode == "ARRIVES"
    one.closes = opcode in (COMMIT, "UTMACMDFLUSH") or (one.is_product and "gsb0" in op.text)
    if opcode == COMMIT:
        one.pipe, one.busy, one.wavefronts = "memory", 1, set_to.commit * PARTS


def _set_access(one: TimedInstruction, row: SiteCounts, op: Op, set_to: Latencies) -> None:
    """Set what an access costs: the mean of those that the block makes."""
    times = max(row.instructions, 1)
    if row.space == "constant":
        return
    if one.is_product:  # it reads tiles by the way
        one.wavefronts += _parts(row.wavefronts, times)
        return
    if row.space == "texture":  # as a load of global memory
        one.wavefronts = 0
    one.pipe, one.busy = "memory", 1
    if not one.is_copy:
        one.widens = PARTS * max(row.width * WARP // LINE - 1, 0)
        one.returned = (meaning_of(op.form).writes & _VECTOR).bit_count()
    if row.space == "shared":
        if one.is_copy:
            one.copied += _parts(row.wavefronts, times)
        else:  # one without an active lane takes one, too
            idle = 0 if row.requests is None else row.instructions - row.requests
            one.wavefronts += _parts((row.wavefronts or 0) + idle, times)
            is_atomic = "atomic" in row.op or "reduction" in row.op
            swaps = is_atomic and "CAS" in op.form.modifiers
            atomic = set_to.swap_shared if swaps else set_to.atomic_shared
            one.latency = atomic if is_atomic else set_to.shared
    else:
        data = max(row.requests or 0, (row.ideal_sectors or 0) / SECTORS_OF_A_WAVEFRONT)
        if one.is_copy:  # it only asks; a copy past L1 is then written by lines
            one.wavefronts, one.fills = PARTS, row.op == "cp_async"
            if not one.fills:
                one.copied = _parts((row.sectors or 0) / SECTORS_OF_A_WAVEFRONT, times)
        else:
            one.wavefronts += _parts(data, times)
        one.is_global = True
        one.why = "long_scoreboard"
        one.latency = set_to.fetch if one.fetches else set_to.l1_hit
        one.tags = _parts((row.lines or 0) / TAGS_A_CYCLE, times)
        one.writes = row.op in ("store", "reduction")
        if row.space != "local" or one.writes:  # what is loaded from local memory is in L1
            one.sectors = _parts(row.sectors, times)


def _set_bulk(one: TimedInstruction, row: SiteCounts, receivers: int, set_to: Latencies) -> None:
    """Set what a copy in bulk costs: the engine takes its pieces of up to 128 bytes one after the other.
    receivers: blocks that each receive it; the counts are of all.
    """
    times, pieces = max(row.instructions, 1) * receivers, row.requests or 0
    one.pipe, one.busy, one.wavefronts, one.why = "memory", 1, 0, "long_scoreboard"
    one.bulk = _parts(pieces, times) + set_to.bulk_copy * PARTS
    one.is_copy = one.writes = row.op in ("bulk_store", "bulk_reduction")
    one.sectors = _parts(max(row.sectors or 0, BULK_SECTORS * pieces), times)
    one.received = receivers * one.sectors


def _parts(count: float | None, times: int) -> int:
    """What one of `times` instructions takes, in parts of a cycle, rounded up."""
    return ceil((count or 0) * PARTS / times)
