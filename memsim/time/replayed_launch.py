"""A launch of which some blocks are replayed: what the warps of one multiprocessor execute, what their
requests cost in L1, and what lies behind it.

The busiest multiprocessor runs as many blocks as the launch gives it, all as one block in the middle of the
grid does. What an access costs is the mean of what it costs in this block, exactly counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from memsim.analysis import Analysis, analyze_trace
from memsim.api.running import trace_job, trace_with
from memsim.arch import MEASURED
from memsim.errors import MemsimError
from memsim.isa.program import GLOBAL, LOCAL, Op
from memsim.job import Job
from memsim.model.alike import SameCost
from memsim.model.occupancy import Needs, occupancy
from memsim.order.order_listener import OrderListener
from memsim.simt.faults import cluster_of
from memsim.simt.waits import whole_clusters
from memsim.state.launch_memory import Memory
from memsim.time.behind_l1 import BehindL1
from memsim.time.block_streams import KEPT, MOST_REQUESTS, StreamRecorder
from memsim.time.control_codes import SIZE, control_codes
from memsim.time.handovers import HandoverRecorder
from memsim.time.l1_cache import CachedRequests, cached_requests, l1_bytes
from memsim.time.l1_lookups import AccessKind
from memsim.time.launch_survey import FirstTouches, LaunchSurvey, Patience, busiest_blocks
from memsim.time.multiprocessor import TOGETHER
from memsim.time.resident_warps import LaunchedBlocks
from memsim.time.timed_instructions import (
    CostSetting,
    TimedInstruction,
    hands_over,
    with_cost,
)
from memsim.trace.record import Recorder
from memsim.trace.trace import Trace

#: Instructions of warps that are replayed to learn what a multiprocessor's blocks execute; waves at least.
MOST_EXECUTED = 1_000_000
#: Instructions of warps of a launch whose blocks are weighed against each other, and of a wave whose requests
#: are looked at.
MOST_WEIGHED, MOST_OF_WAVE = 20_000_000, 1_000_000_000
NONE: np.ndarray = np.zeros(0, np.int64)
#: Of the requests of lanes, those to these spaces are most.
BEHIND_L1 = frozenset((GLOBAL, LOCAL, "generic"))


class ReplayedLaunch:
    """A launch, some blocks of which were replayed."""

    def __init__(
        self,
        job: Job,
        whole: Trace | None = None,
        new_memory: Callable[[], Memory] | None = None,
        patience: Patience | None = None,
    ) -> None:
        """whole: the launch's trace, if there is one. new_memory: makes that of a replay. patience: with
        replays; None: any.
        """
        chip = job.arch
        if chip.rates != MEASURED:
            raise MemsimError(f"the time of a launch is not known on {chip}: nothing was measured there")
        self.job, self.chip, self.new_memory = job, chip, new_memory
        self.patience = patience or Patience()
        kernel, launch = job.loaded, job.launch
        self.whole = trace_job(job, memory=self.memory()) if whole is None else whole
        self.ops: tuple[Op, ...] = kernel.executable.program.ops
        self.codes = control_codes(kernel.machine.image.code)
        held = kernel.resources
        assert held is not None  # machine code says what it needs
        shared = held.static_shared + launch.shared_bytes
        needs = Needs(launch.threads, held.registers, shared, held.barriers)
        fitting = occupancy(needs, chip).blocks
        if not fitting:
            raise MemsimError("no block of this launch fits on a multiprocessor")
        self.hands_over = any(map(hands_over, self.ops))
        self.survey = self.surveyed(fitting * chip.multiprocessors)
        self.numbers = self.numbers_of_blocks(fitting)
        self.blocks = len(self.numbers)
        self.resident = min(fitting, self.blocks)
        self.l1_bytes = l1_bytes(shared, fitting)
        self.recorder, self.some = self.replay(self.numbers[: self.most_blocks()])
        self.streams = self.recorder.streams()
        self.analysis = analyze_trace(self.some, chip)

    def numbers_of_blocks(self, fitting: int) -> np.ndarray:
        """Of the blocks of one multiprocessor: the busiest one, or one of many that do the same, and then one
        with a block in the middle of the grid, if there are few, and of a cluster the first.

        In a grid of 11 by 32 no block finds in L1 what the one that is 132 further would have asked for
        (`tile_32x96x32_any`): they are not in step, so those of later waves are taken one less apart.
        """
        launch, apart = self.job.launch, self.chip.multiprocessors
        if self.is_weighed:
            return busiest_blocks(self.survey.work, apart, fitting)
        middle = middle_block(launch.grid)
        first = middle if launch.blocks <= apart else min(middle % apart, (launch.blocks - 1) % apart)
        waves = np.arange((launch.blocks - 1 - first) // apart + 1)
        return np.unique(self.clusters_of(waves * apart + np.maximum(first - waves, 0))[:, 0])

    def surveyed(self, wave: int) -> LaunchSurvey:
        """What the first wave of blocks does, or all of them, if they differ and it does not take long."""
        launch = self.job.launch
        of_block = int(self.whole.executed.sum()) / max(self.whole.blocks_replayed, 1)
        are_few = launch.blocks * of_block <= MOST_WEIGHED
        blocks = launch.blocks if are_few and not self.whole.blocks_alike else min(launch.blocks, wave)
        blocks = min(whole_clusters(blocks, launch.grid, self.cluster), launch.blocks)
        survey = LaunchSurvey(blocks, wave, self.patience)
        if blocks * of_block <= MOST_OF_WAVE:
            self.listen(survey, np.arange(blocks), every_branch=True)
        else:
            survey.is_whole = False
        return survey

    def most_blocks(self) -> int:
        """How many blocks can be replayed quickly; a wave at least."""
        executed = self.whole.executed / max(self.whole.blocks_replayed, 1)
        by_lanes = (not op.is_bulk and any(space in BEHIND_L1 for _, space in op.touches) for op in self.ops)
        loads = float(executed[[*by_lanes]].sum())
        fitting = MOST_REQUESTS // max(loads, 1)
        return int(max(min(MOST_EXECUTED // max(executed.sum(), 1), fitting), self.resident))

    def replay(self, numbers: np.ndarray) -> tuple[StreamRecorder, Trace]:
        """Replay some blocks."""
        recorder = StreamRecorder(self.job.launch.warps, numbers, self.patience, SameCost(self.chip))
        self.handovers = HandoverRecorder(recorder) if self.hands_over else None
        run = np.unique(self.clusters_of(numbers))
        return recorder, self.listen(recorder, run, every_branch=True, order=self.handovers)

    @property
    def cluster(self) -> tuple[int, int, int]:
        """Blocks of a cluster along each axis."""
        return cluster_of(self.job.loaded.executable, self.job.launch) or (1, 1, 1)

    def clusters_of(self, numbers: np.ndarray) -> np.ndarray:
        """The blocks of the clusters of blocks, by rank [n, blocks of a cluster]."""
        grid, size = self.job.launch.grid, np.array(self.cluster)[:, None]
        place = np.stack(np.unravel_index(numbers, grid, order="F"))
        inside = np.stack(np.unravel_index(np.arange(prod(self.cluster)), self.cluster, order="F"))
        every = (place // size * size)[:, :, None] + inside[:, None, :]
        found: np.ndarray = np.ravel_multi_index(tuple(every), grid, order="F")
        return found

    def listen(
        self,
        recorder: Recorder,
        blocks: np.ndarray,
        every_branch: bool = False,
        order: OrderListener | None = None,
    ) -> Trace:
        """Run blocks once more; what is not certain, whoever made the whole trace has heard."""
        how: dict[str, Any] = {"every_branch": every_branch, "judges": False, "order": order}
        return trace_with(self.job, recorder, blocks, memory=self.memory(), **how)

    def memory(self) -> Memory | None:
        """The memory of a replay; None: it is made of the arguments."""
        return None if self.new_memory is None else self.new_memory()

    @cached_property
    def cached(self) -> CachedRequests:
        """The requests of these blocks to global memory, with what they cost in L1."""
        kinds = {}
        for row in (row for rows in self.analysis.instructions for row in rows):
            op, counts = row.address // SIZE, row.counts
            if counts.space in KEPT or counts.op.startswith("cp_async"):
                modifiers = set(self.ops[op].form.modifiers)
                is_past = bool({"GPU", "SYS", "BYPASS"} & modifiers)
                is_local = counts.space == "local"
                kinds[op] = AccessKind(counts.op, counts.width, is_past, is_local, "LU" in modifiers)
        warps = self.job.launch.warps * self.resident
        made, times = self.recorder.global_requests(), {op: self.recorder.times_kept(op) for op in kinds}
        return cached_requests(made, kinds, self.l1_bytes, warps, self.touches, times)

    @property
    def looked_up(self) -> int:
        """Lines of L1 that the requests which were kept ask for, each of which is looked up in turn."""
        every = (row for rows in self.analysis.instructions for row in rows)
        known = (row for row in every if row.address // SIZE not in self.recorder.incomplete)
        return round(
            sum((row.counts.lines or 0) / self.recorder.times_kept(row.address // SIZE) for row in known)
        )

    @cached_property
    def touches(self) -> FirstTouches:
        """What the first wave of blocks asks global memory for; of nothing, if that is too much to follow."""
        return self.survey.touches() if self.survey.is_whole else FirstTouches(NONE, NONE)

    def launched(
        self, instructions: list[TimedInstruction], setting: CostSetting
    ) -> tuple[list[TimedInstruction], LaunchedBlocks]:
        """The instructions, each with all costs that its requests have, and the streams of these."""
        cached, per_block = self.cached, self.job.launch.warps
        made = list(instructions)
        numbers: list[int] = []
        followed = {cost.follows[0] for cost in cached.costs}
        for cost in cached.costs:
            numbers.append(len(made))
            is_followed = cost.op in followed
            made.append(with_cost(instructions[cost.op], cost, is_followed, setting))
        for op in self.recorder.beyond if setting.finds_all else ():  # those beyond miss as others do
            made[op] = replace(made[op], sectors=round(made[op].sectors * cached.misses(op)))
        order = np.lexsort((cached.nth, cached.made.op, cached.made.warp))
        warp, ops = cached.made.warp[order], cached.made.op[order]
        number = np.array(numbers, np.int32)[cached.number[order]] if numbers else cached.number
        bounds = np.searchsorted(warp, np.arange(len(self.streams) + 1))
        known: dict[tuple[int, bytes], np.ndarray] = {}
        streams = []
        for stream, low, high in zip(self.streams, bounds[:-1].tolist(), bounds[1:].tolist()):
            key = id(stream), number[low:high].tobytes()
            if key not in known:
                known[key] = _with_numbers(stream, ops[low:high], number[low:high])
            streams.append(known[key])
        blocks = [streams[at : at + per_block] for at in range(0, len(streams), per_block)]
        handed = () if self.handovers is None else self.handovers.handovers(self.touches)
        return made, LaunchedBlocks(blocks, self.blocks, self.resident, self.spare, handed)

    @property
    def copied(self) -> float:
        """Sectors that the blocks that are followed copy in bulk to shared memory."""
        of_load = {"bulk_load": 1.0, "bulk_multicast": 1 / prod(self.cluster)}
        rows = (row.counts for rows in self.analysis.instructions for row in rows)
        sectors = sum(of_load.get(row.op, 0) * (row.sectors or 0) for row in rows if row.space == "global")
        return sectors * len(self.recorder.chosen) / self.some.blocks_replayed

    @cached_property
    def fetched(self) -> tuple[float, float]:
        """Sectors of textures that the blocks that are followed ask L1 for, and those of them that are new,
        which stay there.
        """
        rows = (row.counts for rows in self.analysis.instructions for row in rows)
        asked = sum(row.sectors or 0 for row in rows if row.space == "texture")
        of_chosen = asked * len(self.recorder.chosen) / self.some.blocks_replayed
        return of_chosen, min(self.recorder.texture_sectors, of_chosen)

    @property
    def is_weighed(self) -> bool:
        """Is it known of each block what it does, and are there some that do more than others?"""
        work = self.survey.work
        return len(work) == self.job.launch.blocks and bool(work.any()) and not self.whole.blocks_alike

    @cached_property
    def times_followed(self) -> float:
        """How many times as many sectors as the blocks that are followed all of the launch asks for."""
        chosen, launch = self.recorder.chosen, self.job.launch
        whole = analyze_trace(self.whole, self.chip)
        of_chosen = _sectors(self.analysis) * len(chosen) / self.some.blocks_replayed
        if of_chosen:
            return _sectors(whole) * launch.blocks / self.whole.blocks_replayed / of_chosen
        return launch.blocks / len(chosen)

    @property
    def spare(self) -> bool:
        """Whether a multiprocessor may get a block more than its share, as `LaunchedBlocks`. Measured: none
        does where more of the last blocks are left than there are multiprocessors.
        """
        many, work = self.chip.multiprocessors, self.survey.work
        if self.behind.waves <= 1 or self.resident < 2 or self.blocks > -(-self.job.launch.blocks // many):
            return False
        if self.is_weighed and np.ptp(work[self.numbers]) > TOGETHER * work.max():
            return False
        return 1 < self.job.launch.blocks % (self.resident * many) <= many

    @property
    def behind(self) -> BehindL1:
        """L2 and DRAM for this launch."""
        return BehindL1(
            chip=self.chip,
            blocks=self.job.launch.blocks,
            resident=self.resident,
            footprint=self.whole.footprint,
            of_wave=self.new_sectors[0],
            of_all=self.new_sectors[1],
            asked=(self.cached.read + self.copied + self.fetched[1]) * self.times_followed,
            times_busiest=self.times_followed * len(self.recorder.chosen) / self.blocks,
            is_followed=self.survey.is_whole,
        )

    @cached_property
    def new_sectors(self) -> tuple[int, int]:
        """Sectors that the first wave of blocks reads, and those that the launch reads, each once."""
        launch = self.job.launch
        all_new = self.whole.footprint.read if self.whole.footprint else 0
        of_wave = self.resident * self.chip.multiprocessors
        if launch.blocks <= of_wave:
            return all_new, all_new
        if self.whole.blocks_replayed < launch.blocks:
            return all_new, all_new
        first: Recorder = self.survey
        if len(self.survey.work) != of_wave or not self.survey.work.any():
            first = Recorder(SameCost(self.chip))
            self.listen(first, np.arange(of_wave))
        return min(first.marks.footprint.read, all_new), all_new


def _sectors(analysis: Analysis) -> int:
    """That accesses past L1's tags ask for."""
    return sum(row.counts.sectors or 0 for rows in analysis.instructions for row in rows)


def middle_block(grid: tuple[int, int, int]) -> int:
    """The linear number of the block in the middle of a grid; of two the first, as what the second one asks
    for is seldom aligned as what others do, if there are 128.
    """
    x, y, z = ((size - 1) // 2 for size in grid)
    return x + grid[0] * (y + grid[1] * z)


def _with_numbers(stream: np.ndarray, op: np.ndarray, number: np.ndarray) -> np.ndarray:
    """A warp's stream, with the numbers of its requests in place of those of its accesses, which are ordered
    by instruction [m]. Of some executions without a request it is not known which they are: the last ones.
    """
    made: np.ndarray = stream.copy()
    for one in np.unique(op).tolist():
        places = np.flatnonzero(stream == one)
        mine = number[op == one]
        made[places[: len(mine)]] = mine[: len(places)]
    return made
