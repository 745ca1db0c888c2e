"""Recordings of the Hopper microbenchmarks: source, launches, and counters of each launch.

There is a file for each source, such as `hopper/probe.npz`, in a GPU's folder; they are never overwritten.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from memsim.validate.device import slug
from memsim.validate.recording_files import free_path, on_gpu, read_arrays, write_arrays

SCHEMA = 1
HOME = "hopper"
DESCRIBED = ("kernel", "numbers", "map", "grid", "block")
#: Names of the sources: of one block's instructions, of those of clusters, of single requests whose lanes
#: count apart, and of boxes with rows of any width.
STEMS = ("probe", "clusters", "lanes", "multicast_rows", "rows")


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

    name: one of `STEMS`; about: GPU, driver, ncu, date; parts: launches by topic; metrics: those collected
    for each part.
    """

    name: str
    about: dict[str, Any]
    source: str
    parts: dict[str, tuple[HopperLaunch, ...]]
    metrics: dict[str, tuple[str, ...]]

    def save(self, folder: Path) -> Path:
        """Write a new file in the GPU's folder below `folder`; returns its path.

        Raises:
            MemsimError: it cannot be written.
        """
        path = free_path(folder / slug(self.about["gpu"]) / HOME, self.name, ".npz")
        arrays = {"source": np.array(self.source)}
        for part, launches in self.parts.items():
            metrics = self.metrics[part]
            arrays[f"{part}_launches"] = np.array(json.dumps([one.described() for one in launches]))
            arrays[f"{part}_metrics"] = np.array(metrics)
            arrays[f"{part}_tables"] = np.array([one.table for one in launches], np.uint32)
            rows = [[one.counters.get(metric, -1) for metric in metrics] for one in launches]
            arrays[f"{part}_counters"] = np.array(rows, np.int64)
        write_arrays({"schema": SCHEMA, **self.about}, arrays, path)
        return path


def load_hopper(path: Path) -> HopperRecording:
    """The recording in a file.

    Raises:
        MemsimError: no such file, or not a complete recording of a known schema.
    """
    with read_arrays(path, SCHEMA, "of Hopper's probe") as (about, arrays):
        names = [name.removesuffix("_launches") for name in arrays if name.endswith("_launches")]
        metrics = {name: tuple(map(str, arrays[f"{name}_metrics"])) for name in names}
        parts = {name: tuple(_launches(arrays, name, metrics[name])) for name in names}
        return HopperRecording(path.name.partition(".")[0], about, str(arrays["source"]), parts, metrics)


def _launches(arrays: dict[str, Any], part: str, metrics: tuple[str, ...]) -> Iterator[HopperLaunch]:
    described = json.loads(str(arrays[f"{part}_launches"]))
    for record, row, table in zip(
        described, arrays[f"{part}_counters"], arrays[f"{part}_tables"], strict=True
    ):
        counters = {metric: value for metric, value in zip(metrics, row.tolist(), strict=True) if value >= 0}
        given = {name: record[name] for name in DESCRIBED}
        yield HopperLaunch(**{**given, "numbers": tuple(record["numbers"])}, table=table, counters=counters)


def newest_hopper(folder: Path, gpu: str | None = None) -> list[HopperRecording]:
    """The newest recording of each source, all on one GPU: that of the folder name `gpu`, or the last used.

    Raises:
        MemsimError: there is none.
    """
    paths = {path for stem in STEMS for path in folder.glob(f"*/{HOME}/{stem}*.npz")}
    fitting = on_gpu(folder, paths, gpu, "of Hopper's probe", "python -m lab hopper --live --record")
    found = [(path.parents[1].name, load_hopper(path)) for path in fitting]
    found.sort(key=lambda one: str(one[1].about["date"]))
    chosen = found[-1][0]
    newest = {recording.name: recording for name, recording in found if name == chosen}
    return [newest[stem] for stem in STEMS if stem in newest]
