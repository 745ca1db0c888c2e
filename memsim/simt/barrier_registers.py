"""Barrier registers (B0-B15): for each lane, the mask of lanes that it waits for."""

from __future__ import annotations

import numpy as np

from memsim.errors import MemsimError
from memsim.simt.machine import Machine
from memsim.state.partial import Partial
from memsim.state.poison import Poison
from memsim.state.registers import fit, from_array, to_array


def members_of(machine: Machine, slot: int) -> np.ndarray:
    """The lanes in a barrier register; none if it was never set.

    Raises:
        MemsimError: they are unknown.
    """
    value = machine.slots[slot]
    if isinstance(value, Poison):
        raise MemsimError(f"cannot go on: the lanes of a convergence barrier are unknown: {value.story()}")
    lanes = value.value if isinstance(value, Partial) else 0 if value is None else value
    members: np.ndarray = to_array(lanes) & 0xFFFFFFFF
    return members


def set_members(machine: Machine, slot: int, members: np.ndarray) -> None:
    """Write a barrier register."""
    machine.slots[slot] = fit(from_array(members), 32)
