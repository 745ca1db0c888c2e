"""A cluster of four blocks of two warps that keeps what it is told, in scalars: block b is its b-th."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from memsim.access import Stretches
from memsim.isa.op import SLOTS, Register
from memsim.isa.readers import Binder
from memsim.sass.decode import meaning_of_text, parse_operand
from memsim.state.address_spaces import GLOBAL_BASE, SHARED_WINDOW
from memsim.state.predicates import from_bools, to_bools
from memsim.state.registers import plus, to_array
from memsim.state.space_bytes import SpaceBytes
from memsim.state.sums import low_bits

BLOCKS, THREADS, SIZE = 4, 64, 4096
#: Where shared memory begins in its window.
FIRST = 1024
#: A block and a warp of it.
Warp = tuple[int, int]


class Op:
    """An instruction as far as messages need it."""

    def __init__(self, text: str) -> None:
        self.name = self.text = text
        self.form = SimpleNamespace(name=text.split()[0])
        self.where, self.source, self.index = "address 0x0", None, 7
        self.spills = self.unused = ()


class Cluster:
    """told: what each method was told, by its name. Bytes are random."""

    def __init__(self, seed: int = 1) -> None:
        chance = np.random.default_rng(seed)
        self.shape, self.threads, self.mask = (BLOCKS, THREADS), THREADS, True
        self.stores = {
            "shared": SpaceBytes(
                chance.integers(0, 256, (BLOCKS, SIZE)).astype(np.uint8), FIRST, self.shape, "block"
            ),
            "global": SpaceBytes(
                chance.integers(0, 256, (1, SIZE)).astype(np.uint8), GLOBAL_BASE, self.shape, "one"
            ),
        }
        self.slots: list[Any] = [None] * (SLOTS + 2)
        self.told: dict[str, list[Any]] = {}
        self.memory = SimpleNamespace(space=self.stores.__getitem__, spoil=self._keep("spoil"))
        self.mbarriers = SimpleNamespace(
            columns=lambda place: np.asarray(place) // 8,
            arrive=self._arrive,
            waits_for_no_bytes=self._keep("waits for no bytes"),
            **{name: self._keep(name) for name in ("forget", "initialise", "invalidate")},
            poison=None,
        )
        self.order = SimpleNamespace(
            **{
                name: self._keep(name)
                for name in (
                    "bulk_store bulk_global copy_to_phase async_store store_later wait_for_products maps"
                    " copies_arrive use_mbarrier pass_phase".split()
                )
            }
        )
        self.order.arrive = self._keep("arrives")
        for name in "check_copies stretches visit issued lose touch operands noted".split():
            setattr(self, name, self._keep(name))

    def _keep(self, name: str) -> Any:
        def keep(*given: Any) -> bool:
            self.told.setdefault(name, []).append(tuple(plain(one) for one in given))
            return False

        return keep

    def _arrive(self, *given: Any) -> tuple[np.ndarray, ...]:
        """What objects held before: none here."""
        self.told.setdefault("arrive", []).append(tuple(plain(one) for one in given))
        return tuple(np.zeros(len(given[0]), np.int64) for _ in range(3))

    def full(self, mask: Any) -> np.ndarray:
        return np.broadcast_to(to_bools(mask), self.shape)

    def by_warp(self, array: np.ndarray) -> np.ndarray:
        return np.broadcast_to(array, self.shape).reshape(BLOCKS, -1, 32)

    def in_cluster(self, blocks: np.ndarray, address: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (address & 0xFFFFFFFF) >> 24, address & 0xFFFFFF

    def of_shared(self, address: Any, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.in_cluster(np.nonzero(mask)[0], np.broadcast_to(to_array(address), self.shape)[mask])

    def resolve(self, address: Any, active: Any) -> list[tuple[str, Any, Any]]:
        """Lanes of the own block, and others."""
        ranks = np.broadcast_to(to_array(address) - SHARED_WINDOW >> 24, self.shape)
        own = (ranks == np.arange(BLOCKS)[:, None]) & self.full(active)
        parts = [
            ("shared", low_bits(address, 24), own),
            ("elsewhere", address, self.full(active) & ~own),
        ]
        return [(name, at, from_bools(part)) for name, at, part in parts if part.any()]

    def elsewhere(self, address: Any, active: Any) -> tuple[SpaceBytes, Any]:
        mask, rows = self.full(active), np.zeros(self.shape, np.int64)
        rows[mask], _ = self.of_shared(plus(address, -SHARED_WINDOW), mask)
        return self.stores["shared"].of_rows(rows), low_bits(address, 24)

    def write(self, slot: int, value: Any, active: Any) -> None:
        self.slots[slot] = value

    def at(self, error: Exception, op: Any) -> Exception:
        return error

    def run(self, text: str, active: Any = True, data: bool = True, **registers: Any) -> Cluster:
        for name, value in registers.items():
            operand = parse_operand(name)
            assert isinstance(operand, Register) and operand.slot is not None
            self.slots[operand.slot] = value
        with np.errstate(all="ignore"):  # as a launch is executed
            meaning_of_text(text).bind(Binder({}))(self, Op(text), active, data)
        return self

    def one(self, name: str) -> Any:
        """What a method was told, once."""
        (given,) = self.told[name]
        return given


def plain(one: Any) -> Any:
    """Arrays as lists; stretches as rows (block, start, length, warp)."""
    if isinstance(one, Stretches):
        return list(zip(*(column.tolist() for column in (one.rows, one.start, one.length, one.warps))))
    if isinstance(one, np.ndarray):
        return one.tolist()
    if isinstance(one, np.integer):
        return int(one)
    return one
