"""Slots of PTX registers, temporaries, predicates and convergence barriers.

There are as many as the function needs; a 64-bit register takes two consecutive ones, and the elements of a
vector are consecutive where possible.
"""

from __future__ import annotations

from collections.abc import Sequence

from memsim.isa.op import SLOTS, Barrier, Predicate, Register, require
from tests.ptx_front import program as ptx
from tests.ptx_front.program import Function
from tests.ptx_front.used_registers import uses

#: After the registers of machine code and the two slots of block barriers with a reduction.
FIRST_SLOT = SLOTS + 2


def bits_of(kind: str) -> int:
    """Bits of a PTX type: 32 for `f32` and `f16x2`."""
    if kind.endswith("x2"):
        return 32
    digits = kind.lstrip("bsufe")
    require(digits.isdigit())
    return int(digits)


class Slots:
    """The slots of one function. predicates, barriers: which of them hold these, as bit sets."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.slots: dict[str, int] = {}
        self.next_slot = FIRST_SLOT
        self.predicates = self.barriers = 0
        self.read = {name for instruction in function.instructions for name in uses(instruction)}

    def kind(self, operand: ptx.Operand) -> str:
        """The declared type of a register; "" of anything else."""
        return self.function.registers.get(operand.name, "") if isinstance(operand, ptx.PtxRegister) else ""

    def words(self, name: str) -> int:
        """32-bit registers that a PTX register occupies."""
        kind = self.function.registers.get(name, "b32")
        return 1 if kind == "pred" else max(1, bits_of(kind) // 32)

    def _new(self, words: int = 1) -> int:
        """The first of so many fresh slots."""
        self.next_slot += words
        return self.next_slot - words

    def _named(self, name: str, words: int = 1) -> int:
        """The first slot of what has this name."""
        if name not in self.slots:
            self.slots[name] = self._new(words)
        return self.slots[name]

    def _predicate(self, slot: int) -> Predicate:
        self.predicates |= 1 << slot
        return Predicate(slot)

    def slot(self, name: str) -> int:
        """The first slot of a PTX register."""
        if name not in self.slots:
            found = self._named(name, self.words(name))
            if self.function.registers.get(name) == "pred":
                self._predicate(found)
        return self.slots[name]

    def carry(self, name: str) -> Predicate:
        """The carry bit of sums, or that of differences: they are separate because they mean different
        things.
        """
        return self._predicate(self._named(name))

    def is_read(self, operand: ptx.Operand) -> bool:
        """Does any instruction read this register?"""
        return isinstance(operand, ptx.PtxRegister) and operand.name in self.read

    def temporary(self, words: int = 1) -> Register:
        """Registers that belong to no PTX register."""
        return Register(self._new(words))

    def temporary_predicate(self) -> Predicate:
        """A predicate that belongs to no PTX register."""
        return self._predicate(self._new())

    def cell(self, offset: int) -> Register:
        """The register that stands for a word of the `.param` variables of calls."""
        return Register(self._named(f".param {offset}"))

    def barrier(self) -> Barrier:
        """A new convergence barrier."""
        slot = self._new()
        self.barriers |= 1 << slot
        return Barrier(slot)

    def consecutive(self, items: Sequence[ptx.Operand], words: int) -> Register | None:
        """The first register of a vector if its elements, of `words` words each, are consecutive."""
        names = [item.name for item in items if isinstance(item, ptx.PtxRegister) and item.name != "_"]
        if len(names) != len(items) or len(set(names)) != len(names):
            return None
        if any(self.words(name) != words for name in names):
            return None
        if not any(name in self.slots for name in names):
            for name in names:
                self.slot(name)
        first = self.slot(names[0])
        fits = all(self.slot(name) == first + i * words for i, name in enumerate(names))
        return Register(first) if fits else None
