"""The text of `nvdisasm -c -gi` as instructions, one after the other.

In: the listing of a cubin. Out: for each kernel its `Line`s: address, guard, opcode, operands as text,
and source place. Left out on purpose: what any of it means (`decode.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from memsim.errors import MemsimError
from memsim.isa.op import Place
from memsim.launch import shown

_SECTION = re.compile(r"^\s*\.section\s+\.text\.([^,\s]+)")
_OTHER_SECTION = re.compile(r"^\s*\.section\s")
_LABEL = re.compile(r"^(\S+):\s*$")
_PLACE = re.compile(r'^\s*//## File "(.*?)", line (\d+)(?: inlined at "(.*?)", line (\d+))?')
_INSTRUCTION = re.compile(
    r"^\s*/\*(?P<address>[0-9a-f]+)\*/\s+(?:\{\s*)?(?:@(?P<guard>!?U?P\w+)\s+)?(?P<text>[^;]*?)\s*;"
)


# A register beyond the 255 of a lane, a constant beyond the end of a bank, or a number of more than 128 bits.
_IMPOSSIBLE = re.compile(
    r"\b(?:U?R|U?P|S?B)[0-9]{4,}\b|c\[[^\]\n]*\]\[[^\]\n]*0x[0-9a-fA-F]{6,}"
    r"|\b(?:0x[0-9a-fA-F]{33,}|[0-9]{40,})"
)


@dataclass(frozen=True, slots=True)
class Line:
    """One instruction as printed: `guard` as "!P0" or None, `text` without it."""

    address: int
    guard: str | None
    text: str
    source: Place | None


@dataclass(frozen=True, slots=True)
class Listing:
    """One kernel's instructions in order, and the addresses of its labels."""

    name: str
    lines: tuple[Line, ...]
    labels: dict[str, int]


def read_listing(text: str, file_name: Callable[[str], str] = str) -> dict[str, Listing]:
    """The kernels of a listing, by name, in its order. `file_name`: what a source file is called.

    Raises:
        MemsimError: it names a register that no chip has, or a number that none can hold.
    """
    impossible = _IMPOSSIBLE.search(text)
    if impossible is not None:
        line = text.count("\n", 0, impossible.start()) + 1
        raise MemsimError(f"the listing is damaged at its line {line}: there is no {shown(impossible[0])}")
    found: dict[str, Listing] = {}
    name: str | None = None
    lines: list[Line] = []
    labels: dict[str, int] = {}
    pending: list[str] = []
    chain: list[tuple[str, int]] = []
    fresh = True
    source: Place | None = None

    def close() -> None:
        if name is not None:
            end = lines[-1].address + 16 if lines else 0
            labels.update(dict.fromkeys(pending, end))
            found[name] = Listing(name, tuple(lines), labels)

    for row in text.splitlines():
        if "/*" in row and (match := _INSTRUCTION.match(row)):
            if name is None:
                continue
            if chain:
                (file, line), *callers = chain
                source = Place(file, line, callers=tuple(callers))
                chain = []
            fresh = True
            address = int(match["address"], 16)
            if pending:
                labels.update(dict.fromkeys(pending, address))
                pending = []
            lines.append(Line(address, match["guard"], match["text"], source))
        elif match := _PLACE.match(row):
            if fresh:
                chain, fresh = [], False
            if not chain:
                chain.append((file_name(match[1]), int(match[2])))
            if match[3]:
                chain.append((file_name(match[3]), int(match[4])))
        elif match := _SECTION.match(row):
            close()
            name, lines, labels, pending, chain, source, fresh = (
                match[1].strip('"'),
                [],
                {},
                [],
                [],
                None,
                True,
            )
        elif _OTHER_SECTION.match(row):
            close()
            name = None
        elif name is not None and (match := _LABEL.match(row)):
            pending.append(match[1])
    close()
    return found
