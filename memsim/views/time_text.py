"""The estimated time of a launch, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, TextIO

from msgspec import Meta

from memsim.bound import percent
from memsim.document import Document, Texts, plain
from memsim.launch import Natural
from memsim.time.predict_time import HELD_OUT_ERROR, PROJECTS_ERROR, InstructionTime, LaunchTime
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
        line = str(one.line) if one.line else f"{one.address:#x}"
        words = (word for word in one.text.split() if not word.startswith("@"))
        yield (
            line,
            next(words, ""),
            f"{one.executed:,}",
            f"{one.warp_cycles:,}",
            percent(one.warp_cycles / total),
            said,
        )


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
    if not time.is_whole:
        yield "Some blocks and iterations were run, and the rest is extrapolated from them."
    if time.lacks:
        yield f"Not modelled, so it may be far off: {'; '.join(time.lacks)}."
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


def to_dict(time: LaunchTime) -> dict[str, Any]:
    """The estimate as plain values."""
    return plain(
        TimeDocument.of(
            time,
            held_out_error=HELD_OUT_ERROR,
            projects_error=PROJECTS_ERROR,
            blocks_of_busiest=time.blocks,
            resident_blocks=time.resident,
            instructions=tuple(one for one in time.instructions if one.executed),
        )
    )
