"""The table of opcodes, `RECORDS`, filled by decorators.

An opcode or a form that is not in it poisons what it writes (`memsim.sass.decode`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from memsim.isa.op import Effect, Flow, Form

#: Computes an instruction's results from the register file: one value for each slot that it writes.
Compute = Callable[..., Any]
Builder = Callable[..., Any]
#: For a form, how many registers an operand spans, by its index; default one.
Widths = Callable[[Form], dict[int, int]]
#: What an instruction accesses, as (kind, state space).
Touches = tuple[tuple[str, str], ...]


class Unsupported(Exception):
    """This form of the instruction is not supported."""


def known(form: Form, *modifiers: str) -> frozenset[str]:
    """The form's modifiers.

    Raises:
        Unsupported: one that is not among `modifiers`.
    """
    found = frozenset(form.modifiers)
    if not found <= set(modifiers):
        raise Unsupported(form.name)
    return found


@dataclass(frozen=True, slots=True)
class OpcodeRecord:
    """What is known of one opcode.

    results: which of the leading operands are written: R a register, P a predicate, `?` if it may be missing.
    effect_of: if the effect depends on the form. written: slots written that no operand names. touches:
    (kind, space) of its accesses; touches_of: if these depend on the form. known: False for an opcode that is
    not in the table, which may do anything. steers: control flow depends on all that it reads, though no
    register says so. also_read: slots read that no operand names.
    """

    opcode: str
    effect: Effect
    results: str
    widths: Widths
    build: Builder | None
    flow: Flow | None = None
    effect_of: Callable[[Form], Effect] | None = None
    written: Callable[[Form], list[int]] | None = None
    touches: Touches = ()
    touches_of: Callable[[Form], Touches] | None = None
    known: bool = True
    steers: bool = False
    also_read: Callable[[Form], list[int]] | None = None

    def effect_on(self, form: Form) -> Effect:
        """The effect of a form."""
        return self.effect_of(form) if self.effect_of else self.effect


#: Opcode -> record.
RECORDS: dict[str, OpcodeRecord] = {}


def single(form: Form) -> dict[int, int]:
    """Every operand is one register."""
    return {}


def enter(record: OpcodeRecord) -> None:
    """Add a record to the table; each opcode has one."""
    assert record.opcode not in RECORDS, record.opcode
    RECORDS[record.opcode] = record


def opcode(
    *names: str, results: str = "R", widths: Widths = single, effect: Effect = Effect.ALU, **more: Any
) -> Callable[[Builder], Builder]:
    """Register the builder of opcodes: `(form, binder) -> compute`, `compute(registers) -> value(s)`."""

    def register(build: Builder) -> Builder:
        for name in names:
            enter(OpcodeRecord(name, effect, results, widths, build, **more))
        return build

    return register


def silent(*names: str) -> None:
    """Register opcodes without an effect on values, memory or control."""
    for name in names:
        enter(OpcodeRecord(name, Effect.NONE, "", single, None))


def not_executed(
    *names: str,
    results: str = "",
    widths: Widths = single,
    touches: Touches = (),
    touches_of: Callable[[Form], Touches] | None = None,
    written: Callable[[Form], list[int]] | None = None,
) -> None:
    """Register opcodes that are known but not executed.

    What they write, and the memory they may write, becomes unknown. With `touches_of`, a form that touches
    nothing has no effect at all.
    """
    effect = Effect.MEMORY if touches or touches_of else Effect.ALU
    for name in names:
        enter(
            OpcodeRecord(
                name,
                effect,
                results,
                widths,
                None,
                touches=touches,
                touches_of=touches_of,
                written=written,
                effect_of=None if touches_of is None else _effect_by(touches_of),
            )
        )


def _effect_by(touches_of: Callable[[Form], Touches]) -> Callable[[Form], Effect]:
    return lambda form: Effect.MEMORY if touches_of(form) else Effect.NONE


def control(*names: str, flow: Flow, results: str = "", widths: Widths = single) -> None:
    """Register control-flow opcodes."""
    for name in names:
        enter(OpcodeRecord(name, Effect.CONTROL, results, widths, None, flow))
