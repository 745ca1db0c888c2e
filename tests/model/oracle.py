"""The rules of docs/model.md again, one request at a time, in plain Python: slow, short, independent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import ceil

GROUP = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}  # lanes served together
COUNTS_LANES = ("atomic", "reduction", "cp_async")


def shared(addresses: Sequence[int], width: int, op: str, active: Sequence[bool]) -> dict[str, int]:
    """wavefronts, conflicts, ways and ideal of one request to shared memory."""
    size = widest = GROUP[width]
    if op == "load" and width >= 8:
        widest = 2 * size
        size = widest if pairs_hold(addresses, active) else size

    costs = [group_cost(addresses, width, op, lanes) for lanes in groups(active, size)]
    words = {word for lane in range(32) if active[lane] for word in words_of(addresses[lane], width)}
    if op in COUNTS_LANES:
        words = set()
    return {
        "wavefronts": sum(costs),
        "conflicts": sum(cost - 1 for cost in costs),
        "ways": max(costs, default=0),
        "ideal": max(ceil(len(words) / 32), len(groups(active, widest))),
    }


def pairs_hold(addresses: Sequence[int], active: Sequence[bool]) -> bool:
    """One distance, 1 or 2, at which every two active partner lanes have the same address."""
    return any(
        all(
            addresses[lane] == addresses[lane ^ distance]
            for lane in range(32)
            if active[lane] and active[lane ^ distance]
        )
        for distance in (1, 2)
    )


def groups(active: Sequence[bool], size: int) -> list[list[int]]:
    """The active lanes of each group of `size` lanes, groups without one left out."""
    split = [[i for i in range(start, start + size) if active[i]] for start in range(0, 32, size)]
    return [lanes for lanes in split if lanes]


def group_cost(addresses: Sequence[int], width: int, op: str, lanes: Sequence[int]) -> int:
    """Most distinct words in one bank, or most lanes where lanes do not share."""
    in_bank = defaultdict(set)
    for lane in lanes:
        for word in words_of(addresses[lane], width):
            in_bank[word % 32].add(lane if op in COUNTS_LANES else word)
    return max(len(found) for found in in_bank.values())


def words_of(address: int, width: int) -> range:
    """The 4-byte words that a lane touches."""
    return range(address // 4, address // 4 + max(1, width // 4))


def global_(addresses: Sequence[int], width: int, active: Sequence[bool]) -> dict[str, int]:
    """sectors, lines and ideal_sectors of one request to global memory."""
    touched = {a + i for a, on in zip(addresses, active) if on for i in range(width)}
    return {
        "sectors": len({byte // 32 for byte in touched}),
        "lines": len({byte // 128 for byte in touched}),
        "ideal_sectors": ceil(len(touched) / 32),
    }
