"""A recording of the probe: patterns, values for each of them, and counters for each launch.

Stored in an `.npz` file that is never overwritten.
"""

from __future__ import annotations

import contextlib
import json
import os
import zipfile
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from memsim.errors import MemsimError
from memsim.validate.device import Device
from memsim.validate.recording_files import on_gpu

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
        home = folder / self.device.slug
        names = (f"{STEM}.npz" if run == 1 else f"{STEM}.run{run}.npz" for run in count(1))
        path = next(home / name for name in names if not (home / name).exists())
        about = {"schema": SCHEMA, "ncu": self.ncu, "date": self.date, "seed": self.seed}
        head = json.dumps({**about, "device": asdict(self.device), "instructions": list(self.probed)})
        arrays = {
            f"{name}_{array}": getattr(probed, array)
            for name, probed in self.probed.items()
            for array in ARRAYS
        }
        draft = path.with_suffix(f".{os.getpid()}.tmp.npz")
        try:
            home.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(draft, head=np.array(head), metrics=np.array(self.metrics), **arrays)
            draft.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                draft.unlink()
            raise MemsimError(f"cannot write the recording: {error.strerror}", file=str(path)) from None
        return path


def load_probe(path: Path) -> ProbeRecording:
    """The recording in a file.

    Raises:
        MemsimError: no such file, or not a complete recording of a known schema.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return _from_arrays(path, dict(file))
    except OSError as error:
        raise MemsimError(f"cannot read the recording: {error.strerror or error}", file=str(path)) from None
    except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise MemsimError(f"not a recording of the probe: {error}", file=str(path)) from None


def _from_arrays(path: Path, arrays: dict[str, Any]) -> ProbeRecording:
    head = json.loads(str(arrays["head"]))
    if head["schema"] != SCHEMA:
        raise MemsimError(
            f"a recording of schema {head['schema']!r}; this memsim reads schema {SCHEMA}", file=str(path)
        )
    return ProbeRecording(
        device=Device(**head["device"]),
        ncu=head["ncu"],
        date=head["date"],
        seed=head["seed"],
        metrics=tuple(map(str, arrays["metrics"])),
        probed={
            name: Probed(*(arrays[f"{name}_{array}"] for array in ARRAYS)) for name in head["instructions"]
        },
    )


def newest_probe(folder: Path, gpu: str | None = None) -> ProbeRecording:
    """The newest recording of the probe, on the GPU of that folder name or on any.

    Raises:
        MemsimError: there is none; the hint lists the GPUs with recordings.
    """
    paths = {*folder.glob(f"*/{STEM}.npz"), *folder.glob(f"*/{STEM}.run*.npz")}
    fitting = on_gpu(folder, paths, gpu, "of the probe", "memsim probe --live --record")
    return max(map(load_probe, fitting), key=lambda recording: recording.date)
