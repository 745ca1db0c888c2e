"""Parser for the output of `nvdisasm -c -gi` (or with `-gp`): the instructions of each kernel.

A `ListingLine` has address, guard, opcode, operands as text, and source place; `decode.py` decodes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace

from memsim.compile.shown_sources import Frame, own_frames
from memsim.errors import MemsimError, short_repr
from memsim.instruction import Place
from memsim.names.demangle import demangle, plain_name

_SECTION = re.compile(r"^\s*\.section\s+\.text\.([^,\s]+)")
_OTHER_SECTION = re.compile(r"^\s*\.section\s")
_LABEL = re.compile(r"^(\S+):\s*$")
# Lines have numbers of 32 bits.
_LINE = r"line (\d{1,10})\b"
_PLACE = re.compile(rf'^\s*//## File "(.*?)", {_LINE}(?: inlined at "(.*?)", {_LINE})?')
_PTX = re.compile(rf'//## File "\.nv_debug_ptx_txt", {_LINE}')
_INSTRUCTION = re.compile(
    r"^\s*/\*(?P<address>[0-9a-f]+)\*/\s+(?:\{\s*)?(?:@(?P<guard>!?U?P\w+)\s+)?(?P<text>[^;]*?)\s*;"
)


# A register beyond the 255 of a lane, a constant beyond the end of a bank, or a number of more than 128 bits.
_IMPOSSIBLE = re.compile(
    r"\b(?:U?R|U?P|S?B)[0-9]{4,}\b|\bcx?\[[^\]\n]*\]\[[^\]\n]*0x[0-9a-fA-F]{6,}"
    r"|\b(?:0x[0-9a-fA-F]{33,}|[0-9]{40,})"
)
# A symbol's name in an operand, which may look like a register.
_SYMBOL = re.compile(r"`\([^)\n]*\)|32@(?:lo|hi)\([^)\n]*\)")
# A text with none of these has nothing impossible. They begin with a set of characters, so that the search
# takes a tenth of the time.
_SUSPICIOUS = (
    re.compile(r"[RPB][0-9]{4}"),
    re.compile(r"\bcx?\[[^\]\n]*\]\[[^\]\n]*0x[0-9a-fA-F]{6}"),
    re.compile(r"[0-9](?:x[0-9a-fA-F]{33}|[0-9]{39})"),
)


@dataclass(frozen=True, slots=True)
class ListingLine:
    """One instruction as printed: `guard` is "!P0" or None; `text` is without it."""

    address: int
    guard: str | None
    text: str
    source: Place | None


@dataclass(frozen=True, slots=True)
class Listing:
    """One kernel's instructions in order, and the addresses of its labels."""

    name: str
    lines: tuple[ListingLine, ...]
    labels: dict[str, int]


def read_listing(
    text: str,
    file_name: Callable[[str], str] = str,
    places: Mapping[int, Frame] | None = None,
    only: Container[str] | None = None,
) -> dict[str, Listing]:
    """The kernels of a listing, by name, in its order.

    file_name: gives the display name of a source file. places: source places by line of the PTX, where known
    better than by the listing (`memsim.sass.machine_code`); the listing must have the PTX's lines then. only:
    the names of those that are read; all if left out.

    Raises:
        MemsimError: a register or number that is out of range, or a missing opcode.
    """
    is_suspicious = any(suspicious.search(text) for suspicious in _SUSPICIOUS)
    places = places or {}
    found: dict[str, Listing] = {}
    name: str | None = None
    lines: list[ListingLine] = []
    labels: dict[str, int] = {}
    pending: list[str] = []
    chain: list[tuple[str, int]] = []
    fresh = True
    ptx_line = 0
    source: Place | None = None

    def close() -> None:
        if name is not None:
            end = lines[-1].address + 16 if lines else 0
            labels.update(dict.fromkeys(pending, end))
            found[name] = Listing(name, tuple(lines), labels)

    for at, row in enumerate(text.splitlines(), 1):
        if name is None and ".section" not in row:
            continue
        if "/*" in row and (match := _INSTRUCTION.match(row)):
            if not match["text"][:1].isalpha():
                raise MemsimError(f"the listing is damaged at its line {at}: the opcode is missing")
            if is_suspicious and (impossible := _IMPOSSIBLE.search(_SYMBOL.sub("", row))):
                raise MemsimError(
                    f"the listing is damaged at its line {at}: {short_repr(impossible[0])} does not exist"
                )
            if chain:
                source = _place(chain)
                chain = []
            fresh = True
            here = source
            if ptx_line in places and source is not None:
                file, number = places[ptx_line]
                here = _place([(file_name(file), number), *source.callers])
            address = int(match["address"], 16)
            if pending:
                labels.update(dict.fromkeys(pending, address))
                pending = []
            lines.append(ListingLine(address, match["guard"], match["text"], here))
        elif ".nv_debug_ptx_txt" in row and (match := _PTX.search(row)):
            ptx_line = int(match[1])
        elif match := _PLACE.match(row):
            if fresh:
                chain, fresh = [], False
            if not chain:
                chain.append((file_name(match[1]), int(match[2])))
            if match[3]:
                chain.append((file_name(match[3]), int(match[4])))
        elif match := _SECTION.match(row):
            close()
            name, lines, labels, pending = match[1].strip('"'), [], {}, []
            if only is not None and name not in only:
                name = None
            chain, source, fresh, ptx_line = [], None, True, 0
        elif _OTHER_SECTION.match(row):
            close()
            name = None
        elif match := _LABEL.match(row):
            pending.append(match[1])
    close()
    return found


def with_linked(listing: Listing, others: Iterable[tuple[Listing, int]]) -> Listing:
    """A kernel's instructions, and behind them those of functions in other sections, which begin at these
    addresses.
    """
    lines, labels = list(listing.lines), dict(listing.labels)
    for other, start in others:
        lines += [replace(line, address=start + line.address) for line in other.lines]
        labels.update((name, start + address) for name, address in other.labels.items())
    return Listing(listing.name, tuple(lines), labels)


def by_itself(listing: Listing) -> Listing:
    """A listing without source lines becomes its own source, with one line per instruction."""
    if any(line.source is not None for line in listing.lines):
        return listing
    file = own_file(listing.name)
    lines = (replace(line, source=Place(file, number)) for number, line in enumerate(listing.lines, 1))
    return replace(listing, lines=tuple(lines))


def own_file(kernel: str) -> str:
    """The file name of a kernel's listing that is its own source."""
    return f"{plain_name(demangle(kernel))}.sass"


def own_text(listing: Listing) -> str:
    """The text of a listing that is its own source, with one line per instruction."""
    return "\n".join(f"@{line.guard} {line.text}" if line.guard else line.text for line in listing.lines)


def _place(chain: list[Frame]) -> Place:
    """The source place of an instruction that was inlined through these frames, innermost first."""
    (file, line), *callers = own_frames(chain)
    return Place(file, line, callers=tuple(callers))
