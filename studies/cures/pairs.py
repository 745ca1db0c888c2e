"""A kernel before and after a change, written for a GPU's machine: tools/time_pairs.cu times it there."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from memsim.argument_types import ArrayArg
from memsim.argument_types.argument import argument_of
from memsim.job import Job

PLAN = "plan.txt"


def write_pair(folder: Path, name: str, jobs: tuple[Job, Job]) -> None:
    """Cubins, contents of arrays, and lines of the plan.

    Raises:
        ValueError: an array in a structure, which is not timed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stem = "".join(letter if letter.isalnum() else "_" for letter in name)
    lines = [f"pair {stem}"]
    for place, job in enumerate(jobs):
        kernel, launch = job.loaded, job.launch
        (folder / f"{stem}_{place}.cubin").write_bytes(kernel.machine.module.content)
        extents = " ".join(map(str, (*launch.grid, *launch.block)))
        fixed = int(kernel.machine.image.static_shared)
        lines.append(f"{stem}_{place}.cubin {kernel.name} {extents} {launch.shared_bytes} {fixed}")
    job = jobs[0]
    lines.append(str(len(job.values)))
    for place, (value, parameter) in enumerate(zip(job.values, job.loaded.parameters, strict=True)):
        if isinstance(value, ArrayArg | np.ndarray):
            (folder / f"{stem}_{place}.bin").write_bytes(_content(value))
            lines.append(f"array {stem}_{place}.bin")
        else:
            lines.append(f"value {argument_of(value).encode(parameter, _Nowhere(), 0).hex()}")
    with (folder / PLAN).open("a", encoding="utf-8") as plan:
        plan.write("\n".join(lines) + "\n")


def _content(value: ArrayArg | np.ndarray) -> bytes:
    """The bytes of an array; of one that is filled by chance, others than memsim's."""
    if isinstance(value, np.ndarray):
        return value.tobytes()
    kind, draw = np.dtype(value.dtype), np.random.default_rng(value.seed)
    if value.fill in ("zeros", "ones"):
        return np.full(value.shape, value.fill == "ones", kind).tobytes()
    if kind.kind == "f":
        return draw.random(value.shape, np.float32).astype(kind).tobytes()
    return draw.integers(0, 100, value.shape).astype(kind).tobytes()


class _Nowhere:
    """For arguments that refer to nothing."""

    def address(self) -> int:
        raise ValueError("an array in a structure is not timed")

    def texture(self, texture: object) -> int:
        raise ValueError("a texture is not timed")

    def tensor_map(self, one: object, array: int, at: int) -> bytes:
        raise ValueError("a tensor map is not timed")
