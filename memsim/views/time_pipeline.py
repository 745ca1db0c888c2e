"""Which warp issues what in which cycle: as a picture in text, and as a trace that browsers open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import msgspec

from memsim.files import writing
from memsim.time.multiprocessor import REASONS, IssuedInstruction
from memsim.time.predict_time import LaunchTime
from memsim.views.screen import Screen

#: Letters of what is issued, by pipe, and of what warps wait for, by reason.
ISSUED = {
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
    screen.say("Issued by the first scheduler: " + told({v: k or "other" for k, v in ISSUED.items()}, used))
    screen.say("Waiting for: " + told({v: k for k, v in WAITING.items()}, used))


def letters_of(time: LaunchTime) -> dict[int, str]:
    """The letter of each instruction, by its number."""
    return {address_of(one.address): ISSUED.get(one.pipe, ISSUED[""]) for one in time.instructions}


def told(names: dict[str, str], used: set[str]) -> str:
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


def opcode_of(text: str) -> str:
    """The opcode of an instruction, with its modifiers."""
    return next((word for word in text.split() if not word.startswith("@")), "")


def write_trace(time: LaunchTime, path: Path) -> None:
    """Write the watched cycles as a trace in Chrome's format, which ui.perfetto.dev opens: a process for each
    scheduler and a thread for each warp; a microsecond stands for a cycle.

    Raises:
        MemsimError: the file cannot be written.
    """
    with writing(path, "the trace") as file:
        file.write(msgspec.json.encode({"displayTimeUnit": "ns", "traceEvents": list(events(time))}))


def events(time: LaunchTime) -> Iterator[dict[str, Any]]:
    """The events of the trace: waiting, and issues."""
    ops = {address_of(one.address): one for one in time.instructions}
    for scheduler, warp in sorted({(one.scheduler, one.warp) for one in time.issues}):
        place: dict[str, Any] = {"pid": scheduler, "tid": warp}
        yield {"ph": "M", "name": "process_name", **place, "args": {"name": f"scheduler {scheduler}"}}
        yield {"ph": "M", "name": "thread_name", **place, "args": {"name": f"warp {warp}"}}
    for one in time.issues:
        op, place = ops[one.op], {"pid": one.scheduler, "tid": one.warp, "ph": "X"}
        told = {"line": op.line, "address": f"{op.address:#x}", "text": op.text}
        if one.cycle > one.since + 1:
            waited = one.cycle - one.since - 1
            yield {**place, "name": one.why, "cat": "wait", "ts": one.since + 1, "dur": waited, "args": told}
        yield {**place, "name": opcode_of(op.text), "cat": "issue", "ts": one.cycle, "dur": 1, "args": told}
