"""The errors of a launch as text, each with a picture of its two accesses in time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from memsim.arch.units import WARP
from memsim.launch import Launch
from memsim.sanitize.hazards import FoundAccess, Hazard
from memsim.sanitize.sanitize import Sanitized
from memsim.source.text import code_line
from memsim.views.labels import count
from memsim.views.screen import Screen


def write(found: Sanitized, stream: TextIO) -> None:
    """Prints the findings, worst first, then what was not judged."""
    screen = Screen(stream)
    screen.say(f"{found.kernel}: {headline(found)}", "bold")
    for number, one in enumerate(found.errors, 1):
        screen.say()
        screen.say(f"{number}. {title(one)}", "bold")
        for line in body(found, one):
            screen.say(f"   {line}")
    allowed = [one for one in found.findings if one.allowed is not None]
    if allowed:
        screen.say()
    for one in allowed:
        screen.say(f"Allowed: {title(one)}: {one.allowed}")
    screen.say()
    for line in footer(found):
        screen.say(line)


def headline(found: Sanitized) -> str:
    """The answer in a line."""
    errors = found.errors
    if not errors:
        return "not judged" if found.unjudged else "no races found"
    sure = sum(not one.doubt for one in errors)
    said = [count(sure, "race")] if sure else []
    return ", ".join([*said, *([f"{len(errors) - sure} possible"] if sure < len(errors) else [])])


def title(one: Hazard) -> str:
    """What and where."""
    last = one.offset + one.width - 1
    bytes_ = f"byte {one.offset}" if one.width == 1 else f"bytes {one.offset} to {last}"
    possible = "possible " if one.doubt else ""
    return f"{possible}{one.tool} on {one.element} ({bytes_} of {one.array}, {one.space} memory): {one.kind}"


def body(found: Sanitized, one: Hazard) -> Iterator[str]:
    """Both accesses with their code, how many there are, what would order them, and a picture."""
    for access in (one.first, one.second):
        yield f"{access.instruction.where}  {code(found, access)}"
        yield f"    {access.does}: {thread(found.launch, access)}; {access.instruction.text}"
    yield f"{count(one.count, 'such access')}".replace("accesss", "accesses") + " in all blocks"
    if one.doubt:
        yield f"possible, not certain: {one.doubt}"
    yield f"would order them: {one.cure}"
    yield from picture(one)


def code(found: Sanitized, access: FoundAccess) -> str:
    """The source line of an access."""
    place = access.instruction.source
    return "" if place is None else code_line(found.sources.get(place.file, ""), place.line)


def thread(launch: Launch, access: FoundAccess) -> str:
    """`lane 0 of warp 1, thread (32,0,0) of block (0,0,0)`."""
    block = _coordinates(access.block, launch.grid)
    if access.thread < 0:
        return f"a copy, in block {block}"
    at = _coordinates(access.thread, launch.block)
    return f"lane {access.thread % WARP} of warp {access.thread // WARP}, thread {at} of block {block}"


def _coordinates(index: int, shape: tuple[int, int, int]) -> str:
    return f"({index % shape[0]},{index // shape[0] % shape[1]},{index // (shape[0] * shape[1])})"


def picture(one: Hazard) -> Iterator[str]:
    """The two threads on a line of time, with the barriers of the block that both passed before."""
    names = [f"{access.thread // WARP}.{access.thread % WARP}" for access in (one.first, one.second)]
    width = max(map(len, names))
    behind = f"-[barrier {one.barriers}]" if one.barriers else "-"
    first, second = (f" {access.does} line {access.instruction.line} " for access in (one.first, one.second))
    yield ""
    yield f"thread {names[0]:{width}} {behind}--*{first}{'-' * (len(second) + 2)}>"
    yield f"thread {names[1]:{width}} {behind}{'-' * (len(first) + 3)}*{second}>   no order between the two"


def footer(found: Sanitized) -> Iterator[str]:
    """What was run, and what was not judged."""
    yield (
        f"{count(found.blocks_run, 'block')} of {found.launch.blocks:,} were run, each instruction that an "
        "address or a branch depends on; accesses to shared memory by each thread were compared."
    )
    for reason in found.unjudged:
        yield f"Not judged: {reason}."
