"""The estimated time of a launch, as text and as JSON; and which warp issues what in which cycle: as a
picture in text, and as a trace that browsers open.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, TextIO

import msgspec
from msgspec import Meta

from memsim.bound import percent
from memsim.document import Document, JsonObject, Texts
from memsim.estimated_time import NOT_MODELLED
from memsim.files import open_replacement
from memsim.instruction import opcode_of
from memsim.launch import Natural
from memsim.time.launch_time import HELD_OUT_ERROR, PROJECTS_ERROR, InstructionTime, LaunchTime
from memsim.time.multiprocessor import REASONS, IssuedInstruction
from memsim.views.labels import count
from memsim.views.screen import Column, Row, Screen

COLUMNS = (
    Column("line"),
    Column("instruction"),
    Column("executed", right=True, keep=2),
    Column("warp cycles", right=True, keep=1),
    Column("of all", right=True),
    Column("waits for"),
)
#: Instructions, and reasons of each, that the table shows.
MOST_ROWS, MOST_REASONS = 12, 2
ISSUED = "selected"


def write(time: LaunchTime, stream: TextIO) -> None:
    """Prints the estimate on `stream`."""
    screen = Screen(stream)
    screen.say(f"{time.kernel}: {headline(time)}", "bold")
    screen.say()
    screen.table(COLUMNS, map(Row, rows(time)))
    screen.say()
    for line in footer(time):
        screen.say(line)


def headline(time: LaunchTime) -> str:
    """The answer in a line."""
    total = sum(time.stalls.values())
    waits = [
        f"{percent(cycles / total)} {reason}" for reason, cycles in time.stalls.items() if reason != ISSUED
    ]
    return (
        f"about {count(time.cycles, 'active cycle')}, {time.elapsed:,} elapsed, "
        f"{time.seconds * 1e6:,.1f} us at {time.clock / 1e6:,.0f} MHz (an estimate: "
        f"of the catalogue's kernels {percent(HELD_OUT_ERROR)} off in the mean, of launches of projects "
        f"{percent(PROJECTS_ERROR)} in the median)"
        + (f"; of its warps' time {', '.join(waits[:3])}" if waits else "")
    )


def rows(time: LaunchTime) -> Iterator[tuple[str, ...]]:
    """The instructions before which warps wait longest, in the order of `COLUMNS`."""
    total = sum(time.stalls.values())
    for one in sorted(time.instructions, key=lambda one: -one.warp_cycles)[:MOST_ROWS]:
        if not one.executed:
            return
        reasons = sorted(
            ((reason, cycles) for reason, cycles in one.stalls.items() if reason != ISSUED),
            key=lambda item: -item[1],
        )[:MOST_REASONS]
        said = ", ".join(f"{reason} {percent(cycles / one.warp_cycles)}" for reason, cycles in reasons)
        where = str(one.line) if one.line else f"{one.address:#x}"
        spent = f"{one.executed:,}", f"{one.warp_cycles:,}", percent(one.warp_cycles / total)
        yield where, opcode_of(one.text), *spent, said


def footer(time: LaunchTime) -> Iterator[str]:
    """Where the time goes by line, what was run, and what is not modelled."""
    total = sum(time.stalls.values())
    lines = [(line, stalls) for (_, line), stalls in time.stalls_by_line().items() if line]
    if lines:
        said = ", ".join(f"line {line} {percent(sum(stalls.values()) / total)}" for line, stalls in lines[:3])
        yield f"Of the warps' time: {said}."
    yield (
        f"One multiprocessor ({time.chip}) with {count(time.blocks, 'block')}, {time.resident} at once, "
        f"which executes {count(time.issued, 'instruction')}; the L2 cache is {time.l2} before the launch."
    )
    rates = f"L1 has {percent(time.hit_rates['l1'])} and L2 {percent(time.hit_rates['l2'])}"
    yield f"Of the sectors that are asked for, {rates} (an estimate)."
    if time.cycles_otherwise is not None:
        yield (
            "Whether one multiprocessor gets two of the last blocks is a matter of chance: if it "
            f"{'does not' if time.cycles_otherwise < time.cycles else 'does'}, about "
            f"{count(time.cycles_otherwise, 'active cycle')}."
        )
    if not time.is_whole:
        yield "Some blocks and iterations were run, and the rest is extrapolated from them."
    if time.lacks:
        yield f"{NOT_MODELLED.capitalize()}: {'; '.join(time.lacks)}."
    if time.off:
        yield f"Left out: {', '.join(time.off)}."


class TimeDocument(Document, frozen=True, kw_only=True):
    """The estimated time of a launch, as `memsim time --json` prints it."""

    kernel: str
    chip: Annotated[str, Meta(description="whose multiprocessor it is")]
    held_out_error: Annotated[
        float, Meta(ge=0, description="mean error on kernels of the catalogue that no constant was chosen on")
    ]
    projects_error: Annotated[
        float, Meta(ge=0, description="median error on launches of projects that no constant was chosen on")
    ]
    l2: Annotated[Literal["cold", "warm"], Meta(description="the L2 cache before the launch")]
    cycles: Annotated[Natural, Meta(description="estimate of sm__cycles_active.max")]
    cycles_otherwise: Annotated[
        Natural | None,
        Meta(
            description="cycles, if chance hands out the last blocks the other way; null: it does not decide"
        ),
    ]
    elapsed: Annotated[Natural, Meta(description="estimate of sm__cycles_elapsed.max")]
    seconds: Annotated[float, Meta(ge=0, description="of the elapsed cycles, at the boost clock")]
    blocks_of_busiest: Annotated[Natural, Meta(description="blocks of the busiest multiprocessor")]
    resident_blocks: Annotated[Natural, Meta(description="of these, at once")]
    issued: Annotated[Natural, Meta(description="instructions of all its warps")]
    is_whole: Annotated[bool, Meta(description="false: some blocks or iterations were extrapolated")]
    stalls: Annotated[dict[str, Natural], Meta(description="cycles of all warps, by ncu's reason")]
    hit_rates: Annotated[dict[str, float], Meta(description="of L1 and L2, an estimate")]
    l2_sectors: Annotated[Natural, Meta(description="that L2 is asked for, an estimate")]
    dram_bytes: Annotated[Natural, Meta(description="that DRAM delivers, an estimate")]
    units: Annotated[dict[str, float], Meta(description="share of the active cycles in which each is busy")]
    lacks: Annotated[Texts, Meta(description="what is not modelled")]
    off: Annotated[Texts, Meta(description="units that were left out")]
    instructions: Annotated[tuple[InstructionTime, ...], Meta(description="those that were executed")]


def time_document(time: LaunchTime) -> TimeDocument:
    """The estimate as `memsim time --json` prints it."""
    return TimeDocument.of(
        time,
        held_out_error=HELD_OUT_ERROR,
        projects_error=PROJECTS_ERROR,
        blocks_of_busiest=time.blocks,
        resident_blocks=time.resident,
        instructions=tuple(one for one in time.instructions if one.executed),
    )


#: Letters of what is issued, by pipe, and of what warps wait for, by reason.
PIPES = {
    "fma": "F", "alu": "A", "fp64": "D", "xu": "X", "uniform": "U", "tensor": "T", "memory": "M", "": "O",
}  # fmt: skip
WAITING = dict(zip(REASONS, "?-slbpmgdnirft"))
MOST_WARPS = 16


def write_pipeline(time: LaunchTime, cycles: range, stream: TextIO) -> None:
    """Prints the warps of the first scheduler, a row each, and what they do in each of some cycles, a column
    each.
    """
    screen = Screen(stream)
    wide = max(screen.room - 10, 20)
    letters = letters_of(time)
    used: set[str] = set()
    mine = [one for one in time.issues if one.scheduler == 0]
    warps = sorted({one.warp for one in mine})[:MOST_WARPS]
    for start in range(cycles.start, cycles.stop, wide):
        part = range(start, min(start + wide, cycles.stop))
        screen.say(f"cycles {part.start:,} to {part.stop - 1:,}")
        for warp in warps:
            row = row_of([one for one in mine if one.warp == warp], part, letters)
            used |= set(row)
            screen.say(f"warp {warp:4d} {row}".rstrip())
        screen.say()
    screen.say(
        "Issued by the first scheduler: " + letter_legend({v: k or "other" for k, v in PIPES.items()}, used)
    )
    screen.say("Waiting for: " + letter_legend({v: k for k, v in WAITING.items()}, used))


def letters_of(time: LaunchTime) -> dict[int, str]:
    """The letter of each instruction, by its number."""
    return {address_of(one.address): PIPES.get(one.pipe, PIPES[""]) for one in time.instructions}


def letter_legend(names: dict[str, str], used: set[str]) -> str:
    """The letters that were used, with their names."""
    return ", ".join(f"{letter} {name}" for letter, name in names.items() if letter in used)


def row_of(issues: list[IssuedInstruction], part: range, letters: dict[int, str]) -> str:
    """What a warp does in each of some cycles."""
    row = [" "] * len(part)
    for one in issues:
        for cycle in range(max(one.since + 1, part.start), min(one.cycle, part.stop)):
            row[cycle - part.start] = WAITING[one.why]
        if one.cycle in part:
            row[one.cycle - part.start] = letters[one.op]
    return "".join(row)


def address_of(address: int) -> int:
    """The number of the instruction at an address."""
    return address // 16


def write_trace(time: LaunchTime, path: Path) -> None:
    """Write the watched cycles as a trace in Chrome's format, which ui.perfetto.dev opens: a process for each
    scheduler and a thread for each warp; a microsecond stands for a cycle.

    Raises:
        MemsimError: the file cannot be written.
    """
    with open_replacement(path, "the trace") as file:
        file.write(msgspec.json.encode({"displayTimeUnit": "ns", "traceEvents": list(events(time))}))


def events(time: LaunchTime) -> Iterator[JsonObject]:
    """The events of the trace: waiting, and issues."""
    ops = {address_of(one.address): one for one in time.instructions}
    for scheduler, warp in sorted({(one.scheduler, one.warp) for one in time.issues}):
        place: JsonObject = {"pid": scheduler, "tid": warp}
        yield {"ph": "M", "name": "process_name", **place, "args": {"name": f"scheduler {scheduler}"}}
        yield {"ph": "M", "name": "thread_name", **place, "args": {"name": f"warp {warp}"}}
    for one in time.issues:
        op, place = ops[one.op], {"pid": one.scheduler, "tid": one.warp, "ph": "X"}
        told = {"line": op.line, "address": f"{op.address:#x}", "text": op.text}
        if one.cycle > one.since + 1:
            waited = one.cycle - one.since - 1
            yield {**place, "name": one.why, "cat": "wait", "ts": one.since + 1, "dur": waited, "args": told}
        yield {**place, "name": opcode_of(op.text), "cat": "issue", "ts": one.cycle, "dur": 1, "args": told}
