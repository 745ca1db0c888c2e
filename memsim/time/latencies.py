"""The constants of the model of time: each with its meaning and its source, `?` where it is a guess."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

#: Where a constant comes from: the programs of lab/time, recorded in traces/*/time.json, or other.
CHAINS = "dependent instructions, timed (H100, H200)"
SEQUENCES = "independent instructions, timed (H100, H200)"
HOPS = "pointers followed through memory (H100, H200)"
LAUNCHES = "small launches, profiled and timed (H100, H200)"
SHARING = "loads and stores of many multiprocessors, timed (H200)"
TINY = "launches of 1 to 1,000 blocks that do next to nothing, profiled (H200)"
FIRST = "what a launch does for the first time, timed (H200)"
READS = "reads by all multiprocessors, of chains and of pieces of rows, timed (H200)"
COPIED = "sectors that L2 saw of products by TMA, profiled (H200) ?"
COPIES = "wavefronts of copies, profiled (H200)"
BULK = "copies in bulk and mbarriers, timed (H200)"
SET_BY_BULK = "chosen so that copies in bulk and mbarriers take what they were timed to take (H200) ?"
BARRIERS = "barriers and what is behind them, timed (H200)"
QUEUES = "instructions one after the other, timed (H200)"
LOOPS = "loops of many instructions, timed (H200)"
BRANCHES = "branches that some lanes of a warp take, timed (H200)"
SEEN = "sectors that L2 saw of half of the catalogue, profiled (H100, H200) ?"
SEEN_OF_ALL = "sectors that L2 saw of all of the catalogue, profiled (H100, H200) ?"
CHOSEN = "chosen on halves of the catalogue and of projects' launches (docs/time-accuracy.md) ?"
GUESS = "a guess ?"


def _cycles(default: int, meaning: str, source: str) -> Any:
    return field(default=default, metadata={"meaning": meaning, "source": source})


@dataclass(frozen=True, slots=True)
class Latencies:
    """Constants of a multiprocessor of sm_90, in cycles if nothing else is said."""

    queue: int = _cycles(8, "entries of a scheduler's queue to the memory pipe", QUEUES)
    shared_queue: int = _cycles(16, "entries of the queue of all schedulers to it", QUEUES)
    crowded: int = _cycles(10, "% more for what an access moves beyond 128 bytes, if it waits", CHOSEN)
    to_memory: int = _cycles(2, "from issue until its registers are sent to the memory pipe", QUEUES)
    operands_read: int = _cycles(5, "from their arrival until they may be overwritten", QUEUES)
    shared: int = _cycles(18, "from the last wavefront of a shared load of 4 bytes to its result", CHAINS)
    shuffle: int = _cycles(19, "from the wavefront of a shuffle to its result", CHAINS)
    atomic_shared: int = _cycles(16, "from the last wavefront of a shared atomic to its result", CHAINS)
    swap_shared: int = _cycles(26, "the same of a compare-and-swap", CHAINS)
    l1_hit: int = _cycles(26, "from the data stage to the result of a load that hits L1", CHAINS)
    l2: int = _cycles(282, "from the tag stage to the data of a load that hits L2, in the mean", HOPS)
    l2_far: int = _cycles(13, "more for the multiprocessor that is farthest from L2", READS)
    l2_spread: int = _cycles(40, "between the nearest and the farthest part of L2", HOPS)
    dram: int = _cycles(690, "the same of a load of lines that DRAM serves", HOPS)
    dram_far: int = _cycles(17, "more for the multiprocessor that is farthest away", READS)
    dram_spread: int = _cycles(380, "between the quickest and the slowest, without a few", HOPS)
    line: int = _cycles(90, "hundredths, between lines that a multiprocessor asks L2 for", READS)
    alone: int = _cycles(8, "% less from L2 to DRAM for a load of a single sector", READS)
    rows: int = _cycles(12, "% more for one of twice as many rows of DRAM", READS)
    together: int = _cycles(65, "% of what others of the first wave ask for, too, that L2 sees", SEEN)
    bulk_together: int = _cycles(55, "% of the same that L2 sees of copies in bulk, of all waves", COPIED)
    apart: int = _cycles(90, "% of the same of later waves", SEEN)
    under_way: int = _cycles(
        3, "% of what is new in a wave and asked for again that DRAM is still to deliver", SEEN_OF_ALL
    )
    beside: int = _cycles(
        172, "sectors that L2 is asked for beside a launch's blocks, a multiprocessor", SEEN
    )
    partial: int = _cycles(
        140, "% of the time of a whole sector at L2 that one takes of which a store writes a part", SHARING
    )
    gap: int = _cycles(
        25, "% of the same, of a sector that a store leaves out of a line to which it goes", FIRST
    )
    turn: int = _cycles(
        125, "hundredths, between atomics of all multiprocessors that one slice of L2 executes", FIRST
    )
    tag_backlog: int = _cycles(16, "for which the tag stage may be behind the data stage", GUESS)
    constant: int = _cycles(24, "until a load of a constant has its result", QUEUES)
    constant_line: int = _cycles(72, "more for the first of 64 bytes of the constants of code", FIRST)
    constant_block: int = _cycles(580, "more for the first of 256 bytes of them, with cold caches", FIRST)
    fetch: int = _cycles(130, "from the fetch of a texture to its result, if its cache has it", FIRST)
    first_fetch: int = _cycles(
        1700, "more for a multiprocessor's first fetch of textures, with cold caches", FIRST
    )
    special: int = _cycles(22, "until S2R has its result", QUEUES)
    special_uniform: int = _cycles(34, "until S2UR has its result", QUEUES)
    match: int = _cycles(27, "until MATCH and other votes have a result", CHAINS)
    redux: int = _cycles(44, "until REDUX has a result", CHAINS)
    multi_function: int = _cycles(10, "from the end of an XU instruction to its result", CHAINS)
    double: int = _cycles(7, "from the end of an FP64 or tensor instruction to its counter", CHAINS)
    product: int = _cycles(60, "from the end of a product of a warpgroup to its result", SEQUENCES)
    barrier: int = _cycles(
        12, "from the last arrival at a block barrier to an issue of what is not arithmetic", BARRIERS
    )
    arrival: int = _cycles(2, "of the unit that counts arrivals, for each", CHAINS)
    arrives: int = _cycles(20, "from issue to an arrival at an mbarrier", SET_BY_BULK)
    phase_check: int = _cycles(33, "from its wavefront to the result of a wait for what is over", BULK)
    handed_over: int = _cycles(28, "from the end of a phase to the result of those who wait for it", BULK)
    met: int = _cycles(44, "from the last arrival at a cluster's barrier to the next issue", BULK)
    commit: int = _cycles(4, "of the data stage for the end of a group of copies (cp.async)", COPIES)
    mbarrier: int = _cycles(4, "of the data stage for an operation on an mbarrier", SET_BY_BULK)
    bulk_copy: int = _cycles(3, "of the engine of bulk copies for each, beside its lines", BULK)
    bulk_line: int = _cycles(120, "hundredths, of 128 bytes from L2 by copies in bulk", BULK)
    bulk_latency: int = _cycles(-50, "more from L2 by a copy in bulk than by a load", SET_BY_BULK)
    bulk_stored: int = _cycles(30, "from the last sector of a bulk store to the end of its group", GUESS)
    fence: int = _cycles(266, "of a fence for the device", CHAINS)
    printf: int = _cycles(46000, "of a call of printf by a warp", FIRST)
    meet: int = _cycles(9, "after a BSYNC, at which lanes meet again, beyond its stall count", BRANCHES)
    branch: int = _cycles(5, "after a taken branch, beyond its stall count", BARRIERS)
    code_line: int = _cycles(6, "between 128-byte lines of code that are fetched in order", GUESS)
    code_first: int = _cycles(12, "between 128-byte lines of code that a multiprocessor has not", LOOPS)
    code_far: int = _cycles(82, "the same with cold caches, of lines beyond the first 32 KiB", LAUNCHES)
    code_jump: int = _cycles(14, "until code is there that was not fetched ahead", LOOPS)
    code_skipped: int = _cycles(42, "more for a line to which code jumps the first time", FIRST)
    code_moved: int = _cycles(600, "the same in a region of 16 KiB where nobody was, with cold caches", FIRST)
    start_cold: int = _cycles(
        436, "before the first instruction of a launch of one block, with cold caches", TINY
    )
    start_warm: int = _cycles(100, "the same with warm caches", TINY)
    each_cold: int = _cycles(2, "more for each multiprocessor that has a block, with cold caches", TINY)
    each_warm: int = _cycles(1, "the same with warm caches", TINY)
    next_start: int = _cycles(20, "between the starts of the first blocks of a multiprocessor", LAUNCHES)
    next_block: int = _cycles(
        290, "from the end of a block to the first instruction of its successor", LAUNCHES
    )
    successors: int = _cycles(157, "between the starts of successors, on all multiprocessors", LAUNCHES)
    launch: int = _cycles(3300, "that a launch is elapsed beyond its active cycles", LAUNCHES)

    def start(self, is_cold: bool, multiprocessors: int) -> int:
        """Cycles before the first instruction of a launch on so many multiprocessors, which its code and its
        constants reach one after the other.
        """
        first, each = (self.start_cold, self.each_cold) if is_cold else (self.start_warm, self.each_warm)
        return first + each * multiprocessors

    def spread(self, mean: int, width: int) -> tuple[int, ...]:
        """Latencies of misses one after the other, of this mean and width: eight steps, in no order."""
        return tuple(mean + width * (2 * step - 7) // 14 for step in (3, 6, 0, 5, 1, 7, 2, 4))

    def table(self) -> list[tuple[str, int, str, str]]:
        """(name, value, meaning, source) of each constant."""
        return [
            (one.name, getattr(self, one.name), one.metadata["meaning"], one.metadata["source"])
            for one in fields(self)
        ]
