"""Functions in text sections of their own, as `nvcc -rdc=true` and libraries of device code have them.

What a kernel refers to belongs to its code, behind all kernels' own code: a function has the same address for
each kernel of the module. Only differences of addresses matter: what depends on one itself is not known
(`memsim.simt.launch_places`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from memsim.isa.control import DRIVER_FUNCTIONS
from memsim.sass.elf import Elf, ElfSymbol, Relocation, Section
from memsim.state.address_spaces import align

TEXT = ".text."
ALIGN = 128


@dataclass(frozen=True)
class LinkedFunctions:
    """The functions of a module that are no kernels. addresses: where their sections begin, by index."""

    elf: Elf
    functions: Mapping[str, ElfSymbol]
    addresses: Mapping[int, int]

    def of_kernel(self, text: Section, data: Iterable[Section]) -> dict[int, int]:
        """Where the sections begin to which a kernel's code refers, and what those refer to, and so on.

        text: the kernel's own section. data: sections whose addresses it may load.
        """
        found: dict[int, int] = {}
        waiting = [text.index, *(section.index for section in data)]
        while waiting and self.addresses:
            for one in self.elf.relocations.get(waiting.pop(), ()):
                index = self._section_of(one)
                if index in self.addresses and index not in found:
                    found[index] = self.addresses[index]
                    waiting.append(index)
        return dict(sorted(found.items()))

    def _section_of(self, one: Relocation) -> int:
        function = self.functions.get(one.symbol)
        return 0 if function is None else function.section

    def code(self, text: Section, linked: Mapping[int, int]) -> bytes:
        """The bytes of a kernel's code, each section at its address."""
        code = text.data
        for index, address in linked.items():
            code = code.ljust(address, b"\0") + self.elf.sections[index].data
        return code


def linked_functions(elf: Elf, kernels: Iterable[int], functions: Mapping[str, ElfSymbol]) -> LinkedFunctions:
    """Lays out the functions of a module.

    kernels: indices of the kernels' sections. functions: those that are no kernels, by name. One of the
    driver is called by its name, whether there is code or not.
    """
    own = {name: one for name, one in functions.items() if name not in DRIVER_FUNCTIONS}
    of_kernels = set(kernels)
    address = max((len(elf.sections[index].data) for index in of_kernels), default=0)
    addresses = {}
    for index in sorted({one.section for one in own.values()} - of_kernels):
        if 0 < index < len(elf.sections) and elf.sections[index].name.startswith(TEXT):
            addresses[index] = address = align(address, ALIGN)
            address += len(elf.sections[index].data)
    return LinkedFunctions(elf, own, addresses)
