"""The machine code for one chip in a file. Of a library an index is kept in the user's store: another time
only the kernels that are asked for are unpacked and read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from memsim.arch import ARCHS, SM_90, Arch, get_arch, plain_name
from memsim.errors import MemsimError
from memsim.reads import stamp
from memsim.sass.binary import chips_in, cubin_called, cubins_in
from memsim.sass.elf import is_relocatable
from memsim.sass.machine_code import FEW_KERNELS, MachineKernel, MachineModule, read_module
from memsim.store import Store, cache_folder
from memsim.version import __version__


@dataclass(frozen=True, slots=True)
class IndexedCubin:
    """A cubin of a library. name: as `cubins_in` gives it. is_relocatable: it is to be linked. kernels: the
    bytes of each one's parameters, by the entry's name.
    """

    name: str
    is_relocatable: bool
    kernels: dict[str, tuple[int, ...]]


class CodeInFile(Mapping[str, MachineKernel]):
    """The kernels in a file by their entries' names; of several cubins with the same one the first has it."""

    def __init__(self, path: Path, index: Sequence[IndexedCubin], read: Mapping[str, MachineModule]) -> None:
        self.path = path
        self.index = index
        self.read = dict(read)

    @cached_property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        """The bytes of each kernel's parameters."""
        return {entry: sizes for cubin in reversed(self.index) for entry, sizes in cubin.kernels.items()}

    @cached_property
    def _places(self) -> dict[str, str]:
        """The cubin of each kernel."""
        return {entry: cubin.name for cubin in reversed(self.index) for entry in cubin.kernels}

    @property
    def modules(self) -> list[MachineModule]:
        """All of its cubins."""
        return [self._module(cubin.name) for cubin in self.index]

    @property
    def is_relocatable(self) -> bool:
        """Whether some of it is to be linked."""
        return any(cubin.is_relocatable for cubin in self.index)

    @property
    def is_library(self) -> bool:
        """Whether it has so many kernels that each is read when it is asked for."""
        return len(self) > FEW_KERNELS

    def __getitem__(self, entry: str) -> MachineKernel:
        return self._module(self._places[entry]).kernels[entry]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def _module(self, name: str) -> MachineModule:
        if name not in self.read:
            self.read[name] = read_module(cubin_called(self.path, name), file=name)
        return self.read[name]


def code_in(path: Path, arch: str | None) -> CodeInFile:
    """The machine code in a file that `arch` runs; None for `chip_in`.

    Raises:
        MemsimError: it holds no machine code, or none for that chip.
    """
    store = Store(cache_folder())
    key = f"index 1 {__version__} {arch} {stamp(path)} {path.absolute()}"
    kept = store.get(key)
    if kept is not None:
        return CodeInFile(path, msgspec.msgpack.decode(kept, type=list[IndexedCubin]), {})
    modules = {name: read_module(content, file=name) for name, content in cubins_for(path, arch)}
    index = [
        IndexedCubin(
            name,
            is_relocatable(module.content),
            {
                entry: tuple(one.size for one in image.parameters)
                for entry, image in module.cubin.kernels.items()
            },
        )
        for name, module in modules.items()
    ]
    found = CodeInFile(path, index, modules)
    if found.is_library:
        store.put(key, msgspec.msgpack.encode(index))
    return found


def chip_in(path: Path) -> Arch:
    """The chip whose machine code in a file is taken where nobody says which: sm_90, else the newest known.

    Raises:
        MemsimError: it holds no machine code.
    """
    chips = {plain_name(chip) for chip in chips_in(path)}
    known = [name for name in ARCHS if name in chips]
    return get_arch(SM_90.name if SM_90.name in known or not known else known[-1])


def cubins_for(path: Path, arch: str | None) -> list[tuple[str, bytes]]:
    """(name, content) of each cubin in a file that `arch` runs; None for `chip_in`.

    Raises:
        MemsimError: it holds no machine code, or none for that chip.
    """
    wanted = chip_in(path).name if arch is None else plain_name(arch)
    fitting = cubins_in(path, lambda chip: plain_name(chip) == wanted)
    if not fitting and wanted in ARCHS:
        fitting = cubins_in(path, get_arch(wanted).runs)
    if not fitting:
        chips = sorted(chips_in(path))
        known = [chip for chip in chips if plain_name(chip) in ARCHS]
        if known:
            hint = f"its code for {known[-1]} is analyzed by --arch {plain_name(known[-1])}"
        else:
            hint = f"compile for one that memsim knows: {', '.join(ARCHS)}; nvcc -arch={SM_90.name}"
        message = f"{path} holds machine code for {', '.join(chips)}, but not for {wanted}"
        raise MemsimError(message, hint=hint)
    return [(name, content) for name, content, _ in fitting]
