"""Launches of the microbenchmarks of Hopper as recorded, and what rules expect of them, by ncu's names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memsim.model import GlobalCost
from memsim.model.choice import fewest_sectors
from memsim.model.operations import operation

DESCRIBED = ("kernel", "numbers", "map", "grid", "block")
#: Names of the sources: of one block's instructions, of those of clusters, of single requests whose lanes
#: count apart, and of boxes with rows of any width.
SOURCES = ("probe", "clusters", "lanes", "multicast_rows", "rows")

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


@dataclass(frozen=True, slots=True)
class HopperLaunch:
    """One launch: (tensor map, 256 KiB of memory, table, output, eight numbers).

    map: of a tensor map the data type as numbered by CUDA, bytes per element, dimensions, strides, box,
    swizzle, fill, and offset in the memory; None if the kernel has none. table: address in bits 0 to 30, bit
    31 set if the lane is active, uint32 [64]. counters: by ncu's names, as far as collected.
    """

    kernel: str
    numbers: tuple[int, ...]
    map: dict[str, Any] | None
    grid: int
    block: int
    table: np.ndarray
    counters: dict[str, int]

    @property
    def lanes(self) -> tuple[np.ndarray, np.ndarray]:
        """Addresses int64 [32] and active lanes bool [32] of its first request."""
        words = self.table[:32]
        return (words & 0x7FFFFFFF).astype(np.int64), (words >> 31).astype(bool)

    def described(self) -> dict[str, Any]:
        """All but its arrays, as plain values."""
        return {name: getattr(self, name) for name in DESCRIBED}


@dataclass(frozen=True, slots=True, eq=False)
class HopperRecording:
    """A run of the microbenchmarks of one source.

    name: one of `SOURCES`; head: GPU, driver, ncu, date, compiler; parts: launches by topic.
    """

    name: str
    head: dict[str, Any]
    source: str
    parts: dict[str, tuple[HopperLaunch, ...]]

    @property
    def gpu(self) -> str:
        """The GPU's name."""
        return str(self.head["gpu"])

    @property
    def arch(self) -> str:
        """The chip's name in compilers."""
        return "sm_90"

    @property
    def date(self) -> str:
        """UTC, ISO 8601."""
        return str(self.head["date"])

    def about(self) -> dict[str, Any]:
        """What records in JSON tell of it."""
        return self.head

    def notes(self, found: Sequence[Any]) -> Iterator[str]:
        """How it was made."""
        made = f"Recorded {self.date} (driver {self.head['driver']}, Nsight Compute {self.head['ncu']})"
        yield f"{made}: one launch of a small kernel for each configuration."


def earlier_hopper(head: dict[str, Any], arrays: dict[str, Any], name: str) -> HopperRecording:
    """The recording in a file of schema 1, whose name is that of its source."""
    parts = [part.removesuffix("_launches") for part in arrays if part.endswith("_launches")]
    return HopperRecording(
        name, head, str(arrays["source"]), {part: tuple(_earlier_launches(arrays, part)) for part in parts}
    )


def _earlier_launches(arrays: dict[str, Any], part: str) -> Iterator[HopperLaunch]:
    described, metrics = json.loads(str(arrays[f"{part}_launches"])), arrays[f"{part}_metrics"].tolist()
    for record, row, table in zip(
        described, arrays[f"{part}_counters"], arrays[f"{part}_tables"], strict=True
    ):
        counters = {metric: value for metric, value in zip(metrics, row.tolist(), strict=True) if value >= 0}
        given = {name: record[name] for name in DESCRIBED}
        yield HopperLaunch(**{**given, "numbers": tuple(record["numbers"])}, table=table, counters=counters)


#: Launches by topic, as in recordings.
Parts = Mapping[str, Sequence[HopperLaunch]]
Expected = Iterator[tuple[HopperLaunch, Counters]]


class AddressListener:
    """Records the addresses that a memory instruction reports."""

    mask = True

    def __init__(self) -> None:
        self.sectors = 0
        self.width = 0

    def stretches(self, op: Any, kind: str, space: str, made: Any) -> None:
        sectors = sectors_of(made.start, made.length)
        least = fewest_sectors(operation(space, kind), made.length // UNIT)
        self.sectors += int(np.where(made.length > 0, np.maximum(sectors, least), 0).sum())

    def operands(self, op: Any, width: int, active: Any, stretches: Any, commits: bool) -> None:
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
