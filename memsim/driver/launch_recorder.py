"""Writes launches of a program as folders with a `launch.json`, which every verb takes.

Of memory such a recording has the allocations that the launch's parameters point to, and the textures that
they are. What it lacks, it says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from memsim.captured.launched import POINTER, Launched, with_arrays
from memsim.captured.saved_launch import LAUNCH, write_launch
from memsim.driver.program_code import ProgramModule
from memsim.driver.program_memory import ProgramMemory
from memsim.job import Job
from memsim.names.demangle import plain_name
from memsim.state.address_spaces import GLOBAL_BASE


class LaunchRecorder:
    """Writes launches below a folder, numbered in the order in which they are made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._count = 0

    def record(self, job: Job, module: ProgramModule, memory: ProgramMemory) -> tuple[Path, list[str]]:
        """The path of a launch's `launch.json`, and what is not in it, in words.

        Raises:
            MemsimError: it cannot be written.
        """
        arrays: dict[int, np.ndarray] = {}
        arguments = tuple(
            self._argument(bytes(raw), parameter.is_struct, memory, arrays)
            for raw, parameter in zip(job.args, job.loaded.parameters, strict=True)
        )
        shape = job.launch
        launched = Launched(job.loaded, shape.grid, shape.block, arguments, shape.shared_bytes, shape.cluster)
        self._count += 1
        plain = re.sub(r"\W+", "_", plain_name(job.loaded.title)).strip("_")[:40]
        path = self.folder / f"{self._count:04}_{plain}" / LAUNCH
        write_launch(launched, path.parent)
        return path, list(_missing(job, module, memory, arrays))

    def _argument(
        self, raw: bytes, is_struct: bool, memory: ProgramMemory, arrays: dict[int, np.ndarray]
    ) -> object:
        """The bytes of a parameter, with arrays for what it points to, or the texture that it is."""
        texture = memory.textures.objects.get(int.from_bytes(raw, "little")) if len(raw) == POINTER else None
        if texture is not None and not texture.is_surface:
            made = texture.over(memory.bytes, as_documented=False)
            return replace(made, array=np.array(made.array))
        pointers = []
        for offset in range(0, len(raw) - POINTER + 1, POINTER):
            address = int.from_bytes(raw[offset : offset + POINTER], "little")
            buffer = memory.find(address)
            if buffer is not None:
                if buffer.start not in arrays:
                    arrays[buffer.start] = memory.view(buffer.start, buffer.end - buffer.start).copy()
                pointers.append((offset, arrays[buffer.start][address - buffer.start :], f"byte_{offset}"))
        if pointers and not is_struct:
            return pointers[0][1]
        return with_arrays(raw, pointers) if pointers else raw


def _missing(
    job: Job, module: ProgramModule, memory: ProgramMemory, arrays: dict[int, np.ndarray]
) -> Iterator[str]:
    """What a recording lacks of a launch's memory."""
    pointed = [_words(array) for array in arrays.values()]
    if any(((words >= GLOBAL_BASE) & (words < memory.layout.end)).any() for words in pointed):
        yield "the recording lacks what its arrays point to"
    structs = [_words(np.frombuffer(bytes(raw), np.uint8)) for raw in job.args if len(raw) > POINTER]
    textures = np.array([*memory.textures.objects], np.uint64)
    if any(np.isin(words, textures).any() for words in (*pointed, *structs)):
        yield "the recording lacks the textures in its structs and arrays"
    if changed := module.changed():
        yield f"the recording has {', '.join(changed)} as the code has them"


def _words(array: np.ndarray) -> np.ndarray:
    """Bytes as whole words of the size of a pointer."""
    return array[: array.size // POINTER * POINTER].view(np.uint64)
