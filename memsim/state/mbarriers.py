"""The mbarriers of a chunk of blocks: phases, pending arrivals and pending bytes.

Operations of lanes are columns: the block [m], the address [m] and more, in order. A phase completes when no
arrival and no byte is pending; the next one starts immediately. Source: PTX ISA, "Parallel Synchronization
and Communication Instructions: mbarrier"; the bits of an object are those that ptxas writes to initialize
one. Waiting is in `memsim.simt.waits`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from memsim.errors import MemsimError
from memsim.state.poison import Poison

#: An object counts up from a negative number: 20 bits of expected arrivals from bit 1, 21 bits of pending
#: bytes from bit 21, 20 bits of pending arrivals from bit 43, the parity of the phase in bit 63.
COUNT_BITS, BYTE_BITS, EXPECTED_AT, BYTES_AT, PENDING_AT, PHASE_AT = 20, 21, 1, 21, 43, 63
FULL = 1 << COUNT_BITS

Column = np.ndarray


class MbarrierError(MemsimError):
    """What a kernel must not do with an mbarrier."""


@dataclass(eq=False)
class Objects:
    """Columns [blocks, addresses]; `there`: initialized; `free`: expects no bytes."""

    there: Column
    free: Column
    expected: Column
    pending: Column
    bytes: Column
    phase: Column


class Mbarriers:
    """Mbarriers by block and address.

    changes: the number of changes so far. poison: why their state is unknown.
    """

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self.places: dict[int, int] = {}
        self.objects = Objects(*(np.zeros((blocks, 0), dtype) for dtype in (bool, bool, *[np.int64] * 4)))
        self.changes = 0
        self.poison: Poison | None = None
        #: Is told of the blocks [n] and columns [n] of phases that are complete.
        self.completed: Callable[[Column, Column], None] = lambda blocks, columns: None

    def forget(self, why: Poison) -> None:
        """Their state becomes unknown."""
        self.poison = self.poison or why
        self.changes += 1

    def initialise(self, block: Column, address: Column, bits: Column) -> None:
        """Write these objects, `bits` uint64 [m]."""
        at = block, self.columns(address)
        expected = (FULL - (bits >> np.uint64(EXPECTED_AT)).astype(np.int64)) % FULL
        pending = (FULL - (bits >> np.uint64(PENDING_AT)).astype(np.int64)) % FULL
        objects = self.objects
        objects.there[at], objects.free[at] = True, False
        objects.expected[at], objects.pending[at] = expected, pending
        objects.bytes[at] = 0
        objects.phase[at] = (bits >> np.uint64(PHASE_AT)).astype(np.int64)
        self.changes += 1

    def invalidate(self, block: Column, address: Column) -> None:
        """These objects are no longer mbarriers."""
        self.objects.there[block, self.columns(address)] = False

    def waits_for_no_bytes(self, block: Column, address: Column) -> None:
        """The number of bytes that will arrive at these objects is unknown: they are assumed to
        have arrived.
        """
        at = block, self.columns(address)
        self.objects.free[at] = True
        self._complete(*at)
        self.changes += 1

    def arrive(
        self,
        block: Column,
        address: Column,
        count: Column,
        bytes: Column,
        drops: bool = False,
        warp: Column | None = None,
    ) -> tuple[Column, Column, Column]:
        """`count` arrivals [m] after `bytes` more are expected [m].

        Returns (phase, pending arrivals, pending bytes) before all of them, as an H200 does.

        drops: reduces the expected arrivals of later phases. warp: lanes of one arrive together, and must not
        be more than the phase expects; None: each lane by itself.

        Raises:
            MbarrierError: there is no such object, or more arrive than it expects.
        """
        columns = self.columns(address)
        objects = self.objects
        if self.poison is not None:
            return np.zeros_like(block), np.zeros_like(block), np.zeros_like(block)
        if not objects.there[block, columns].all():
            raise MbarrierError("an arrival at an mbarrier that was never initialized")
        keys = block * len(self.places) + columns
        found, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        rows, places = block[first], columns[first]
        arrivals = np.zeros(len(found), np.int64)
        np.add.at(arrivals, inverse, count)
        held = objects.phase, objects.pending, objects.bytes
        phase, missing, waited = (column[rows, places][inverse] for column in held)
        if (arrivals > objects.pending[rows, places]).any():
            together = np.arange(len(block)) if warp is None else warp
            groups = np.unique(together)
            if len(groups) == 1:
                raise MbarrierError(
                    "more arrivals at an mbarrier than it expects in a phase"
                    + ("" if len(block) == 1 else ", by lanes of one instruction: an H200 ends the launch")
                )
            for group in groups:  # the first ones complete a phase, the others arrive in the next
                one = together == group
                self.arrive(block[one], address[one], count[one], bytes[one], drops, together[one])
            return phase, missing, waited
        total = np.zeros(len(found), np.int64)
        np.add.at(total, inverse, bytes)
        at = rows, places
        objects.pending[at] -= arrivals
        objects.bytes[at] += total
        if drops:
            objects.expected[at] -= arrivals
        self._complete(rows, places)
        self.changes += 1
        return phase, missing, waited

    def passed(self, block: Column, address: Column, parity: Column) -> Column:
        """Whether the phase of this parity [m] is complete, bool [m].

        Raises:
            MbarrierError: there is no such object.
        """
        columns = self.columns(address)
        if not self.objects.there[block, columns].all():
            raise MbarrierError("a wait at an mbarrier that was never initialized")
        over: Column = self.objects.phase[block, columns] != parity
        return over

    def lacks(self, block: int, address: int) -> tuple[int, int]:
        """(pending arrivals, pending bytes) of an object."""
        at = block, self.columns(np.array([address]))[0]
        return int(self.objects.pending[at]), int(self.objects.bytes[at])

    # --- inside -------------------------------------------------------------------------

    def columns(self, address: Column) -> Column:
        """The columns of objects; missing ones are created."""
        values, inverse = np.unique(address, return_inverse=True)
        new = [value for value in values.tolist() if value not in self.places]
        if new:
            self.places.update({value: len(self.places) + i for i, value in enumerate(new)})
            more = np.zeros((self.blocks, len(new)), np.int64)
            for name in (field.name for field in fields(Objects)):
                old = getattr(self.objects, name)
                setattr(self.objects, name, np.hstack([old, more.astype(old.dtype)]))
        found: Column = np.array([self.places[value] for value in values.tolist()], np.int64)[inverse]
        return found.reshape(np.shape(address))

    def _complete(self, rows: Column, places: Column) -> None:
        """These phases are complete: the next ones start."""
        objects = self.objects
        arrived = (objects.bytes[rows, places] == 0) | objects.free[rows, places]
        over = objects.there[rows, places] & (objects.pending[rows, places] == 0) & arrived
        at = rows[over], places[over]
        objects.phase[at] ^= 1
        objects.pending[at] = objects.expected[at]
        if len(at[0]):
            self.completed(*at)


def upper_word(phase: Column, missing: Column, bytes: Column) -> Column:
    """Bits 32 to 63 of an object, int64 [m]; the lower ones hold the expected arrivals."""
    bits = (-bytes % (1 << BYTE_BITS) << BYTES_AT) | (FULL - missing) % FULL << PENDING_AT
    return bits >> 32 | phase << (PHASE_AT - 32)
