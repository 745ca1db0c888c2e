"""Memory accesses: bounds checks, resolution of generic addresses, and reports to the listener."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from memsim.access import MOST_SITES, AccessSide, Again, Listener, Site, SiteAccess, Stretches
from memsim.arch.units import LINE, WARP, WORD
from memsim.argument_types import Texture
from memsim.isa.machine_protocol import NotesLoads
from memsim.isa.memory_access import own_shared
from memsim.isa.program import Op
from memsim.launch import Launch
from memsim.order.order_listener import Listeners, OrderListener
from memsim.simt.active_lanes import Lanes, rank_in_cluster
from memsim.simt.bounds import Bounds, Origins, resolve_generic
from memsim.simt.copies_in_flight import CopiesInFlight
from memsim.simt.faults import KernelFault, WrongLanes, place_in_source
from memsim.state.address_spaces import SHARED_BASE, SHARED_WINDOW, WINDOW_SIZE, align
from memsim.state.launch_memory import Memory
from memsim.state.parts import Mask
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import both, either, from_bools, invert
from memsim.state.registers import plus, to_array
from memsim.state.space_bytes import SpaceBytes
from memsim.state.sums import Int, low_bits

COUNTED = ("shared", "global", "local", "constant")
#: Bytes that TMA copies consist of.
STRETCH = 16


def only_reads(access: str, space: str) -> bool:
    """Does this access leave this space unchanged?"""
    return access == "load" or (access.startswith("cp_async") and space == "global")


@lru_cache(maxsize=4096)
def has_generic_address(op: Op) -> bool:
    """Is the state space known only by the address?"""
    return any(declared == "generic" for _, declared in op.touches)


class Sites:
    """The access sites of a program, created on first use."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, str, str], Site] = {}
        self._count: Counter[int] = Counter()

    def site(self, op: Op, access: str, space: str, width: int) -> Site:
        """The access site of an instruction in a state space; of one that fetches from textures of several
        texel sizes, one for each.
        """
        key = (op.index, f"{access} {width}" if space == "texture" else access, space)
        if key not in self.known:
            self.known[key] = Site(op.index * MOST_SITES + self._count[op.index], op, access, space, width)
            self._count[op.index] += 1
        return self.known[key]

    def of(self, op: Op) -> list[Site]:
        """The known sites of an instruction."""
        return [site for (index, _, _), site in self.known.items() if index == op.index]


class Accesses(Lanes):
    """Lanes that access memory.

    allow_out_of_bounds: a load outside of every array is counted, and its value is unknown. again: reports
    the last access once more. repeats: by instruction, and by the lanes and the registers with which it made
    an access, what reports that again. spinning: by instruction, lanes that go round a loop again. order: is
    told of what may matter to the order of accesses. collect: as of `Bounds`. reads_idle: as `Warps` of
    isa/lanes.py. loaded: is told what loads read; None: nobody wants to know.
    """

    def __init__(
        self,
        launch: Launch,
        cluster: tuple[int, int, int],
        memory: Memory,
        origins: Origins,
        listener: Listener,
        allow_out_of_bounds: bool,
    ) -> None:
        super().__init__(launch, cluster)
        self.memory = memory
        self.origins = origins
        self.listener = listener
        self.allow_out_of_bounds = allow_out_of_bounds
        self.sites = Sites()
        self.again: Again | None = None
        self.reads_idle = False
        self.operands_of: dict[int, frozenset[str]] = {}
        self.repeats: dict[int, dict[tuple[Hashable, ...], Again]] = {}
        self.spinning: dict[int, Mask] = {}
        self.loaded: NotesLoads | None = None
        self.in_flight = CopiesInFlight()
        self.order: OrderListener = self.in_flight
        self.collect: Callable[[KernelFault], None] | None = None

    def start(self, blocks: np.ndarray, apart: bool = False) -> None:
        """Start these blocks, with their own shared and local memory."""
        super().start(blocks, apart)
        self.repeats = {}
        self.spinning = {}
        self.memory.start_chunk(*self.shape)
        self.order.start_chunk(self, self.memory)
        self.bounds = Bounds(self, self.memory, self.origins, self.allow_out_of_bounds, self.collect)

    def tell_order(self, *listeners: OrderListener) -> None:
        """These are told, too, of what may matter to the order of accesses."""
        self.order = Listeners(self.in_flight, *listeners)

    def touch(
        self,
        op: Op,
        access: str,
        space: str,
        width: int,
        address: Int,
        active: Mask,
        other: AccessSide | None = None,
    ) -> Mask:
        """Lanes `active` access `address`: check it and report it.

        Returns the lanes that read outside of every array, if that is allowed.
        """
        if space == "elsewhere":
            self._touch_elsewhere(op, access, width, address, active)
            return False
        self.bounds.outside = False
        self.bounds.only_reads = only_reads(access, space)
        is_generic = has_generic_address(op)
        arrays: frozenset[str] = frozenset()
        if active is not False and space != "constant":
            arrays = self.bounds.check(op, space, width, address, active)
        if is_generic and (space == "constant" or (space == "local" and access not in ("load", "store"))):
            # It is also a request to global memory, which the profiler's Source page may show.
            self.lose(op, access, "global", width, Poison(f"a generic address in {space} memory", op), active)
            if space == "constant":
                return self.bounds.outside
        if is_generic and (space, access) == ("shared", "load"):
            if self.cluster == (1, 1, 1):
                access = "load_generic"
            elif width == 8:
                self.listener.uncertain(
                    f"wavefronts of the 8-byte loads at {op.where}: with a cluster address the chip serves a"
                    " whole warp at once"
                )
        site = self.sites.site(op, access, space, width)
        if space == "shared":
            address = plus(address, -self.memory.layouts["shared"].base)
        if other is not None and space == "global":
            other = AccessSide(plus(other.address, -self.memory.layouts["shared"].base), other.active)
        if self.collect is not None:
            active = both(active, invert(self.bounds.outside))
        self.again = self.listener.access(SiteAccess(site, address, self.mask, active, arrays, other))
        if self.bounds.outside is not False:
            self.again = None
            if self.collect is None:
                self.listener.noted("reads outside of every array", self.bounds.outside)
            active = both(active, invert(self.bounds.outside))
        self.order.access(op.index, space, address, width, active)
        return self.bounds.outside

    def _touch_elsewhere(self, op: Op, access: str, width: int, address: Int, active: Mask) -> None:
        """Lanes access distributed shared memory, that of another block of their cluster.

        Raises:
            MemsimError: there is no such block, or the address is out of bounds or misaligned.
        """
        mask = self.full(active)
        array = np.broadcast_to(to_array(address), self.shape)
        ranks, own = array - SHARED_WINDOW >> 24, (array & WINDOW_SIZE - 1) - SHARED_BASE
        count, size = self.peers.shape[1], self.memory.shared_bytes
        self._refuse(op, width, mask & (ranks >= count), ranks, "in block {0}" + f" of a cluster of {count}")
        where = f"at byte {{0}} of the shared memory of another block ({size} bytes)"
        outside = (own < 0) | (own + width > align(size, 16))
        self._refuse(op, width, mask & outside, own, where)
        self._refuse(op, width, mask & (own % width != 0), own, where, "misaligned")
        blocks, _ = self.of_shared(plus(address, -SHARED_WINDOW), mask)
        called = access.removesuffix("_generic")
        site = self.sites.site(op, f"cluster_{called}", "shared", width)
        place = plus(address, -SHARED_WINDOW - SHARED_BASE)  # with the block's rank
        self.listener.access(SiteAccess(site, place, self.mask, active))
        rows, threads = np.nonzero(mask)
        self.visit(op, rows, threads // WARP, blocks, "async" in access)

    def _refuse(
        self,
        op: Op,
        width: int,
        wrong: np.ndarray,
        numbers: np.ndarray,
        where: str,
        what: str = "out-of-bounds",
    ) -> None:
        """Raise if lanes access distributed shared memory wrongly. where: with the number of the first."""
        if wrong.any():
            at, lanes = " " + where.format(int(numbers[wrong][0])), from_bools(wrong)
            raise KernelFault(
                f"{what} {op.name} of {width} bytes{at} by {self.places(lanes)}",
                "alignment" if what == "misaligned" else "address",
                self.wrong(op, lanes, "distributed shared", width, at),
                **place_in_source(op),
            )

    def visit(
        self, op: Op, rows: np.ndarray, warps: np.ndarray, blocks: np.ndarray, is_async: bool = False
    ) -> None:
        """Report warps [n] of blocks `rows` whose access is to shared memory of `blocks`, perhaps several
        times.
        """
        away = rows != blocks
        if away.any():
            rows, warps, blocks = np.unique([rows[away], warps[away], blocks[away]], axis=1)
            self.order.visit(op.index, rows, warps, blocks, is_async)

    def elsewhere(self, address: Int, active: Mask) -> tuple[SpaceBytes, Int]:
        """The shared memory of the blocks that lanes access, and the addresses there."""
        mask = self.full(active)
        rows = np.zeros(self.shape, np.int64)
        rows[mask], _ = self.of_shared(plus(address, -SHARED_WINDOW), mask)
        return self.memory.space("shared").of_rows(rows), low_bits(address, 24)

    def lose(self, op: Op, access: str, space: str, width: int, poison: Poison, active: Mask) -> None:
        """Report an access with unknown addresses."""
        self.order.lose(op.index, space, active)
        if space == "local" and not self.memory.layouts["local"].end:
            return  # the kernel has none
        if space not in COUNTED:
            self.listener.uncounted(f"{space} {'call' if access == 'call' else 'request'}", active)
            return
        site = self.sites.site(op, access, space, width)
        if active is False:
            self.listener.access(SiteAccess(site, 0, self.mask, False))
            return
        self.listener.unknown(site, poison, self.mask, active)

    def skip(self, op: Op) -> bool:
        """Report an access that no active lane makes; False if its sites are not known yet."""
        sites = self.sites.of(op)
        for site in sites:
            self.listener.access(SiteAccess(site, 0, self.mask, False))
        return bool(sites)

    def resolve(self, address: Int, active: Mask) -> list[tuple[str, Int, Mask]]:
        """(space, address in it, lanes) of a generic address, for each space accessed."""
        found = resolve_generic(address, active)
        if self.cluster != (1, 1, 1):
            return self._of_cluster(address, active) or found
        return [(name, own_shared(at) if name == "shared" else at, part) for name, at, part in found]

    def _of_cluster(self, address: Int, active: Mask) -> list[tuple[str, Int, Mask]] | None:
        """As `resolve`, for shared addresses with a block's rank in bits 24 and up.

        None if no lane accesses shared memory.
        """
        array = to_array(address)
        inside = both(
            active, from_bools((array >= SHARED_WINDOW) & (array < SHARED_WINDOW + 16 * WINDOW_SIZE))
        )
        if inside is False:
            return None
        own = from_bools((array - SHARED_WINDOW) >> 24 == to_array(rank_in_cluster(self)))
        ways = [
            ("shared", own_shared(address), both(inside, own)),
            ("elsewhere", address, both(inside, invert(own))),
        ]
        rest = both(active, invert(inside))
        ways += resolve_generic(address, rest) if rest is not False else []
        return [way for way in ways if way[2] is not False]

    def in_spaces(self, op: Op, unmade: str | None, width: int, pieces: list[tuple[str, Int, Mask]]) -> None:
        """What the chip does for a generic access beyond serving each space's lanes.

        An atomic with no lane in shared memory takes a wavefront there for each group of its lanes, recorded
        as `unmade`, one lane of each group at address 0. Loads and stores (`unmade` is None) of up to 4 bytes
        count lanes in global and in local memory together, not the same in each run. Source: docs/model.md.
        """
        by_space = {space: self.by_warp(self.full(active)) for space, _, active in pieces}
        nobody = np.zeros((1, 1, WARP), np.bool_)
        of_global, of_local = (by_space.get(space, nobody) for space in ("global", "local"))
        if unmade is None:
            if width <= WORD and (of_global.any(-1) & of_local.any(-1)).any():
                self.listener.uncertain(
                    f"sectors at {op.where}: lanes of one request are in local and in global memory, which"
                    " the chip counts differently in each run"
                )
            return
        others = of_global | of_local
        alone: np.ndarray = np.any(others, axis=-1)
        for space in ("shared", "elsewhere"):
            alone = alone & ~np.any(by_space.get(space, nobody), axis=-1)
        if alone.any():
            groups = (others & alone[..., None]).reshape(*alone.shape, -1, min(WARP, LINE // width))
            first = groups & (groups.cumsum(-1) == 1)
            site = self.sites.site(op, unmade, "shared", width)
            lanes_of_groups = from_bools(first.reshape(self.shape))
            self.listener.access(SiteAccess(site, 0, self.mask, lanes_of_groups))

    def first_round(self, op: Op, active: Mask) -> Mask:
        """The lanes of warps that come to a loop's compare-and-swap for the first time."""
        again = both(active, self.spinning.get(op.index, False))
        return active if again is False else both(active, invert(self.whole_warps(again)))

    def goes_round(self, op: Op, active: Mask, done: Mask) -> None:
        """Lanes come to it again, but for those that are done."""
        others = both(self.spinning.get(op.index, False), invert(active))
        self.spinning[op.index] = either(others, both(active, invert(done)))

    def stretches(self, op: Op, access: str, space: str, made: Stretches) -> None:
        """Warps copy stretches of bytes: check and report it.

        Raises:
            MemsimError: a copy outside of every array.
        """
        made = made[made.length > 0]
        start, ends_at = made.start, made.start + made.length
        buffers = self.memory.layouts[space]
        names: frozenset[str] = frozenset()
        if len(made):
            found = buffers.find(int(start.min()), int(ends_at.max()))
            owners = buffers.owners(start, 1)
            ends = np.array([buffer.end for buffer in buffers.buffers], np.int64)
            wrong = (owners < 0) | (ends_at > ends[owners])
            if found is None and space == "global" and wrong.any():
                raise self._wrong_copy(op, "global", made[wrong])
            numbers = np.unique(owners)
            names = frozenset(buffers.buffers[i].name for i in numbers if i >= 0)
        site = self.sites.site(op, access, space, STRETCH)
        self.listener.access(SiteAccess(site, 0, self.mask, False, names))
        if space == "shared" and access == "bulk_load":
            self.order.bulk_load(op.index, made)
        base = SHARED_BASE if space == "shared" else 0
        self.listener.stretches(site, names, replace(made, start=start - base))

    def check_copies(self, op: Op, space: str, unit: int, made: Stretches) -> None:
        wrong = made[made.start % unit != 0]
        if len(wrong):
            raise self._wrong_copy(op, space, wrong, unit)

    def _wrong_copy(self, op: Op, space: str, wrong: Stretches, unit: int = 0) -> KernelFault:
        """The error for a copy outside of every array, or to an address that is no multiple of a unit."""
        where = self.bounds.where(op, space, int(wrong.start[0]))[0].rstrip(",")
        kind, what, place = "address", "out-of-bounds", "memory outside of every array"
        if unit:
            kind, what, place = "alignment", "misaligned", f"an address that is no multiple of {unit}"
        width = unit or int(wrong.length[0])
        lanes = WrongLanes(op, int(self.blocks[wrong.rows[0]]), -1, 1, space, width, where)
        return KernelFault(f"{what} {op.name}: it copies from or to {place}{where}", kind, lanes)

    def issued(self, op: Op, lanes: int) -> None:
        """So many lanes executed a copy by TMA."""
        for site in self.sites.of(op):
            self.listener.issued(site, lanes)

    def operands(
        self, op: Op, width: int, active: Mask, read: Callable[[], Stretches], commits: bool
    ) -> None:
        """Four warps together read the operands of a matrix product: `width` bytes for each lane of the first
        one. read, commits: as of `OrderListener.read_operands`.

        Their addresses do not affect any count; they say which arrays the product reads.
        """
        site = self.sites.site(op, "wgmma", "shared", width)
        first = from_bools((np.arange(self.threads) // WARP % 4 == 0)[None, :])
        arrays = frozenset[str]() if active is False else self._read_by(op, read)
        self.listener.access(SiteAccess(site, 0, self.mask, both(active, first), arrays))
        if active is not False:
            self.order.read_operands(op.index, read, active, commits)

    def _read_by(self, op: Op, read: Callable[[], Stretches]) -> frozenset[str]:
        """The shared arrays of a product's operands where it is executed first; none if that is not known."""
        if op.index not in self.operands_of:
            try:
                start = read().start
            except Poisoned:
                return frozenset()
            layout = self.memory.layouts["shared"]
            owners = np.unique(layout.owners(np.unique(start), 1)).tolist()
            names = (layout.buffers[one].name for one in owners if one >= 0)
            self.operands_of[op.index] = frozenset(names)
        return self.operands_of[op.index]

    def fetch(self, op: Op, access: str, texture: Texture, places: Int, active: Mask) -> None:
        """Lanes fetch texels of a texture, `places` as `memsim.model` takes them: report it."""
        site = self.sites.site(op, access, "texture", texture.width)
        names = frozenset({self.memory.texture_names[id(texture)]})
        self.listener.access(SiteAccess(site, places, self.mask, active, names))

    def lose_fetch(self, op: Op, access: str, texture: Texture, poison: Poison, active: Mask) -> None:
        """Report a fetch with unknown coordinates."""
        site = self.sites.site(op, access, "texture", texture.width)
        self.listener.unknown(site, poison, self.mask, active)

    def uncounted(self, what: str, active: Mask) -> None:
        """Report accesses whose cost is unknown."""
        self.listener.uncounted(what, active)

    def noted(self, what: str, active: Mask) -> None:
        """Report requests that no counter of ours has."""
        self.listener.noted(what, active)

    def copy_past_cache(self, op: Op, destination: Int, active: Mask) -> None:
        """A copy that bypasses the L1 cache: is its destination that of a copy in flight?"""
        if self.in_flight.copy(destination, self.mask, active):
            self.listener.uncertain(
                f"sectors of the cp.async.cg at {op.where}: it overwrites copies that may be in flight, whose"
                " data the chip then need not fetch"
            )
