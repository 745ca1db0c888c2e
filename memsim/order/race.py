"""A race: two accesses to one place of shared memory, one of which changes it, that nothing orders."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Race:
    """A load of what a store changes, by the indices of their instructions.

    several: several stores of different values are not ordered; the load itself may be. by_lanes: if not,
    both are by lanes of one warp, which have diverged.
    """

    load: int
    store: int
    several: bool
    by_lanes: bool

    def reason(self, stores: str, loads: str, decides: str) -> str:
        """Why counts are uncertain. stores, loads: the places of both; decides: what the load does."""
        who, other, barrier = "one warp stores", "another loads", "no barrier orders them"
        missing = "__syncthreads"
        if self.several:
            who, other = "several warps or lanes store", "one loads"
        elif self.by_lanes:
            who, other, barrier = "lanes store", "others of their warp load", "they have diverged"
            missing = "__syncwarp"
        return (
            f"what {who} to shared memory at {stores} and {other} at {loads}"
            f" decides {decides}, and {barrier} (is a {missing}() missing?)"
        )
