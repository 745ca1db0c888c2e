"""Saves a launch as a folder: `launch.json`, beside it the kernel's code and its listing, and the contents of
its arrays.

Arrays in one allocation refer to one file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any

import msgspec
import numpy as np

from memsim.argument_types.argument import ArgumentDocument, argument_of
from memsim.captured.launch_document import LAUNCH, LaunchDocument
from memsim.captured.launched import Launched
from memsim.captured.saved_listing import packed
from memsim.errors import MemsimError
from memsim.files import write_text
from memsim.kernel import Kernel
from memsim.source.library_files import in_library


def write_launch(launched: Launched, folder: Path) -> Path:
    """Write the folder; returns the path of its `launch.json`, which is written last.

    Raises:
        MemsimError: it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        document = LaunchDocument(
            version=2,
            kernel=launched.kernel.name,
            called=launched.kernel.called,
            made_by=launched.kernel.origin.compiler,
            **_code(launched.kernel, folder),
            grid=launched.grid,
            block=launched.block,
            shared_bytes=launched.shared_bytes,
            cluster=launched.cluster,
            note=launched.note,
            sources=_sources(launched, folder),
            arguments=_arguments(launched, folder),
        )
    except OSError as error:
        raise MemsimError(f"cannot write {error.filename}: {error.strerror}") from None
    text = msgspec.json.format(msgspec.json.encode(document, enc_hook=_plain).decode(), indent=1)
    write_text(folder / LAUNCH, text + "\n", "the launch")
    return folder / LAUNCH


def _code(kernel: Kernel, folder: Path) -> dict[str, Any]:
    """The cubin, its listing, and the PTX that it was assembled from."""
    module = kernel.machine.module
    made: dict[str, Any] = {}
    if module.ptx:
        (folder / "kernel.ptx").write_text(module.ptx, encoding="utf-8")
        made["ptx"] = "kernel.ptx"
    listing, content = packed(module.code, module.listing)
    (folder / "kernel.cubin").write_bytes(module.code)
    (folder / listing.file).write_bytes(content)
    return {**made, "code": "kernel.cubin", "listing": listing}


def _sources(launched: Launched, folder: Path) -> tuple[str, ...]:
    """Copies of the user's source files; of several with the same name the first."""
    found: dict[str, str] = {}
    for name, text in launched.kernel.sources.items():
        if not in_library(name):
            found.setdefault(PurePath(name).name, text)
    for file, text in found.items():
        (folder / file).write_text(text, encoding="utf-8")
    return tuple(sorted(found))


def _arguments(launched: Launched, folder: Path) -> tuple[ArgumentDocument, ...]:
    named = zip(launched.kernel.argument_names, described(launched.args, folder), strict=True)
    return tuple(msgspec.structs.replace(argument, name=name) for name, argument in named)


def described(arguments: Sequence[Any], folder: Path) -> list[ArgumentDocument]:
    """The arguments of a launch as records; the contents of their arrays are written to `folder`."""
    files = _Files(folder)
    return [argument_of(value).document(files) for value in arguments]


class _Files:
    """Writes each allocation once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[tuple[int, int], str] = {}

    def name_of(self, memory: np.ndarray, dtype: np.dtype[Any]) -> str:
        """The file with the bytes of an allocation, as elements of `dtype` if its size is a multiple."""
        place = int(memory.__array_interface__["data"][0]), memory.size
        if place not in self.names:
            name = self.names[place] = f"array{len(self.names)}.npy"
            plain = dtype.isbuiltin == 1 and memory.size % dtype.itemsize == 0
            np.save(self.folder / name, memory.view(dtype) if plain else memory, allow_pickle=False)
        return self.names[place]


def _plain(value: Any) -> Any:
    """A numpy number as a Python number."""
    return value.item()
