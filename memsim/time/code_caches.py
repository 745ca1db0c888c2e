"""Where the code of a launch and its constants are, each cache a class; as the units of `hardware_units`."""

from __future__ import annotations


class CodeMemory:
    """The instruction cache of the multiprocessor, which its schedulers ask for lines of code. Others come
    one after the other. each: cycles between them; far: between those beyond what a launch finds near, the
    first time; skipped, moved: more for one to which a jump leads, over code or to a region where nobody was.
    kept: when the lines of each set were there, the one that was asked for last at the end. seen: those that
    ever came. Measured: 32 KiB of straight code start with cold caches as with warm ones, and 128 KiB do not;
    jumps over 256 bytes to 16 KiB (lab/time/first.cu); loops of 24 KiB of code come from the cache, of 32 KiB
    nearly all and of 48 KiB nothing (docs/validation/loops.json).
    """

    __slots__ = ("each", "far", "kept", "moved", "next", "regions", "seen", "skipped")

    #: Sets, lines of 128 bytes in each, and in all; those of a region.
    SETS, WAYS, NEAR, REGION = 64, 4, 256, 128

    def __init__(self, each: int, far: int, skipped: int, moved: int) -> None:
        self.each, self.far, self.skipped, self.moved, self.next = each, far, skipped, moved, 0
        self.kept: list[dict[int, int]] = [{} for _ in range(self.SETS)]
        self.seen, self.regions = {-1}, {0}

    def fetch(self, line: int, time: int) -> int:
        """From when on a line that is asked for at `time` can be had."""
        kept = self.kept[line % self.SETS]
        if line in kept:
            arrives = kept[line] = kept.pop(line)
            return max(arrives, time)
        each, late = self.each, 0
        if line not in self.seen:
            region = line // self.REGION
            if line - 1 not in self.seen:
                late = self.skipped if region in self.regions else self.moved
            self.seen.add(line)
            self.regions.add(region)
            each = self.each if len(self.seen) <= self.NEAR else self.far
        self.next = max(self.next, time) + each
        kept[line] = self.next + late
        if len(kept) > self.WAYS:
            del kept[next(iter(kept))]
        return kept[line]

    def state(self, time: int) -> tuple[object, ...]:
        late = (one - time for kept in self.kept for one in kept.values() if one > time)
        full = (tuple(kept) for kept in self.kept if len(kept) == self.WAYS)  # the others forget nothing
        return len(self.seen), max(self.next - time, 0), *late, *full


class ConstantCache:
    """What of the constants of the code and of its file a multiprocessor has asked for; the arguments of a
    launch are there. line, block: cycles until the first of 64 and of 256 bytes is. Measured: chains of
    loads, and of operands, 4 bytes to 4 KiB apart (lab/time/first.cu).
    """

    __slots__ = ("arrives", "block", "line")

    def __init__(self, line: int, block: int) -> None:
        self.line, self.block = line, block
        self.arrives: dict[tuple[int, int], int] = {}

    def fetch(self, place: int, time: int) -> int:
        """When a constant is there that is wanted at `time`. place: its offset, and 64 KiB for each bank."""
        block = self.arrives.setdefault((8, place >> 8), time + self.block)
        line = self.arrives.setdefault((6, place >> 6), max(time + self.line, block))
        return max(time, line)

    def state(self, time: int) -> tuple[int, ...]:
        return tuple(max(arrives - time, 0) for arrives in self.arrives.values())


class InstructionCache:
    """A scheduler's lines of code. The line after one that is executed is fetched ahead; one that is not
    there has to be waited for. lines: when each was there, the one that was used last at the end. Measured:
    loops of up to 352 instructions take no cycle more, those of 368 or more 14 (docs/validation/loops.json).
    """

    __slots__ = ("lines", "memory", "to_jump", "to_next")

    #: Instructions in a line of 128 bytes, and lines.
    LINE, LINES = 8, 48

    def __init__(self, memory: CodeMemory, to_next: int, to_jump: int) -> None:
        self.memory, self.to_next, self.to_jump = memory, to_next, to_jump
        self.lines: dict[int, int] = {}

    def fetch(self, line: int, time: int) -> int:
        """When a line is there that is wanted at `time`."""
        lines = self.lines
        arrives = lines.pop(line, -1)
        if arrives < 0:
            arrives = self.memory.fetch(line, time) + self.to_jump
        lines[line] = arrives
        follows = lines.pop(line + 1, -1)  # it is the last to be dropped
        if follows < 0:
            follows = self.memory.fetch(line + 1, max(arrives, time)) + self.to_next
        lines[line + 1] = follows
        while len(lines) > self.LINES:
            del lines[next(iter(lines))]
        return arrives

    def state(self, time: int) -> tuple[object, ...]:
        late = ((line, arrives - time) for line, arrives in self.lines.items() if arrives > time)
        return tuple(self.lines), *late
