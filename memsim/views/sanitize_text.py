"""The errors of a launch as text, each with a picture of its accesses in time, and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, TextIO

from msgspec import Meta

from memsim.arch.units import WARP
from memsim.document import Dim3, Document, DocumentPart, Texts
from memsim.errors import MemsimError
from memsim.launch import Launch, Natural, coordinates_of
from memsim.sanitizer.hazards import BOUNDS, MISALIGNED, FoundAccess, Hazard, Sanitized
from memsim.source.text import code_line
from memsim.trace.trace_data import TAKES
from memsim.views.labels import count, dim3
from memsim.views.screen import Screen

#: What a finding of each tool is called, the worst first.
NAMES = {
    "bounds": ("access out of bounds", "accesses out of bounds"),
    "misaligned": ("misaligned access", "misaligned accesses"),
    "sync": ("synchronization error", "synchronization errors"),
    "race": ("race", "races"),
    "init": ("read of what nobody wrote", "reads of what nobody wrote"),
}

#: What is counted of findings that are of no array.
WHAT = {"sync": ("thread", "threads"), "race": ("warp", "warps"), "init": ("read", "reads")}


def write(found: Sanitized, stream: TextIO, name: str = "") -> None:
    """Prints the findings, worst first, then what was not judged. name: of the launch, for the kernel's."""
    screen = Screen(stream)
    screen.say(f"{name or found.kernel}: {headline(found)}", "bold")
    for number, one in enumerate(found.errors, 1):
        screen.say()
        screen.say(f"{number}. {title(one)}", "bold")
        for line in body(found, one):
            screen.say(f"   {line}".rstrip())
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
    said = []
    for possible in (False, True):
        counts = Counter(_called(one) for one in found.errors if bool(one.doubt) == possible)
        for called, names in NAMES.items():
            if counts[called]:
                said.append(f"{counts[called]} {'possible ' * possible}{names[counts[called] > 1]}")
    if said:
        return ", ".join(said)
    allowed = f", {len(found.findings)} allowed" if found.findings else ""
    return f"no error found{allowed}{', but not all could be judged' if found.unjudged else ''}"


def in_lines(found: Sanitized) -> list[str]:
    """Each finding in a line, what was not judged, and what not followed."""
    lines = [f"{_name(one)}: {one.line}" for one in found.errors]
    lines += [f"not judged: {why}" for why in found.unjudged]
    return [*(lines or ["no error found"]), *(f"not followed: {what}" for what in found.limits)]


def _called(one: Hazard) -> str:
    """By its tool; of those of bounds some are misaligned."""
    return "misaligned" if one.tool == BOUNDS and MISALIGNED in one.kind else one.tool


def _name(one: Hazard) -> str:
    """`possible race`."""
    return ("possible " if one.doubt else "") + NAMES[_called(one)][0]


def title(one: Hazard) -> str:
    """What and where."""
    name = _name(one)
    if not one.space:
        return ": ".join(filter(None, (name, one.element, one.kind)))
    last = one.offset + one.width - 1
    byte = f"byte {one.offset}" if one.width == 1 else f"bytes {one.offset} to {last}"
    return f"{name}: {one.element} ({byte} of {one.array}, {one.space} memory): {one.kind}"


def body(found: Sanitized, one: Hazard) -> Iterator[str]:
    """The accesses with their code, how many there are, what to do, and a picture."""
    for access in one.accesses:
        place = access.instruction.source
        code = "" if place is None else code_line(found.sources.get(place.file, ""), place.line)
        yield f"{access.instruction.where}  {code}"
        yield f"    {access.does}: {thread(found.launch, access)}; {access.instruction.text}"
    one_of, several = ("such access", "such accesses") if one.space else WHAT[one.tool]
    yield f"{one.count:,} {one_of if one.count == 1 else several}"
    if one.doubt:
        yield f"possible, not certain: {one.doubt}"
    yield f"{'would order them' if one.second and one.space else 'to do'}: {one.cure}"
    yield from picture(found, one)


def thread(launch: Launch, access: FoundAccess) -> str:
    """`lane 0 of warp 1, thread (32,0,0) of block (0,0,0)`."""
    block = dim3(coordinates_of(access.block, launch.grid))
    if access.thread < 0:
        return f"{_nobody(access)}, of block {block}"
    at = dim3(coordinates_of(access.thread, launch.block))
    warp, lane = divmod(access.thread, WARP)
    return f"lane {lane} of warp {warp}, thread {at} of block {block}"


def _nobody(access: FoundAccess) -> str:
    """What acts that is no thread."""
    if access.does == "multiplies":
        return "a warpgroup"
    by_engine = any(opcode in access.instruction.text for opcode in ("UBLK", "UTMA"))
    return "a copy" if by_engine or access.does.startswith("copies") else "a thread"


def picture(found: Sanitized, one: Hazard) -> Iterator[str]:
    """Two threads on lines of time, with the barriers of the block that both passed before, and between them
    the word, with what goes there (from above `v`) or comes from there (to above `^`).
    """
    if one.second is None or not one.space:
        return
    names = [_who(found.launch, access, one.first.block != one.second.block) for access in one.accesses]
    width = max(map(len, (*names, one.element)))
    behind = f"--[barrier {one.barriers}]--" if one.barriers else "--"
    first, second = (f" {access.does} line {access.instruction.line} " for access in one.accesses)
    down, up = ("^" if one.first.does in TAKES else "v"), ("v" if one.second.does in TAKES else "^")
    before, between = " " * len(behind), " " * len(first)
    yield ""
    if one.kind.endswith("at once"):  # by one instruction
        yield f"{names[0]:{width}} {behind}*{first}>"
        yield f"{one.element:{width}} {before}|"
        yield f"{names[1]:{width}} {behind}*{second}>   at once"
        return
    yield f"{names[0]:{width}} {behind}*{first}{'-' * (len(second) + 1)}>"
    yield f"{one.element:{width}} {before}{down}{between}{up}".rstrip()
    yield f"{names[1]:{width}} {behind}{'-' * (len(first) + 1)}*{second}>   no order between the two"


def _who(launch: Launch, access: FoundAccess, has_block: bool) -> str:
    """`thread 1.0`, by warp and lane, or `copy`; has_block: in a block, which it names."""
    warp, lane = divmod(access.thread, WARP)
    name = _nobody(access).removeprefix("a ") if access.thread < 0 else f"thread {warp}.{lane}"
    return f"{name} of block {dim3(coordinates_of(access.block, launch.grid))}" if has_block else name


def footer(found: Sanitized) -> Iterator[str]:
    """What was run, and its notes."""
    blocks = count(found.blocks_run, "block")
    if found.blocks_run < found.launch.blocks:
        blocks += f" of {found.launch.blocks:,}"
    yield (
        f"Looked for: {', '.join(found.tools)}, in {blocks}, by each instruction that addresses and branches "
        "depend on."
    )
    yield from notes(found)


def notes(found: Sanitized) -> Iterator[str]:
    """What was not followed, or not judged."""
    if found.limits:
        yield f"Not followed: {'; '.join(found.limits)}."
    for reason in found.unjudged:
        yield f"Not judged: {reason}."


class AccessPart(DocumentPart, frozen=True, kw_only=True):
    """An access of a finding."""

    file: str
    line: Natural
    address: Annotated[int, Meta(description="of the instruction in the kernel; -1 if unknown")]
    instruction: str
    does: Annotated[str, Meta(description="such as loads, stores, updates, copies, waits")]
    block: tuple[Natural, Natural, Natural]
    thread: Annotated[int, Meta(description="linear number in the block; -1 if a copy, or not known")]


class HazardPart(DocumentPart, frozen=True, kw_only=True):
    """A finding: all accesses of an instruction, or of a pair of them."""

    tool: Literal["bounds", "sync", "race", "init"]
    kind: str
    accesses: Annotated[tuple[AccessPart, ...], Meta(min_length=1, max_length=2)]
    space: str
    array: str
    element: str
    offset: Annotated[int, Meta(description="first byte of the array that the example accesses")]
    width: Natural
    count: Annotated[Natural, Meta(description="of wrong accesses, in all blocks that ran")]
    cure: str
    doubt: Annotated[str, Meta(description="why it is only possible; empty if it is certain")]
    allowed: Annotated[str | None, Meta(description="the reason why it is allowed; null if it is not")]


class SanitizeDocument(Document, frozen=True, kw_only=True):
    """The errors of a launch, as `memsim sanitize --json` prints them."""

    kernel: str
    grid: Dim3
    block: Dim3
    blocks_run: Natural
    tools: Texts
    findings: Annotated[tuple[HazardPart, ...], Meta(description="the worst first")]
    unjudged: Annotated[Texts, Meta(description="what is not known of this launch")]
    limits: Annotated[Texts, Meta(description="what the launch does that is not followed")]


class NamedPart(DocumentPart, frozen=True, kw_only=True):
    """A launch or a target, by the name that it has in the text."""

    name: str
    error: Annotated[str | None, Meta(description="why it was not judged; null if it was")]
    sanitized: SanitizeDocument | None


class SanitizeLaunchesDocument(Document, frozen=True, kw_only=True):
    """The same of each launch of a file, or of each target of a project."""

    launches: tuple[NamedPart, ...]


def launches_document(launches: Sequence[tuple[str, Sanitized | MemsimError]]) -> SanitizeLaunchesDocument:
    """Those of several launches by name, or why they were not judged."""
    parts = (
        NamedPart(name=name, error=str(found), sanitized=None)
        if isinstance(found, MemsimError)
        else NamedPart(name=name, error=None, sanitized=sanitize_document(found))
        for name, found in launches
    )
    return SanitizeLaunchesDocument(launches=tuple(parts))


def sanitize_document(found: Sanitized) -> SanitizeDocument:
    """The findings as `memsim sanitize --json` prints them."""
    launch = found.launch
    findings = tuple(_part(launch, one) for one in found.findings)
    return SanitizeDocument.of(found, grid=launch.grid, block=launch.block, findings=findings)


def _part(launch: Launch, one: Hazard) -> HazardPart:
    accesses = tuple(
        AccessPart(
            file=file,
            line=line,
            address=access.instruction.address,
            instruction=access.instruction.text,
            does=access.does,
            block=coordinates_of(access.block, launch.grid),
            thread=access.thread,
        )
        for access, (file, line) in zip(one.accesses, one.places)
    )
    return HazardPart.of(one, accesses=accesses)
