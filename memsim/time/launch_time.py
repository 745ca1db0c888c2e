"""The estimated time of a launch, as it is given back: of all of it, of each instruction and each line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from memsim.launch import Natural
from memsim.time.multiprocessor import IssuedInstruction

#: The mean error on the catalogue's kernels that no constant was chosen on, on the board where it is larger,
#: and the median one on launches of public programs, with a cold L2; rounded up (docs/time-accuracy.md).
HELD_OUT_ERROR, PROJECTS_ERROR = 0.05, 0.07


@dataclass(frozen=True, slots=True)
class InstructionTime:
    """One instruction. pipe: as `pipes.pipe_of` names it, or "memory". executed: by all its warps.
    stalls: cycles that they waited before it, by ncu's reason; "selected" are those in which it was issued.
    """

    address: Natural
    text: str
    file: str
    line: Natural
    pipe: str
    executed: Natural
    stalls: dict[str, Natural]

    @property
    def warp_cycles(self) -> int:
        """Cycles of all warps."""
        return sum(self.stalls.values())


@dataclass(frozen=True, slots=True)
class LaunchTime:
    """The estimated time of a launch.

    chip: the board. cycles: ncu's `sm__cycles_active.max`; elapsed: its `sm__cycles_elapsed.max`. clock: of
    `chip`, in Hz.
    l2: "cold" or "warm". blocks: of the busiest multiprocessor, `resident` of them at once. issued:
    instructions of all warps there. lacks: what is not modelled, in words. off: units
    that were switched off. is_whole: all blocks and iterations were run, or are known to repeat others; else
    some were extrapolated. cycles_otherwise: as `cycles`, where chance decides whether one multiprocessor
    gets two of the last blocks, if it decides in the other way; None: it does not, or that was not asked for.
    hit_rates: of sectors, of "l1" and "l2". l2_sectors: that L2 is asked for.
    dram_bytes: that are read there. units: share of `cycles` for which each is busy.
    issues: in the cycles that were watched.
    """

    kernel: str
    chip: str
    clock: float
    l2: str
    cycles: int
    elapsed: int
    blocks: int
    resident: int
    issued: int
    instructions: tuple[InstructionTime, ...]
    lacks: tuple[str, ...]
    off: tuple[str, ...]
    is_whole: bool
    hit_rates: dict[str, float]
    l2_sectors: Natural
    dram_bytes: Natural
    units: dict[str, float]
    cycles_otherwise: int | None = None
    issues: tuple[IssuedInstruction, ...] = ()

    @property
    def seconds(self) -> float:
        """At the boost clock."""
        return self.elapsed / self.clock

    @property
    def stalls(self) -> dict[str, int]:
        """Cycles of all warps by ncu's reason, most first."""
        return _added(self.instructions)

    def stalls_by_line(self) -> dict[tuple[str, int], dict[str, int]]:
        """The same of each (file, line) of the source, the longest first; line 0: not known."""
        lines: dict[tuple[str, int], list[InstructionTime]] = {}
        for one in self.instructions:
            if one.stalls:
                lines.setdefault((one.file, one.line), []).append(one)
        found = {line: _added(ones) for line, ones in lines.items()}
        return dict(sorted(found.items(), key=lambda item: -sum(item[1].values())))


def _added(instructions: Sequence[InstructionTime]) -> dict[str, int]:
    found = Counter[str]()
    for one in instructions:
        found.update(one.stalls)
    return dict(found.most_common())
