"""Collects the requests of another tool's trace into a `Trace`, by its opcodes (`LDG.E.128`).

Only a batch of requests and the distinct ones seen so far are held in memory. Which shared atomic is which:
docs/model.md.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Sized
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memsim.access import NONE, Site, SiteRequests
from memsim.arch.units import LINE, WARP, WORD
from memsim.errors import MemsimError
from memsim.instruction import Instruction
from memsim.isa.memory import matrix_count
from memsim.isa.op import Form
from memsim.isa.table import DEFINITIONS
from memsim.launch import Launch
from memsim.trace.record import Recorder
from memsim.trace.site_records import note_of_folded
from memsim.trace.trace_data import Origin, TraceData

#: Names in reports of accesses that are not counted: of other spaces, and of opcodes that are none in
#: `memsim.isa`, where uniform loads of constants and prefetches are none of lanes.
SPACES_IN_WORDS = {"local": "local memory", "constant": "constant memory", "texture": "texture"}
OTHERS = {
    **dict.fromkeys(("LDCU", "ULDC"), SPACES_IN_WORDS["constant"]),
    **dict.fromkeys(("UTMAPF", "UBLKPF"), "bulk copy"),
}
#: A modifier with the bits of an element, and how many there are.
FLOAT = re.compile(r"B?F\d")
BITS = re.compile(r"[USFB]?F?(\d{1,3})(?:x([0-9]))?")


@dataclass(frozen=True, slots=True)
class Opcode:
    """The memory operation of an opcode. lanes: how many lanes, from 0 on, supply an address.

    Of an access through a generic address in_shared: what it is there; unmade: what an atomic is that makes
    none there.
    """

    access: str
    space: str
    width: int
    lanes: int = WARP
    in_shared: str = ""
    unmade: str = ""


@lru_cache(maxsize=4096)
def read_opcode(text: str) -> Opcode | str | None:
    """The memory operation; a text: the name of an uncounted one; None: not a known access."""
    name, *modifiers = text.split(".")
    touches = [touch for one in DEFINITIONS.get(name, ()) for touch in one.touches]
    if not touches:
        return OTHERS.get(name)
    access, space = touches[0]
    if space in SPACES_IN_WORDS or access.startswith("surface"):
        return SPACES_IN_WORDS.get(space, "texture")
    if "bulk" in access:
        return "bulk copy"
    if access in ("ldmatrix", "stmatrix"):
        return Opcode(access, space, 16, 8 * matrix_count(Form(name, tuple(modifiers), ())))
    width = _width(modifiers)
    if access == "cp_async":
        return Opcode("cp_async_cg" if "BYPASS" in modifiers else access, "copy", width)
    if access not in ("load", "store", "atomic", "reduction"):
        return None
    in_shared = _atomic(modifiers) if access == "atomic" else access
    if space != "generic":
        return Opcode(in_shared if space == "shared" else access, space, width)
    if access != "atomic":
        return Opcode(access, space, width, in_shared="load_generic" if access == "load" else access)
    unmade = "atomic_cas_unmade" if in_shared == "atomic_cas" else "atomic_unmade"
    if width > WORD or any(map(FLOAT.match, modifiers)):
        in_shared = "atomic_generic"  # shared memory has no such atomic
    return Opcode(access, space, width, in_shared=in_shared, unmade=unmade)


def _width(modifiers: list[str]) -> int:
    """Bytes per lane, from the modifier with a number of bits, and of elements; default 4."""
    found = filter(None, map(BITS.fullmatch, modifiers))
    return next((int(bits[1]) // 8 * int(bits[2] or 1) for bits in found), WORD)


def _atomic(modifiers: list[str]) -> str:
    if "CAST" in modifiers:
        return "atomic_loop"
    if "CAS" in modifiers:
        return "atomic_cas"
    return "atomic_inc" if "POPC" in modifiers else "atomic"


BATCH = 1 << 14
#: Or this many of each instruction, if there are many: a batch of few costs as much as one of hundreds.
OF_EACH = 1 << 3

#: The windows of shared and local memory start at multiples of this many bytes.
WINDOW = 1 << 24
#: What files may name: addresses below this one, and so many instructions, which each take memory.
MOST_ADDRESS, MOST_INSTRUCTIONS, LONGEST_NAME = 1 << 62, 1 << 15, 1 << 8

#: The source file in reports: the memory instructions of the trace, one per line.
LISTING = "instructions"

ALL_DYNAMIC = ("how much of its shared memory is dynamic (all of it is assumed to be)",)
NO_BASE = "its generic addresses may be in shared or global memory; the trace does not tell"
NO_SIDES = "the trace does not tell which of its two addresses is in shared memory"
#: Numbers that wait to be sorted in among the others.
MANY = 1 << 16

LANES = np.arange(WARP)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TracedInstruction(Instruction):
    """A memory instruction of the trace, one object for each."""

    opcode: Opcode


class Batch:
    """One instruction's requests in order, with the warps that made them.

    They are expanded to arrays all at once, which is many times faster than one by one.
    A number that is too large for its column raises `OverflowError` when it is added.
    """

    def __init__(self) -> None:
        self.masks = array("I")
        self.blocks = array("q")
        self.warps = array("i")
        self.in_steps = array("q")  # requests given by a stride
        self.firsts = array("q")
        self.strides = array("q")
        self.in_full = array("q")  # requests with all addresses
        self.addresses = array("q")

    def __len__(self) -> int:
        return len(self.masks)

    def add_steps(self, mask: int, first: int, stride: int) -> None:
        """The active lanes' addresses are `stride` bytes apart.

        Raises:
            MemsimError: an address is outside of memory.
        """
        _check_addresses(first, first + stride * (mask.bit_count() - 1))
        self.in_steps.append(len(self.masks))
        self.masks.append(mask)
        self.firsts.append(first)
        self.strides.append(stride)

    def add_full(self, mask: int, addresses: Iterable[int]) -> None:
        """One address for each active lane.

        Raises:
            MemsimError: an address is outside of memory.
            ValueError: the numbers of addresses and active lanes differ.
        """
        own = list(addresses)
        if len(own) != mask.bit_count():
            raise ValueError("the numbers of addresses and active lanes differ")
        _check_addresses(min(own, default=0), max(own, default=0))
        self.addresses.extend(own)
        self.in_full.append(len(self.masks))
        self.masks.append(mask)

    def requests(self) -> SiteRequests:
        """All of them; the address of an inactive lane is 0."""
        masks = np.array(self.masks, np.int64)[:, None]
        active = (masks >> LANES & 1).astype(np.bool_)
        addresses = np.zeros(active.shape, np.int64)
        rank = np.cumsum(active[self.in_steps], axis=1) - 1
        firsts, strides = (np.array(each, np.int64)[:, None] for each in (self.firsts, self.strides))
        addresses[self.in_steps] = np.where(active[self.in_steps], firsts + strides * rank, 0)
        full = np.zeros((len(self.in_full), WARP), np.int64)
        full[active[self.in_full]] = self.addresses
        addresses[self.in_full] = full
        blocks, warps = np.array(self.blocks, np.int64), np.array(self.warps, np.int32)
        return SiteRequests(addresses, active, None, blocks, warps)


def _check_addresses(*addresses: int) -> None:
    if min(addresses) < 0 or max(addresses) >= MOST_ADDRESS:
        raise MemsimError("an address is outside of memory")


def check_instruction(known: Sized, *names: str) -> None:
    """Check that one more than the `known` instructions may be named.

    Raises:
        MemsimError: there are too many.
        ValueError: no instruction has such a name.
    """
    if len(known) >= MOST_INSTRUCTIONS:
        raise MemsimError(f"it has more than {MOST_INSTRUCTIONS:,} different instructions")
    if sum(map(len, names)) > LONGEST_NAME or not all(map(str.isprintable, names)):
        raise ValueError("this is no instruction")


def coordinates(text: str) -> tuple[int, int, int]:
    """From `x,y,z`.

    Raises:
        ValueError: not three numbers.
    """
    x, y, z = map(int, text.split(","))
    return x, y, z


class BlocksSeen:
    """The distinct blocks of a grid that occurred, by their coordinates."""

    def __init__(self, grid: tuple[int, ...]) -> None:
        self.grid = grid
        self.known = np.zeros(0, np.int64)
        self.fresh: set[int] = set()

    def __len__(self) -> int:
        self._settle()
        return len(self.known)

    def add(self, x: int, y: int, z: int) -> int:
        """The linear number of a block, which is counted if it is new.

        Raises:
            MemsimError: the grid has no such block.
        """
        columns, rows, layers = self.grid
        if not (0 <= x < columns and 0 <= y < rows and 0 <= z < layers):
            raise MemsimError(f"it has a thread block ({x},{y},{z}) outside of the grid {self.grid}")
        number = x + columns * (y + rows * z)
        self.fresh.add(number)
        if len(self.fresh) >= MANY:
            self._settle()
        return number

    def _settle(self) -> None:
        if self.fresh:
            self.known = np.union1d(self.known, np.fromiter(self.fresh, np.int64))
            self.fresh = set()


class Collector:
    """Counts the requests of another tool's trace.

    recorder: stores the distinct requests. shared_base, local_base: start of the windows of shared and local
    memory; None if the trace does not tell. zero_is_idle: a lane with address 0 is inactive.
    """

    def __init__(
        self,
        recorder: Recorder,
        shared_base: int | None = None,
        local_base: int | None = None,
        zero_is_idle: bool = False,
    ) -> None:
        self.recorder = recorder
        self.zero_is_idle = zero_is_idle
        self.shared_base = shared_base
        self.local_base = local_base
        self.waiting: dict[TracedInstruction, Batch] = {}
        self.count = 0
        self.sites: dict[tuple[TracedInstruction, str, str], Site] = {}
        self.uncounted: Counter[str] = Counter()

    def batch(self, instruction: TracedInstruction, block: int, warp: int) -> Batch:
        """The batch for the next request of an instruction; earlier ones may be counted now."""
        batch = self.waiting.get(instruction)
        # The two sides of a copy follow each other and are counted together.
        half = instruction.opcode.space == "copy" and batch is not None and len(batch) % 2 == 1
        if self.count >= max(BATCH, OF_EACH * len(self.waiting)) and not half:
            self.flush()
            batch = None
        if batch is None:
            batch = self.waiting[instruction] = Batch()
        batch.blocks.append(block)
        batch.warps.append(warp)
        self.count += 1
        return batch

    def flush(self) -> None:
        """Count pending requests."""
        for instruction, batch in self.waiting.items():
            self._count(instruction, batch.requests())
        self.waiting = {}
        self.count = 0

    def _count(self, instruction: TracedInstruction, requests: SiteRequests) -> None:
        opcode, active = instruction.opcode, requests.active & (instruction.opcode.lanes > LANES)
        if self.zero_is_idle:
            active = active & (requests.addresses != 0)
        requests = replace(requests, active=active)
        if opcode.space == "copy":
            self._copies(instruction, requests)
        elif opcode.space == "generic":
            self._generic(instruction, requests)
        else:
            self._record(instruction, opcode.space, requests)

    def _record(self, instruction: TracedInstruction, space: str, requests: SiteRequests) -> None:
        """Requests to one space; shared addresses are relative to the start of the window."""
        if space == "shared":
            requests = replace(requests, addresses=requests.addresses % WINDOW)
        self.recorder.requests(self._site(instruction, space), requests)

    def _generic(self, instruction: TracedInstruction, requests: SiteRequests) -> None:
        """Requests through generic addresses, each to the space whose window contains it."""
        if self.shared_base is None:
            self.recorder.lost(self._site(instruction, "global"), len(requests), NO_BASE)
            return
        shared = self._in_window(requests.addresses, self.shared_base)
        local = self._in_window(requests.addresses, self.local_base)
        self.uncounted["local memory request"] += int((requests.active & local).any(1).sum())
        for space, inside in (("shared", shared), ("global", ~shared & ~local)):
            here = replace(requests, active=requests.active & inside)
            made = np.flatnonzero(here.active.any(1))
            if len(made):
                self._record(instruction, space, here[made])
        if instruction.opcode.unmade:
            self._unmade(instruction, requests[np.flatnonzero(~(requests.active & shared).any(1))])

    def _unmade(self, instruction: TracedInstruction, requests: SiteRequests) -> None:
        """What atomics with no lane in shared memory take there: one lane of each group, at address 0."""
        opcode = instruction.opcode
        lanes = min(WARP, LINE // opcode.width)
        groups = requests.active.reshape(len(requests), WARP // lanes, lanes)
        first = (groups & (groups.cumsum(2) == 1)).reshape(requests.active.shape)
        made = replace(requests, addresses=np.zeros_like(requests.addresses), active=first)
        if first.any():
            self.recorder.requests(self._site(instruction, "shared", opcode.unmade), made)

    def _copies(self, instruction: TracedInstruction, requests: SiteRequests) -> None:
        """Pairs of lines: the one in the window of shared memory is the destination, the other the source."""
        rows = np.arange(0, len(requests) - 1, 2)
        shared, active = self._in_window(requests.addresses, self.shared_base), requests.active
        inside: NDArray[np.bool_] = np.asarray((shared | ~active).all(1) & active.any(1), np.bool_)
        made = active[rows].any(1) | active[rows + 1].any(1)
        told = (inside[rows] != inside[rows + 1]) | ~made
        paired = len(requests) % 2 == 0 and bool(told.all())
        if self.shared_base is None or not paired:
            for space in ("shared", "global"):
                self.recorder.lost(self._site(instruction, space), len(rows), NO_SIDES)
            return
        to = np.where(inside[rows], rows, rows + 1)
        written, read = requests[to], requests[2 * rows + 1 - to]
        written = replace(written, addresses=written.addresses % WINDOW)
        both = written.active & read.active
        origins = np.where(read.active, read.addresses, NONE)
        targets = np.where(both, written.addresses, NONE)
        self._record(instruction, "shared", replace(written, partner=origins))
        self._record(instruction, "global", replace(read, partner=targets))

    def _in_window(self, addresses: NDArray[np.int64], base: int | None) -> NDArray[np.bool_]:
        if base is None:
            return np.zeros(addresses.shape, np.bool_)
        return (addresses >= base) & (addresses < base + WINDOW)

    def _site(self, instruction: TracedInstruction, space: str, access: str = "") -> Site:
        """access: if it is not the opcode's."""
        opcode = instruction.opcode
        access = access or (space == "shared" and opcode.in_shared) or opcode.access
        key = instruction, space, access
        if key not in self.sites:
            self.sites[key] = Site(len(self.sites), instruction, access, space, opcode.width)
        return self.sites[key]

    def trace(self, kernel: str, launch: Launch, blocks: int, origin: Origin) -> TraceData:
        """The resulting trace. Its "source" is the list of the memory instructions that occur."""
        self.flush()
        sites, columns = self.recorder.columns()
        order = sorted(
            {instruction for instruction, *_ in self.sites}, key=lambda each: (each.address, each.text)
        )
        line_of = {instruction: number for number, instruction in enumerate(order, 1)}
        places = {site.index: line_of[instruction] for (instruction, *_), site in self.sites.items()}
        numbers = sorted(self.recorder.sites)
        named = [
            replace(site, file=LISTING, line=places[number])
            for number, site in zip(numbers, sites, strict=True)
        ]
        folded = [
            site
            for number, site in zip(numbers, named, strict=True)
            if self.recorder.sites[number].rows.folded
        ]
        return TraceData(
            kernel=kernel,
            launch=launch,
            blocks_replayed=blocks,
            sites=tuple(named),
            sources={LISTING: "".join(f"{each.text}\n" for each in order)},
            notes=tuple(note_of_folded(folded)),
            uncounted={what: times for what, times in self.uncounted.items() if times},
            origin=origin,
            apart=self.recorder.is_apart,
            **columns,
        )


def made_from(form: str, path: Path, lacks: tuple[str, ...]) -> Origin:
    """The origin of a trace read from a file; `form`: its format."""
    return Origin(f"{form} {path.name}", "", "", "", lacks)
