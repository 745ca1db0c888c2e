"""Requests of another tool's trace, gathered into a `Trace` a batch at a time.

In: instructions with masks and addresses, in the order of the file. Out: sites and columns. What is held is a
batch of requests, and the distinct ones seen so far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsim.launch import WARP, Launch
from memsim.ptx.program import SourceLine
from memsim.trace.foreign.batch import LANES, Batch
from memsim.trace.foreign.opcodes import Opcode
from memsim.trace.record import Recorder
from memsim.trace.trace import Origin, Trace

BATCH = 1 << 14

#: Shared and local memory are windows of generic addresses that begin at multiples of this many bytes.
WINDOW = 1 << 24

#: The file that reports name: the memory instructions of the trace, a line for each.
LISTING = "instructions"

ALL_DYNAMIC = ("how much of its shared memory is dynamic (all of it is taken for that)",)
NO_BASE = "its generic addresses may be of shared or of global memory, and the trace does not say"
NO_SIDES = "which of its two addresses is in shared memory the trace does not say"


@dataclass(frozen=True, slots=True)
class Statement:
    """An instruction as the trace names it. text: pc, if it is known, and opcode."""

    text: str
    source: SourceLine | None = None
    line: int = 0
    column: int = 0
    address: int = -1

    @property
    def name(self) -> str:
        """What it is called in a story."""
        return self.text


@dataclass(frozen=True, slots=True)
class Site:
    """One memory instruction of the trace, in one space."""

    index: int
    instruction: Statement
    op: str
    space: str
    width: int


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """A memory instruction of the trace, one object for each. pc: -1 if that is not known."""

    pc: int
    text: str
    opcode: Opcode
    line: int = 0


class Collector:
    """Counts what another tool's trace tells.

    shared_base, local_base: where the windows of shared and local memory begin in generic addresses; None if
    the trace does not say. zero_is_idle: a lane with the address 0 takes no part.
    """

    def __init__(
        self, shared_base: int | None = None, local_base: int | None = None, zero_is_idle: bool = False
    ) -> None:
        self.zero_is_idle = zero_is_idle
        self.shared_base = shared_base
        self.local_base = local_base
        self.recorder = Recorder()
        self.waiting: dict[Instruction, Batch] = {}
        self.count = 0
        self.sites: dict[tuple[Instruction, str], Site] = {}
        self.aside: Counter[str] = Counter()
        self.unresolved: dict[int, tuple[str, int]] = {}

    def batch(self, instruction: Instruction, block: int, warp: int) -> Batch:
        """Where the next request of an instruction goes; those before it may be counted now."""
        batch = self.waiting.get(instruction)
        # The two sides of a copy stand one behind the other, and are counted together.
        half = instruction.opcode.space == "copy" and batch is not None and len(batch) % 2 == 1
        if self.count >= BATCH and not half:
            self.flush()
            batch = None
        if batch is None:
            batch = self.waiting[instruction] = Batch()
        batch.blocks.append(block)
        batch.warps.append(warp)
        self.count += 1
        return batch

    def flush(self) -> None:
        """Counts what waits."""
        for instruction, batch in self.waiting.items():
            addresses, active = batch.written_out()
            if self.zero_is_idle:
                active = active & (addresses != 0)
            self._count(instruction, addresses, active, batch.block, batch.warp)
        self.waiting = {}
        self.count = 0

    def _count(
        self,
        instruction: Instruction,
        addresses: NDArray[np.int64],
        active: NDArray[np.bool_],
        blocks: NDArray[np.int64],
        warps: NDArray[np.int32],
    ) -> None:
        opcode = instruction.opcode
        active = active & (opcode.lanes > LANES)
        if opcode.space == "copy":
            self._copies(instruction, addresses, active, blocks, warps)
        elif opcode.space == "generic":
            self._generic(instruction, addresses, active, blocks, warps)
        else:
            if opcode.space == "shared":
                addresses = addresses % WINDOW
            self.recorder.requests(self._site(instruction, opcode.space), addresses, active, blocks, warps)

    def _generic(
        self,
        instruction: Instruction,
        addresses: NDArray[np.int64],
        active: NDArray[np.bool_],
        blocks: NDArray[np.int64],
        warps: NDArray[np.int32],
    ) -> None:
        if self.shared_base is None:
            self._lose(instruction, "global", NO_BASE, len(addresses))
            return
        shared = self._in_window(addresses, self.shared_base)
        local = self._in_window(addresses, self.local_base)
        spaces = {"shared": shared, "global": ~shared & ~local}
        self.aside["local memory"] += int((active & local).any(1).sum())
        for space, inside in spaces.items():
            lanes = active & inside
            made = lanes.any(1)
            if made.any():
                own = addresses[made] % WINDOW if space == "shared" else addresses[made]
                site = self._site(instruction, space)
                self.recorder.requests(site, own, lanes[made], blocks[made], warps[made])

    def _copies(
        self,
        instruction: Instruction,
        addresses: NDArray[np.int64],
        active: NDArray[np.bool_],
        blocks: NDArray[np.int64],
        warps: NDArray[np.int32],
    ) -> None:
        """Pairs of lines: the one in the window of shared memory is written, the other read."""
        rows = np.arange(0, len(addresses) - 1, 2)
        shared = self._in_window(addresses, self.shared_base)
        inside: NDArray[np.bool_] = np.asarray((shared | ~active).all(1) & active.any(1), np.bool_)
        told = inside[rows] != inside[rows + 1]
        paired = len(addresses) % 2 == 0 and bool(told.all())
        if self.shared_base is None or not paired:
            for space in ("shared", "global"):
                self._lose(instruction, space, NO_SIDES, len(rows))
            return
        to = np.where(inside[rows], rows, rows + 1)
        source = 2 * rows + 1 - to
        there, here = (addresses[source], active[source]), (addresses[to] % WINDOW, active[to])
        who = blocks[rows], warps[rows]
        self.recorder.requests(self._site(instruction, "shared"), *here, *who, there)
        self.recorder.requests(self._site(instruction, "global"), *there, *who, (here[0], here[1] & there[1]))

    def _in_window(self, addresses: NDArray[np.int64], base: int | None) -> NDArray[np.bool_]:
        if base is None:
            return np.zeros(addresses.shape, np.bool_)
        inside: NDArray[np.bool_] = (addresses >= base) & (addresses < base + WINDOW)
        return inside

    def _lose(self, instruction: Instruction, space: str, why: str, requests: int) -> None:
        site = self._site(instruction, space)
        before = self.unresolved.get(site.index, (why, 0))[1]
        self.unresolved[site.index] = why, before + requests

    def _site(self, instruction: Instruction, space: str) -> Site:
        key = instruction, space
        if key not in self.sites:
            statement = Statement(instruction.text, address=instruction.pc)
            opcode = instruction.opcode
            self.sites[key] = Site(len(self.sites), statement, opcode.op, space, opcode.width)
        return self.sites[key]

    def trace(self, kernel: str, launch: Launch, blocks: int, origin: Origin) -> Trace:
        """All that was counted. Its "source" is the list of the memory instructions that occur."""
        self.flush()
        for index, (_, requests) in self.unresolved.items():
            site = next(site for site in self.sites.values() if site.index == index)
            nothing = np.zeros((requests, WARP), np.int64)
            who = np.zeros(requests, np.int64)
            self.recorder.requests(site, nothing, nothing.astype(np.bool_), who, who)
        sites, columns = self.recorder.columns()
        order = sorted({instruction for instruction, _ in self.sites}, key=lambda each: (each.pc, each.text))
        line_of = {instruction: number for number, instruction in enumerate(order, 1)}
        places = {site.index: line_of[instruction] for (instruction, _), site in self.sites.items()}
        numbers = sorted(self.recorder.sites)
        named = [
            replace(
                site,
                file=LISTING,
                line=places[number],
                unresolved=self.unresolved.get(number, (None, 0))[0],
                unresolved_requests=self.unresolved.get(number, (None, 0))[1],
            )
            for number, site in zip(numbers, sites, strict=True)
        ]
        return Trace(
            kernel=kernel,
            launch=launch,
            blocks_replayed=blocks,
            sites=tuple(named),
            sources={LISTING: "".join(f"{each.text}\n" for each in order)},
            notes=tuple(f"{what} ({count:,} requests)" for what, count in self.aside.items() if count),
            origin=origin,
            **as_columns(columns),
        )


def as_columns(columns: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """The columns of a trace by name."""
    return dict(columns)


def made_from(form: str, path: Path, lacks: tuple[str, ...]) -> Origin:
    """The origin of a trace that was read from a file; `form`: whose format it has."""
    return Origin(f"{form} {path.name}", "", "", "", lacks)
