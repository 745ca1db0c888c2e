"""Unknown values: why a register or memory is unknown, and where that comes from."""

from __future__ import annotations

from memsim.instruction import Instruction


class Poison:
    """An unknown value: the reason, the instruction where it originated, and the path from there."""

    __slots__ = ("origin", "reason", "via")

    def __init__(self, reason: str, origin: Instruction | None, via: tuple[Instruction, ...] = ()) -> None:
        self.reason = reason
        self.origin = origin
        self.via = via

    def through(self, instruction: Instruction) -> Poison:
        """The value after one more instruction; the path is kept short."""
        if len(self.via) >= 8:
            return self
        return Poison(self.reason, self.origin, (*self.via, instruction))

    def story(self) -> str:
        """The reason and the path, in words."""
        way = [self.origin, *self.via] if self.origin is not None else list(self.via)
        steps = [f"{instruction.name} ({place_of(instruction)})" for instruction in way]
        if self.origin is not None and self.reason.startswith(self.origin.name):
            return " -> ".join([f"{self.reason} ({place_of(self.origin)})", *steps[1:]])
        return self.reason + (": " + " -> ".join(steps) if steps else "")


def place_of(instruction: Instruction) -> str:
    """`kernel.cu:12`, or the address of machine code."""
    return f"{'' if instruction.source else 'machine code at '}{instruction.where.removeprefix('address ')}"


class Poisoned(Exception):
    """An operand is unknown; caught where the destination is written."""

    def __init__(self, poison: Poison) -> None:
        super().__init__(poison.reason)
        self.poison = poison


def poisoned_operand(value: object) -> Poisoned:
    """The exception for an operand that is neither a number nor a predicate.

    A register that is known in some lanes only (`memsim.state.partial`) has the reason for the others.
    """
    why = value if isinstance(value, Poison) else getattr(value, "poison", None)
    return Poisoned(why or Poison("read of a register that was never written", None))
