"""The counts of a row of an analysis, and of one of its machine instructions."""

from __future__ import annotations

from dataclasses import dataclass

from memsim.launch import SPILLS, Natural, Space
from memsim.model.operations import Operation, operation

NO_WAVEFRONTS = ("wavefronts", "conflicts", "ideal_wavefronts", "max_ways")


@dataclass(frozen=True, slots=True)
class SiteCounts:
    """What one kind of access on one source line costs, summed over its PTX instructions.

    A kind is `op`, `space`, `width` (bytes a lane) and `array` (the variable or parameter, "" if
    unknown); an unrolled loop gives one row. `source` is the stripped text of the line, "" if unknown.

    instructions: warp instructions executed, those with every lane predicated off included.
    requests: warp instructions with an active lane. As the chip splits them: to local memory one for each 4
        bytes a lane, of constants one for each different address.
    wavefronts, conflicts, ideal_wavefronts, max_ways: shared memory only, else None; `max_ways` is the
        worst of all requests, the others are sums. Of cp_async they are for data in the L1 cache; for
        cp_async_cg the chip counts none, so they are 0.
    sectors, ideal_sectors: global and local memory, and shared memory of other blocks of a cluster, else
        None; sums. lines: global memory and that of other blocks; they have 128 bytes.

    None says "does not apply", never 0. A row with `unresolved` (why its addresses are not known)
    has None in every count but `instructions`.
    """

    file: str
    line: Natural
    column: int
    source: str
    op: str
    space: Space
    width: Natural
    array: str
    instructions: Natural
    requests: Natural | None = None
    wavefronts: Natural | None = None
    conflicts: Natural | None = None
    ideal_wavefronts: Natural | None = None
    max_ways: Natural | None = None
    sectors: Natural | None = None
    ideal_sectors: Natural | None = None
    lines: Natural | None = None
    unresolved: str | None = None

    @property
    def operation(self) -> Operation:
        """What is known of its kind, in one record."""
        return operation(self.space, self.op)

    @property
    def is_spill(self) -> bool:
        """Whether it saves or restores registers for which there was no room."""
        return self.space == "local" and self.array == SPILLS

    @property
    def wavefronts_of_conflicts(self) -> int:
        """How many wavefronts would be saved without conflicts; 0 if that is not known."""
        return known(self.conflicts) * self.operation.passes

    @property
    def badness(self) -> tuple[int, int, int, bool, float]:
        """The larger, the worse: by this the worst access is chosen, wherever one is named.

        Conflicts, then sectors that nobody needs, then wavefronts above the ideal; of what wastes nothing,
        shared memory before global, then wavefronts or sectors a request. Least where nothing was counted.
        """
        needless = known(self.sectors) - known(self.ideal_sectors)
        above = known(self.wavefronts) - known(self.ideal_wavefronts)
        each = (self.wavefronts or self.sectors or 0) / (self.requests or 1)
        return known(self.conflicts), needless, above, bool(self.wavefronts), each


@dataclass(frozen=True, slots=True)
class InstructionCounts:
    """What one machine instruction costs. address: its first byte, from the kernel's; text.

    As disassembled.
    """

    address: int
    text: str
    counts: SiteCounts


def known(count: int | None) -> int:
    """A count for a sum: 0 where it does not apply or is not known."""
    return count or 0
