"""The ELF container of a cubin (64-bit little-endian, machine 190): sections, symbols and relocations.

Every offset is checked against the size of the file. What the sections mean is in `memsim.sass.cubin`;
program headers are ignored.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from memsim.errors import MemsimError

MACHINE = 190  # EM_CUDA
NOBITS = 8
REL, RELA = 9, 4
SYMTAB = 2
# Sections that occupy memory on the chip but none in the file, whatever their type: NVIDIA has
# types of its own (0x70000007 global, 0x7000000a shared), which newer tools use for some targets.
WITHOUT_BYTES = {NOBITS, 0x70000007, 0x70000009, 0x7000000A, 0x70000015}
# Relocations of data whose addend, in a section of type REL, is the value that is there: (bytes).
IN_PLACE = {1: 4, 2: 8, 3: 4, 4: 8}


@dataclass(frozen=True, slots=True)
class Section:
    """`index` is that in the section table; `data` is empty if the file has no bytes for the section."""

    index: int
    name: str
    type: int
    flags: int
    size: int
    align: int
    link: int
    info: int
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ElfSymbol:
    """`type` and `other` as in ELF; `section` is an index, 0 for an undefined symbol."""

    name: str
    value: int
    size: int
    type: int
    other: int
    section: int


@dataclass(frozen=True, slots=True)
class Relocation:
    """A place to be filled with an address.

    `offset`: bytes from the start of the section that is patched. `symbol`: the variable, function or (for a
    nameless section symbol) section whose address it is; `addend` is added. `kind`: R_CUDA number; 2 and 4
    (`R_CUDA_64`, `R_CUDA_G64`) are 8 bytes of data, 0x38 and 0x39 the low and the high word as the immediate
    of the instruction at `offset`.
    """

    offset: int
    symbol: str
    addend: int
    kind: int


@dataclass(frozen=True, slots=True)
class Elf:
    """`relocations`: by the index of the section that they patch."""

    abi: int
    flags: int
    sections: tuple[Section, ...]
    symbols: tuple[ElfSymbol, ...]
    relocations: dict[int, tuple[Relocation, ...]]


def is_relocatable(data: bytes) -> bool:
    """Whether a cubin is to be linked: its code lacks the addresses that the linker fills in (ET_REL)."""
    return data[:4] == b"\x7fELF" and data[16:18] == b"\x01\x00"


def read_elf(data: bytes) -> Elf:
    """The parts of a cubin.

    Raises:
        MemsimError: not an ELF file for NVIDIA's machine, or a damaged one.
    """
    if data[:4] != b"\x7fELF":
        raise MemsimError("this is not a cubin: not an ELF file", hint=_what_it_is(data))
    if data[4:6] != b"\x02\x01":
        raise MemsimError("this is not a cubin: not a 64-bit little-endian ELF file")
    abi = _unpack("<B", data, 8)[0]
    _, machine = _unpack("<HH", data, 16)
    if machine != MACHINE:
        raise MemsimError(f"this is not a cubin: ELF for machine {machine}; NVIDIA's is {MACHINE}")
    (flags,) = _unpack("<I", data, 48)
    sections = _sections(data)
    tables = [section for section in sections if section.type == SYMTAB]
    symbols = _symbols(tables[0], sections) if tables else ()
    relocations: dict[int, tuple[Relocation, ...]] = {}
    for section in sections:
        if section.type in (REL, RELA):
            target = _at(sections, section.info)
            found = _relocations(section, target, symbols, sections)
            relocations[target.index] = (*relocations.get(target.index, ()), *found)
    return Elf(abi, flags, sections, symbols, relocations)


def damaged_cubin(what: str) -> MemsimError:
    """The error for an inconsistent file."""
    return MemsimError(f"the cubin is damaged or truncated: {what}")


def text_at(data: bytes, offset: int) -> str:
    """The zero-terminated text at `offset`. Raises MemsimError if it is not terminated."""
    end = data.find(b"\0", offset)
    if not 0 <= offset < len(data) or end < 0:
        raise damaged_cubin("a name lies outside of its table")
    return data[offset:end].decode(errors="replace")


def _what_it_is(data: bytes) -> str | None:
    if data[:4] == b"\x50\xed\x55\xba":
        return "it is a fat binary; cuobjdump -xelf all extracts its cubins"
    if b".version" in data[:4096] and b".target" in data[:4096]:
        return "it looks like PTX text"
    return None


def _unpack(layout: str, data: bytes, offset: int) -> tuple[int, ...]:
    if offset < 0 or offset + struct.calcsize(layout) > len(data):
        raise damaged_cubin(f"it ends at byte {len(data)}, within a table")
    return struct.unpack_from(layout, data, offset)


def _sections(data: bytes) -> tuple[Section, ...]:
    (table,) = _unpack("<Q", data, 40)
    entry, count, names = _unpack("<HHH", data, 58)
    if entry != 64 or names >= count:
        raise damaged_cubin("the section table is malformed")
    heads = [_unpack("<IIQQQQIIQQ", data, table + entry * number) for number in range(count)]
    texts = _bytes(data, heads[names])
    return tuple(
        Section(
            index=number,
            name=text_at(texts, head[0]),
            type=head[1],
            flags=head[2],
            size=head[5],
            align=max(head[8], 1),
            link=head[6],
            info=head[7],
            data=_bytes(data, head),
        )
        for number, head in enumerate(heads)
    )


def _bytes(data: bytes, head: tuple[int, ...]) -> bytes:
    kind, offset, size = head[1], head[4], head[5]
    if kind == 0 or kind in WITHOUT_BYTES:
        return b""
    if offset + size > len(data):
        raise damaged_cubin(f"a section ends at byte {offset + size}, and the file has {len(data)}")
    return data[offset : offset + size]


def _at(sections: tuple[Section, ...], index: int) -> Section:
    if index >= len(sections):
        raise damaged_cubin(f"there is no section {index}")
    return sections[index]


def _symbols(table: Section, sections: tuple[Section, ...]) -> tuple[ElfSymbol, ...]:
    texts = _at(sections, table.link).data
    found = []
    for offset in range(0, len(table.data) - 23, 24):
        name, info, other, section, value, size = struct.unpack_from("<IBBHQQ", table.data, offset)
        found.append(ElfSymbol(text_at(texts, name), value, size, info & 15, other, section))
    return tuple(found)


def _relocations(
    section: Section, target: Section, symbols: tuple[ElfSymbol, ...], sections: tuple[Section, ...]
) -> list[Relocation]:
    found = []
    entry = 24 if section.type == RELA else 16
    for place in range(0, len(section.data) - entry + 1, entry):
        offset, info = struct.unpack_from("<QQ", section.data, place)
        index, kind = info >> 32, info & 0xFFFFFFFF
        if index >= len(symbols):
            raise damaged_cubin(f"a relocation names symbol {index} of {len(symbols)}")
        symbol = symbols[index]
        name = symbol.name
        if not name and 0 < symbol.section < len(sections):
            name = sections[symbol.section].name
        if section.type == RELA:
            (addend,) = struct.unpack_from("<q", section.data, place + 16)
        else:
            width = IN_PLACE.get(kind, 0)
            addend = int.from_bytes(target.data[offset : offset + width], "little")
        found.append(Relocation(offset, name, addend, kind))
    return found
