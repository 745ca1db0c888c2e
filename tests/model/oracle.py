"""The rules of docs/model.md again, one request at a time, in plain Python: slow, short, independent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import ceil
from typing import Any

GROUP = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}  # lanes served together
COUNTS_LANES = ("atomic", "reduction", "atomic_cas", "cp_async")
TWICE = ("atomic_cas", "atomic_cas_unmade")  # takes every wavefront twice


def counts_of(cost: Any, row: int | tuple[()] = ()) -> dict[str, int]:
    """A model's counts of one request, as the functions here give them."""
    return {name: int(getattr(cost, name)[row]) for name in cost.__slots__}


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
    times = 2 if op in TWICE else 1
    return {
        "wavefronts": times * sum(costs),
        "conflicts": sum(cost - 1 for cost in costs),
        "ways": max(costs, default=0),
        "ideal": times * max(ceil(len(words) / 32), len(groups(active, widest))),
    }


def local(addresses: Sequence[int], width: int, active: Sequence[bool]) -> dict[str, int]:
    """requests, sectors and ideal_sectors of one request to local memory."""
    sectors, least = set(), set()
    for lane in range(32):
        if active[lane]:
            first = addresses[lane] // 4
            for word in range(first, (addresses[lane] + width - 1) // 4 + 1):
                sectors.add((word * 128 + lane * 4) // 32)
                least.add(((word - first) * 128 + lane * 4) // 32)
    return {
        "requests": ceil(width / 4) if any(active) else 0,
        "sectors": len(sectors),
        "ideal_sectors": len(least),
    }


def constant(addresses: Sequence[int], active: Sequence[bool]) -> int:
    """Requests of one load of constants."""
    return len({addresses[lane] for lane in range(32) if active[lane]})


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


def copy_turns(
    to: Sequence[int], source: Sequence[int], width: int, active: Sequence[bool], read: Sequence[bool]
) -> list[int]:
    """The wavefront of each lane of a cp.async.ca in its group, from 1; 0 for an idle lane."""
    turns = [0] * 32
    for lanes in groups(active, GROUP[width]):
        for place, lane in enumerate(lanes):
            banks = {word % 32 for word in words_of(to[lane], width)}
            cached = {word % 32 for word in words_of(source[lane], width)} if read[lane] else set()
            for earlier in lanes[:place]:
                meets = banks & {word % 32 for word in words_of(to[earlier], width)}
                if read[earlier]:
                    meets |= cached & {word % 32 for word in words_of(source[earlier], width)}
                if meets:
                    turns[lane] = max(turns[lane], turns[earlier])
            turns[lane] += 1
    return turns


def copied(
    to: Sequence[int], source: Sequence[int], width: int, active: Sequence[bool], read: Sequence[bool]
) -> dict[str, int]:
    """wavefronts, conflicts, ways and ideal of one cp.async.ca, of data in the L1 cache."""
    turns = copy_turns(to, source, width, active, read)
    costs = [max(turns[lane] for lane in lanes) for lanes in groups(active, GROUP[width])]
    return {
        "wavefronts": sum(costs),
        "conflicts": sum(costs) - len(costs),
        "ways": max(costs, default=0),
        "ideal": len(costs),
    }


def bypassing(to: Sequence[int], source: Sequence[int], active: Sequence[bool]) -> dict[str, int]:
    """sectors and lines of one cp.async.cg."""
    pairs = [(there // 128, here) for here, there, on in zip(to, source, active) if on]
    return {
        "sectors": len({(line, here // 32) for line, here in pairs}),
        "lines": len({(line, here // 128) for line, here in pairs}),
    }
