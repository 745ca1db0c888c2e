"""Races in global memory: of threads of several blocks, or of warps of one block without a barrier between.

Each cell of an array that the launch writes remembers who wrote it last, who read it last and who accessed it
by an atomic or in another strong way, as one number (`memsim.order.global_order.accesses_by`), and at which
age (`BlockOrder`). Two accesses are ordered if one thread makes both, or lanes of a warp that have not
diverged, or have met since (`LaneOrder`), if both are of one block with a block barrier between them, or if
who makes the later one knows of the earlier one: by a flag or a counter with fences, a named barrier, an
mbarrier, or the barrier of a cluster. A strong read counts if its value decides an access or a branch: a
thread that does not look at a flag has not waited for it. What a copy in bulk writes, its warp has written
when it has waited for it; what one reads may be overwritten by who has waited for it (bulk_copies.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from memsim.access import Site, Stretches
from memsim.arch.units import WARP
from memsim.instruction import Instruction
from memsim.isa.memory_access import bytes_of_piece, is_of_block
from memsim.isa.op import Trait
from memsim.isa.program import Op, Program
from memsim.launch import Launch
from memsim.model.operations import operation
from memsim.order.global_order import BLOCK, accesses_by
from memsim.order.order_listener import Threads
from memsim.order.word_marks import LaneOrder
from memsim.sanitizer.access_sizes import is_strong_access, mixed_with
from memsim.sanitizer.block_order import KNOWN, PROXIED, SEEN, SEEN_HERE
from memsim.sanitizer.block_order_listener import BlockOrderListener
from memsim.sanitizer.bulk_copies import COPY, Write, copies_of
from memsim.sanitizer.examples import Example
from memsim.sanitizer.global_cells import (
    LANE,
    ArrayMarks,
    CellLanes,
    Cells,
    GlobalPair,
    LaneAccess,
    Moment,
    TouchedOnce,
    are_apart,
    are_of_warp,
    parts_of,
)
from memsim.simt.accesses import Accesses
from memsim.simt.bounds import Origins
from memsim.state.address_spaces import Buffer
from memsim.state.launch_memory import Memory
from memsim.state.parts import Mask
from memsim.state.tensors import Tensor

#: Accesses of lanes to arrays that the launch writes, after which no more are followed; bytes of such arrays.
MOST_LANES, MOST_BYTES = 1 << 23, 1 << 29
#: Bits of a number for the thread in the block.
_NUMBER = (1 << 10) - 1
#: In global memory `cp.async` only reads.
WRITES = frozenset(("store", "update"))


class GlobalRaces(BlockOrderListener):
    """Finds them: `found`. limits: what is not followed, in words."""

    def __init__(self, program: Program, launch: Launch) -> None:
        super().__init__(program, launch)
        self.found: dict[GlobalPair, Example] = {}
        self.limits: set[str] = set()
        self._ops = [
            op for op in program.ops if any(space in ("global", "generic") for _, space in op.touches)
        ]
        self.unit = min((bytes_of_piece(op.form) for op in self._ops), default=4)
        self._writers = [
            op for op in self._ops if any(operation("global", way).verb in WRITES for way, _ in op.touches)
        ]
        strong = [op for op in self._ops if is_strong_access(op)]
        self._strong = {op.index for op in strong}
        #: By a strong access, those of other sizes.
        self._mixed = {op.index: [*others] for op in strong if (others := mixed_with(op, strong))}
        self._of_block = np.array([is_of_block(op.form) for op in program.ops], np.bool_)
        self._left = MOST_LANES
        self._touched_once: dict[str, TouchedOnce] = {}
        self._cells: dict[str, tuple[Buffer, ArrayMarks]] | None = None

    def start_chunk(self, threads: Threads, memory: Memory) -> None:
        super().start_chunk(threads, memory)
        assert isinstance(threads, Accesses)  # which know where addresses come from
        self._machine, self._memory = threads, memory
        self._lane_order = LaneOrder(len(threads.blocks), threads.shape[1] // WARP)

    @cached_property
    def _sees(self) -> np.ndarray:
        """Of each instruction, whether it is a strong read whose value decides an access or a branch."""
        flow, strong = self.origins.dataflow, self._strong
        return np.array(
            [op.index in strong and bool(op.writes) and flow.decides(op.index) for op in flow.ops]
        )

    @property
    def origins(self) -> Origins:
        """What addresses are derived from, once blocks have started."""
        return self._machine.bounds.of_program

    def run_together(self, mask: Mask) -> None:
        if self._left >= 0 and self._followed:
            self._lane_order.run(mask, self._threads.alive)

    # --- accesses ------------------------------------------------------------------------------

    def hear(self, made: LaneAccess) -> None:
        """Lanes access global memory."""
        if self._left < 0 or not self._is_followed(made.site) or not self._has_left(len(made.places)):
            return
        op = made.site.instruction
        assert isinstance(op, Op)
        now = Moment(self._barriers, self._order.ages.copy(), self._lane_order.made)
        origins = self._origins(op)
        touches = self._touched_once.get(origins[0].name) if len(origins) == 1 else None
        alone = op.index in self._strong or op.index in self._copies
        if touches is None or alone or not touches.add(made, now):
            self._compare_kept(origins)
            self._compare_lanes(made, now)

    def _compare_kept(self, arrays: Sequence[Buffer]) -> None:
        """Places of these arrays, or of any if there are none, may be accessed twice."""
        for name in [one.name for one in arrays] or [*self._touched_once]:
            touches = self._touched_once.pop(name, None)
            for made, then in touches.kept if touches is not None else ():
                self._compare_lanes(made, then)

    def bulk_global(self, instruction: int, access: str, made: Stretches) -> None:
        if self._left < 0 or not self._followed:
            return
        whose, cells = made.units(self.unit)
        if not self._has_left(len(cells)):
            return
        self._compare_kept(())
        rows, warps = made.rows[whose], made.warps[whose]
        who = accesses_by(self._threads.blocks[rows], self._barriers[rows, 0], warps * WARP)
        verb, age = operation("global", access).verb, self._bulk.new_age()
        for buffer, marks, lanes in self._by_array(cells, rows, who, self._order.ages[rows]):
            mine = self._compare(buffer, marks, instruction, verb, lanes)
            before = (marks.written,) if verb == "update" else marks.of_writes
            self._ask_for_proxy_fences(buffer, before, instruction, lanes)
            copies = copies_of(lanes.who >> BLOCK, lanes.warps)
            if verb == "load":
                self._bulk_reads.begin(instruction, rows, warps)
                self._put(marks.read, marks.read_too, instruction, lanes, copies)
                continue
            mine.put(lanes.cells, copies, np.full(len(copies), age), instruction)
            if verb == "store":
                self._compare_winners(buffer, mine, instruction, lanes, copies)
            for row, warp in {*zip(lanes.rows.tolist(), lanes.warps.tolist())}:
                own = (lanes.rows == row) & (lanes.warps == warp)
                self._bulk.begin((row, warp), Write(mine, lanes.cells[own], age))

    def bulk_store(self, instruction: int, written: Stretches, columns: np.ndarray) -> None:
        self._bulk_reads.complete_at(instruction, written.rows, columns, self._threads.peers)

    def _ask_for_proxy_fences(
        self, buffer: Buffer, marks: Sequence[Cells], op: int, lanes: CellLanes
    ) -> None:
        """Report what threads wrote before a copy and no proxy fence orders with it (PTX ISA, Proxies)."""
        for one in () if self._order.is_full else marks:
            by = one.by[lanes.cells]
            unfenced = (one.who[lanes.cells] != 0) & (by >= 0) & ~self._is_copy[np.maximum(by, 0)]
            unfenced &= ~self._unordered(one, lanes)
            unfenced &= ~self._knows(PROXIED, one, lanes)
            if unfenced.any():
                self._report(buffer, op, one, lanes[np.flatnonzero(unfenced)], unfenced=True)

    def _has_left(self, count: int) -> bool:
        """Whether so many accesses more are compared."""
        self._left -= count
        if self._left < 0:
            self.limits.add("races in global memory (more accesses than are compared; --blocks N runs fewer)")
        return self._left >= 0

    @property
    def _followed(self) -> Mapping[str, tuple[Buffer, ArrayMarks]]:
        """The arrays that the launch writes."""
        if self._cells is None:
            self._cells = {one.name: self._new(one) for one in self._written()}
            self._is_ordered = self._are_shared([*self._cells])
            self._touched_once = {name: TouchedOnce(buffer) for name, (buffer, _) in self._cells.items()}
        return self._cells

    def _is_followed(self, site: Site) -> bool:
        """Whether an access is to such an array."""
        followed, origins = self._followed, self._origins(site.instruction)
        return any(one.name in followed for one in origins) if origins else bool(followed)

    @property
    def _is_followed_order(self) -> bool:
        """Whether there are accesses that fences may order, of rows that are blocks."""
        return bool(self._cells) and len(self._threads.blocks) == len(self._barriers)

    def _origins(self, instruction: Instruction) -> Sequence[Buffer]:
        """The arrays that its address is derived from; none if that is not known."""
        assert isinstance(instruction, Op)  # of a listing
        return self._machine.bounds.origins_of(instruction)

    def _written(self) -> list[Buffer]:
        layout = self._memory.layouts["global"]
        found: list[Buffer] = []
        tensors = [one.base for one in self._memory.tensors.values() if isinstance(one, Tensor)]
        mapped = [one for one in (layout.find(at, at + 1) for at in tensors) if one is not None]
        for op in self._writers:
            of_map = Trait.READS_MAP in op.traits and not self._machine.bounds.map_may_be_made(op)
            found += self._origins(op) or (mapped if of_map else layout.buffers)
        written = [*dict.fromkeys(found)]
        if sum(one.end - one.start for one in written) > MOST_BYTES * self.unit // 32:
            self.limits.add("races in global memory (the arrays that are written are too large)")
            return []
        return written

    def _are_shared(self, written: Sequence[str]) -> bool:
        """Whether several instructions may access one of these arrays."""
        origins = [{one.name for one in self._origins(op)} or {*written} for op in self._ops]
        return any(sum(name in names for names in origins) > 1 for name in written)

    def _new(self, buffer: Buffer) -> tuple[Buffer, ArrayMarks]:
        count = -(-(buffer.end - buffer.start) // self.unit)
        return buffer, ArrayMarks(*(Cells(count) for _ in ArrayMarks._fields))

    def _compare_lanes(self, access: LaneAccess, now: Moment) -> None:
        op, chunk, verb = access.site.instruction, access.chunk, access.verb
        assert isinstance(op, Op) and self._cells is not None
        rows, columns, places = access.lanes
        are_blocks = len(now.barriers) == len(chunk.blocks)
        barriers = now.barriers[:, 0] if are_blocks else np.zeros_like(chunk.blocks)
        ages = now.ages[rows] if are_blocks else np.zeros_like(rows)
        who = accesses_by(chunk.blocks, barriers, chunk.first[:, 0])[rows] + columns
        made = now.made if are_blocks else None
        if made is not None:
            made = made[rows if len(made) > 1 else 0, columns // WARP]
        each = max(1, access.site.width // self.unit)
        cells = places // self.unit
        if each > 1:
            cells = (cells[:, None] + np.arange(each)).ravel()
            who, rows, ages = (np.repeat(one, each) for one in (who, rows, ages))
            made = None if made is None else np.repeat(made, each)
        for buffer, marks, lanes in self._by_array(cells, rows, who, ages, made):
            who = lanes.who
            if are_blocks and op.index in self._copies:
                self._begin_reads(lanes.rows, lanes.warps)
                who = copies_of(who >> BLOCK, lanes.warps)
            self._of_array(buffer, marks, op.index, verb, lanes, who)
            if are_blocks and op.index in self._strong:
                sees, of_block = (bool(one[op.index]) for one in (self._sees, self._of_block))
                how = sees, verb in WRITES, verb == "update", of_block
                self._order.strong(lanes.rows, lanes.warps, lanes.numbers, *how)

    def _by_array(
        self,
        cells: np.ndarray,
        rows: np.ndarray,
        who: np.ndarray,
        ages: np.ndarray,
        made: np.ndarray | None = None,
    ) -> Iterator[tuple[Buffer, ArrayMarks, CellLanes]]:
        """Accesses [n] to each array that is followed."""
        for buffer, marks in self._followed.values():
            first = buffer.start // self.unit
            inside = (cells >= first) & (cells < first + len(marks.written.who))
            if inside.all():
                yield buffer, marks, CellLanes(rows, who, ages, cells - first, cells, made)
            elif inside.any():
                lanes = CellLanes(rows, who, ages, cells - first, cells, made)
                yield buffer, marks, lanes[np.flatnonzero(inside)]

    def _compare(self, buffer: Buffer, marks: ArrayMarks, op: int, verb: str, lanes: CellLanes) -> Cells:
        """Report the accesses before that are not ordered; returns the marks that this one belongs to."""
        written, strong, strong_too, read, read_too = marks
        is_strong = op in self._strong
        writes, cells, who = verb in WRITES, lanes.cells, lanes.who
        for one in (*marks.of_writes, *((read, read_too) if writes else ())):
            if not one.is_used:
                continue
            late = self._unordered(one, lanes)
            if one is strong_too and late.any():  # not who has seen what the last one has
                late &= ~self._sees[strong.ops(cells)] | self._unordered(strong, lanes)
            if one in (strong, strong_too) and late.any():
                if not writes:
                    late &= one.by[cells] >= 0  # strong loads are marked so
                if is_strong:  # in the scope of each other, unless it is only that of a block
                    by = one.ops(cells)
                    narrow = self._of_block[op] | self._of_block[by]
                    is_weak = narrow & (one.who[cells] >> BLOCK != who >> BLOCK)
                    late &= is_weak | np.isin(by, self._mixed.get(op, ()))
            if late.any():
                self._report(buffer, op, one, lanes[np.flatnonzero(late)])
        return strong if is_strong else written if writes else read

    def _of_array(
        self, buffer: Buffer, marks: ArrayMarks, op: int, verb: str, lanes: CellLanes, who: np.ndarray
    ) -> None:
        mine, is_strong = self._compare(buffer, marks, op, verb, lanes), op in self._strong
        writes, cells = verb in WRITES, lanes.cells
        if mine is marks.written:
            mine.put(cells, who, lanes.ages, op, lanes.made)
        else:
            too = marks.strong_too if is_strong else marks.read_too
            self._put(mine, too, op if writes or not is_strong else ~op, lanes, who)
        if writes and is_strong and self._of_block[op]:
            others = mine.who[cells] >> BLOCK != who >> BLOCK
            if others.any():
                self._report(buffer, op, mine, lanes[np.flatnonzero(others)])
        if writes and not is_strong:
            self._compare_winners(buffer, mine, op, lanes, who)

    def _put(self, last: Cells, too: Cells, op: int, lanes: CellLanes, who: np.ndarray) -> None:
        """Remember an access; of several that are not ordered two are kept, of two blocks if possible, but of
        strong reads one. op: of a strong read its complement.
        """
        cells, own = lanes.cells, (who, lanes.ages, np.full(len(who), op))
        before = last.who[cells], last.age[cells], last.by[cells]
        last.put(cells, *own, self._joined(last, lanes))
        for kept, behind in ((before, who), (own, last.who[cells])):
            lost = np.flatnonzero(are_apart(kept[0], behind) & (kept[2] >= 0))
            far = kept[0][lost] >> BLOCK != behind[lost] >> BLOCK
            lost = np.concatenate([lost[~far], lost[far]])  # the last one of a cell stays
            if len(lost):
                too.put(cells[lost], *(column[lost] for column in kept))

    def _joined(self, marks: Cells, lanes: CellLanes) -> np.ndarray | None:
        """How lanes make accesses that are kept in place of those that others of their warps made before."""
        if lanes.made is None or marks.made is None:
            return lanes.made
        here, held = are_of_warp(marks.who[lanes.cells], lanes.who), marks.made[lanes.cells]
        lane = lanes.who & LANE
        return self._lane_order.joined(lanes.rows, lanes.warps, lane, lanes.made, held, here)

    def _compare_winners(
        self, buffer: Buffer, mine: Cells, op: int, lanes: CellLanes, who: np.ndarray
    ) -> None:
        """Report the lanes of one store, known as `who` [n], whose cells others of it have, too."""
        winners = mine.who[lanes.cells]
        at = np.flatnonzero(winners != who)
        if len(at):
            winners, who = winners[at], who[at]
            in_warp = winners & ~np.int64(LANE) == who & ~np.int64(LANE)
            at = at[are_apart(winners, who) | in_warp]
        if len(at):
            self._report(buffer, op, mine, lanes[at], True)

    def _unordered(self, earlier: Cells, lanes: CellLanes) -> np.ndarray:
        """Where there was an access that is not ordered with that of a lane."""
        who = earlier.who[lanes.cells]
        late = are_apart(who, lanes.who)
        if self._order.exits is not None:
            late |= (who != 0) & self._order.have_exited(*parts_of(who))
        if earlier.made is not None and self._lane_order.have_parted:
            made = earlier.made[lanes.cells]
            here = are_of_warp(who, lanes.who) & (made != 0)
            if len(at := np.flatnonzero(here)):
                rows, warps, lane = lanes.rows[at], lanes.warps[at], lanes.who[at] & LANE
                late[at] = ~self._lane_order.ordered(rows, warps, lane, made[at])
        if self._order.is_used and late.any():
            at = np.flatnonzero(late)
            late[at] = ~self._knows(KNOWN, earlier, lanes[at])
        return late

    def _knows(self, kind: int, earlier: Cells, lanes: CellLanes) -> np.ndarray:
        """Whether lanes know of what was there before, or have seen that."""
        ages, of = earlier.age[lanes.cells], parts_of(earlier.who[lanes.cells])
        return self._order.knows(kind, lanes.rows, lanes.warps, *of, ages)

    def _report(
        self,
        buffer: Buffer,
        op: int,
        marks: Cells,
        lanes: CellLanes,
        together: bool = False,
        unfenced: bool = False,
    ) -> None:
        earlier, by, who = marks.who[lanes.cells], marks.ops(lanes.cells), lanes.who
        same = earlier >> BLOCK == who >> BLOCK
        seen: np.ndarray = np.zeros(len(who), np.bool_)
        if self._order.is_used and not together:
            seen = self._knows(SEEN, marks, lanes) | self._knows(SEEN_HERE, marks, lanes)
        in_warp = are_of_warp(earlier, who) & (not together)
        kinds = by.astype(np.int64) << 3 | in_warp << 2 | seen << 1 | same
        for kind in np.unique(kinds).tolist():
            at = np.flatnonzero(kinds == kind)
            one = at[0]
            flags = bool(kind & 1), together, bool(kind & 2), unfenced, bool(kind & 4)
            pair = GlobalPair(kind >> 3, op, buffer.name, *flags)
            if pair not in self.found:
                thread = (
                    -1 if earlier[one] & COPY or self._is_copy[pair.earlier] else int(earlier[one] & _NUMBER)
                )
                later = -1 if self._is_copy[op] else int(who[one] & _NUMBER)
                block, other = (int(by[one] >> BLOCK) - 1 for by in (who, earlier))
                place = int(lanes.cells[one]) * self.unit
                self.found[pair] = Example(block, thread, later, place, other=other)
            self.found[pair].count += len(at)
