"""What is counted of an access: a number, or limits and the reason why it is not certain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Annotated, Any

from memsim.document import one_of
from memsim.launch import SPILLS, Natural, Space
from memsim.model.operations import OPERATIONS, Operation, operation

#: Kinds of accesses that are seen and not counted.
UNMODELLED_ACCESSES = ("discard", "surface_atomic", "surface_load", "surface_reduction", "surface_store")
_ACCESSES = sorted({*UNMODELLED_ACCESSES, *(name for _, name in OPERATIONS)})
NO_WAVEFRONTS = ("wavefronts", "conflicts", "ideal_wavefronts", "max_ways")

#: What is counted of an access, by its space: fields of `SiteCounts`, the telling ones first.
FIELDS = {
    "shared": ("wavefronts", "ideal_wavefronts", "conflicts", "max_ways", "requests", "instructions"),
    "global": ("sectors", "ideal_sectors", "lines", "requests", "instructions"),
    "local": ("sectors", "ideal_sectors", "requests", "instructions"),
    "constant": ("requests", "instructions"),
    "texture": ("sectors", "ideal_sectors", "lines", "requests", "instructions"),
}
#: What is counted as the cost of an access.
COST = {space: fields[0] for space, fields in FIELDS.items()}


@dataclass(frozen=True, slots=True)
class Range:
    """Limits of a count, and the reason why it is not certain.

    most: None if nothing limits it. estimate: its value in the course of the launch that was counted here,
    one of those that are possible: warps in one order, copies that hit the L1 cache; None if unknown.
    """

    why: str
    least: Natural = 0
    most: Natural | None = None
    estimate: Natural | None = None

    @property
    def is_limited(self) -> bool:
        """Whether something is known of it."""
        return self.least > 0 or self.most is not None

    def __contains__(self, count: int | float) -> bool:
        """Whether the count may have this value."""
        return self.least <= count and (self.most is None or count <= self.most)

    def __str__(self) -> str:
        """`at least 32, at most 1,024`; `not known` if nothing limits it."""
        if not self.is_limited:
            return "not known"
        limits = [f"at least {self.least:,}"]
        return ", ".join(limits if self.most is None else [*limits, f"at most {self.most:,}"])


Count = int | Range


def total(counts: Iterable[Count]) -> Count:
    """The sum; a number if both limits of the sum are the same."""
    numbers, ranges = 0, list[Range]()
    for count in counts:
        if isinstance(count, Range):
            ranges.append(count)
        else:
            numbers += count
    if not ranges:
        return numbers
    least = numbers + sum(one.least for one in ranges)
    most: int | None = numbers
    estimate: int | None = numbers
    for one in ranges:
        most = None if most is None or one.most is None else most + one.most
        estimate = None if estimate is None or one.estimate is None else estimate + one.estimate
    if least == most:
        return least
    return Range("; ".join(dict.fromkeys(one.why for one in ranges)), least, most, estimate)


@dataclass(frozen=True, slots=True)
class SiteCounts:
    """The cost of one kind of access on one source line, summed over its instructions.

    A kind is `op`, `space`, `width` (bytes per lane) and `array` (the variable or parameter, "" if unknown);
    an unrolled loop gives one row. `source` is the line as `code_line` shows it, "" if unknown.

    instructions: warp instructions executed, including those with every lane predicated off.

    requests: warp instructions with an active lane. As the chip splits them: for local memory one for each 4
    bytes per lane, for constants one for each distinct address, of texture fetches one for each 4 or 8 lanes.

    wavefronts, conflicts, ideal_wavefronts, max_ways: shared memory only, else None; `max_ways` is the worst
    of all requests, the others are sums. For cp_async they are for data in the L1 cache; for cp_async_cg the
    chip counts none, so they are 0.

    sectors, ideal_sectors: global and local memory, textures and distributed shared memory, else None; sums.
    lines: of 128 bytes, the same but for local memory.

    None means "does not apply", never 0. A row with `unresolved` (why its addresses are unknown) has None in
    every count but `instructions`.

    ranges: limits by field, of counts that depend on more than addresses. The field itself is then None, or,
    of cp_async, the count for data in the L1 cache.
    """

    file: str
    line: Natural
    column: int
    source: str
    op: Annotated[str, one_of(*_ACCESSES)]
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
    ranges: Mapping[str, Range] = field(default_factory=dict, hash=False)

    @property
    def statement(self) -> str:
        """Its source with single blanks: what identifies it, however it is indented."""
        return " ".join(self.source.split())

    @property
    def operation(self) -> Operation:
        """The record of its kind of access."""
        return operation(self.space, self.op)

    def count(self, name: str) -> Count:
        """A count of the row, or what is known of it; 0 if it does not apply."""
        if name in self.ranges:
            return self.ranges[name]
        return count_or_zero(getattr(self, name)) if self.unresolved is None else Range(self.unresolved)

    def with_counts(
        self, counts: Mapping[str, int | None], unresolved: str | None, ranges: Mapping[str, Range]
    ) -> SiteCounts:
        """The row with other counts, by field."""
        changed: dict[str, Any] = {**counts, "unresolved": unresolved, "ranges": ranges}
        return replace(self, **changed)

    @property
    def is_spill(self) -> bool:
        """Whether it saves or restores spilled registers."""
        return self.space == "local" and self.array == SPILLS

    @property
    def wavefronts_of_conflicts(self) -> int:
        """Wavefronts that would be saved without conflicts; 0 if unknown."""
        return count_or_zero(self.conflicts) * self.operation.passes

    @property
    def excess_wavefronts(self) -> int:
        """Wavefronts above the ideal without a conflict: another arrangement of lanes could save them; 0 if
        unknown.
        """
        return (
            count_or_zero(self.wavefronts)
            - self.wavefronts_of_conflicts
            - count_or_zero(self.ideal_wavefronts)
        )

    @property
    def needless_sectors(self) -> int:
        """Sectors above the ideal; 0 if unknown."""
        return count_or_zero(self.sectors) - count_or_zero(self.ideal_sectors)

    @property
    def badness(self) -> tuple[int, int, int, bool, float]:
        """Sort key by which the worst access is chosen everywhere; larger is worse.

        Conflicts, then unneeded sectors, then wavefronts above the ideal; among accesses without waste,
        shared memory before global, then wavefronts or sectors per request. Lowest if nothing was counted.
        """
        above = count_or_zero(self.wavefronts) - count_or_zero(self.ideal_wavefronts)
        each = (self.wavefronts or self.sectors or 0) / (self.requests or 1)
        return count_or_zero(self.conflicts), self.needless_sectors, above, bool(self.wavefronts), each


@dataclass(frozen=True, slots=True)
class InstructionCounts:
    """The cost of one machine instruction. address: offset from the kernel's first byte; text: as
    disassembled.
    """

    address: int
    text: str
    counts: SiteCounts


def sums_of_counts(rows: Sequence[SiteCounts]) -> dict[str, int | None]:
    """What is known of each count of rows added up, of ways the most; None where nothing is."""
    found: dict[str, int | None] = {}
    for name in dict.fromkeys(chain(*FIELDS.values())):
        known = [count for row in rows if (count := getattr(row, name)) is not None]
        found[name] = (max if name == "max_ways" else sum)(known) if known else None
    return found


def count_or_zero(count: int | None) -> int:
    """A count for a sum: 0 where it does not apply or is not known."""
    return count or 0


def assumed_of_copies(rows: Iterable[SiteCounts]) -> Iterator[str]:
    """What the counts of rows take for granted that have a number beside their limits, in words."""
    if any(row.ranges and row.unresolved is None for row in rows):
        yield "conflicts of cp.async are counted for data in the L1 cache"


def unknown_accesses(rows: Iterable[SiteCounts]) -> Iterator[str]:
    """How many rows have no counts, and how many have limits, in words."""
    unresolved = [row for row in rows if row.unresolved is not None]
    limited = sum(bool(row.ranges) for row in unresolved)
    if lost := len(unresolved) - limited:
        yield f"{lost} access{'es' * (lost > 1)} could not be analyzed"
    if limited:
        yield f"of {limited} access{'es' * (limited > 1)} only limits are known"
