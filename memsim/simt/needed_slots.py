"""Which register slots are needed at a place of a program: in all lanes, or in those of a guard."""

from __future__ import annotations

from dataclasses import dataclass, field

from memsim.isa.op import Effect, Predicate
from memsim.isa.program import Op

#: A predicate's slot, and whether the guard holds where it is false.
Guard = tuple[int, bool]


@dataclass(slots=True)
class Needed:
    """Slots (bit sets) that are needed in all lanes, and those needed only where a guard holds.

    A slot that is written under a guard stays needed only where the guard does not hold; after `@P0 R2 =
    ...`, a `@P0 ... = R2` does not need an older R2.
    """

    everywhere: int = 0
    where: dict[Guard, int] = field(default_factory=dict)

    def __or__(self, other: Needed) -> Needed:
        """What is needed in one of two places."""
        found = Needed(self.everywhere | other.everywhere)
        for guard in self.where.keys() | other.where.keys():
            slots = self.where.get(guard, 0) | other.where.get(guard, 0)
            if slots & ~found.everywhere:
                found.where[guard] = slots & ~found.everywhere
        return found

    def guards(self, slots: int) -> tuple[Predicate | None, ...]:
        """Under which guards one of these is needed: None for all lanes, no guard if in no lane."""
        if self.everywhere & slots:
            return (None,)
        return tuple(Predicate(*guard) for guard, own in self.where.items() if own & slots)

    def killed(self, slots: int, guard: Predicate | None) -> None:
        """Backward over a write of `slots`: where the old values are still needed."""
        if guard is None or guard.slot is None:
            self.everywhere &= ~slots
            self.where = {key: own & ~slots for key, own in self.where.items() if own & ~slots}
            return
        holds, fails = (guard.slot, guard.negated), (guard.slot, not guard.negated)
        moved = self.everywhere & slots
        self.everywhere &= ~slots
        if holds in self.where:
            self.where[holds] &= ~slots
        if moved:
            self.where[fails] = self.where.get(fails, 0) | moved

    def written(self, predicates: int) -> None:
        """Backward over a write of predicates: guards by them have another meaning before it."""
        for key in [key for key in self.where if predicates >> key[0] & 1]:
            self.everywhere |= self.where.pop(key)

    def read(self, slots: int, guard: Predicate | None) -> None:
        """Backward over a read."""
        if guard is None or guard.slot is None:
            self.everywhere |= slots
            return
        self.everywhere |= 1 << guard.slot
        key = (guard.slot, guard.negated)
        self.where[key] = self.where.get(key, 0) | slots & ~(1 << guard.slot)


def guards_of_operands(op: Op, users: tuple[Predicate | None, ...]) -> tuple[Predicate | None, ...]:
    """Under which guards an instruction's operands are needed, if its results are needed under `users`.

    One that all lanes execute, each for itself, needs them in the lanes that use its results. (If it writes
    the guard of these, that is needed in all lanes, and so are its operands.)
    """
    if op.guard is None and op.effect is Effect.ALU:
        return users
    return (op.guard,) if users else ()
