"""Reads a cubin: its kernels, and what a launch needs to know about each.

Cubins are those of sm_75 and later as nvcc, NVRTC, ptxas or Triton write them. Instructions are listed by
`memsim.sass.disassemble`. Nothing is placed in memory here. Sizes and offsets are in bytes.

Numbers of attributes and their layouts are those that NVIDIA's cuobjdump prints by name (`EIATTR_...`).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from memsim.errors import MemsimError
from memsim.isa.program import CompiledKernel, Dims, Parameter, Pointer, Variable
from memsim.sass.elf import Elf, ElfSymbol, Relocation, Section, damaged_cubin, read_elf, text_at
from memsim.sass.linked_functions import TEXT, LinkedFunctions, linked_functions


@dataclass(frozen=True, slots=True)
class Image(CompiledKernel):
    """One kernel of a cubin. Of its parameters' types only the sizes are known.

    Constant banks 3 and 4 are the module's, the others the kernel's; bank 0 is zeros, as long as the launch's
    values and the parameters.

    Attributes:
        static_shared: including the part that the chip reserves.
        reserved_shared: 0x400 from sm_90 on, where a program's first array has this address, else 0.
        barriers: named barriers that a block uses; `__syncthreads` is one.
        code: its text section and those linked to it, 16 bytes per instruction.
        relocations: of `code`.
        symbols: numbers of the symbols of the kernel and the functions in its code.
        linked: the other text sections in its code, by the name after `.text.`, and where each begins.
    """

    static_shared: int
    reserved_shared: int
    registers: int
    barriers: int
    code: bytes = field(repr=False)
    relocations: tuple[Relocation, ...] = field(repr=False)
    symbols: tuple[int, ...]
    linked: tuple[tuple[str, int], ...]


class ConstantVariable(NamedTuple):
    """A `__constant__` variable: where in its bank it is."""

    name: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Cubin:
    """A file of kernels for one chip.

    Attributes:
        arch: `sm_90`, or `sm_90a` if the file says so.
        compiler: `ptxas 13.0.88`; `ptxas 12.0`, the CUDA release only, if there is no tool note; None if
            the file does not say.
        kernels: in file order.
        variables: in global memory. constants: the `__constant__` ones, in bank `USER_CONSTANTS`.
        ptx: the text that it was assembled from, if it has line information.
    """

    arch: str
    compiler: str | None
    kernels: dict[str, Image]
    variables: tuple[Variable, ...]
    constants: tuple[ConstantVariable, ...]
    ptx: str | None = field(repr=False)


#: The section of the variables that are not zero at first.
INITIAL = ".nv.global.init"
#: The constant bank of a module's `__constant__` variables.
USER_CONSTANTS = 3
OBJECT, FUNCTION = 1, 2  # types of symbols
ENTRY = 0x10  # in a symbol's `other`: a kernel, not a device function
TOOL_NOTE = 2000  # type of the note in .note.nv.tkinfo
MAX_SHARED = 1 << 20
UNBOUNDED = 1 << 31  # stack sizes from here on mean "unknown" (recursion)

MAX_THREADS = 0x05
PARAM_CBANK = 0x0A
REQUIRED_THREADS = 0x10
FRAME_SIZE, MIN_STACK, MAX_STACK = 0x11, 0x12, 0x23
KPARAM_INFO, KPARAM_INFO_V2 = 0x17, 0x45
CBANK_PARAM_SIZE = 0x19
REGISTERS = 0x2F
NUM_BARRIERS = 0x4C
API_VERSION = 0x37
CLUSTER = 0x3D
SIZED = 4  # format of a record that is followed by its payload

#: Bits of the flags of a kernel's text section that hold the number of its barriers.
BARRIERS_AT, BARRIERS_MASK = 20, 0x7F

_CONSTANT = re.compile(r"\.nv\.constant(\d+)(?:\.(.+))?$")
_TARGET = re.compile(r"^\s*\.target\s+(sm_\d+[a-z]?)", re.M)
_ARCH_OPTION = re.compile(r"-arch[= ]+(sm_\d+[a-z]?)")
_RELEASE = re.compile(r"\bV(\d+(?:\.\d+)+)")
_WRITTEN_BY = re.compile(r"Cuda compilation tools, release \S+, V(\S+)")


@dataclass(frozen=True, slots=True)
class _Record:
    """One attribute of `.nv.info`; `value` is that of an attribute without payload."""

    attribute: int
    value: int
    data: bytes

    def words(self, count: int) -> tuple[int, ...]:
        if len(self.data) < 4 * count:
            raise damaged_cubin(f"attribute {self.attribute:#x} has {len(self.data)} bytes")
        return struct.unpack_from(f"<{count}I", self.data)


def read_cubin(data: bytes, file: str | None = None) -> Cubin:
    """What a cubin says about its kernels; `file` is its name in errors.

    Raises:
        MemsimError: not a cubin, or a damaged one.
    """
    with _naming(file):
        elf = read_elf(data)
        ptx = _ptx(elf)
        tool, options = _tool(elf)
        release = _api_version(elf)
        written = _WRITTEN_BY.search(ptx) if ptx else None
        signed = f"ptxas {written[1]}" if written else None
        return Cubin(
            arch=_arch(elf, options, ptx),
            compiler=tool or signed or (f"ptxas {release}" if release else None),
            kernels=_kernels(elf),
            variables=_variables(elf),
            constants=tuple(
                ConstantVariable(symbol.name, symbol.value, symbol.size)
                for symbol, section in _objects(elf)
                if section.name == f".nv.constant{USER_CONSTANTS}"
            ),
            ptx=ptx,
        )


def chip_of_cubin(data: bytes, file: str | None = None) -> str:
    """The chip that a cubin is for, as `read_cubin` says it.

    Raises:
        MemsimError: not a cubin, or a damaged one.
    """
    with _naming(file):
        elf = read_elf(data)
        return _arch(elf, _tool(elf)[1], _ptx(elf))


@contextmanager
def _naming(file: str | None) -> Iterator[None]:
    """Errors inside are about this file."""
    try:
        yield
    except MemsimError as error:
        raise MemsimError(error.message, file=file or error.file, hint=error.hint) from None


# --- the whole file


def _arch(elf: Elf, options: str, ptx: str | None) -> str:
    """The flags hold the number; a suffix (`sm_90a`) comes from a tool note or PTX with the same number."""
    new = elf.abi >= 8
    number = elf.flags >> 8 & 0xFF if new else elf.flags & 0xFF
    if number < 50:
        raise damaged_cubin(f"it is for sm_{number}")
    arch = f"sm_{number}"
    named = [*_ARCH_OPTION.findall(options), *_TARGET.findall(ptx or "")[:1]]
    suffixed = [name for name in named if name[:-1] == arch]
    if suffixed:
        return str(suffixed[0])
    return arch + "a" if elf.flags & (0x8 if new else 0x800) else arch


def _ptx(elf: Elf) -> str | None:
    for section in elf.sections:
        if section.name == ".nv_debug_ptx_txt":  # lines are terminated by zero bytes
            return section.data.replace(b"\0", b"\n").decode(errors="replace").strip("\n") + "\n"
    return None


def _tool(elf: Elf) -> tuple[str | None, str]:
    """(`ptxas 13.0.88`, its options) of the last tool note in the file."""
    found: tuple[str | None, str] = (None, "")
    for section in elf.sections:
        if section.name != ".note.nv.tkinfo":
            continue
        place = 0
        while place + 12 <= len(section.data):
            name_size, size, kind = struct.unpack_from("<III", section.data, place)
            start = place + 12 + -(-name_size // 4) * 4
            note = section.data[start : start + size]
            place = start + -(-size // 4) * 4
            if kind == TOOL_NOTE and len(note) >= 24:
                _, _, tool, version, _, options = struct.unpack_from("<6I", note)
                texts = note[24:]
                release = _RELEASE.search(text_at(texts, version))
                name = f"{text_at(texts, tool)} {release[1]}" if release else text_at(texts, tool)
                found = (name, text_at(texts, options))
    return found


def _api_version(elf: Elf) -> str | None:
    for section in elf.sections:
        if section.name.startswith(".nv.info"):
            for record in _records(section):
                if record.attribute == API_VERSION:
                    return f"{record.words(1)[0] // 10}.{record.words(1)[0] % 10}"
    return None


def _variables(elf: Elf) -> tuple[Variable, ...]:
    found = []
    for symbol, section in _objects(elf):
        if section.name in (".nv.global", INITIAL):
            inside = range(symbol.value, symbol.value + symbol.size)
            init = section.data[inside.start : inside.stop] if section.data else None
            pointers = _pointers(elf.relocations.get(section.index, ()), inside)
            found.append(Variable(symbol.name, symbol.size, section.align, init, pointers))
    return tuple(found)


def _pointers(relocations: Iterable[Relocation], inside: range) -> tuple[Pointer, ...]:
    """Addresses in a part of a section, by offset from its start."""
    return tuple(
        Pointer(one.offset - inside.start, one.symbol, one.addend)
        for one in relocations
        if one.offset in inside
    )


def _objects(elf: Elf) -> Iterator[tuple[ElfSymbol, Section]]:
    for symbol in elf.symbols:
        if symbol.type == OBJECT and 0 < symbol.section < len(elf.sections):
            section = elf.sections[symbol.section]
            if symbol.value + symbol.size > section.size:
                raise damaged_cubin(f"{symbol.name} lies outside of {section.name}")
            yield symbol, section


# --- kernels


def _records(section: Section) -> Iterator[_Record]:
    data, place = section.data, 0
    while place + 4 <= len(data):
        form, attribute, value = struct.unpack_from("<BBH", data, place)
        place += 4
        size = value if form == SIZED else 0
        if place + size > len(data):
            raise damaged_cubin(f"{section.name} ends within attribute {attribute:#x}")
        yield _Record(attribute, value, data[place : place + size])
        place += -(-size // 4) * 4


def _kernels(elf: Elf) -> dict[str, Image]:
    named = {section.name: section for section in elf.sections}
    about: dict[int, dict[int, int]] = {}  # of a symbol, the attributes in .nv.info
    if ".nv.info" in named:
        for record in _records(named[".nv.info"]):
            if record.attribute in (REGISTERS, FRAME_SIZE, MIN_STACK, MAX_STACK):
                of_symbol, value = record.words(2)
                about.setdefault(of_symbol, {})[record.attribute] = value
    entries = [
        (symbol.section, number, symbol)
        for number, symbol in enumerate(elf.symbols)
        if symbol.type == FUNCTION and symbol.other & ENTRY and 0 < symbol.section < len(elf.sections)
    ]
    functions: dict[int, dict[int, ElfSymbol]] = {}  # of a section, those in it by their number
    for number, symbol in enumerate(elf.symbols):
        if symbol.type == FUNCTION:
            functions.setdefault(symbol.section, {})[number] = symbol
    others = {one.name: one for one in elf.symbols if one.type == FUNCTION and not one.other & ENTRY}
    device = linked_functions(elf, (entry[0] for entry in entries), others)
    banks: dict[str | None, list[tuple[int, Section]]] = {}  # of a kernel, or None for the module
    for section in elf.sections:
        if bank := _CONSTANT.match(section.name):
            banks.setdefault(bank[2], []).append((int(bank[1]), section))
    return {
        symbol.name: _image(
            elf,
            named,
            symbol,
            about.get(number, {}),
            functions,
            device,
            sorted([*banks.get(None, ()), *banks.get(symbol.name, ())], key=lambda bank: bank[1].index),
        )
        for _, number, symbol in sorted(entries, key=lambda entry: entry[:2])
    }


def _image(
    elf: Elf,
    named: dict[str, Section],
    kernel: ElfSymbol,
    about: dict[int, int],
    functions: dict[int, dict[int, ElfSymbol]],
    device: LinkedFunctions,
    banks: list[tuple[int, Section]],
) -> Image:
    """A kernel. about: its attributes in `.nv.info`. functions: of each section by number. device: those of
    the module that are no kernels. banks: its own and the module's.
    """
    name, text = kernel.name, elf.sections[kernel.section]
    info = named.get(f".nv.info.{name}")
    records = list(_records(info)) if info else []
    last = {record.attribute: record for record in records}
    parameters = dict(_parameter(one) for one in records if one.attribute in (KPARAM_INFO, KPARAM_INFO_V2))
    constants = {bank: section.data for bank, section in banks}
    base, size = _parameter_bank(last, constants.get(0, b""))
    shared = named.get(f".nv.shared.{name}")
    reserved = _reserved_shared(elf)
    static = max(shared.size if shared else 0, reserved)
    if static > MAX_SHARED:
        raise damaged_cubin(f"{name} would have {static} bytes of shared memory")
    if base + size > len(constants.get(0, b"")) or not text.data or len(text.data) % 16:
        raise damaged_cubin(f"the sizes of {name} contradict each other")
    stacks = [about.get(attribute, 0) for attribute in (FRAME_SIZE, MIN_STACK, MAX_STACK)]
    bounded = [stack for stack in stacks if stack < UNBOUNDED]
    linked = device.of_kernel(text, (named.get(INITIAL, text), *(one for _, one in banks)))
    places = {text.index: 0, **linked}
    return Image(
        name=name,
        parameters=tuple(parameters[index] for index in sorted(parameters)),
        parameter_base=base,
        parameter_size=size,
        static_shared=static,
        reserved_shared=reserved,
        registers=about.get(REGISTERS, 0),
        barriers=last[NUM_BARRIERS].value
        if NUM_BARRIERS in last
        else text.flags >> BARRIERS_AT & BARRIERS_MASK,
        local_bytes=max(bounded, default=0),
        constants=constants,
        pointers={
            bank: _pointers(elf.relocations[section.index], range(section.size))
            for bank, section in banks
            if section.index in elf.relocations
        },
        functions={
            symbol.name: start + symbol.value
            for section, start in places.items()
            for symbol in functions[section].values()
            if symbol is not kernel
        },
        code=device.code(text, linked),
        max_threads=_dims(last.get(MAX_THREADS)),
        required_threads=_dims(last.get(REQUIRED_THREADS)),
        cluster=_dims(last.get(CLUSTER)),
        relocations=tuple(
            replace(one, offset=start + one.offset)
            for section, start in places.items()
            for one in elf.relocations.get(section, ())
        ),
        symbols=tuple(number for section in places for number in functions[section]),
        linked=tuple((elf.sections[one].name.removeprefix(TEXT), start) for one, start in linked.items()),
    )


def _parameter(record: _Record) -> tuple[int, Parameter]:
    """(index, parameter); of its type only the size is known."""
    _, place, kind = record.words(3)
    index, offset = place & 0xFFFF, place >> 16
    size = kind >> 18 if record.attribute == KPARAM_INFO else kind & 0xFFFF
    bits = f"b{8 * size}" if size in (1, 2, 4, 8) else "b8"
    return index, Parameter(f"param_{index}", bits, size, size, offset)


def _parameter_bank(last: dict[int, _Record], bank: bytes) -> tuple[int, int]:
    """(base, size) of the parameters in constant bank 0; they are at its end."""
    if PARAM_CBANK in last:
        _, place = last[PARAM_CBANK].words(2)
        return place & 0xFFFF, place >> 16
    size = last[CBANK_PARAM_SIZE].value if CBANK_PARAM_SIZE in last else 0
    return max(len(bank) - size, 0), size


def _reserved_shared(elf: Elf) -> int:
    number = elf.flags >> 8 & 0xFF if elf.abi >= 8 else elf.flags & 0xFF
    return 0x400 if number >= 90 else 0


def _dims(record: _Record | None) -> Dims | None:
    if record is None:
        return None
    x, y, z = record.words(3)
    return x, y, z
