"""The table of instructions: for each form of an opcode its signature, what it does, and what else is known.

`DEFINITIONS` is filled by decorators. A form that no definition has, or that its builder refuses, poisons
what it writes; an opcode that is not in the table may do anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from memsim.isa.op import Effect, Flow, Form, Operand, Trait, Unsupported
from memsim.isa.readers import Binder, IntReader
from memsim.isa.signature import KINDS, Matched, Signature, signature, slots_used, targets_of
from memsim.state.partial import Value
from memsim.state.registers import fit
from memsim.state.sums import Int

#: What an instruction computes: one value for each slot that it writes, not in a sequence if that is one.
Results = Value | Sequence[Value]
#: Computes an instruction's results from the register file.
Compute = Callable[..., Results]
#: What executes a form in a launch: computes its results (one value is in no sequence), or accesses memory.
Bound = Callable[..., Any]
#: Makes it: `(form, *sources) -> bound`, each source as its letter is bound.
Builder = Callable[..., Bound]
#: What an instruction accesses, as (access, state space).
Touches = tuple[tuple[str, str], ...]

Build = TypeVar("Build", bound=Builder)


@dataclass(frozen=True, slots=True)
class BoundForm(Form):
    """A form that is prepared for a launch.

    given: its modifiers. results, sources: operands of the signature, None for missing ones. targets: the
    slots that are written, one for each register of a result; None for RZ and PT.
    """

    given: frozenset[str]
    results: tuple[Operand | None, ...]
    sources: tuple[Operand | None, ...]
    targets: tuple[int | None, ...]
    binder: Binder


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """Some forms of an opcode: those with modifiers `needs`, in this order, and no others but `modifiers`.

    modifiers: any if None. signature: a text, or a function of the form. build: None if it is not executed.
    touches: (access, space) of each access. written: slots that no operand names. steers: control flow, or
    what it accesses, depends on all that it reads. traits: by the modifier that brings one, "" for all forms.
    """

    opcode: str
    needs: tuple[str, ...]
    signature: str | Callable[[Form], str]
    modifiers: frozenset[str] | None = None
    build: Builder | None = None
    effect: Effect = Effect.ALU
    flow: Flow | None = None
    touches: Touches = ()
    written: Callable[[Form], list[int]] | None = None
    steers: bool = False
    traits: Mapping[str, Trait] = field(default_factory=dict)
    known: bool = True

    def has(self, form: Form) -> bool:
        """Does the form have the modifiers that it needs, in their order?"""
        names = iter(form.modifiers)
        return all(name in names for name in self.needs)

    def allows(self, form: Form) -> bool:
        """Are all modifiers of the form known?"""
        return self.modifiers is None or self.modifiers.issuperset(form.modifiers)

    def signature_of(self, form: Form) -> Signature:
        """The signature of a form."""
        return signature(self.signature if isinstance(self.signature, str) else self.signature(form))


#: Opcode -> its definitions; those that need most modifiers come first.
DEFINITIONS: dict[str, list[Definition]] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Meaning:
    """What is known of a form. is_executed: its modifiers and operands are those of its definition."""

    form: Form
    definition: Definition
    results: Matched
    sources: Matched
    is_executed: bool
    reads: int = field(init=False)
    writes: int = field(init=False)
    addresses: int = field(init=False)
    targets: tuple[int | None, ...] = field(init=False)
    traits: frozenset[Trait] = field(init=False)

    def __post_init__(self) -> None:
        reads, writes, addresses = slots_used(self.results, self.sources)
        more = self.definition.written(self.form) if self.definition.written else []
        for slot in more:
            writes |= 1 << slot
        set_field = object.__setattr__
        set_field(self, "reads", reads)
        set_field(self, "writes", writes)
        set_field(self, "addresses", addresses | (reads if self.definition.steers else 0))
        brought = self.definition.traits
        names = ("", *self.form.modifiers) if brought else ()
        set_field(self, "traits", frozenset(brought[name] for name in names if name in brought))
        set_field(self, "targets", (*targets_of(self.results), *more))

    @property
    def effect(self) -> Effect:
        """Its effect beyond registers."""
        return self.definition.effect

    @property
    def flow(self) -> Flow | None:
        """What it does to control flow; of unknown modifiers nobody knows it."""
        flow = self.definition.flow
        return flow if flow is None or self.definition.allows(self.form) else Flow.UNKNOWN

    def bind(self, binder: Binder) -> Bound:
        """What executes the form in a launch.

        Raises:
            Unsupported: it is not executed.
            Poisoned: an operand is unknown.
        """
        build = self.definition.build
        if build is None or not self.is_executed:
            raise Unsupported
        operands = [
            None if one is None else KINDS[token.kind].bind(binder, one) for token, one in self.sources
        ]
        results, sources = (tuple(one for _, one in side) for side in (self.results, self.sources))
        own = self.form.opcode, self.form.modifiers, self.form.operands
        form = BoundForm(*own, frozenset(self.form.modifiers), results, sources, self.targets, binder)
        made = build(form, *operands)
        if None not in results or self.definition.effect is Effect.MEMORY:
            return made
        kept = [i for token, one in self.results for i in [one is not None] * token.span]
        return keep_results(made, [place for place, keeps in enumerate(kept) if keeps])


def keep_results(compute: Callable[..., Sequence[Value]], places: list[int]) -> Compute:
    """Only some of the results: of those that the form does not have nothing is written."""
    if len(places) == 1:
        only = places[0]
        return lambda *state: compute(*state)[only]
    return lambda *state: [compute(*state)[place] for place in places]


#: All state spaces.
ANY_ACCESS = tuple((access, space) for access in ("load", "store") for space in ("shared", "global", "local"))

#: An unknown opcode: it may do anything to all memory and to all registers that it names.
STRANGER = Definition("?", (), "P?R4?P? <- V4V4V4", effect=Effect.MEMORY, touches=ANY_ACCESS, known=False)


def meaning_of(form: Form) -> Meaning:
    """What a form means. One whose results are those of no definition of its opcode may do anything."""
    every = DEFINITIONS.get(form.opcode, [])
    having = [one for one in every if one.has(form)]
    allowing = [one for one in having if one.allows(form)]
    for one in allowing:
        if found := one.signature_of(form).match(form):
            return Meaning(form, one, *found, one.build is not None)
    for one in having:
        if found := one.signature_of(form).match(form):
            return Meaning(form, one, *found, False)
    for one in [*allowing, *having, *reversed(every)]:
        if found := one.signature_of(form).match_results(form):
            return Meaning(form, one, *found, False)
    return not_executed(form, STRANGER)


def not_executed(form: Form, definition: Definition) -> Meaning:
    """A form of which only its results are known."""
    found = definition.signature_of(form).match_results(form)
    assert found is not None
    return Meaning(form, definition, *found, False)


def define(
    names: str, signature: str | Callable[[Form], str], modifiers: str | None = "", **fields: Any
) -> None:
    """Add definitions of forms like `"IADD3.64 UIADD3.64"`; what touches memory has that effect.

    modifiers: others that a form may have; any if None.
    """
    fields.setdefault("effect", Effect.MEMORY if fields.get("touches") else Effect.ALU)
    for name in names.split():
        opcode, *needs = name.split(".")
        allowed = None if modifiers is None else frozenset((*needs, *modifiers.split()))
        made = Definition(opcode, tuple(needs), signature, allowed, **fields)
        DEFINITIONS.setdefault(opcode, []).append(made)
        DEFINITIONS[opcode].sort(key=lambda one: -len(one.needs))


def executes(
    names: str, signature: str | Callable[[Form], str], modifiers: str | None = "", **fields: Any
) -> Callable[[Build], Build]:
    """Register what makes instructions executable: `(form, *sources) -> compute`.

    `compute(registers)` returns a value for each register of the signature's results, not in a tuple if that
    is one.
    """

    def register(build: Build) -> Build:
        define(names, signature, modifiers, build=build, **fields)
        return build

    return register


def computes(
    names: str, signature: str, modifiers: str = ""
) -> Callable[[Callable[..., Int]], Callable[..., Int]]:
    """Register instructions by a function of modifiers and signed words, whose result may overflow."""

    def register(work: Callable[..., Int]) -> Callable[..., Int]:
        @executes(names, signature, modifiers)
        def build(form: BoundForm, *reads: IntReader) -> Compute:
            given = form.given
            if len(reads) == 1:
                only = reads[0]
                return lambda r: fit(work(given, fit(only(r), 32)), 32)
            return lambda r: fit(work(given, *(fit(read(r), 32) for read in reads)), 32)

        return work

    return register
