"""A launch of a kernel of a public project, as a line of a table, and how it becomes a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from memsim.api.kernel_file import KernelFile
from memsim.argument_types import dtype_of
from memsim.argument_types.array_arg import DTYPES
from memsim.job import Job
from memsim.launch import Launch, dim3


class Data:
    """Contents of arrays: others for each seed, of the same shapes. Types are named as in `--arg`."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def floats(self, *shape: int, dtype: str = "f32", low: float = -1.0, high: float = 1.0) -> np.ndarray:
        """Floats from `low` to `high`."""
        return self._random.uniform(low, high, shape).astype(dtype_of(DTYPES[dtype]))

    def doubles(self, *shape: int) -> np.ndarray:
        """Doubles from -1 to 1."""
        return self.floats(*shape, dtype="f64")

    def halves(self, *shape: int) -> np.ndarray:
        """Halves from -1 to 1."""
        return self.floats(*shape, dtype="f16")

    def ints(self, *shape: int, high: int, dtype: str = "i32", low: int = 0) -> np.ndarray:
        """Integers from `low` to `high` - 1."""
        return self._random.integers(low, high, shape).astype(dtype_of(DTYPES[dtype]))

    def bytes(self, *shape: int) -> np.ndarray:
        """Bytes of any value."""
        return self.ints(*shape, high=256, dtype="u8")

    def words(self, *shape: int) -> np.ndarray:
        """32 bits of any value."""
        return self.ints(*shape, high=1 << 32, dtype="u32")

    @staticmethod
    def zeros(*shape: int, dtype: str = "i32") -> np.ndarray:
        """What a kernel writes, or counts in."""
        return np.zeros(shape, dtype_of(DTYPES[dtype]))


@dataclass(frozen=True, slots=True)
class Source:
    """A file of a project at a commit.

    needs: files and folders of the project that it includes. options: for the compiler; folders are of the
    project.
    """

    project: str
    commit: str
    file: str
    needs: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """The name of its work tree."""
        return f"{self.project.replace('/', '+')}@{self.commit[:8]}"

    @property
    def compiled(self) -> str:
        """What is compiled: the file, or a copy of it if its suffix is not one of sources."""
        return self.file if Path(self.file).suffix in (".cu", ".cuh") else f"{self.file}.cu"


@dataclass(frozen=True, slots=True)
class PublicLaunch:
    """args: makes the kernel's arguments. dynamic: bytes of dynamic shared memory."""

    source: Source
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: Callable[[Data], Sequence[Any]]
    dynamic: int = 0

    @property
    def name(self) -> str:
        """Of which project and file, and what is launched."""
        where = f"{self.source.project}|{Path(self.source.file).stem}"
        return f"{where}|{self.kernel}|{list(self.grid)}|{list(self.block)}|"

    def job(self, trees: Path, seed: int) -> Job:
        """The launch with data of a seed; the work trees are folders of `trees`."""
        source = self.source
        kernel = KernelFile(trees / source.folder, source.compiled, self.kernel, source.options)
        launch = Launch(dim3(self.grid), dim3(self.block), self.dynamic)
        return Job(kernel, launch, self.args(Data(seed)), name=self.kernel)
