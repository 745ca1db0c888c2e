"""What instructions make of words that depend on where arrays lie (`memsim.simt.placed_words`).

How a word depends on those that an instruction reads is found by executing it on samples of these
(`sampled_forms`). Only what cannot be seen in one instruction has a rule: comparisons, choices, and moves
between lanes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from memsim.arch.units import WORD
from memsim.isa.logic import OR
from memsim.isa.memory_access import bytes_of_piece
from memsim.isa.op import (
    PREDICATE,
    Constant,
    Effect,
    Immediate,
    Operand,
    Predicate,
    Register,
    Symbolic,
    Trait,
    slots_of,
)
from memsim.isa.program import Op
from memsim.isa.signature import is_indexed
from memsim.simt.placed_words import (
    Lower,
    Placed,
    Terms,
    Value,
    add_sums,
    carry,
    names_of,
    one_of_values,
    other,
    sum_of_words,
    sums_of,
    upper_part,
    with_carry,
    without_stack,
)
from memsim.simt.sampled_forms import SIGNS, Influence, are_copies, influences_of, with_numbered_registers

Results = list[Value]


@dataclass(frozen=True)
class PlacedSources:
    """The addresses that a launch hands to its kernel.

    constants: words of constant banks, by bank and offset. symbols: by name of what the code names.
    code_address: of an instruction. indexed: by load of a constant at an index, where in the bank it read.
    loaded: by load and pair of words, what the pointers point to that it read, with its name.
    """

    constants: Mapping[tuple[int, int], Value]
    symbols: Mapping[str, tuple[Value, Value]]
    code_address: tuple[Value, Value]
    indexed: Mapping[int, Iterable[int]] = field(default_factory=dict)
    loaded: Mapping[tuple[int, int], Mapping[Hashable, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class PlacedOperands:
    """The operands of an instruction as values.

    state: of registers by slot. since: the instruction that wrote a predicate register.
    """

    state: Mapping[int, Value]
    since: Mapping[int, int]
    sources: PlacedSources

    def word(self, operand: Operand | None, more: int = 0) -> Value:
        """The word of an operand, or the one behind it, without its sign and not a part of it."""
        if isinstance(operand, (Register, Predicate)):
            return None if operand.slot is None else self.state.get(operand.slot + more)
        if isinstance(operand, Constant):
            of_index = self.word(operand.register)
            found = self.sources.constants.get((operand.bank, operand.offset + 4 * more))
            return found if of_index is None else other((found, of_index))
        if isinstance(operand, Symbolic):
            return self.sources.symbols.get(operand.symbol, (None, None))[int(operand.high)]
        return None

    def changed(self, operand: Operand | None, more: int = 0) -> Value:
        """The same with its sign, of the part that is read."""
        value = self.word(operand, more)
        is_plain = isinstance(operand, Predicate) or not any(getattr(operand, name, "") for name in SIGNS)
        return value if is_plain else other([value])


def results(op: Op, words: PlacedOperands) -> Results:
    """The values of an instruction's results, one for each of its targets."""
    targets, traits = op.meaning.targets, op.traits
    if any(token.kind == "L" for token, _ in op.meaning.sources):
        return list(words.sources.code_address)
    if (place := constant_read(op)) is not None:
        return _loaded(op, place, words.sources)
    if op.meaning.is_executed:
        if Trait.COMPARES in traits:
            return _compared(op, words)
        if Trait.TESTS in traits and (found := _tested(op, words)):
            return found
        if Trait.SELECTS in traits:
            return _selected(op, words)
        if Trait.PASSES in traits:
            return _passed(op, words)
        if op.effect is Effect.ALU and (found := _copied(op, words) or _computed(op, words)):
            return found
    return [other([words.state.get(slot) for slot in slots_of(op.reads)])] * len(targets)


def constant_read(op: Op) -> Constant | None:
    """The place in a constant bank that an instruction loads words from."""
    found = (one for token, one in op.meaning.sources if token.kind in "Cc" and isinstance(one, Constant))
    return next(found, None)


def _loaded(op: Op, place: Constant, sources: PlacedSources) -> Results:
    """Words of a constant bank: at one place of it, or at those that an index came to."""
    starts = sorted(sources.indexed.get(op.index, ())) if is_indexed(place) else [place.offset]
    at = [
        [sources.constants.get((place.bank, (start & ~3) + 4 * more)) for start in starts]
        for more in range(len(op.meaning.targets))
    ]
    if bytes_of_piece(op.form) < WORD:
        return [other(value for values in at for value in values)]
    return [one_of_values(("at", place), values) if values else None for values in at]


def _passed(op: Op, words: PlacedOperands) -> Results:
    """Another lane's pointer is one into the same array, if all lanes' are."""
    value, *where = (words.changed(operand) for _, operand in op.meaning.sources)
    if any(one is not None for one in where) or isinstance(value, Lower):
        value = other([value, *where])
    elif value is not None and value.sum is not None and where:
        terms = (((("lane", what) if isinstance(what, tuple) else what), by) for what, by in value.sum)
        value = replace(value, sum=add_sums([tuple(terms)]))
    return [
        other(where) if token.kind == "P" else value for token, one in op.meaning.results if one is not None
    ]


def _selected(op: Op, words: PlacedOperands) -> Results:
    (_, a), (_, b), (_, condition) = op.meaning.sources
    which, slot = words.word(condition), getattr(condition, "slot", None)
    found: Results = []
    for more in range(len(op.meaning.targets)):
        values = [words.changed(a, more), words.changed(b, more)]
        key = "chosen", condition, words.since.get(-1 if slot is None else slot, -1), sums_of(values)
        found.append(other([which, *values]) if which is not None else one_of_values(key, values))
    return found


def _compared(op: Op, words: PlacedOperands) -> Results:
    """The order of two addresses in one array, or whether one is null, does not depend on where that is.

    Of two pairs first the lower words are compared, which tells nothing until the upper ones are.
    """
    (token, a), (_, b), (_, joined), (_, lower) = op.meaning.sources
    below = words.word(lower)
    values = [words.word(a), words.word(b), words.word(joined), below]
    if all(value is None for value in values):
        return [None, None]
    result: Value = other(values)
    sides = [_side(words.changed(one), lower is not None) for one in (a, b)]
    if sides[0] is not None and sides[1] is not None and values[2] is None:
        pair, equality = (sides[0], sides[1]), Trait.EQUALITY in op.traits
        is_null = () in pair and any(map(_is_address, pair)) and (equality or _is_zero(a) or _is_zero(b))
        alike = pair[0] == pair[1] or is_null
        if lower is not None or token.span == 2:
            fits = below is None or (isinstance(below, Lower) and below.of == pair)
            result = None if alike and fits else result
        elif pair[0] == pair[1] and equality:
            result = None
        elif getattr(joined, "slot", 0) is None and result is not None:
            result = Lower((without_stack(pair[0]), without_stack(pair[1])), result.names)
    return [result, other([result])]


def _tested(op: Op, words: PlacedOperands) -> Results:
    """Whether two addresses are both null: which of their lower words' bits are set tells nothing, and then
    a bit of the upper words.

    Of other words than those of addresses, or if the combination is used too, there is no such rule.
    """
    (_, a), (_, b), _, (_, table), (_, joined) = op.meaning.sources
    is_first = getattr(joined, "slot", None) is None
    sides = [_side(words.changed(one), not is_first) for one in (a, b)]
    pair = tuple(sorted((side for side in sides if side is not None), key=repr))
    if getattr(table, "value", None) != OR or len(pair) < 2 or not any(map(_is_address, pair)):
        return []
    if op.meaning.targets[1] is not None or getattr(joined, "negated", True) is not is_first:
        return []
    if is_first:
        return [Lower(pair, names_of([words.word(a), words.word(b)])), None]
    below = words.word(joined)
    return [None, None] if isinstance(below, Lower) and below.of == pair else []


def _is_address(side: Terms) -> bool:
    """Whether a sum is an address, which is not null, and no distance of two."""
    return [by for _, by in side] == [1]


def _side(value: Value, high: bool) -> Terms | None:
    if value is None:
        return ()
    return value.sum if isinstance(value, Placed) and value.high is high else None


def _is_zero(operand: Operand | None) -> bool:
    return (operand.value if isinstance(operand, Immediate) else getattr(operand, "slot", 0) or 0) == 0


def _copied(op: Op, words: PlacedOperands) -> Results:
    """The results of an instruction that reads nothing but one predicate: a copy of a carry is that carry."""
    form, operands = with_numbered_registers(op)
    kinds = [token.kind for token, one in op.meaning.results if one is not None]
    if len(operands) != 1 or min(operands) < PREDICATE or set(kinds) != {"P"}:
        return []
    ((slot, (operand, _)),) = operands.items()
    value = words.word(operand)
    return [value if is_copy else other([value]) for is_copy in are_copies(form, slot)]


def _computed(op: Op, words: PlacedOperands) -> Results:
    """The results of arithmetic; none if it is not told how they depend on what is read."""
    form, operands = with_numbered_registers(op)
    values = {slot: words.word(operand, more) for slot, (operand, more) in operands.items()}
    placed = [(slot, getattr(value, "known", 0)) for slot, value in values.items() if value is not None]
    influences = influences_of(form, tuple(values), tuple(placed))
    if not influences:
        return []
    of_word = [(values[slot], by) for influence in influences for slot, by in influence.factors.items()]
    conditions = [values[slot] for slot, _ in placed if slot >= PREDICATE]
    tells = other([*conditions, *(value for value, _ in of_word)]) if conditions else carry(of_word)
    computed = (_result(influence, values) for influence in influences)
    return [
        tells if token.kind == "P" else next(computed)
        for token, one in op.meaning.results
        if one is not None
        for _ in range(token.span)
    ]


def _result(influence: Influence, values: Mapping[int, Value]) -> Value:
    factors = influence.factors
    carries = [values[slot] for slot in factors if slot >= PREDICATE]
    products = [
        (values[slot], by)
        for slot, by in factors.items()
        if slot < PREDICATE and slot not in influence.carried
    ]
    total = with_carry(products, carries) if carries else sum_of_words(products, influence.known)
    carried = [(values[slot], factors[slot]) for slot in influence.carried]
    return upper_part(carried, total) if carried else total
