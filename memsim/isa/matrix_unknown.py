"""Which numbers of a matrix product are known where some of its operands are not.

A number of the result depends on one row of A, one column of B and its own addend. Tiles that reach beyond
the end of an array have unknown rows or columns, which kernels mask afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from memsim.isa.lanes import by_warp, flat
from memsim.isa.machine_protocol import Warps
from memsim.isa.readers import Registers
from memsim.state.partial import NEVER_WRITTEN, Partial, known_in, split
from memsim.state.poison import Poison
from memsim.state.predicates import from_bools, to_bools
from memsim.state.rounding import Array


def unknown_in(registers: Registers, slots: Iterable[int | None]) -> list[int]:
    """The slots whose register is unknown in some lane; slot None is RZ."""
    return [
        slot
        for slot in slots
        if slot is not None and (registers[slot] is None or isinstance(registers[slot], (Partial, Poison)))
    ]


def with_zeros(registers: Registers, slots: Iterable[int]) -> Registers:
    """The registers, with 0 where one of these is unknown."""
    found = list(registers)
    for slot in slots:
        value, known, _ = split(found[slot])
        found[slot] = 0 if known is False else value
    return found


def unknown_numbers(registers: Registers, slots: Sequence[int | None], numbers: int, warps: Warps) -> Array:
    """Which of a fragment's numbers are unknown, bool (rows, warps, 32, numbers per lane)."""
    known = (by_warp(to_bools(slot is None or split(registers[slot])[1]), warps) for slot in slots)
    return _in_each(~np.stack(np.broadcast_arrays(*known), axis=-1), numbers)


def results_known(
    results: Sequence[Any], unknown: Array, registers: Registers, slots: Iterable[int]
) -> tuple[Any, ...]:
    """The results' registers, known where their numbers are; `slots`: the first one's reason is told."""
    poison = next((why for slot in slots if (why := split(registers[slot])[2])), NEVER_WRITTEN)
    lost = _in_each(unknown, len(results))
    return tuple(
        known_in(from_bools(~flat(lost[..., i])), result, poison) for i, result in enumerate(results)
    )


def _in_each(flags: Array, count: int) -> Array:
    """Flags of registers as those of the numbers in them, or the other way round: `count` for each lane."""
    have = flags.shape[-1]
    if have <= count:
        return np.repeat(flags, count // have, axis=-1)
    found: Array = np.any(flags.reshape(*flags.shape[:-1], count, have // count), axis=-1)
    return found
