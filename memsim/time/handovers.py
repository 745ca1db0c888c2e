"""What warps hand over to each other: at mbarriers, at the barrier of a cluster, and by copies in bulk.

A phase is over when all have contributed to it that did so when the blocks were replayed: warps that
arrived, and copies whose data are there. Only what a block does itself is followed: the others of its cluster
are taken to keep step with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memsim.access import Stretches
from memsim.order.order_listener import OrderListener, Threads, warps_in
from memsim.state.launch_memory import Memory
from memsim.state.parts import Mask
from memsim.time.block_streams import StreamRecorder
from memsim.time.launch_survey import FirstTouches

#: Stands for the barrier of a block's cluster, beside the columns of its mbarriers.
OF_CLUSTER = -1
#: A phase: the mbarrier's column, and how many phases of it were over before.
Phase = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Handover:
    """What one execution of an instruction does, by numbers of phases of its block. fills: it contributes to
    these. awaits: it waits for this one; -1: for none. behind: how many instructions later than another warp
    of the wave it asks for what it copies; 0: it is the first.
    """

    fills: tuple[int, ...] = ()
    awaits: int = -1
    behind: int = 0


#: What an instruction does of which nothing was seen.
NOTHING = Handover()


@dataclass(frozen=True, slots=True)
class BlockHandovers:
    """Of a block. of_warps: of each warp, by the place in its stream. expected: executions that fill each
    phase.
    """

    of_warps: Sequence[Mapping[int, Handover]]
    expected: Sequence[int]


class HandoverRecorder(OrderListener):
    """Keeps what the warps hand over whose streams a recorder keeps, by warp and place in its stream.

    fills: the phases to which an execution contributes. awaits: the one for which it waited. copied: the
    addresses that it copies, and how many instructions its warp had executed.
    """

    def __init__(self, streams: StreamRecorder) -> None:
        self.streams = streams
        self.fills: dict[tuple[int, int], set[Phase]] = {}
        self.awaits: dict[tuple[int, int], Phase] = {}
        self.copied: dict[tuple[int, int], tuple[np.ndarray, int]] = {}
        self.waiting: dict[int, int] = {}  # by warp: the place of its wait
        self.over = Counter[tuple[int, int]]()  # phases, by block and column
        self.met = Counter[int]()  # phases of the cluster's barrier, by warp
        self.instruction = 0

    def start_chunk(self, threads: Threads, memory: Memory) -> None:
        """Other blocks run, whose mbarriers are new."""
        self.threads = threads

    def use_mbarrier(
        self, instruction: int, address: Any, active: Mask, initializes: bool, is_near: bool
    ) -> None:
        """Lanes come to an operation on mbarriers; if it is a wait, they may have to wait."""
        self.instruction = instruction
        for warp, place in self.places(instruction, *warps_in(self.threads, active)):
            self.waiting[warp] = place

    def arrive(self, rows: np.ndarray, warps: np.ndarray, blocks: np.ndarray, columns: np.ndarray) -> None:
        """Warps arrive."""
        own = rows == blocks
        self.fill(self.instruction, rows[own], warps[own], columns[own])

    def copies_arrive(self, rows: np.ndarray, warps: np.ndarray, columns: np.ndarray) -> None:
        """Copies by `cp.async` will arrive."""
        self.fill(self.instruction, rows, warps, columns)

    def bulk_store(self, instruction: int, written: Stretches, columns: np.ndarray) -> None:
        """Copies in bulk complete at mbarriers."""
        own = written.warps >= 0
        self.fill(instruction, written.rows[own], written.warps[own], columns[own])

    def bulk_global(self, instruction: int, access: str, made: Stretches) -> None:
        """Warps ask for what they copy in bulk."""
        made = made[self.streams.rows[made.rows, made.warps] >= 0]
        done = self.streams.progress.before(instruction)[made.rows, made.warps]
        places = list(self.places(instruction, made.rows, made.warps))
        for copy in dict.fromkeys(places):
            mine = np.array([place == copy for place in places])
            self.copied[copy] = made.start[mine], int(done[mine][0])

    def complete_phase(self, rows: np.ndarray, columns: np.ndarray) -> None:
        """Phases are over."""
        blocks = self.streams.blocks[rows].tolist()
        self.over.update(zip(blocks, columns.tolist()))

    def pass_phase(self, rows: np.ndarray, warps: np.ndarray, columns: np.ndarray) -> None:
        """Warps have waited."""
        blocks = self.streams.blocks[rows].tolist()
        known = self.streams.rows[rows, warps].tolist()
        for warp, block, column in zip(known, blocks, columns.tolist()):
            if warp in self.waiting:
                place = self.waiting.pop(warp)
                self.awaits[warp, place] = column, self.over[block, column] - 1

    def arrive_cluster(self, mask: Mask) -> None:
        """Warps arrive at the barrier of their cluster, by the last instruction that they execute."""
        for warp, place in self.places(None, *warps_in(self.threads, mask)):
            self.fills[warp, place] = {(OF_CLUSTER, self.met[warp])}

    def pass_cluster(self, mask: Mask) -> None:
        """Warps have waited there, which was the last instruction that they executed."""
        for warp, place in self.places(None, *warps_in(self.threads, mask)):
            self.awaits[warp, place] = OF_CLUSTER, self.met[warp]
            self.met[warp] += 1

    # --- what was kept -----------------------------------------------------------------------

    def places(
        self, instruction: int | None, rows: np.ndarray, warps: np.ndarray
    ) -> Iterator[tuple[int, int]]:
        """(warp, place in its stream) of those that execute an instruction of the current stretch, and of
        which streams are kept; None: the last one that they executed.
        """
        progress = self.streams.progress
        done = progress.before(progress.stop - 1 if instruction is None else instruction)[rows, warps]
        for warp, place in zip(self.streams.rows[rows, warps].tolist(), done.tolist()):
            if warp >= 0:
                yield warp, place

    def fill(self, instruction: int, rows: np.ndarray, warps: np.ndarray, columns: np.ndarray) -> None:
        """Warps contribute to the phases that these mbarriers are in."""
        known = self.streams.rows[rows, warps] >= 0
        rows, warps, columns = rows[known], warps[known], columns[known]
        blocks = self.streams.blocks[rows].tolist()
        for key, block, column in zip(self.places(instruction, rows, warps), blocks, columns.tolist()):
            self.fills.setdefault(key, set()).add((column, self.over[block, column]))

    def handovers(self, touches: FirstTouches) -> list[BlockHandovers]:
        """Of each block whose streams are kept. touches: what the wave asks for, and when."""
        per_block = self.streams.per_block
        numbers: dict[tuple[int, Phase], int] = {}
        expected: list[list[int]] = [[] for _ in self.streams.chosen]
        for (warp, _), phases in sorted(self.fills.items()):
            block = warp // per_block
            for phase in sorted(phases):
                number = numbers.setdefault((block, phase), len(expected[block]))
                if number == len(expected[block]):
                    expected[block].append(0)
                expected[block][number] += 1
        of_warps: list[list[dict[int, Handover]]] = [[{} for _ in range(per_block)] for _ in expected]
        for warp, place in {**self.fills, **self.awaits, **self.copied}:
            block = warp // per_block
            awaited = self.awaits.get((warp, place), (OF_CLUSTER, -1))
            of_warps[block][warp % per_block][place] = Handover(
                tuple(numbers[block, phase] for phase in sorted(self.fills.get((warp, place), ()))),
                numbers.get((block, awaited), -1),
                self.behind(touches, warp, place),
            )
        return list(map(BlockHandovers, of_warps, expected))

    def behind(self, touches: FirstTouches, warp: int, place: int) -> int:
        """How many instructions later than others an execution asks for what it copies, in the mean."""
        if (warp, place) not in self.copied:
            return 0
        start, done = self.copied[warp, place]
        return round(float(touches.behind(start, np.full(len(start), done)).mean()))

    @property
    def awaits_others(self) -> bool:
        """Is something awaited to which only other blocks of the cluster contribute?"""
        per_block = self.streams.per_block
        filled = {(warp // per_block, phase) for (warp, _), phases in self.fills.items() for phase in phases}
        return any(
            phase[1] >= 0 and (warp // per_block, phase) not in filled
            for (warp, _), phase in self.awaits.items()
        )


class PhasesOfBlock:
    """The phases of a resident block in time. left: executions that are still to fill each. over: when the
    last one of those so far has.
    """

    __slots__ = ("left", "over", "waiting")

    def __init__(self, expected: Sequence[int]) -> None:
        self.left, self.over = list(expected), [0] * len(expected)
        self.waiting: dict[int, list[Any]] = {}

    def fill(self, phase: int, time: int) -> list[Any]:
        """An execution contributes at `time`; those who waited, if the phase is over with it."""
        self.left[phase] -= 1
        self.over[phase] = max(self.over[phase], time)
        return [] if self.left[phase] else self.waiting.pop(phase, [])
