"""Hears the accesses of a launch for those that look for errors, and which of them leave their arrays."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from memsim.access import Chunk, Listener, Site, SiteAccess
from memsim.instruction import Place
from memsim.isa import tensor_memory
from memsim.isa.program import GLOBAL, LOCAL, SHARED
from memsim.kernel import Kernel
from memsim.launch import Launch
from memsim.names.demangle import short_name
from memsim.order.order_listener import Listeners
from memsim.sanitizer.bulk_copies import UnfinishedCopies
from memsim.sanitizer.global_cells import LaneAccess, lanes_of, places_of
from memsim.sanitizer.global_races import GlobalRaces
from memsim.sanitizer.lane_masks import LaneMasks
from memsim.sanitizer.launch_before import LaunchBefore
from memsim.sanitizer.product_registers import ProductRegisters
from memsim.sanitizer.race_listener import RaceListener, setting_of
from memsim.sanitizer.skipped_barriers import SkippedBarriers
from memsim.sanitizer.unwritten import UnwrittenMemory, UnwrittenRegisters
from memsim.simt.control_graph import ControlGraph
from memsim.simt.faults import Deadlock, KernelFault, WrongLanes
from memsim.source.text import code_line
from memsim.state.parts import Mask
from memsim.state.poison import Poison
from memsim.state.predicates import ScatteredLanes, to_bools
from memsim.state.registers import to_array
from memsim.state.sums import Int


@dataclass(slots=True)
class Stray:
    """Lanes that a source line's only array is too small for: the first one, and the first byte."""

    block: int
    thread: int
    byte: int
    count: int = 0


class Ears(Listener):
    """A listener to accesses. Copies in bulk are events of order.

    faults: of accesses outside of every array, or misaligned, by instruction and kind. unjudged: in words.
    registers: of products. masks: of lanes. unset: registers that nobody wrote. skipped: barriers.
    unfinished: copies.
    """

    def __init__(self, kernel: Kernel, launch: Launch, unwritten: Collection[str]) -> None:
        """unwritten: names of arrays in global memory whose contents do not count."""
        program, self.sources = kernel.executable.program, kernel.sources
        self.races = RaceListener(*setting_of(kernel.executable, launch))
        self.of_global = GlobalRaces(program, launch)
        self.before = LaunchBefore(program)
        self.unwritten = UnwrittenMemory(program, unwritten)
        self.registers, self.masks = ProductRegisters(program), LaneMasks(program)
        self.unset = UnwrittenRegisters(program, launch)
        self.skipped, self.unfinished = SkippedBarriers(ControlGraph(program)), UnfinishedCopies(program)
        self.unjudged: set[str] = set()
        self.faults: dict[tuple[int, str], tuple[KernelFault, WrongLanes, list[int]]] = {}
        self._strayed: dict[tuple[Site, str, str], Stray] = {}
        self.deadlock: Deadlock | None = None
        self.started = False
        self._touched = defaultdict[int, frozenset[str]](frozenset)
        self._of_line = defaultdict[Place | None, set[str]](set)
        self._named: dict[int, str | None] = {}

    @property
    def order(self) -> Listeners:
        """Those of them that hear what orders accesses."""
        of_memory = self.races, self.of_global, self.unwritten, self.before
        return Listeners(*of_memory, self.masks, self.unfinished, self.unset, self.skipped)

    @property
    def looked_at(self) -> dict[int, int]:
        """Slots of registers that they look at, by instruction."""
        return {**self.unset.looked_at, **self.masks.looked_at, **self.before.looked_at}

    def finish(self) -> None:
        """The launch has come to its end."""
        self.races.finish()
        self.unfinished.finish()

    def take(self, fault: KernelFault) -> None:
        """Lanes make an access that is wrong, and go on without it."""
        if fault.by is not None:
            key = fault.by.op.index, fault.kind
            self.faults.setdefault(key, (fault, fault.by, []))[2].append(fault.by.count)

    def start_chunk(self, chunk: Chunk) -> None:
        """Blocks start."""
        self.started, self._chunk = True, chunk
        self.registers.start_chunk(self.races.threads)
        self.unset.begin(chunk)

    def access(self, made: SiteAccess) -> Callable[[], bool] | None:
        """Lanes access memory."""
        site, address, _, active, arrays, _ = made
        if site.space != SHARED:
            if active is not False:
                lanes = address, active, self._chunk
                self._hear(
                    LaneAccess(site, self._chunk, partial(lanes_of, *lanes), partial(places_of, *lanes))
                )
            return None
        if active is not False and arrays:
            if not arrays <= self._touched[site.index]:
                self._touched[site.index] |= arrays
                self._of_line[site.instruction.source] |= arrays
            if self._may_stray(site):
                self._look_for_strays(site, address, active)
        tell = self.races.shared_access(site, address, active)
        # Of an instruction that may leave its array, each access is looked at.
        return tell and (lambda: not self._may_stray(site) and tell())

    @property
    def strayed(self) -> Iterator[tuple[Site, str, str, Stray]]:
        """Accesses to another shared array (by name) than the only one that the source line names, which the
        instruction accesses, too, or nothing in this line does.
        """
        for (site, named, hit), stray in self._strayed.items():
            if named in self._touched[site.index] or named not in self._of_line[site.instruction.source]:
                yield site, named, hit, stray

    def _may_stray(self, site: Site) -> bool:
        """Whether an instruction accesses another array than the only one in its line."""
        named = self._only_array(site)
        return named is not None and not self._touched[site.index] <= {named}

    def _look_for_strays(self, site: Site, address: Int, active: Mask) -> None:
        named = self._only_array(site)
        assert named is not None
        layout, chunk = self.races.layout, self._chunk
        lanes = np.broadcast_to(to_bools(active), (len(chunk.blocks), chunk.threads))
        places = np.broadcast_to(to_array(address), lanes.shape)
        owners = np.where(lanes, layout.owners(places + layout.base, 1), -1)
        for number, buffer in enumerate(layout.buffers):
            wrong = owners == number
            if buffer.name == named or not wrong.any():
                continue
            row, thread = (int(one) for one in np.unravel_index(int(wrong.argmax()), wrong.shape))
            first = Stray(int(chunk.blocks[row]), thread, int(places[row, thread]))
            self._strayed.setdefault((site, named, buffer.name), first).count += int(wrong.sum())

    def _only_array(self, site: Site) -> str | None:
        """The only shared array that the source line of an instruction names; None if there are others."""
        if site.index not in self._named:
            place = site.instruction.source
            text = "" if place is None else code_line(self.sources.get(place.file, ""), place.line)
            words = set(re.findall(r"\w+", text))
            named = [one.name for one in self.races.layout.buffers if short_name(one.name) in words]
            self._named[site.index] = named[0] if len(named) == 1 else None
        return self._named[site.index]

    def scattered(
        self, site: Site, address: np.ndarray, lanes: ScatteredLanes, warps: int, arrays: frozenset[str]
    ) -> None:
        """Some lanes access memory."""
        threads = self._chunk.threads
        self._hear(LaneAccess(site, self._chunk, lambda: (*np.divmod(lanes.lanes, threads), address)))

    def _hear(self, made: LaneAccess) -> None:
        """Lanes access memory that is not shared."""
        if made.site.space == GLOBAL:
            self.of_global.hear(made)
            self.before.hear(made)
        self.unwritten.hear(made)

    def unknown(self, site: Site, poison: Poison, mask: Mask, active: Mask) -> None:
        """Lanes access unknown addresses."""
        if site.space != LOCAL:
            said = (
                f"the {site.space} {site.access} at {site.instruction.where}, whose addresses are unknown: "
            )
            self.unjudged.add(said + poison.story())

    def executed(self, start: int, stop: int, mask: Mask) -> None:
        """Lanes execute these instructions."""
        for one in (self.registers, self.masks, self.unset, self.skipped):
            if one.is_used:
                one.executed(start, stop, mask)

    def passed_by(self, where: str, writes: int, mask: Mask) -> None:
        """Lanes take some way of a branch that decides no access and no barrier."""
        self.unset.passed_by(writes, mask)

    def uncounted(self, what: str, active: Mask) -> None:
        """Lanes do what nobody counts."""
        if what == tensor_memory.NAME:
            self.unjudged.add("operations on tensor memory, and what they read in shared memory")
