"""What instructions make of words that depend on where arrays lie (`memsim.simt.placed_words`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from memsim.isa.moves import named_by
from memsim.isa.op import (
    PREDICATE,
    UNIFORM_PREDICATE,
    Constant,
    Form,
    Immediate,
    Label,
    Operand,
    Predicate,
    Register,
    Symbolic,
)
from memsim.isa.program import Op
from memsim.simt.placed_words import (
    Lower,
    Placed,
    Product,
    Value,
    added,
    carry,
    chosen,
    factor_of,
    known_bits,
    other,
    summed,
    sums_of,
    upper_part,
    with_carry,
)
from memsim.simt.slot_bits import slots_of


@dataclass(frozen=True)
class PlacedOperands:
    """The operands of an instruction as values.

    state: of registers by slot. constants: by bank and offset. symbols: the two words of addresses in the
    code, by name. code: those of an instruction. since: the instruction that wrote a predicate register.
    indexed: where in its bank an instruction read that loads a constant at an index. guard: that of the
    instruction.
    """

    state: Mapping[int, Value]
    constants: Mapping[tuple[int, int], Value]
    symbols: Mapping[str, tuple[Value, Value]]
    code: tuple[Value, Value]
    since: Mapping[int, int]
    indexed: Iterable[int] = ()
    guard: Predicate | None = None

    def word(self, operand: Operand, more: int = 0) -> Value:
        """The word of an operand, or the one behind it."""
        if isinstance(operand, (Register, Predicate)):
            value = None if operand.slot is None else self.state.get(operand.slot + more)
            return value if not getattr(operand, "part", "") else _part(value, operand)
        if isinstance(operand, Constant):
            of_index = self.word(operand.register) if operand.register is not None else None
            found = self.constants.get((operand.bank, operand.offset + 4 * more))
            return found if of_index is None else other((found, of_index))
        if isinstance(operand, Symbolic):
            return self.symbols.get(operand.symbol, (None, None))[int(operand.high)]
        return None

    def product(self, operand: Operand, factor: int = 1, more: int = 0) -> tuple[Value, int]:
        """The same with its sign."""
        value = self.word(operand, more)
        if getattr(operand, "absolute", False):
            return other([value]), 1
        return value, factor * factor_of(operand)


def _part(value: Value, operand: Operand) -> Value:
    """A byte or half of a word."""
    part = getattr(operand, "part", "")
    end = {"B0": 8, "B1": 16, "H0": 16, "H0_H0": 16}.get(part, 32)
    return (
        None
        if known_bits([value]) >= end
        else other([value], known_bits([value]) if part in ("B0", "H0") else 0)
    )


#: The values of an instruction's results, in order; fewer: the others do not depend on places.
Results = list[Value]
Rule = Callable[[Form, PlacedOperands], Results]


def _number(operand: Operand) -> int | None:
    value = operand.value if isinstance(operand, Immediate) else None
    return value if isinstance(value, int) else None


def _is_zero(operand: Operand) -> bool:
    return _number(operand) == 0 or (isinstance(operand, (Register, Predicate)) and operand.slot is None)


def _split_operands(form: Form) -> tuple[list[Operand], list[Operand]]:
    """(destination predicates next to the destination register, source operands)."""
    operands = list(form.operands)
    written: list[Operand] = []
    if isinstance(operands[0], Predicate):
        written.append(operands.pop(0))
        operands.pop(0)
        return written, operands
    operands.pop(0)
    while operands and isinstance(operands[0], Predicate):
        written.append(operands.pop(0))
    return written, operands


def _sum(form: Form, words: PlacedOperands) -> Results:
    carries, operands = _split_operands(form)
    terms, carried = operands[:3], operands[3:]
    low = [words.product(operand) for operand in terms]
    if "64" in form.modifiers:
        return [summed(low), summed([words.product(operand, more=1) for operand in terms])]
    if "X" in form.modifiers:
        total = with_carry(low, [words.word(operand) for operand in carried])
        return [total, *([other([total])] * len(carries))]
    return [summed(low), *([carry(low)] * len(carries))]


def _product(form: Form, words: PlacedOperands) -> Results:
    carries, (a, b, c, *carried) = _split_operands(form)
    ins = [words.word(operand) for operand in carried]
    factors = [words.product(a), words.product(b)]
    if "WIDE" in form.modifiers or "HI" in form.modifiers:
        low, high = _wide(factors, (a, b), words.word(c), words.word(c, 1), ins)
        return [high] if "HI" in form.modifiers else [low, high, other([low, high]) if carries else None]
    multiplied: list[Product] = []
    if not (_is_zero(a) or _is_zero(b)):
        (x, p), (y, q) = factors
        multiplied = [(x, _times(p * q, b, y)), (y, _times(p * q, a, x))]
    terms = [*multiplied, words.product(c)]
    return [with_carry(terms, ins) if carried else summed(terms)]


def _wide(
    factors: Sequence[tuple[Value, int]],
    operands: Sequence[Operand],
    low: Value,
    high: Value,
    carries: Sequence[Value],
) -> tuple[Value, Value]:
    """A product of two words, and two words added."""
    (x, _), (y, _) = factors
    if all(value is None for value in (x, y, *carries)):
        return low, high
    for value, number in ((x, _number(operands[1])), (y, _number(operands[0]))):
        if value is not None and number == 1 and not any(one is not None for one in carries):
            terms: list[Product] = [(value, 1), (low, 1)]
            return summed(terms), upper_part(terms, high)
    values = [x, y, *carries, low]
    return other(values, known_bits(values)), other([*values, high])


def _times(sign: int, operand: Operand, value: Value) -> int | None:
    """The number that a word is multiplied by; None if it is unknown."""
    number = _number(operand)
    return None if number is None or value is not None else sign * number


def _shifted_sum(form: Form, words: PlacedOperands) -> Results:
    carries, operands = _split_operands(form)
    carried = [words.word(operand) for operand in operands if isinstance(operand, Predicate)]
    given = [operand for operand in operands if not isinstance(operand, Predicate)]
    amount = (_number(given[-1]) or 0) & 31
    if "HI" in form.modifiers:
        terms = [words.product(given[1])]
        shifted = [words.word(operand) for operand in (given[0], *given[2:-1])]
        if any(value is not None for value in shifted):
            total: Value = other([*shifted, terms[0][0]])
        else:
            total = with_carry(terms, carried) if "X" in form.modifiers else summed(terms)
        return [total, *([other([total])] * len(carries))]
    terms = [words.product(given[0], 1 << amount), words.product(given[1])]
    return [summed(terms), *([carry(terms)] * len(carries))]


def _added(form: Form, words: PlacedOperands) -> Results:
    terms = [words.product(operand) for operand in form.operands[1:3]]
    if {"16x2", "U8x4"} & set(form.modifiers):
        return [other(value for value, _ in terms)]
    high = [words.product(operand, more=1) for operand in form.operands[1:3]]
    return [summed(terms), summed(high) if "64" in form.modifiers else None]


def _moved(form: Form, words: PlacedOperands) -> Results:
    source = form.operands[1]
    return [summed([words.product(source)]), words.word(source, 1) if "64" in form.modifiers else None]


def _to_uniform(form: Form, words: PlacedOperands) -> Results:
    value = words.word(form.operands[-1])
    if form.modifiers:
        value = other([value])
    return [None, value] if isinstance(form.operands[0], Predicate) else [value]


def _shuffled(form: Form, words: PlacedOperands) -> Results:
    """Another lane's pointer is one into the same array, if all lanes' are."""
    value, *where = (words.word(operand) for operand in form.operands[2:])
    if any(one is not None for one in where) or isinstance(value, Lower):
        return [other(where), other([value, *where])]
    if value is not None and value.sum is not None:
        terms = added(
            [tuple((("lane", what) if isinstance(what, tuple) else what, by) for what, by in value.sum)]
        )
        value = Placed(terms, value.high, value.known, value.names)
    return [None, value]


def opposite(condition: Predicate) -> Predicate:
    """What holds where a predicate does not."""
    return Predicate(condition.slot, not condition.negated)


def _selected(form: Form, words: PlacedOperands) -> Results:
    a, b, condition = form.operands[1:4]
    if isinstance(condition, Predicate) and words.guard in (condition, opposite(condition)):
        a = b = a if words.guard == condition else b
    which = words.word(condition)
    found: Results = []
    for more in range(2 if "64" in form.modifiers else 1):
        values = [
            value if by == 1 else other([value])
            for value, by in (words.product(a, 1, more), words.product(b, 1, more))
        ]
        slot = getattr(condition, "slot", None)
        key = "chosen", condition, words.since.get(-1 if slot is None else slot, -1), sums_of(values)
        found.append(other([which, *values]) if which is not None else chosen(key, values))
    return found


def _bits(form: Form, words: PlacedOperands) -> Results:
    """Of bits that depend on a place: which bits of the result do."""
    operands = list(form.operands)
    tests = isinstance(operands[0], Predicate)
    of_test = words.word(operands[-1]) if isinstance(operands[-1], Predicate) else None
    a, b, c, lut = operands[1 + tests : 5 + tests]
    table, values = _number(lut), [words.word(operand) for operand in (a, b, c)]
    result = _by_table(table or 0, (a, b, c), values) if any(value is not None for value in values) else None
    return [other([result, of_test]), result] if tests else [result]


def _by_table(table: int, operands: Sequence[Operand], values: Sequence[Value]) -> Value:
    present = [value for value in values if value is not None]
    known = known_bits(present)
    effects = [_effect(table, operands, values, bit) for bit in range(known, 32)]
    if set(effects) <= {"none"}:
        return None
    only = present[0]
    if len(present) == 1 and set(effects) == {"same"} and isinstance(only, Placed) and only.sum is not None:
        return only
    changed = next(bit for bit, effect in zip(range(known, 32), effects) if effect != "none")
    return other(present, changed)


def _effect(table: int, operands: Sequence[Operand], values: Sequence[Value], bit: int) -> str:
    """How a bit of the result depends on those that depend on places: "none", the "same" bit, or "other"."""
    numbers = [0 if _is_zero(operand) else _number(operand) for operand in operands]
    free = [at for at in range(3) if values[at] is not None]
    rest = [at for at in range(3) if values[at] is None and numbers[at] is None]
    effects = set()
    for others in range(1 << len(rest)):
        found = []
        for own in range(1 << len(free)):
            row = 0
            for at in range(3):
                if at in free:
                    one = own >> free.index(at) & 1
                elif at in rest:
                    one = others >> rest.index(at) & 1
                else:
                    one = (numbers[at] or 0) >> bit & 1
                row |= one << (2 - at)
            found.append(table >> row & 1)
        effects.add("none" if len(set(found)) == 1 else "same" if found == [0, 1] else "other")
    return effects.pop() if len(effects) == 1 else "other"


def _shift(form: Form, words: PlacedOperands) -> Results:
    low, by, high = form.operands[1:4]
    amount = _number(by)
    values = [words.word(operand) for operand in (low, by, high)]
    if amount is None or "W" in form.modifiers:
        return [other(values)]
    bits = 64 if {"U64", "S64"} & set(form.modifiers) else 32
    amount = min(amount, bits - 1)
    if "L" in form.modifiers and "HI" not in form.modifiers and bits == 32 and _is_zero(high):
        return [summed([words.product(low, 1 << amount)])]
    if "R" in form.modifiers and "HI" in form.modifiers:
        return [_from(values[2], amount)]
    if "R" in form.modifiers:
        lower, upper = _from(values[0], amount), values[2]
        return [
            lower if upper is None else other([lower, upper], min(known_bits([lower]), max(0, 32 - amount)))
        ]
    return [other(values)]


def _from(value: Value, start: int) -> Value:
    return other([value], known_bits([value]) - start)


def _permuted(form: Form, words: PlacedOperands) -> Results:
    a, selector, c = form.operands[1:4]
    values, picks = [words.word(a), words.word(c)], _number(selector)
    if picks is None or form.modifiers:
        return [other([*values, words.word(selector)])]
    if picks & 0xFFFF == 0x3210:
        return [values[0]]
    used = [(values[pick >> 2 & 1], pick) for pick in (picks >> 4 * byte & 15 for byte in range(4))]
    unknown = [known_bits([value]) < 8 * (pick & 3) + 8 for value, pick in used]
    lost = [value for (value, _), is_lost in zip(used, unknown) if is_lost]
    return [other(lost, 8 * unknown.index(True))] if lost else [None]


def _compared(form: Form, words: PlacedOperands) -> Results:
    how, (a, b, joined, *lower) = form.modifiers[0], form.operands[2:]
    ordered = how not in ("EQ", "NE")
    wide = bool({"S64", "U64"} & set(form.modifiers))
    x, y = words.product(a), words.product(b)
    below = words.word(lower[0]) if "EX" in form.modifiers else None
    values = [x[0], y[0], words.word(joined), below]
    if all(value is None for value in values):
        return []
    sides = [_side(x, a, "EX" in form.modifiers), _side(y, b, "EX" in form.modifiers)]
    result: Value = other(values)
    if sides[0] is not None and sides[1] is not None and values[2] is None:
        pair = sides[0], sides[1]
        alike = pair[0] == pair[1] or (() in pair and (not ordered or _is_zero(a) or _is_zero(b)))
        if "EX" in form.modifiers or wide:
            fits = below is None or (isinstance(below, Lower) and below.of == pair)
            result = None if alike and fits else result
        elif pair[0] == pair[1] and not ordered:
            result = None
        elif "AND" in form.modifiers and _is_zero(joined) and not getattr(joined, "negated", False):
            result = Lower("order", pair, result.names if result else frozenset())
    return [result, other([result])]


def _side(product: Product, operand: Operand, high: bool) -> tuple[tuple[object, int], ...] | None:
    value, factor = product
    if value is None:
        return ()
    if isinstance(value, Lower) or value.sum is None or value.high is not high or factor != 1:
        return None
    return value.sum


def _loaded(form: Form, words: PlacedOperands, count: int) -> Results:
    """Words of a constant bank: at one place of it, or at those that an index came to."""
    place = next(operand for operand in form.operands if isinstance(operand, Constant))
    indexed = place.register is not None and place.register.slot is not None
    starts = sorted(words.indexed) if indexed else [place.offset]
    known = words.constants
    at = [[known.get((place.bank, (start & ~3) + 4 * more)) for start in starts] for more in range(count)]
    if {"U8", "S8", "U16", "S16"} & set(form.modifiers):
        return [other(value for values in at for value in values)]
    return [chosen(("at", place), values) if values else None for values in at]


def _of_predicates(form: Form, words: PlacedOperands) -> Results:
    base, mask = form.operands[2:4]
    first = PREDICATE if form.opcode == "P2R" else UNIFORM_PREDICATE
    return [
        other(
            [
                words.word(base),
                *(words.state.get(first + one) for one in named_by((_number(mask) or 0) & 0x7F)),
            ]
        )
    ]


def _to_predicates(form: Form, words: PlacedOperands) -> Results:
    """Bits of a register: the predicates before are not among them, though the form names them all."""
    return [other([words.word(form.operands[1])])] * len(named_by(0x7F))


#: By opcode, without the U of those on uniform registers.
RULES: dict[str, Rule] = {
    "IADD3": _sum,
    "IADD": _added,
    "VIADD": _added,
    "IMAD": _product,
    "LEA": _shifted_sum,
    "MOV": _moved,
    "R2UR": _to_uniform,
    "SHFL": _shuffled,
    "SEL": _selected,
    "LOP3": _bits,
    "SHF": _shift,
    "PRMT": _permuted,
    "ISETP": _compared,
    "P2R": _of_predicates,
    "P2UR": _of_predicates,
    "R2P": _to_predicates,
}


def results(op: Op, words: PlacedOperands, count: int) -> Results:
    """The values of an instruction's `count` results."""
    rule = RULES.get(op.form.opcode.removeprefix("U"))
    if op.form.opcode == "LEPC" and isinstance(op.form.operands[-1], Label):
        found: Results = list(words.code)
    elif op.form.opcode in ("LDC", "ULDC", "LDCU"):
        found = _loaded(op.form, words, count)
    elif rule is not None:
        found = rule(op.form, words)
    else:
        found = [other([words.state.get(slot) for slot in slots_of(op.reads)])] * count
    return [*found, *([None] * count)][:count]
