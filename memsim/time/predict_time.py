"""An estimate of the cycles of a launch: its machine code, replayed, on one multiprocessor in time.

The busiest multiprocessor runs as many blocks as the launch gives it, all as one block in the middle of the
grid does. What an access costs is the mean of what it costs in this block, exactly counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from memsim.analysis import Analysis, SiteCounts, analyze_trace
from memsim.api.running import trace_job, trace_with
from memsim.arch import MEASURED
from memsim.errors import MemsimError
from memsim.isa.program import Op
from memsim.job import Job
from memsim.model.alike import SameCost
from memsim.model.occupancy import Needs, occupancy
from memsim.model.pipes import pipe_of
from memsim.order.order_listener import OrderListener
from memsim.simt.faults import cluster_of
from memsim.simt.waits import whole_clusters
from memsim.state.launch_memory import Memory
from memsim.time.behind_l1 import COLD, WARM, BehindL1
from memsim.time.block_streams import KEPT, MOST_REQUESTS, StreamRecorder
from memsim.time.handovers import HandoverRecorder
from memsim.time.hardware_units import NEVER
from memsim.time.l1_cache import AccessKind, CachedRequests, cached_requests, l1_bytes
from memsim.time.latencies import Latencies
from memsim.time.launch_survey import FirstTouches, LaunchSurvey, Patience, busiest_blocks
from memsim.time.launch_time import InstructionTime, LaunchTime
from memsim.time.multiprocessor import ABLATIONS, REASONS, Multiprocessor, Setup
from memsim.time.printing import CALL, printed
from memsim.time.repeated_states import run_to_end
from memsim.time.resident_warps import LaunchedBlocks
from memsim.time.steady_state import SteadyState
from memsim.time.timed_instructions import (
    HANDOVERS,
    PARTS,
    SIZE,
    CostSetting,
    TimedInstruction,
    control_codes,
    timed_instructions,
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
#: Opcodes that make most requests to global and local memory.
LOADS = frozenset("LDG STG LD ST LDGSTS RED REDG ATOM ATOMG LDL STL".split())
#: The stages of the memory pipe, as `MemoryPipe.stages`.
STAGES = ("L1 data stage", "L1 tag stage", "from L2", "to L2", "atomics at L2", "bulk copies")
#: Calls of printf, by warps, of which each takes as long as one alone. Measured: of 16 each takes twice as
#: long, of 132 ten times (H200, docs/validation/small_launches.json).
FEW_CALLS = 8
#: Issues from which the pace of a launch's warps is told.
ISSUES_FOR_PACE = 20_000
#: Issues of a run, without those that are skipped, and up to which a run is not extrapolated: about 4 s.
MOST_ISSUES, MOST_WHOLE = 3_000_000, 1_200_000


def predict_time(
    job: Job,
    l2: str = COLD,
    off: Collection[str] = (),
    set_to: Latencies | None = None,
    skips: bool = True,
) -> LaunchTime:
    """An estimate of how many cycles a launch takes, and what its warps wait for.

    l2: "cold" or "warm". off: of `ABLATIONS`. set_to: other constants. skips: whether what repeats is gone
    over in one step, which changes nothing but the time that this takes.

    Raises:
        MemsimError: no machine code, a chip that was not measured, an ablation that there is not, a launch
            that does not fit, or one that cannot be followed to its end.
    """
    return PreparedTime(job).predict(l2, off, set_to, skips)


class PreparedTime:
    """A launch, some blocks of which were replayed, to be timed with several settings."""

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
        self.hands_over = any(op.form.opcode in HANDOVERS for op in self.ops)
        self.survey = self.surveyed(fitting * chip.multiprocessors)
        numbers = self.numbers_of_blocks(fitting)
        self.blocks = len(numbers)
        self.resident = min(fitting, self.blocks)
        self.l1_bytes = l1_bytes(shared, fitting)
        self.recorder, self.some = self.replay(numbers[: self.most_blocks()])
        self.streams = self.recorder.streams()
        self.analysis = analyze_trace(self.some, chip)

    def on(self, board: str) -> PreparedTime:
        """The same launch on a board of its chip. board: a part of its name, such as "H100".

        Raises:
            MemsimError: there is no such board that was measured, or there are several.
        """
        products = [one.product for one in self.job.arch.boards]
        meant = [product for product in products if board.casefold() in product.casefold()]
        if len(meant) != 1:
            raise MemsimError(f"{board!r} is not one of the boards that were measured: {', '.join(products)}")
        found = copy(self)
        found.chip = self.job.arch.on(meant[0])
        return found

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
        loads = sum(count for op, count in zip(self.ops, executed.tolist()) if op.form.opcode in LOADS)
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
    def spare(self) -> int:
        """Blocks by which a multiprocessor may get more than others, as `LaunchedBlocks`."""
        if self.is_weighed or self.behind.waves <= 1:
            return 0
        left = self.job.launch.blocks % (self.resident * self.chip.multiprocessors)
        spread = -(-left // self.chip.multiprocessors)
        return max(min(self.resident, left) - spread, 0)

    def predict(
        self,
        l2: str = COLD,
        off: Collection[str] = (),
        set_to: Latencies | None = None,
        skips: bool = True,
        watched: range = range(0),
        most_issues: int = MOST_ISSUES,
        most_whole: int = MOST_WHOLE,
    ) -> LaunchTime:
        """As `predict_time`. watched: cycles of which all issues are kept. most_issues: after which what is
        left is extrapolated, without those that are skipped. most_whole: up to which nothing else is.
        """
        if l2 not in (COLD, WARM):
            raise MemsimError(f"l2 must be {COLD} or {WARM}, not {l2!r}")
        for name in off:
            if name not in ABLATIONS:
                raise MemsimError(f"there is no unit {name!r} to switch off", hint=", ".join(ABLATIONS))
        set_to = set_to or Latencies()
        costs: dict[int, list[SiteCounts]] = {}
        for rows in self.analysis.instructions:
            for row in rows:
                costs.setdefault(row.address, []).append(row.counts)
        instructions, lacks = timed_instructions(self.ops, self.codes, costs, set_to, prod(self.cluster))
        if "reuse cache" in off:
            for one in instructions:
                one.even, one.odd = one.even + one.kept_even, one.odd + one.kept_odd
        behind = self.behind
        nearer = 0 if l2 == COLD else set_to.dram - set_to.l2
        setup = Setup(
            set_to,
            ways=behind.ways(l2, set_to),
            write_cost=behind.write_cost(),
            start=set_to.start(l2 == COLD, behind.used),
            off=frozenset(off),
            watched=watched,
            code_far=set_to.code_far if l2 == COLD else set_to.code_first,
            code_moved=set_to.code_moved - nearer,
            constant_block=set_to.constant_block - nearer,
            first_fetch=set_to.first_fetch - 2 * nearer,
        )
        turn = 0.0 if "atomics' turns" in off else set_to.turn / 100 * self.survey.hottest * behind.used
        setting = CostSetting("L1 cache" not in off, NEVER, turn, set_to)
        repeats = skips and not self.hands_over  # whose places are counted
        if l2 == COLD and (self.hands_over or any(cost.behind > 1 for cost in self.cached.costs)):
            made, launched = self.launched(instructions, setting)
            pace = self.pace(replace(setup, watched=range(0)), made, launched)
            setup = replace(setup, ahead=set_to.dram / pace)
            setting = setting._replace(ahead=setup.ahead)
        made, launched = self.launched(instructions, setting)
        processor = Multiprocessor(setup, made, launched, self.resident, self.chip.partitions)
        is_long = launched.issues > most_whole
        steady = SteadyState(np.array([one.index for one in made]), is_long and repeats) if skips else None
        if not run_to_end(processor, repeats, most_issues, steady):
            raise MemsimError("the launch is too long to be followed in time", hint="give a smaller one")
        active, rates = processor.cycles, self.chip.memory
        return LaunchTime(
            kernel=self.whole.kernel,
            chip=rates.product if rates else self.chip.chip,
            clock=self.chip.sheet.clock,
            l2=l2,
            cycles=active,
            elapsed=self.elapsed(active, set_to),
            blocks=processor.launched.blocks,
            resident=self.resident,
            issued=processor.issued,
            instructions=self.instruction_times(made, processor.waits),
            lacks=(*self.lacks(), *lacks),
            off=tuple(off),
            is_whole=steady is None or not steady.has_skipped,
            units=self.unit_use(processor),
            issues=tuple(processor.issues),
            **self.traffic(l2, set_to),
        )

    def pace(self, setup: Setup, made: Sequence[TimedInstruction], launched: LaunchedBlocks) -> float:
        """Cycles of a warp for each instruction, at the start of a launch where every load waits for DRAM."""
        processor = Multiprocessor(setup, made, launched, self.resident, self.chip.partitions)
        run_to_end(processor, False, ISSUES_FOR_PACE)
        return (processor.now - setup.start) * self.resident * launched.warps / max(processor.issued, 1)

    def unit_use(self, processor: Multiprocessor) -> dict[str, float]:
        """How much of the active cycles each unit was busy."""
        active = max(processor.cycles, 1)
        stages = dict(zip(STAGES, processor.memory.stages))
        busy = {name: stage.served / PARTS / active for name, stage in stages.items()}
        return {"instruction issue": processor.issued / self.chip.partitions / active, **busy}

    def traffic(self, l2: str, set_to: Latencies) -> dict[str, Any]:
        """Hit rates of L1 and L2, sectors that L2 sees, and bytes from DRAM, of the whole launch."""
        cached, behind, times = self.cached, self.behind, self.times_followed
        prints = printed(self.recorder.prints, self.job.launch.warps * self.resident)
        written = (cached.written + cached.local + prints.written) * times
        seen = behind.seen_at_l2(set_to)
        sectors = round(written + seen + prints.read * times)
        new = min(round(behind.of_all * behind.not_there(l2)), sectors)
        misses = new + behind.under_way(set_to) * behind.not_there(l2)
        beside = set_to.beside * self.chip.multiprocessors
        texels, new_texels = self.fetched
        hits = cached.hits + prints.found + texels - new_texels
        asked = cached.sectors + prints.sectors + texels
        rates = {"l1": hits / max(asked, 1), "l2": 1 - misses / (sectors + beside)}
        return {"hit_rates": rates, "l2_sectors": sectors, "dram_bytes": new * self.chip.sector_bytes}

    def elapsed(self, active: int, set_to: Latencies) -> int:
        """Of a launch whose busiest multiprocessor is active for so long: its blocks are also handed out."""
        handed_out = set_to.successors * self.job.launch.blocks // self.chip.multiprocessors
        return max(active, handed_out) + set_to.launch

    def instruction_times(
        self, instructions: Sequence[TimedInstruction], waits_of: Sequence[Sequence[int]]
    ) -> tuple[InstructionTime, ...]:
        """What warps waited for before each instruction."""
        return tuple(
            InstructionTime(
                op.address,
                op.text,
                op.source.file if op.source else "",
                op.line,
                one.pipe if one.pipe == "memory" else pipe_of(op.form.opcode, list(op.form.modifiers)) or "",
                waits[0],
                {reason: cycles for reason, cycles in zip(REASONS, waits) if cycles},
            )
            for op, one, waits in zip(self.ops, instructions, waits_of)
        )

    def lacks(self) -> list[str]:
        """What was not looked at, in words."""
        some = not self.whole.blocks_alike and len(self.recorder.chosen) < self.blocks
        found = ["blocks that execute other instructions than those that were replayed"] * some
        if self.recorder.beyond:
            found.append(f"caches, for accesses that make more than {MOST_REQUESTS:,} requests")
        if self.handovers is not None and self.handovers.awaits_others:
            found.append("what other blocks of a cluster hand over")
        few = {CALL: FEW_CALLS}
        return [
            *found,
            *(f"{name}s" for name, times in self.whole.uncounted.items() if times > few.get(name, 0)),
        ]

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
