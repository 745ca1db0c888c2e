"""An estimate of the cycles of a launch: its machine code, replayed, on one multiprocessor in time.

Some blocks are replayed once (`ReplayedLaunch`), and then timed with as many settings as are asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from memsim.analysis import SiteCounts
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.model.pipes import pipe_of
from memsim.time.behind_l1 import COLD, WARM
from memsim.time.block_streams import MOST_REQUESTS
from memsim.time.hardware_units import NEVER
from memsim.time.latencies import Latencies
from memsim.time.launch_time import InstructionTime, LaunchTime
from memsim.time.multiprocessor import ABLATIONS, REASONS, Multiprocessor, Setup
from memsim.time.printing import CALL, traffic_of_prints
from memsim.time.repeated_states import run_to_end
from memsim.time.replayed_launch import ReplayedLaunch
from memsim.time.resident_warps import LaunchedBlocks
from memsim.time.steady_state import SteadyState
from memsim.time.timed_instructions import PARTS, CostSetting, TimedInstruction, timed_instructions

#: The stages of the memory pipe, as `MemoryPipe.stages`.
STAGES = ("L1 data stage", "L1 tag stage", "from L2", "to L2", "atomics at L2", "bulk copies")
#: Calls of printf, by warps, of which each takes as long as one alone. Measured: of 16 each takes twice as
#: long, of 132 ten times (H200, docs/validation/small_launches.json).
FEW_CALLS = 8
#: Issues from which the pace of a launch's warps is told.
ISSUES_FOR_PACE = 20_000
#: Issues of a run, without those that are skipped, and up to which it is not extrapolated: about 4 s and 3.
MOST_ISSUES, MOST_WHOLE = 2_000_000, 1_200_000
#: Of these issues, the share whose pace goes for the rest. Of 100,000 issues the pace of a product of 4096
#: (`tile_32x64x32`) moves by 7 % as any latency changes by a cycle or two, of 600,000 by less than 1 %.
AVERAGED = 0.3


def predict_time(
    job: Job, l2: str = COLD, off: Collection[str] = (), set_to: Latencies | None = None, skips: bool = True
) -> LaunchTime:
    """An estimate of how many cycles a launch takes, and what its warps wait for.

    l2: "cold" or "warm". off: of `ABLATIONS`. set_to: other constants. skips: whether what repeats is gone
    over in one step, which changes nothing but the time that this takes.

    Raises:
        MemsimError: no machine code, a chip that was not measured, an ablation that there is not, a launch
            that does not fit, or one that cannot be followed to its end.
    """
    return PreparedTime(job).predict(l2, off, set_to, skips)


class PreparedTime(ReplayedLaunch):
    """A launch, some blocks of which were replayed, to be timed with several settings."""

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

    def predict(
        self,
        l2: str = COLD,
        off: Collection[str] = (),
        set_to: Latencies | None = None,
        skips: bool = True,
        watched: range = range(0),
        most_issues: int = MOST_ISSUES,
        most_whole: int = MOST_WHOLE,
        both_ways: bool = False,
    ) -> LaunchTime:
        """As `predict_time`. watched: cycles of which all issues are kept. most_issues: after which what is
        left is extrapolated, without those that are skipped. most_whole: up to which nothing else is.
        both_ways: tell `cycles_otherwise`, too, which takes as long again where chance decides.
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
        if l2 == COLD and (self.hands_over or any(cost.behind > 1 for cost in self.cached.costs)):
            made, launched = self.launched(instructions, setting)
            pace = self.pace(replace(setup, watched=range(0)), made, launched)
            setup = replace(setup, ahead=set_to.dram / pace)
            setting = setting._replace(ahead=setup.ahead)
        made, launched = self.launched(instructions, setting)
        limits = skips, most_issues, most_whole
        processor, is_whole = self.followed(setup, made, launched, *limits)
        otherwise = None
        if both_ways and launched.spare:
            is_taken = processor.launched.blocks > launched.blocks
            other = replace(launched, blocks=launched.blocks + (not is_taken), spare=False)
            otherwise = self.followed(replace(setup, watched=range(0)), made, other, *limits)[0].cycles
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
            is_whole=is_whole,
            cycles_otherwise=otherwise,
            units=self.unit_use(processor),
            issues=tuple(processor.issues),
            **self.traffic(l2, set_to),
        )

    def followed(
        self,
        setup: Setup,
        made: Sequence[TimedInstruction],
        launched: LaunchedBlocks,
        skips: bool,
        most_issues: int,
        most_whole: int,
    ) -> tuple[Multiprocessor, bool]:
        """A multiprocessor that has executed its blocks, and whether none of it was extrapolated; the limits
        as of `predict`.

        Raises:
            MemsimError: there is no end in sight.
        """
        processor = Multiprocessor(setup, made, launched, self.resident, self.chip.partitions)
        repeats = skips and not self.hands_over  # whose places are counted
        is_long = launched.issues > most_whole
        op_of, averaged = np.array([one.index for one in made]), round(AVERAGED * most_issues)
        steady = SteadyState(op_of, averaged, is_long and repeats) if skips else None
        if not run_to_end(processor, repeats, most_issues, steady):
            raise MemsimError("the launch is too long to be followed in time", hint="give a smaller one")
        return processor, steady is None or not steady.has_skipped

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
        prints = traffic_of_prints(self.recorder.prints, self.job.launch.warps * self.resident)
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
