"""What lies behind L1: how long L2 and DRAM take, and how fast they serve the busiest multiprocessor while
all of them ask.
"""

from __future__ import annotations

from dataclasses import dataclass

from memsim.arch import Arch
from memsim.arch.chip import MemoryRates
from memsim.time.hardware_units import Way
from memsim.time.latencies import Latencies
from memsim.trace.footprint import Footprint

#: Caches before the launch: as a profiler leaves them, which flushes, or as a program does that just ran it.
COLD, WARM = "cold", "warm"
#: What a launch touches, as a share of L2, if one multiprocessor reads each part: up to the first all of it
#: is there when it is launched again, from the second on nothing. Measured: launches that follow each other
#: (H100, H200).
FITS, OVERFLOWS = 0.65, 0.95
#: The share of L2 that holds what a launch touched last; what it wrote before that has left to DRAM.
#: Measured: `dram__bytes_write` of launches that touch 33 to 134 MB (H100: 0.55 to 0.72, H200: 0.65 to 0.78).
TOUCHED_LAST = 0.7


@dataclass(frozen=True, slots=True)
class BehindL1:
    """L2 and DRAM as a launch finds them.

    chip: with the memory of one board. blocks: of the launch. resident: of them on a multiprocessor.
    footprint: sectors that it touches. of_wave, of_all: those that the first wave of blocks reads, and that
    all do, each once. asked: that all multiprocessors ask for, to read them. times_busiest: how many times as
    many as the busiest one all of them ask for. is_followed: the requests of the first wave are told apart by
    who makes them first.
    """

    chip: Arch
    blocks: int
    resident: int
    footprint: Footprint | None
    of_wave: int
    of_all: int
    asked: float
    times_busiest: float
    is_followed: bool

    @property
    def memory(self) -> MemoryRates:
        """The measured rates of its board."""
        assert self.chip.memory is not None  # its chip was measured
        return self.chip.memory

    @property
    def waves(self) -> float:
        """Of blocks; at least one."""
        return max(self.blocks / (self.resident * self.chip.multiprocessors), 1.0)

    @property
    def used(self) -> int:
        """Multiprocessors that have a block."""
        return min(self.chip.multiprocessors, self.blocks)

    @property
    def asking(self) -> float:
        """Multiprocessors that share L2, if each asks for as much as the busiest one."""
        return min(self.used, max(self.times_busiest, 1.0))

    @property
    def once(self) -> float:
        """The share of what the first wave asks for that none of it asked for before."""
        asked = max(self.asked, 1.0)
        return min((self.of_wave or asked) * self.waves / asked, 1.0)

    @property
    def new_later(self) -> float:
        """Of what a wave reads, the share that is new, in waves after the first."""
        return min((self.of_all - self.of_wave) / max(self.waves - 1, 1) / max(self.of_wave, 1), 1.0)

    def seen(self, set_to: Latencies) -> tuple[float, float]:
        """The share of what multiprocessors ask for that L2 sees, of the first wave and of later ones. On the
        way, requests for the same sectors are combined that several make at about the same time.
        """
        again = 1 - self.once
        return 1 - again * (1 - set_to.together / 100), 1 - again * (1 - set_to.apart / 100)

    def not_there(self, l2: str) -> float:
        """The share of what a launch touches first that L2 does not have: all of it if it is cold. A warm one
        has what fits, and nothing of what does not. A half of L2 also keeps what its multiprocessors read of
        the other's: half of what one reads is there twice, and nearly all of what many do. Measured: products
        of 1536 cubed, of which next to nothing comes from DRAM (docs/validation/l2_states_large.json).
        """
        if l2 == COLD or self.footprint is None:
            return 1.0
        copies: float = 2 - 0.5 ** (1 / self.once)
        sectors = copies / 1.5 * self.footprint.read + self.footprint.written
        kept = sectors * self.chip.sector_bytes / self.chip.sheet.l2
        return min(max((kept - FITS) / (OVERFLOWS - FITS), 0.0), 1.0)

    def leaves(self, l2: str) -> float:
        """The share of what the launch writes that leaves L2 before it ends. After a launch like it nothing
        there is clean.
        """
        if l2 != COLD or self.footprint is None:
            return 1.0
        touched = (self.footprint.read + self.footprint.written) * self.chip.sector_bytes
        return max(1 - TOUCHED_LAST * self.chip.sheet.l2 / max(touched, 1), 0.0)

    def ways(self, l2: str, set_to: Latencies) -> tuple[Way, ...]:
        """For the blocks of each wave.

        With a cold L2, what the launch asks for comes from DRAM once. If the first wave's requests are too
        many to be followed, all that it asks for does, and of the next ones the share that is new.
        """
        # In one wave the multiprocessor that is farthest away ends last; of more waves it has fewer blocks.
        far = (self.used - 1) / (self.used + 1) if self.waves <= 1 else 0.0
        hits = set_to.spread(set_to.l2 + round(far * set_to.l2_far), set_to.l2_spread)
        misses = set_to.spread(set_to.dram + round(far * set_to.dram_far), set_to.dram_spread)
        at_first, later = self.seen(set_to)
        not_there = self.not_there(l2)
        from_dram = not_there * self.once
        leaves = self.leaves(l2)
        new = round(not_there * len(hits))
        cost, bulk = self.read_cost(from_dram, at_first, leaves), self.bulk_cost(from_dram, leaves, set_to)
        way = Way((*misses[:new], *hits[new:]), hits, cost, bulk)
        if self.waves <= 1:
            return (way,)
        share = self.new_later
        if not self.is_followed:
            new = round(not_there * share * len(hits))
        from_dram *= share
        cost, bulk = self.read_cost(from_dram, later, leaves), self.bulk_cost(from_dram, leaves, set_to)
        return way, Way((*misses[:new], *hits[new:]), hits, cost, bulk)

    def read_cost(self, from_dram: float, seen: float, leaves: float) -> float:
        """Cycles that a sector takes from L2 to the busiest multiprocessor, if all of them read.

        from_dram, leaves: as of `fill_cost`. seen: the share of sectors that L2 sees.
        """
        rates = self.memory
        shared = seen * self.asking / rates.l2_read
        return max(1 / rates.l2_read_of_one, shared, self.fill_cost(from_dram, leaves))

    def bulk_cost(self, from_dram: float, leaves: float, set_to: Latencies) -> float:
        """The same of copies in bulk to shared memory. Their blocks keep step in all waves."""
        seen = 1 - (1 - self.once) * (1 - set_to.bulk_together / 100)
        return max(seen * self.asking / self.memory.l2_read, self.fill_cost(from_dram, leaves))

    def fill_cost(self, from_dram: float, leaves: float) -> float:
        """Cycles that a sector takes of those that DRAM delivers, which are written to L2 as what
        multiprocessors write is.

        from_dram: the share of sectors that DRAM delivers. leaves: of what is written, the share that goes on
        to DRAM, and shares the way to it.
        """
        sector = self.chip.sector_bytes
        to_l2 = to_dram = from_dram
        if self.footprint is not None and self.footprint.read:
            written = self.footprint.written
            share = min(from_dram / self.footprint.read, 1 / max(self.asked, 1))
            to_l2, to_dram = from_dram + share * written, from_dram + share * leaves * written
        return self.asking * max(
            to_l2 / self.memory.l2_written, to_dram * sector / self.chip.dram_bytes_a_cycle
        )

    def write_cost(self) -> float:
        """As `read_cost`, of a sector that is written."""
        rates = self.memory
        return max(1 / rates.l2_written_of_one, self.asking / rates.l2_written)

    def seen_at_l2(self, set_to: Latencies) -> float:
        """Sectors that L2 sees of all that multiprocessors ask for, to read them."""
        at_first, later = self.seen(set_to)
        return self.asked * (at_first + (self.waves - 1) * later) / self.waves

    def under_way(self, set_to: Latencies) -> float:
        """Sectors that L2 is asked for again while they come from DRAM, if it has nothing of the launch."""
        new = (1 + (self.waves - 1) * self.new_later) / self.waves
        return self.asked * (1 - self.once) * new * set_to.under_way / 100
