"""A recording of the probe: patterns, values for each of them, and counters for each launch.

Stored in an `.npz` file that is never overwritten.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from memsim.validate.device import Device
from memsim.validate.recording_files import free_path, newest, read_arrays, write_arrays

SCHEMA = 1
STEM = "probe"
ARRAYS = ("addresses", "active", "origins", "figures", "counters")


@dataclass(frozen=True, slots=True, eq=False)
class Probed:
    """One instruction: launches of several patterns each.

    addresses: uint32 [launches, patterns, 32], bytes from an aligned base. active: bool, the same shape.
    origins: uint32, the same shape: the global addresses of a copy, else 0. figures: int32 [launches,
    patterns, figures], ncu's values for each pattern, in the order of
    `memsim.validate.profiles.SOURCE_METRICS`; -1 if there is none. counters: int64 [launches, counters], of
    each launch; -1 if not collected.
    """

    addresses: np.ndarray
    active: np.ndarray
    origins: np.ndarray
    figures: np.ndarray
    counters: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class ProbeRecording:
    """A run of the probe. `metrics` names the columns of `counters`; `probed` is by instruction."""

    device: Device
    ncu: str
    date: str
    seed: int
    metrics: tuple[str, ...]
    probed: dict[str, Probed]

    def save(self, folder: Path) -> Path:
        """Write a new file in the GPU's folder below `folder`; returns its path.

        Raises:
            MemsimError: it cannot be written.
        """
        path = free_path(folder / self.device.slug, STEM, ".npz")
        about = {"schema": SCHEMA, "ncu": self.ncu, "date": self.date, "seed": self.seed}
        arrays = {
            f"{name}_{array}": getattr(probed, array)
            for name, probed in self.probed.items()
            for array in ARRAYS
        }
        head = {**about, "device": asdict(self.device), "instructions": list(self.probed)}
        write_arrays(head, {"metrics": np.array(self.metrics), **arrays}, path)
        return path


def load_probe(path: Path) -> ProbeRecording:
    """The recording in a file.

    Raises:
        MemsimError: no such file, or not a complete recording of a known schema.
    """
    with read_arrays(path, SCHEMA, "of the probe") as (head, arrays):
        return ProbeRecording(
            device=Device(**head["device"]),
            ncu=head["ncu"],
            date=head["date"],
            seed=head["seed"],
            metrics=tuple(map(str, arrays["metrics"])),
            probed={
                name: Probed(*(arrays[f"{name}_{array}"] for array in ARRAYS))
                for name in head["instructions"]
            },
        )


def newest_probe(folder: Path, gpu: str | None = None) -> ProbeRecording:
    """The newest recording of the probe, on the GPU of that folder name or on any.

    Raises:
        MemsimError: there is none; the hint lists the GPUs with recordings.
    """
    paths = {*folder.glob(f"*/{STEM}.npz"), *folder.glob(f"*/{STEM}.run*.npz")}
    return newest(folder, paths, load_probe, gpu, "of the probe", "python -m lab probe --live --record")
