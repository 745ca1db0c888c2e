"""Findings in words: which array and element, what both accesses do, and what would order them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from memsim.access import Site
from memsim.arch.units import WARP, WORD
from memsim.isa.memory_access import is_strong
from memsim.isa.op import Flow, Trait
from memsim.isa.program import GLOBAL, LOCAL, SHARED, Op, Program
from memsim.names.demangle import short_name
from memsim.sanitizer.access_sizes import of_narrow_scope
from memsim.sanitizer.block_lifetimes import Outside
from memsim.sanitizer.doubts import (
    EXITED,
    NOT_COMPARED,
    OTHER_LAUNCH,
    PARTIAL,
    PARTLY,
    SAME,
    UNSET,
    UNUSED,
    VOLATILE,
    StoredConstants,
    StoredValues,
    StorePair,
    doubt_of_sizes,
    may_be_unused,
)
from memsim.sanitizer.ears import Stray
from memsim.sanitizer.examples import Example, Pair, Unwritten
from memsim.sanitizer.global_cells import GlobalPair
from memsim.sanitizer.hazards import BOUNDS, INIT, MISALIGNED, RACE, SYNC, FoundAccess, Hazard
from memsim.sanitizer.lane_masks import AbsentLanes
from memsim.sanitizer.launch_before import TooEarly
from memsim.sanitizer.product_registers import EarlyAccess
from memsim.sanitizer.race_listener import MixedBarriers
from memsim.sanitizer.skipped_barriers import SkippedBarrier, is_syncthreads
from memsim.sanitizer.unwritten import NeverWritten, UnwrittenRegister
from memsim.sanitizer.wording import (
    HazardPlace,
    beyond,
    does,
    global_element,
    register_name,
    whole_array,
    width_of,
)
from memsim.simt.control_graph import ControlGraph
from memsim.simt.faults import Deadlock, KernelFault, WrongLanes
from memsim.source.text import code_line
from memsim.source.values import ArrayShape, array_shape
from memsim.state.address_spaces import SpaceLayout

#: Copies that complete at an mbarrier.
PHASED = (("bulk_store", SHARED), ("cluster_bulk_store", SHARED))


class Description:
    """Describes what was found in a program. layout: of shared memory. values: what stores that race have
    stored, if that was worked out.
    """

    def __init__(self, program: Program, sources: Mapping[str, str], layout: SpaceLayout) -> None:
        self.ops, self.layout, self.sources = program.ops, layout, sources
        self.graph = ControlGraph(program)
        self.constants = StoredConstants(self.graph)
        self.values: StoredValues | None = None
        self.shapes: dict[tuple[str, int], ArrayShape | None] = {}

    def race(self, pair: Pair, example: Example) -> Hazard:
        """A race of two instructions; first what a thread does first, else what the source says first."""
        blocks = example.block if example.other < 0 else example.other, example.block
        accesses = [
            *zip((self.ops[pair.earlier], self.ops[pair.later]), blocks, (example.earlier, example.later))
        ]
        follows = self.leads_to(pair.earlier, pair.later)
        if not follows and accesses[1][0].line < accesses[0][0].line:
            accesses.reverse()
        found = [FoundAccess(op, does(op), block, thread) for op, block, thread in accesses]
        width = min(width_of(op) for op, *_ in accesses)
        kind, doubt = "nothing orders the two accesses", ""
        if pair.unfenced:
            by = "a product by wgmma" if accesses[1][0].is_product else "a copy by TMA"
            kind = f"{by} is not ordered with an access by the generic proxy"
        if pair.together:
            kind = f"lanes store {self._different(pair)}to one place at once"
        doubt = self.doubt_of_values(pair.earlier, pair.later, pair.together)
        cure, where = self.cure(pair, follows), self.element(example.place, width)
        if all(op.is_atomic for op, *_ in accesses):
            kind, doubt = MIXED, doubt_of_sizes(*(op for op, *_ in accesses))
            cure = ONE_SIZE
        elif not doubt and all(map(self.is_volatile, (op for op, *_ in accesses))):
            doubt = VOLATILE
        return Hazard(
            RACE, kind, found[0], example.count, cure, found[1], doubt=doubt, barriers=example.phase, **where
        )

    def early_access(self, access: EarlyAccess, example: Example) -> Hazard:
        """Registers of a product of matrices that are accessed too early."""
        op = self.ops[access.instruction]
        found = [FoundAccess(op, does(op), example.block, example.later)]
        kind = "a product by wgmma accesses registers with no wgmma.fence behind other accesses to them"
        cure = f"wgmma.fence before {op.where}"
        if access.product >= 0:
            product = self.ops[access.product]
            found.insert(0, FoundAccess(product, does(product), example.block, example.later))
            kind = "registers of a product by wgmma are accessed before wgmma.wait_group waits for it"
            cure = f"wgmma.wait_group between {product.where} and {op.where}"
        doubt = "" if op.guard is None else "not all threads may execute it"
        second = found[1] if len(found) > 1 else None
        return Hazard(RACE, kind, found[0], example.count, cure, second, doubt=doubt)

    def global_race(self, pair: GlobalPair, example: Example, is_partial: bool) -> Hazard:
        """A race of two instructions in global memory. is_partial: as of `GlobalRaces`."""
        earlier, later = self.ops[pair.earlier], self.ops[pair.later]
        doubt = PARTIAL if is_partial and any(Trait.FENCES in op.traits for op in self.ops) else ""
        kind = "nothing orders the two accesses"
        if pair.together:
            kind = f"threads store {self._different(pair)}to one place at once"
        elif pair.seen:
            kind = "a flag has told of the first access, but no fence orders the second one behind the flag"
        cure = f"a flag: {FLAG}; grid.sync(); an atomic; or another launch"
        if pair.unfenced:
            kind = "a copy by TMA is not ordered with an access by the generic proxy"
            cure = f"fence.proxy.async between {earlier.where} and {later.where}"
        elif (narrow := of_narrow_scope(earlier, later)) and not pair.same_block:
            kind = "an atomic of the scope of a block is not one for threads of other blocks"
            cure = f"the scope of the device at {narrow.where}"
        elif is_strong(earlier.form) and is_strong(later.form):
            kind, doubt, cure = MIXED, doubt or doubt_of_sizes(earlier, later), ONE_SIZE
        elif pair.seen:
            cure = f"__threadfence() between what has seen it and {later.where}"
        elif pair.together:
            cure = "one thread that stores, or an atomic"
        elif pair.same_block and not (pair.same_warp or self.leads_to(pair.earlier, pair.later)):
            cure = f"a barrier that both threads pass between {earlier.where} and {later.where}"
        elif pair.same_block:
            barrier = "__syncwarp()" if pair.same_warp else "__syncthreads()"
            cure = f"{barrier} between {earlier.where} and {later.where}"
        if example.earlier < 0 and not pair.together:
            wait = f"cp.async.bulk.wait_group (without .read) behind {earlier.where}"
            if not earlier.is_bulk:
                wait = f"cp.async.wait_group behind {earlier.where}"
            elif _reads_global(earlier):
                wait = f"a wait for the phase of the mbarrier where the copy at {earlier.where} completes"
            cure = f"{wait}, then {'__syncthreads()' if pair.same_block else cure}"
        of_values = self.doubt_of_values(pair.earlier, pair.later, pair.together)
        doubt = of_values if of_values == SAME else doubt or of_values
        first = FoundAccess(earlier, does(earlier, GLOBAL), example.other, example.earlier)
        where = global_element(short_name(pair.array), example.place, min(width_of(earlier), width_of(later)))
        second = self.access(pair.later, example, GLOBAL)
        return Hazard(RACE, kind, first, example.count, cure, second, doubt=doubt, **where)

    def too_early(self, access: TooEarly, example: Example) -> Hazard:
        """An access before `griddepcontrol.wait` to what a launch writes."""
        op = self.ops[access.instruction]
        where = global_element(short_name(access.array), example.place, width_of(op))
        kind = "nothing orders it with the launch before, which may still run"
        found = self.access(access.instruction, example, GLOBAL)
        cure = f"griddepcontrol.wait before {op.where}"
        return Hazard(RACE, kind, found, example.count, cure, doubt=OTHER_LAUNCH, **where)

    def stores(self, pair: Pair | GlobalPair) -> StorePair | None:
        """Two stores whose values matter; None if these are known, or one of both is no store."""
        both = self.ops[pair.earlier], self.ops[pair.later]
        if any(op.accesses != {"store"} for op in both) or self.constants.are_same(*both):
            return None
        return StorePair(pair.earlier, pair.later, pair.together)

    def doubt_of_values(self, earlier: int, later: int, together: bool) -> str:
        """Why a race need not matter if two instructions store the same."""
        if self.constants.are_same(self.ops[earlier], self.ops[later]):
            return SAME
        both = StorePair(earlier, later, together)
        are_same = None if self.values is None else self.values.are_same(both)
        return SAME if are_same else NOT_COMPARED if together and are_same is None else ""

    def _different(self, pair: Pair | GlobalPair) -> str:
        """A word, if lanes are known to store other values than each other."""
        both = StorePair(pair.earlier, pair.later, pair.together)
        return "different values " if self.values is not None and self.values.are_same(both) is False else ""

    def unwritten(self, read: Unwritten, example: Example) -> Hazard:
        """A read of shared memory that nobody wrote."""
        op = self.ops[read.instruction]
        access, cure = self.access(read.instruction, example), f"a store before {op.where}, in every block"
        doubt = self.doubt_of_read(op, read.partly and width_of(op) > WORD)
        where = self.element(example.place, min(width_of(op), WORD))
        return Hazard(
            INIT, NOT_WRITTEN, access, example.count, cure, doubt=doubt, barriers=example.phase, **where
        )

    def doubt_of_read(self, op: Op, partly: bool) -> str:
        """Why it need not matter that a part of what is loaded, or all of it, is not written."""
        return PARTLY if partly else UNUSED if may_be_unused(self.graph, op) else ""

    def never_written(self, read: NeverWritten, example: Example) -> Hazard:
        """A read of local memory that its thread has not written, or of global memory that nobody has."""
        op = self.ops[read.instruction]
        where = global_element(read.array, example.place, width_of(op))
        if read.space == LOCAL:
            where |= {"space": LOCAL, "element": f"byte {example.place} of {read.array}"}
        access = self.access(read.instruction, example, read.space)
        doubt = self.doubt_of_read(op, read.partly)
        cure = f"a store before {op.where}"
        return Hazard(INIT, NOT_WRITTEN, access, example.count, cure, doubt=doubt, **where)

    def unwritten_register(self, read: UnwrittenRegister, example: Example) -> Hazard:
        """A read of a register that its thread has not written."""
        op = self.ops[read.instruction]
        access = FoundAccess(op, "reads", example.block, example.later)
        cure = f"a value for each variable at {op.where} before it is read"
        kind, name = "its thread has not written it", f"register {register_name(read.slot)}"
        return Hazard(INIT, kind, access, example.count, cure, element=name, doubt=UNSET)

    def wrong(self, fault: KernelFault, lanes: WrongLanes, count: int) -> Hazard:
        """An access that is outside of every array, or misaligned."""
        misaligned = fault.kind == "alignment"
        place = re.match(r",? (?:at byte (\d+) of|(\d+) bytes before) (.+) \((\d+) bytes\)", lanes.where)
        name = place[3] if place else f"{lanes.space} memory"
        offset = 0 if place is None else int(place[1]) if place[1] else -int(place[2])
        kind = f"{lanes.where.strip(', ')} {MISALIGNED} {lanes.width} bytes"
        if not misaligned and place is None:
            kind = f"out of bounds{lanes.where}" if lanes.where else fault.message
        elif not misaligned and place is not None:
            kind = beyond(offset, lanes.width, name, int(place[4]))
        cure = f"an address that is a multiple of {lanes.width}" if misaligned else "a check of the index"
        access = FoundAccess(lanes.op, does(lanes.op, lanes.space), lanes.block, lanes.thread)
        hint = "" if misaligned or fault.hint is None or "--allow" in fault.hint else f"; {fault.hint}"
        where = whole_array(lanes.space, name, offset, lanes.width)
        return Hazard(BOUNDS, kind, access, count, cure + hint, **where)

    def strayed(self, site: Site, named: str, hit: str, stray: Stray) -> Hazard:
        """An access to another shared array than the one that its line names."""
        op = self.ops[site.place]
        buffer = next(one for one in self.layout.buffers if one.name == named)
        offset, size = stray.byte + self.layout.base - buffer.start, buffer.end - buffer.start
        name = short_name(named)
        kind = f"{beyond(offset, width_of(op), name, size)}: in {short_name(hit)}"
        access = FoundAccess(op, does(op), stray.block, stray.thread)
        doubt = "it is known by the name in the source line only"
        array = whole_array(SHARED, name, offset, width_of(op))
        return Hazard(BOUNDS, kind, access, stray.count, "a check of the index", doubt=doubt, **array)

    def meeting(self, pair: MixedBarriers, example: Example) -> Hazard | None:
        """Threads that wait at different `__syncthreads()`; None if a line has several, which a compiler may
        make, or if it is a barrier with a number: warps meet there wherever they are (PTX ISA, `bar`).
        """
        ops = self.ops[pair.first], self.ops[pair.second]
        apart = ops[0].source != ops[1].source and all(map(is_syncthreads, ops))
        if not pair.in_warp and not apart:
            return None
        first, second = (
            FoundAccess(op, "waits", example.block, thread)
            for op, thread in zip(ops, (example.earlier, example.later))
        )
        who = "lanes of one warp" if pair.in_warp else "threads of a block"
        cure = "one barrier that all threads reach, outside of the branch"
        return Hazard(SYNC, f"{who} meet at different barriers", first, example.count, cure, second)

    def skipped(self, skip: SkippedBarrier, example: Example) -> Hazard | None:
        """Threads that exit without a barrier that others wait at; None if they may have returned early: a
        compiler makes one store of theirs and of those behind the barrier.
        """
        place = self.ops[skip.barrier].source
        lines = [] if place is None else self.sources.get(place.file, "").splitlines()[: place.line]
        if re.search(r"\breturn\s*;", "\n".join(lines).rpartition("__global__")[2]):
            return None
        waits = FoundAccess(self.ops[skip.barrier], "waits", example.block, example.earlier)
        kind = "threads go past a barrier at which others of their block wait"
        cure = "one barrier that all threads reach, outside of the branch or the loop"
        stores = self.access(skip.store, example)
        return Hazard(SYNC, kind, waits, example.count, cure, stores, doubt=EXITED)

    def deadlock(self, stuck: Deadlock) -> Hazard:
        """Lanes that wait forever."""
        access = FoundAccess(stuck.by.op, "waits", stuck.by.block, stuck.by.thread)
        cure = "all threads that are waited for have to arrive"
        if stuck.by.op.flow is None:
            cure = "a store to what the loop reads, by a thread that does not wait itself"
        if stuck.by.op.flow is Flow.WARP_SYNC:
            cure = "a mask of the lanes that come here, such as __ballot_sync() of the condition before it"
        return Hazard(SYNC, stuck.message, access, stuck.by.count, cure)

    def wrong_mbarrier(self, fault: KernelFault, lanes: WrongLanes) -> Hazard:
        """What must not be done with an mbarrier."""
        access = FoundAccess(lanes.op, "uses an mbarrier", lanes.block, lanes.thread)
        cure = "mbarrier.init and a barrier before it, with the number of arrivals of a phase"
        return Hazard(SYNC, fault.message, access, lanes.count, cure)

    def unfinished(self, copy: int, example: Example) -> Hazard:
        """Copies that may still read the shared memory of a block that has ended."""
        kind = "a block may end before a copy by TMA has read its shared memory"
        cure = "cp.async.bulk.commit_group and cp.async.bulk.wait_group.read 0 by the thread that copies"
        return Hazard(SYNC, kind, self.access(copy, example), example.count, cure)

    def outlived(self, access: Outside, example: Example) -> Hazard:
        """Accesses to shared memory of a block that may have ended, or not begun."""
        op = self.ops[access.instruction]
        cure = "barrier.cluster.arrive and barrier.cluster.wait by all blocks"
        kind = "a block may not have begun when another one accesses its shared memory"
        if access.ends and example.later < 0:
            kind = "a block may end before what is copied to its shared memory is there"
            cure = "a wait for the phase of the mbarrier where it completes"
        elif access.ends:
            kind = "a block may end before another one has accessed its shared memory"
        cure += f" {'behind' if access.ends else 'before'} {op.where}"
        return Hazard(SYNC, kind, self.access(access.instruction, example), example.count, cure)

    def absent_lanes(self, absent: AbsentLanes, example: Example) -> Hazard:
        """Lanes that a mask does not name, or that a shuffle reads from and that do not execute it."""
        op = self.ops[absent.instruction]
        cure, doubt = "a mask that names each lane that executes it", ""
        kind = "lanes come to it that its mask does not name"
        if not absent.unnamed:
            lanes = f"lane {example.later % WARP} reads from lane {example.earlier % WARP}"
            kind = f"a shuffle reads from lanes that do not execute it: {lanes}"
            cure = "all lanes that are read from have to execute it"
            doubt = "what it returns is undefined in these lanes; the code may not use it"
        access = FoundAccess(op, "synchronizes" if absent.unnamed else "reads", example.block, example.later)
        return Hazard(SYNC, kind, access, example.count, cure, doubt=doubt)

    def access(self, instruction: int, example: Example, space: str = SHARED) -> FoundAccess:
        """The later access of an example."""
        op = self.ops[instruction]
        return FoundAccess(op, does(op, space), example.block, example.later)

    def element(self, byte: int, width: int) -> HazardPlace:
        """Where `width` bytes from a byte of the kernel's shared memory on are."""
        at = self.layout.base + byte
        buffer = self.layout.find(at, at + 1)
        if buffer is None:
            where = f"byte {byte} of shared memory"
            return whole_array(SHARED, "shared memory", byte, width) | {"element": where}
        name, offset = short_name(buffer.name), at - buffer.start
        key = name, buffer.end - buffer.start
        if key not in self.shapes:  # thousands of races may be of the same array
            shapes = (array_shape(text, *key) for text in self.sources.values())
            self.shapes[key] = next(filter(None, shapes), None)
        shape = self.shapes[key]
        extents, size = ((), width) if shape is None else (shape.extents, shape.element)
        number, indices = offset // size, []
        for extent in reversed(extents[1:]):
            number, index = divmod(number, extent)
            indices.append(f"[{index}]")
        element = f"{name}[{number}]{''.join(reversed(indices))}"
        return whole_array(SHARED, name, offset, width) | {"element": element}

    def cure(self, pair: Pair, follows: bool) -> str:
        """What would order two accesses."""
        earlier, later = self.ops[pair.earlier], self.ops[pair.later]
        if pair.together:
            return "one lane that stores, or an atomic"
        if pair.unfenced:
            what = "product" if later.is_product else "copy"
            return f"fence.proxy.async behind {earlier.where}, and before the barrier or the {what}"
        barrier = "__syncwarp()" if pair.same_warp else "__syncthreads()"
        if earlier.is_product:
            return f"wgmma.wait_group, and a barrier behind it, between {earlier.where} and {later.where}"
        if pair.by_copy:
            bulk = ".bulk" if earlier.is_bulk else ""
            barrier = f"cp.async{bulk}.wait_group, and __syncthreads() behind it,"
        if earlier.touches and earlier.touches[0] in PHASED:
            return f"a wait for the phase of the mbarrier of {earlier.where}, before {later.where}"
        if pair.far:
            return f"cluster.sync() (barrier.cluster) between {earlier.where} and {later.where}"
        if not follows:
            return f"a barrier that both threads pass between {earlier.where} and {later.where}"
        if later.index <= earlier.index:
            return f"{barrier} in the loop, behind {earlier.where} and before {later.where} of the next turn"
        return f"{barrier} between {earlier.where} and {later.where}"

    def leads_to(self, earlier: int, later: int) -> bool:
        """Whether a thread can come from one instruction to another."""
        start, end = self.graph.block_of(earlier), self.graph.block_of(later)
        return (start == end and earlier < later) or bool(self.graph.behind[start] >> end & 1)

    def is_volatile(self, op: Op) -> bool:
        """Whether the source line of a load or store names what is declared volatile, or says so itself."""
        if op.source is None or op.accesses not in ({"load"}, {"store"}):
            return False
        text = _ASM_VOLATILE.sub("asm", self.sources.get(op.source.file, ""))
        line = code_line(text, op.source.line)
        declared = re.findall(r"\bvolatile\b[^;(){}=]*?(\w+)\s*[\[=;,)]", text)
        return "volatile" in line or not {*declared}.isdisjoint(re.findall(r"\w+", line))


#: What keeps inline assembly, and says nothing of an access.
_ASM_VOLATILE = re.compile(r"\b(?:__)?asm(?:__)?\s+(?:__)?volatile(?:__)?\b")
MIXED = "nothing orders strong accesses of different sizes"
ONE_SIZE = "accesses of one size"
NOT_WRITTEN = "nobody has written it"
#: What orders accesses by different blocks.
FLAG = "__threadfence() and an atomic behind the first, an atomic and __threadfence() before the second"


def _reads_global(op: Op) -> bool:
    """Whether an instruction has global memory copied from."""
    return any(space == GLOBAL and way in ("bulk_load", "bulk_multicast") for way, space in op.touches)
