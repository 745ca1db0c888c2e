"""What registers hold at a place of a program, of words that depend on where arrays lie."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TypeVar

from memsim.isa.op import Predicate
from memsim.simt.placed_words import Value, one_of_values, sums_of

State = dict[int, Value]
Kept = TypeVar("Kept")


@dataclass
class PlacedSlots:
    """What registers hold at a place of the program.

    slots: that of registers that depend on places. under: by guard, what those hold in its lanes that were
    written under it. since: by predicate register the instruction that wrote it. cautious: as
    `decided_by_places`.
    """

    cautious: bool
    slots: State = field(default_factory=dict)
    under: dict[Predicate, State] = field(default_factory=dict)
    since: dict[int, int] = field(default_factory=dict)

    @property
    def placed(self) -> int:
        """The slots that depend on places, as bits."""
        return sum(1 << slot for slot in self.slots)

    def at(self, live: int) -> PlacedSlots:
        """A copy with these slots."""
        return PlacedSlots(
            self.cautious,
            {slot: value for slot, value in _those(self.slots, live).items() if value is not None},
            {
                guard: _those(slots, live)
                for guard, slots in self.under.items()
                if guard.slot is None or live >> guard.slot & 1
            },
            _those(self.since, live),
        )

    def forget(self, writes: int, kept: Predicate | None = None) -> None:
        """Slots are written: what was written under a guard is gone, and all of it if the guard is.

        kept: the guard in whose lanes they stay.
        """
        if self.under and writes:
            self.under = {
                guard: slots if guard == kept else _those(slots, ~writes)
                for guard, slots in self.under.items()
                if guard.slot is None or not writes >> guard.slot & 1
            }

    def write(self, writes: int, values: State, guard: Predicate | None) -> None:
        """Slots `writes` are written, in the lanes of a guard."""
        if guard is None:
            self.forget(writes)
            for slot, value in values.items():
                self.set(slot, value)
            return
        elsewhere = opposite(guard)
        others = self.under.get(elsewhere, {})
        before = {slot: others[slot] if slot in others else self.slots.get(slot) for slot in values}
        stays = guard.slot is not None and not writes >> guard.slot & 1
        self.forget(writes, elsewhere if stays else None)
        if stays:
            self.under[elsewhere] = {**self.under.get(elsewhere, {}), **before}
            self.under[guard] = {**self.under.get(guard, {}), **values}
        for slot, value in values.items():
            both = [before[slot], value]
            key = "under", guard, self.since.get(guard.slot or 0, -1), sums_of(both)
            self.set(slot, self.on_ways(key, both))

    def on_ways(self, key: Hashable, values: list[Value]) -> Value:
        """What a register holds that was written on several ways, or in some lanes.

        If it is a pointer on one of them and a number on another, it is one that is used again: a number.
        """
        is_mixed = None in values and sums_of(values) is not None
        return None if is_mixed and not self.cautious else one_of_values(key, values)

    def set(self, slot: int, value: Value) -> None:
        """A slot holds a value in all lanes."""
        if value is None:
            self.slots.pop(slot, None)
        else:
            self.slots[slot] = value


def _those(slots: dict[int, Kept], live: int) -> dict[int, Kept]:
    return {slot: value for slot, value in slots.items() if live >> slot & 1}


def opposite(condition: Predicate) -> Predicate:
    """What holds where a predicate does not."""
    return Predicate(condition.slot, not condition.negated)
