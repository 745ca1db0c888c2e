"""Reads the output of NVBit's `mem_trace` tool, one line per request.

Other lines (the program's own output) are skipped. Source of the format: NVBit, tools/mem_trace.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from memsim.arch.units import WARP
from memsim.errors import MemsimError
from memsim.launch import MAX_THREADS, Launch
from memsim.names.demangle import demangle
from memsim.trace.foreign.collect import (
    ALL_DYNAMIC,
    BlocksSeen,
    Collector,
    Opcode,
    TracedInstruction,
    check_instruction,
    coordinates,
    made_from,
    read_opcode,
)
from memsim.trace.record import Recorder
from memsim.trace.trace_data import TraceData

ANNOUNCED = "LAUNCH - Kernel pc"
LAUNCH = re.compile(
    r"LAUNCH - Kernel pc \S+ - Kernel name (?P<name>.{0,16384}?) - (?:grid|kernel) launch id (?P<id>\d+)"
    r" - grid size (?P<grid>\d+,\d+,\d+) - block size (?P<block>\d+,\d+,\d+)(?:.*? - shmem (?P<shmem>\d+))?"
)
ACCESS = re.compile(
    r"(?:grid_launch_id (?P<id>\d+) - )?CTA (?P<cta>\d+,\d+,\d+) - warp (?P<warp>\d+)"
    r" - (?P<opcode>[A-Z]\S*) - (?P<addresses>.*)"
)
ALL = (1 << WARP) - 1
#: Launches of a file, which are held while it is read.
MOST_LAUNCHES = 1 << 16
LACKS = (
    "names of arrays",
    "source lines",
    "which instruction of an opcode it was",
    "which lanes are active (a lane with address 0 is assumed not to be)",
    "which warp of its block it was",
)


@dataclass
class TracedLaunch:
    """One launch: its name and shape as far as known.

    again: an earlier one has its number, and made requests.
    """

    number: int
    name: str = ""
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    shared_bytes: int = 0
    again: bool = False


@dataclass
class ExtentsSeen:
    """What requests of a launch show of its shape; warps: places for them on a multiprocessor."""

    grid: tuple[int, int, int] = (1, 1, 1)
    warps: int = 1

    def show(self, cta: tuple[int, int, int], warp: int) -> None:
        """There is this block, and a warp of it in this place."""
        x, y, z = self.grid
        self.grid = max(x, cta[0] + 1), max(y, cta[1] + 1), max(z, cta[2] + 1)
        self.warps = max(self.warps, warp + 1)


def read_nvbit(
    path: Path,
    lines: Callable[[], Iterator[tuple[int, str]]],
    kernel: str | None,
    recorder: Callable[[], Recorder],
) -> TraceData:
    """The trace of one launch in the file.

    Args:
        lines: reads the file from its beginning; it is read twice, so that only one launch is held in memory.
        kernel: which launch, by the kernel's name or the launch's number; None if there is only one.
        recorder: creates the recorder of distinct requests.

    Raises:
        MemsimError: no request in the file, several launches and no choice, or a truncated line.
    """
    number = 0

    def numbered() -> Iterator[str]:
        nonlocal number
        for number, line in lines():  # noqa: B007, for errors
            yield line

    try:
        launches, requests = _launches(numbered())
        number = 0
        chosen = _choose(path, launches, list(requests), kernel)
        launch = _shape(chosen, requests[chosen.number])
        blocks = BlocksSeen(launch.grid)
        collector = Collector(recorder(), zero_is_idle=True)
        _collect(chosen, launch, blocks, numbered(), collector)
    except (ValueError, OverflowError):
        message = f"a request must have {WARP} addresses"
        raise MemsimError(message, file=str(path), line=number) from None
    except MemsimError as error:
        if error.file is None:
            error.file, error.line = str(path), number or None
        raise
    return _trace(chosen, launch, len(blocks), path, collector)


def _collect(
    chosen: TracedLaunch, launch: Launch, blocks: BlocksSeen, lines: Iterator[str], collector: Collector
) -> None:
    """Adds the requests of a launch to the collector, and their blocks.

    The tool tells the place of a warp on its multiprocessor (`%warpid`), which may be any.

    Raises:
        MemsimError: a block that the grid has not.
        ValueError: addresses that are none, or as many as a warp has not; a number of thousands of digits.
        OverflowError: a number that no address is.
    """
    instructions: dict[str, TracedInstruction | str] = {}
    for line in lines:
        match = ACCESS.search(line)
        if match is None or int(match["id"] or 0) != chosen.number:
            continue
        opcode = match["opcode"]
        if opcode not in instructions:
            check_instruction(instructions, opcode)
            known = read_opcode(opcode)
            instructions[opcode] = (
                TracedInstruction(opcode, opcode=known) if isinstance(known, Opcode) else known or opcode
            )
        found = instructions[opcode]
        block = blocks.add(*coordinates(match["cta"]))
        if not isinstance(found, TracedInstruction):
            collector.uncounted[f"{found} request"] += 1
            continue
        batch = collector.batch(found, block, int(match["warp"]) % launch.warps)
        batch.add_full(ALL, [int(text, 16) for text in match["addresses"].split()])


def _launches(lines: Iterator[str]) -> tuple[dict[int, TracedLaunch], dict[int, ExtentsSeen]]:
    """The launches that have a header line, and the numbers of those that made requests.

    Versions of the tool differ in whether a launch's line has its number or the next one; the first launch of
    a process is number 0.
    """
    launches: dict[int, TracedLaunch] = {}
    requests: dict[int, ExtentsSeen] = {}
    ahead = None
    for line in lines:
        at = line.find(ANNOUNCED)
        match = LAUNCH.match(line, at) if at >= 0 else None
        if match is not None:
            told, shared = int(match["id"]), int(match["shmem"] or 0)
            ahead = told == 1 if ahead is None else ahead
            number, shape = told - ahead, (coordinates(match["grid"]), coordinates(match["block"]))
            launches[number] = TracedLaunch(number, match["name"], *shape, shared, again=number in requests)
            continue
        access = ACCESS.search(line)
        if access is not None:
            if access["id"] is None and len(launches) > 1:
                raise MemsimError("this request does not tell which of the launches above made it")
            seen = requests.setdefault(int(access["id"] or 0), ExtentsSeen())
            seen.show(coordinates(access["cta"]), int(access["warp"]))
        if max(len(launches), len(requests)) > MOST_LAUNCHES:
            raise MemsimError(f"it has more than {MOST_LAUNCHES:,} launches")
    return launches, requests


def _choose(
    path: Path, launches: dict[int, TracedLaunch], requests: list[int], kernel: str | None
) -> TracedLaunch:
    if not requests:
        raise MemsimError("there is no request of NVBit's mem_trace in this file", file=str(path))
    fitting = [
        number
        for number in sorted(requests)
        if kernel in (None, str(number)) or (number in launches and _is_called(launches[number].name, kernel))
    ]
    names = ", ".join(f"{n}: {launches[n].name if n in launches else '?'}" for n in sorted(requests)[:8])
    if len(fitting) != 1:
        what = f"{len(fitting)} launches" if fitting else f"no launch of {kernel}"
        raise MemsimError(
            f"there are {what} in this file" if fitting else f"there is {what} in this file",
            file=str(path),
            hint=f"choose one by --kernel, its name or number: {names}",
        )
    chosen = launches.get(fitting[0], TracedLaunch(fitting[0]))
    if chosen.again:
        raise MemsimError(
            f"several launches have the number {chosen.number}, and nothing tells their requests apart",
            file=str(path),
            hint="write each run of the program to a file of its own",
        )
    return chosen


def _is_called(name: str, wanted: str | None) -> bool:
    return wanted in (name, demangle(name), name.partition("(")[0])


def _shape(kernel: TracedLaunch, seen: ExtentsSeen) -> Launch:
    """The launch as it is told; what is not told as the requests show it."""
    block = kernel.block or (min(WARP * seen.warps, MAX_THREADS), 1, 1)
    return Launch(kernel.grid or seen.grid, block, kernel.shared_bytes)


def _trace(kernel: TracedLaunch, launch: Launch, blocks: int, path: Path, collector: Collector) -> TraceData:
    lacks: tuple[str, ...] = LACKS
    if kernel.grid is None or kernel.block is None:
        lacks = (*lacks, "grid and block (those that were seen are used)")
    lacks = (*lacks, *(ALL_DYNAMIC if kernel.shared_bytes else ()))
    name = demangle(kernel.name) if kernel.name else path.name
    origin = made_from("NVBit mem_trace", path, lacks)
    return collector.trace(name, launch, blocks, origin)
