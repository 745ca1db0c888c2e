"""What is known of a count that is not certain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Range:
    """Limits of a count, and the reason why it is not certain.

    most: None if nothing limits it. estimate: its value in the course of the launch that was counted here,
    one of those that are possible: warps in one order, copies that hit the L1 cache; None if unknown.
    """

    why: str
    least: int = 0
    most: int | None = None
    estimate: int | None = None

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
