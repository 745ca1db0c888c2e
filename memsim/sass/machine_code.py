"""A kernel as machine code: its image in the cubin, and its program, decoded on first use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

from memsim.compile.prepare import Names
from memsim.compile.shown_sources import Frame
from memsim.errors import MemsimError
from memsim.isa.control import DRIVER_FUNCTIONS
from memsim.isa.program import CompiledKernel, Executable, Parameter, Program
from memsim.sass.cubin import Cubin, Image, read_cubin
from memsim.sass.decode import decode
from memsim.sass.listing import Listing, by_itself, own_file, own_text, read_listing, with_linked
from memsim.sass.shared_names import dynamic_arrays, shared_arrays
from memsim.state.address_spaces import align

#: Kernels of a module that are disassembled together, which takes about as long as one.
FEW_KERNELS = 16
#: The fewest registers that a thread gets: ncu's launch__registers_per_thread of 441 kernels on an H200.
LEAST_REGISTERS, SYSTEM_REGISTERS = 16, 32


@dataclass(frozen=True, eq=False)
class MachineKernel:
    """One kernel of a cubin."""

    image: Image
    module: MachineModule = field(repr=False)
    parameters: tuple[Parameter, ...]

    def __getstate__(self) -> dict[str, object]:
        """Its bytes: another process decodes them itself, because what executes an opcode is no data."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def name(self) -> str:
        """The entry's name in the cubin."""
        return self.image.name

    @cached_property
    def shared(self) -> tuple[tuple[str, int, int], ...]:
        """(name, address, bytes) of static shared arrays.

        A single nameless one if it is not known which array is where.
        """
        image, cubin = self.image, self.module.cubin
        linked = (cubin.compiler or "").startswith("nvJitLink")
        return tuple(
            shared_arrays(cubin.ptx or "", image.name, image.static_shared, image.reserved_shared, linked)
        )

    @property
    def registers(self) -> int:
        """Registers per thread as the driver allocates them: at least as many as the system functions need
        that it calls.
        """
        calls = {place.symbol for place in self.image.relocations}
        calls |= {place.symbol for place in self.image.pointers.get(4, ())}
        least = SYSTEM_REGISTERS if calls & DRIVER_FUNCTIONS else LEAST_REGISTERS
        return max(self.image.registers, least)

    @property
    def dynamic_name(self) -> str:
        """The name of the dynamic shared array in the source."""
        ptx = self.module.cubin.ptx
        found = dynamic_arrays(ptx, self.name) if ptx else []
        return found[0] if len(found) == 1 else "dynamic shared memory"

    @property
    def own_source(self) -> dict[str, str]:
        """The text of its listing by its file, if that serves as its own source."""
        listing, file = self.module.listing_of(self.name), own_file(self.name)
        if listing is None or all(line.source is None or line.source.file != file for line in listing.lines):
            return {}
        return {file: own_text(listing)}

    @cached_property
    def program(self) -> Program:
        """Its instructions.

        Raises:
            MemsimError: the kernel is not in the listing.
        """
        listing = self.module.listing_of(self.name)
        if listing is None:
            raise MemsimError(f"the listing does not contain {self.name}")
        return decode(listing, self.image.code)

    @cached_property
    def executable(self) -> Executable:
        """Its program, and what a launch needs to know about it."""
        image = self.image
        said = {one.name: getattr(image, one.name) for one in fields(CompiledKernel)}
        said["parameters"] = self.parameters
        return Executable(
            **said,
            program=self.program,
            shared=self.shared,
            static_shared=max(image.static_shared - image.reserved_shared, 0),
            dynamic_name=self.dynamic_name,
            variables=self.module.cubin.variables,
            made_for=self.module.cubin.arch,
            shared_base=image.reserved_shared,
        )


@dataclass(frozen=True, eq=False)
class MachineModule:
    """A cubin: its bytes, their contents, and the disassembly, made on first use."""

    content: bytes = field(repr=False)
    cubin: Cubin
    text: str | None = field(default=None, repr=False)
    compiler: str = ""
    names: Names = field(default_factory=Names)
    ptx: str = field(default="", repr=False)
    found: dict[str, Listing | None] = field(default_factory=dict, repr=False)

    @cached_property
    def places(self) -> Mapping[int, Frame]:
        """Source places of PTX lines that are known better than by the line table."""
        return assembly_places(self.ptx)

    @property
    def made_by(self) -> str:
        """The compiler: as the caller says, else as the cubin does."""
        return self.compiler or self.cubin.compiler or ""

    @cached_property
    def listing(self) -> str:
        """The output of nvdisasm."""
        if self.text is not None:
            return self.text
        from memsim.sass.disassemble import disassemble

        return disassemble(self.content, ptx_lines=bool(self.places))

    @cached_property
    def listings(self) -> Mapping[str, Listing]:
        """The instructions of each kernel, by name."""
        found = read_listing(self.listing, self.names.name_of, self.places)
        return {name: self._linked(name, found) for name in found if name in self.cubin.kernels}

    def _linked(self, name: str, listings: Mapping[str, Listing]) -> Listing:
        """The instructions of a kernel with those of the functions in its code."""
        linked = self.cubin.kernels[name].linked
        others = [(listings[part], start) for part, start in linked if part in listings]
        return by_itself(with_linked(listings[name], others))

    def listing_of(self, name: str) -> Listing | None:
        """The instructions of a kernel; None if they are not in the listing. Of a large module only this
        kernel is disassembled and read.
        """
        if len(self.cubin.kernels) <= FEW_KERNELS or "listings" in self.__dict__:
            return self.listings.get(name)
        if name not in self.found:
            image, text = self.cubin.kernels[name], self.text
            if text is None:
                from memsim.sass.disassemble import disassemble

                text = disassemble(self.content, ptx_lines=bool(self.places), functions=image.symbols)
            parts = {name, *(part for part, _ in image.linked)}
            listings = read_listing(text, self.names.name_of, self.places, parts)
            self.found[name] = self._linked(name, listings) if name in listings else None
        return self.found[name]

    @cached_property
    def kernels(self) -> Mapping[str, MachineKernel]:
        """By the entry's name, in the cubin's order."""
        types = _types_in_ptx(self.cubin.ptx)
        return {
            name: MachineKernel(image, self, _parameters(image, types.get(name)))
            for name, image in self.cubin.kernels.items()
        }


def read_module(
    content: bytes,
    text: str | None = None,
    file: str | None = None,
    compiler: str = "",
    names: Names | None = None,
    ptx: str = "",
) -> MachineModule:
    """A cubin, with its listing if that is available.

    compiler: what made it, if that is known better than from the cubin. names: display names of its source
    files. ptx: the text that it was assembled from, with its `.loc`s, if available; it corrects the lines of
    inline assembly.

    Raises:
        MemsimError: not a cubin.
    """
    return MachineModule(content, read_cubin(content, file), text, compiler, names or Names(), ptx)


_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(([^)]*)\)")
_PARAMETER = re.compile(
    r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)(?:\s+\.ptr[^,\n]*?)?\s+([\w$]+)(?:\[(\d+)\])?\s*(?:,|$)"
)
_SIZES = {"8": 1, "16": 2, "32": 4, "64": 8}


def _types_in_ptx(ptx: str | None) -> dict[str, tuple[Parameter, ...]]:
    """The parameters of each kernel as the PTX declares them that the cubin was assembled from."""
    found = {}
    for name, declared in _ENTRY.findall(ptx or ""):
        parameters: list[Parameter] = []
        offset = 0
        for aligned, kind, parameter, count in _PARAMETER.findall(declared):
            size = _SIZES.get(kind.lstrip("busf"), 0) * int(count or 1)
            alignment = int(aligned or size or 1)
            offset = align(offset, alignment)
            parameters.append(Parameter(parameter, kind, alignment, size, offset))
            offset += size
        found[name] = tuple(parameters)
    return found


def _parameters(image: Image, declared: tuple[Parameter, ...] | None) -> tuple[Parameter, ...]:
    """The parameters, with name and type as declared in PTX if the sizes are the same."""
    sizes = [parameter.size for parameter in image.parameters]
    if declared is not None and [parameter.size for parameter in declared] == sizes:
        return tuple(replace(one, offset=p.offset) for one, p in zip(declared, image.parameters))
    return image.parameters


_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")


def assembly_places(ptx: str) -> Mapping[int, Frame]:
    """PTX line -> (file, line) of the source, for inline assembly whose `.loc`s are wrong.

    LLVM increments the line for each line of the assembly text, as if the text stood in the source like that.
    Only the first `.loc` in it is right.
    """
    files: dict[str, str] = {}
    found: dict[int, tuple[str, int]] = {}
    first: tuple[str, int] | None = None
    inside = wrong = False
    for number, line in enumerate(ptx.splitlines(), 1):
        if match := _FILE.match(line):
            files[match[1]] = match[2]
        elif line.endswith("// begin inline asm"):
            inside, first, wrong = True, None, False
        elif line.endswith("// end inline asm"):
            inside = False
        elif inside and (match := _LOC.match(line)):
            place = match[1], int(match[2])
            first = first or place
            wrong = place != first
        elif inside and wrong and first is not None:
            found[number] = first
    return {number: (files[file], line) for number, (file, line) in found.items() if file in files}
