"""The table of opcodes, `RECORDS`, filled by decorators.

An opcode or a form that is not in it poisons what it writes (`memsim.sass.decode`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from memsim.isa.op import Effect, Flow, Form

Kind = TypeVar("Kind")
#: Computes an instruction's results from the register file: one value for each slot that it writes.
Compute = Callable[..., Any]
Builder = Callable[..., Any]
#: How many registers an operand spans, by its index, if not one.
Widths = Mapping[int, int]
#: What an instruction accesses, as (access, state space).
Touches = tuple[tuple[str, str], ...]


class Unsupported(Exception):
    """This form of an instruction is not supported."""


def require(condition: object) -> None:
    """What a supported form fulfils.

    Raises:
        Unsupported: it does not.
    """
    if not condition:
        raise Unsupported


def checked(operand: object, kind: type[Kind]) -> Kind:
    """An operand that is of this kind in a supported form.

    Raises:
        Unsupported: it is not.
    """
    if not isinstance(operand, kind):
        raise Unsupported
    return operand


def known(form: Form, *modifiers: str) -> frozenset[str]:
    """The form's modifiers.

    Raises:
        Unsupported: one that is not among `modifiers`.
    """
    found = frozenset(form.modifiers)
    require(found <= set(modifiers))
    return found


@dataclass(frozen=True, slots=True)
class OpcodeRecord:
    """What is known of one opcode; one that is known but has no `build` is not executed.

    results: which of the leading operands are written: R a register, P a predicate, `?` if it may be missing.
    touches: (access, space) of each access. written, also_read: slots written and read that no operand names.
    known: False for an opcode that is not in the table, which may do anything. steers: control flow, or what
    it accesses, depends on all that it reads, though no register or address says so.
    """

    opcode: str
    build: Builder | None = None
    results: str = ""
    widths: Widths | Callable[[Form], Widths] = field(default_factory=dict)
    effect: Effect | Callable[[Form], Effect] = Effect.ALU
    flow: Flow | None = None
    touches: Touches | Callable[[Form], Touches] = ()
    written: Callable[[Form], list[int]] | None = None
    also_read: Callable[[Form], list[int]] | None = None
    known: bool = True
    steers: bool = False

    def widths_of(self, form: Form) -> Widths:
        """The registers that operands of a form span."""
        return self.widths(form) if callable(self.widths) else self.widths

    def touches_of(self, form: Form) -> Touches:
        """The accesses of a form."""
        return self.touches(form) if callable(self.touches) else self.touches

    def effect_of(self, form: Form) -> Effect:
        """The effect of a form."""
        return self.effect if isinstance(self.effect, Effect) else self.effect(form)


#: Opcode -> record.
RECORDS: dict[str, OpcodeRecord] = {}


def enter(*names: str, **fields: Any) -> None:
    """Add opcodes to the table, each with a record of these fields; what touches memory has that effect."""
    effect = Effect.MEMORY if fields.get("touches") else Effect.ALU
    for name in names:
        assert name not in RECORDS, name
        RECORDS[name] = OpcodeRecord(name, **{"effect": effect, **fields})


def not_executed(*names: str, **fields: Any) -> None:
    """Register opcodes that are known but not executed.

    What they write, and the memory they may write, becomes unknown.
    """
    enter(*names, **fields)


def opcode(*names: str, results: str = "R", **fields: Any) -> Callable[[Builder], Builder]:
    """Register the builder of opcodes: `(form, binder) -> compute`, `compute(registers) -> value(s)`."""

    def register(build: Builder) -> Builder:
        enter(*names, build=build, results=results, **fields)
        return build

    return register


def silent(*names: str) -> None:
    """Register opcodes without an effect on values, memory or control."""
    enter(*names, effect=Effect.NONE)


def control(*names: str, flow: Flow, **fields: Any) -> None:
    """Register control-flow opcodes."""
    enter(*names, effect=Effect.CONTROL, flow=flow, **fields)
