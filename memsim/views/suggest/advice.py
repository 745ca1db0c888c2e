"""Other layouts of an array that would lessen an access's bank conflicts in a line each, and their names.

`memsim.views.suggest.terminal` has the whole answer.
"""

from __future__ import annotations

from memsim.analysis import Analysis
from memsim.pictures.proposal_banks import Look
from memsim.suggest.maps import Map, Padding, XorSwizzle
from memsim.suggest.proposals import LEAST_SAVED, Advice, Proposal, advise
from memsim.suggest.tiles import Tile

#: The least share of an array's bank conflicts that a layout has to save.
LEAST = f"{100 // LEAST_SAVED} %"


def what_would_help(analysis: Analysis, site: int) -> list[str]:
    """The best layouts of the array that a row touches; nothing where the row has no bank conflict."""
    row = analysis.sites[site]
    if not row.conflicts:
        return []
    advice = advise(analysis, row.array.split("|"))
    lines = [line for entry in advice for line in advice_lines(entry)]
    return ["", "What would help:", *(f"  {line}" for line in lines)]


def advice_lines(entry: Advice) -> list[str]:
    """Each proposal for an array in a line, or why there is none."""
    if entry.why_not:
        return [f"{entry.tile.name}: no other layout was tried: {entry.why_not}"]
    if not entry.proposals:
        return [f"{entry.tile.name}: no layout tried saves {LEAST} of its bank conflicts"]
    return [proposal_line(each, entry) for each in entry.proposals]


def look_name(look: Look) -> str:
    """`as it is`, or the change."""
    return "as it is" if look.proposal is None else change_name(look.proposal.change, look.proposal.tile)


def look_costs(look: Look, entry: Advice) -> str:
    """`1,081,344 wavefronts in all, 32 for this request; 128 B more shared memory`."""
    each = look.proposal
    if each is None:
        wavefronts, room = f"{entry.wavefronts:,}", ""
    else:
        wavefronts, room = wavefronts_after(each), f"; {room_of(each)}"
    return f"{wavefronts} wavefronts in all, {look.request.wavefronts:,} for this request{room}"


def room_of(each: Proposal) -> str:
    """`128 B more shared memory`, and what that does to the occupancy."""
    room = f"{each.extra:,} B more shared memory" if each.extra else "no extra memory"
    before, after = each.blocks
    if after < before:
        return f"{room}; occupancy falls: {after} blocks per multiprocessor instead of {before}"
    return room


def proposal_line(each: Proposal, entry: Advice) -> str:
    """As `counted_change`, with the lines that change."""
    lines = [str(line.line) for line in each.edit.lines] if each.edit is not None else []
    where = f"; changes line{'s' * (len(lines) > 1)} {', '.join(lines)}" if lines else ""
    return counted_change(each, entry) + where


def counted_change(each: Proposal, entry: Advice) -> str:
    """`s_a, padding: 16 B after every 512 B: 2,621,440 -> 2,359,296 wavefronts in all its accesses`."""
    change = f"{entry.tile.name}, {change_name(each.change, each.tile)}"
    return f"{change}: {entry.wavefronts:,} -> {wavefronts_after(each)} wavefronts in all its accesses"


def wavefronts_after(each: Proposal) -> str:
    """`65,536`, or at most so many."""
    return f"{each.cost.most:,}" if each.cost.certain else f"at most {each.cost.most:,}"


def change_name(change: Map, tile: Tile) -> str:
    """`padding: 4 B after every 128 B`, `swizzle: s[row][col ^ row], CUTLASS's Swizzle<5,0,5>`.

    A swizzle is of the elements that are declared, else of bytes.
    """
    if isinstance(change, Padding):
        return f"padding: {change.by} B after every {change.every} B"
    name = f"swizzle: {_index(change, tile)}"
    unit = tile.declared.bit_length() - 1 if tile.declared else 0
    if change.every & (change.every - 1) or change.base < unit:
        return name
    chunk, shift = change.base - unit, change.every.bit_length() - 1 - change.base
    of_bytes = "" if tile.declared else " of bytes"
    return f"{name}, CUTLASS's Swizzle<{change.bits},{chunk},{shift}>{of_bytes}"


def _index(change: XorSwizzle, tile: Tile) -> str:
    """`s[row][col ^ row]`, `s[i ^ (i / 64 % 16 << 1)]` of an array without rows, else the place of a byte."""
    extents = tile.shape.extents if tile.shape is not None else ()
    to = change.base - (tile.element.bit_length() - 1)
    if to < 0 or not tile.declared or change.every % tile.element:
        return formula(change)
    if len(extents) < 2:
        bits = f"i / {change.every // tile.element} % {1 << change.bits}"
        return f"{tile.name}[i ^ ({f'{bits} << {to}' if to else bits})]"
    rows, rest = divmod(change.every, extents[-1] * tile.element)
    if rest or rows & (rows - 1):
        return formula(change)
    bits = f"row >> {rows.bit_length() - 1}" if rows > 1 else "row"
    if len(extents) > 2 or extents[0] > rows << change.bits:
        bits = f"{bits} & {(1 << change.bits) - 1}"
    bits = f"({bits})" if " " in bits else bits
    return f"{tile.name}{'[...]' * (len(extents) - 2)}[row][col ^ {f'({bits} << {to})' if to else bits}]"


def formula(change: Map) -> str:
    """Where the byte at offset `o` from the array's start goes."""
    if isinstance(change, Padding):
        return f"o + o / {change.every} * {change.by}"
    return f"o ^ (o / {change.every} % {1 << change.bits} << {change.base})"
