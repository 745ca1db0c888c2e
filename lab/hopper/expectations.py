"""What the rules for Hopper's instructions predict of a microbenchmark: its counters, by ncu's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from lab.hopper.hopper_recording import HopperLaunch
from memsim.model import GlobalCost
from memsim.model.choice import fewest_sectors
from memsim.model.operations import operation

WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
REMOTE = "l1tex__t_{}_pipe_lsu_mem_dshared_op_{}.sum"
READS = "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum"
WRITES = "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_{}.sum"
#: What copies between blocks send and receive.
INSIDE_SECTORS = (
    "l1tex__m_l1tex2xbar_write_sectors_mem_dshared_op_tma_{}.sum",
    "l1tex__m_xbar2l1tex_read_sectors_mem_dshared_op_tma_{}.sum",
)
UNIT = 16  # bytes of the engine's units
BASE = 1 << 20  # allocations start at multiples of 256 bytes
Counters = dict[str, int]
#: Launches by topic, as in recordings.
Parts = Mapping[str, Sequence[HopperLaunch]]
Expected = Iterator[tuple[HopperLaunch, Counters]]


class AddressListener:
    """Records the addresses that a memory instruction reports."""

    mask = True

    def __init__(self) -> None:
        self.sectors = 0
        self.width = 0

    def stretches(
        self, op: Any, kind: str, space: str, start: Any, length: Any, block: Any, warp: Any
    ) -> None:
        sectors = sectors_of(start, length)
        least = fewest_sectors(operation(space, kind), length // UNIT)
        self.sectors += int(np.where(length > 0, np.maximum(sectors, least), 0).sum())

    def operands(self, op: Any, width: int, active: Any) -> None:
        self.width = width

    def write(self, slot: int, value: Any, active: Any) -> None:
        """The product is not needed."""


def sectors_of(start: np.ndarray, length: np.ndarray) -> np.ndarray:
    """The sectors of each stretch of bytes."""
    found: np.ndarray = (start + length - 1 >> 5) - (start >> 5) + 1
    return found


def above(empty: Counters, added: Counters) -> Counters:
    """Counts that are added to those of an empty kernel, as far as they were collected."""
    return {metric: number + empty[metric] for metric, number in added.items() if metric in empty}


def of_request(counter: str, end: str, cost: GlobalCost | None, requests: int = 1) -> Counters:
    """The counters of requests by their pattern and suffix; zero without a cost."""
    numbers: tuple[Any, ...] = (requests, cost.sectors, cost.lines) if cost is not None else (0, 0, 0)
    names = ("requests", "sectors", "set_accesses")
    return {counter.format(name, end): int(number) for name, number in zip(names, numbers)}
