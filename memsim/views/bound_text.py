"""Lower bounds in cycles, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Annotated, TextIO, get_type_hints

import msgspec
from msgspec import Meta

from memsim.analysis import Analysis
from memsim.bound import Bound, BoundFigures, percent
from memsim.document import Document, Texts
from memsim.least_work import dram_bytes
from memsim.views.labels import at_all_places, count, number, size
from memsim.views.screen import Column, Row, Screen

COLUMNS = (
    Column("unit"),
    Column("counted as ncu's", keep=1),
    *(Column(name, right=True) for name in ("count", "cycles", "of bound")),
)
LEFT_OUT = "Not modelled: latencies, arbitration between warps, sectors that DRAM delivers more than once."


def write(analysis: Analysis, stream: TextIO) -> None:
    """Prints the bounds on `stream`."""
    bound, screen = analysis.bound, Screen(stream)
    screen.say(f"{analysis.trace.kernel}: {bound.verdict}", "bold")
    if bound.units:
        screen.say()
        screen.table(COLUMNS, map(Row, unit_rows(bound)))
    screen.say()
    for line in footer(analysis):
        screen.say(line)
    for reason in at_all_places(analysis.trace.uncertain):
        screen.say(f"Not certain: {reason}")


def unit_rows(bound: Bound) -> list[tuple[str, ...]]:
    """A row for each unit, in the order of `COLUMNS`."""
    return [
        (u.name, u.metric, number(u.count, "-"), f"{u.cycles:,}", percent(u.cycles / bound.cycles))
        for u in bound.units
    ]


def footer(analysis: Analysis) -> Iterator[str]:
    """Resident blocks, how the work is distributed, what memory delivers, and what is left out."""
    bound, launch = analysis.bound, analysis.trace.launch
    yield from occupancy_lines(analysis)
    shared = (
        "all execute the same code, so whole blocks are distributed"
        if bound.whole_blocks
        else "the work is divided evenly among them"
    )
    yield (
        f"{bound.multiprocessors} of {analysis.arch.multiprocessors} multiprocessors ({bound.chip}) for "
        f"{count(launch.blocks, 'block')} of {count(launch.threads, 'thread')}; {shared}."
    )
    yield from _traffic(analysis)
    if bound.unknown:
        yield f"Not in the bound, because its rate was not measured: {', '.join(bound.unknown)}."
    yield from (f"An estimate: {reason}." for reason in bound.lacks)
    yield LEFT_OUT


def _traffic(analysis: Analysis) -> Iterator[str]:
    """What DRAM has to deliver, and how fast it can."""
    footprint, chip = analysis.bound.footprint, analysis.arch
    if footprint is None or not footprint.read + footprint.written:
        return
    read, written = (
        f"{count(sectors, 'sector')} ({size(sectors * analysis.arch.sector_bytes)})"
        for sectors in (footprint.read, footprint.written)
    )
    rates = chip.memory or chip.sheet
    source = f"{rates.product}, " + ("data sheet?" if chip.memory is None else "measured")
    yield (
        f"Global memory: {read} are read at least once, {written} written. DRAM moves at most "
        f"{rates.dram / 1e9:,.0f} GB/s ({source}), {chip.dram_bytes_a_cycle:,.0f} B a "
        f"cycle at {chip.sheet.clock / 1e6:,.0f} MHz; the L2 cache is empty before the launch."
    )
    moved = dram_bytes(footprint, chip)
    for board in chip.boards:
        if moved and board.product != rates.product:
            cycles = ceil(moved / chip.on(board.product).dram_bytes_a_cycle)
            rate = f"{board.dram / 1e9:,.0f} GB/s"
            yield f"On an {board.product} it moves {rate}: at least {count(cycles, 'cycle')}."


def occupancy_lines(analysis: Analysis) -> Iterator[str]:
    """Resident blocks, what limits them, what would make room for more; and the waves."""
    held, waves = analysis.bound.occupancy, analysis.bound.waves
    if held is None:
        return
    limits = ", ".join(f"{name} {number(limit, 'any')}" for name, limit in held.limits.items())
    needs = held.needs
    yield (
        f"Resident: {count(held.blocks, 'block')} of {count(held.warps, 'warp')} on a multiprocessor, "
        f"{percent(held.share)} of its warps; limited by {' and '.join(held.limited_by)} ({limits}). "
        f"A thread has {needs.registers} registers, a block {needs.shared_bytes:,} B of shared memory."
    )
    yield from _cliffs(analysis.bound)
    if waves is not None:
        last = waves.waves % 1
        tail = f"; the last is {percent(last)} full" if waves.waves > 1 and last else ""
        busiest = f"The busiest multiprocessor gets {count(waves.most, 'block')}."
        yield f"Waves: {waves.waves:.2f}{tail}. {busiest}"


def _cliffs(bound: Bound) -> Iterator[str]:
    """How much as many blocks may take, and what would make room for more."""
    held = bound.occupancy
    if held is None:
        return
    if bound.room is not None:
        registers, shared = bound.room.registers, bound.room.shared_bytes
        each = f"{registers} registers a thread, or {shared:,} B of shared memory a block"
        yield f"As many blocks fit with up to {each}."
    if not bound.cliffs:
        return
    ways = []
    for less, blocks in bound.cliffs:
        registers = held.needs.registers - less.registers
        bytes_ = held.needs.shared_bytes - less.shared_bytes
        what = f"{count(registers, 'fewer register')}" if registers else f"{bytes_:,} B less shared memory"
        ways.append(f"with {what}, {blocks}")
    yield f"Resident instead of {held.blocks}: {'; '.join(ways)}."


#: A document with the figures of the bound as fields of its own: a Struct cannot have two bases with fields.
BoundDocument = msgspec.defstruct(
    "BoundDocument",
    [
        ("kernel", str),
        *get_type_hints(BoundFigures, include_extras=True).items(),
        ("uncertain", Annotated[Texts, Meta(description="why some counts are not certain")]),
    ],
    bases=(Document,),
    namespace={"__doc__": "The least cycles of a launch, and what bounds them."},
    frozen=True,
    kw_only=True,
)


def bound_document(analysis: Analysis) -> msgspec.Struct:
    """A `BoundDocument`."""
    figures = msgspec.structs.asdict(analysis.bound.figures)
    return BoundDocument(kernel=analysis.trace.kernel, uncertain=analysis.trace.uncertain, **figures)
