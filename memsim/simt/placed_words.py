"""Words that depend on where arrays lie in memory, which no count can: a system places them as it likes.

A pointer is known by its two words, which are those of a sum: of an array's first byte, times a factor, and
of numbers that do not depend on it. In differences of pointers into one array, its place cancels out.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from memsim.launch import GLOBAL_ALIGN

#: What is added, by what it is multiplied: of the places of arrays, and of what is not told apart from them.
Terms = tuple[tuple[Hashable, int], ...]

#: What a stack pointer is a sum of: an offset in local memory, which has no upper word.
STACK_POINTER = "the stack"
#: What generic addresses of the stack are sums of, and addresses of functions; and their names.
STACK, CODE = ("local",), ("code",)
NAMES: dict[Hashable, str] = {STACK: "the stack", CODE: "a function"}
#: The lowest bits of an array's first address that are known: allocations are aligned.
ALIGNED = GLOBAL_ALIGN.bit_length() - 1


@dataclass(frozen=True, slots=True)
class Placed:
    """A word that depends on where something lies.

    sum: of which places it is a word; None: it depends on them otherwise. high: the upper word of the sum.
    known: so many of its lowest bits do not depend on them. names: of what lies there.
    """

    sum: Terms | None
    high: bool
    known: int
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Lower:
    """What the lower words of sums leave for the upper ones: a carry (`of` the addends), or their order (`of`
    both sides).
    """

    of: tuple[Terms, ...]
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Carried:
    """The carry of a sum of lower words, in a sum of upper ones."""

    of: tuple[Terms, ...]


#: What is known of a register: None: it does not depend on any place.
Value = Placed | Lower | None


def first_byte(what: Hashable, name: str, known: int = ALIGNED) -> tuple[Placed, Placed]:
    """The two words of an address."""
    terms, names = ((what, 1),), frozenset((name,))
    return Placed(terms, False, known, names), Placed(terms, True, 0, names)


def names_of(values: Iterable[Value]) -> frozenset[str]:
    """What the values depend on."""
    return frozenset[str]().union(*(value.names for value in values if value is not None))


def other(values: Iterable[Value], known: int = 0) -> Placed | None:
    """A word that depends on values in another way; None if none of them depends on a place, or all bits are
    known.
    """
    present = [value for value in values if value is not None]
    return Placed(None, False, max(0, known), names_of(present)) if present and known < 32 else None


def known_bits(values: Iterable[Value]) -> int:
    """So many of the lowest bits are known in each of the values."""
    return min((value.known if isinstance(value, Placed) else 0 for value in values if value), default=32)


def add_sums(sums: Iterable[Terms]) -> Terms:
    """The sum of sums; what cancels out is gone."""
    total: dict[Hashable, int] = {}
    for one in sums:
        for what, factor in one:
            total[what] = total.get(what, 0) + factor
    return tuple(sorted(((what, by) for what, by in total.items() if by), key=repr))


def without_stack(terms: Terms) -> Terms:
    """What of a sum of lower words has upper words."""
    return tuple(term for term in terms if term[0] != STACK_POINTER)


def times(terms: Terms, factor: int) -> Terms:
    """A sum times a number."""
    return tuple((what, by * factor) for what, by in terms)


#: A word and by what it is multiplied; None: by an unknown number.
Product = tuple[Value, int | None]


def addends(products: Sequence[Product], high: bool) -> tuple[Terms, ...] | None:
    """The sums of which words are added, in order; None if one is no lower (`high`: upper) word of a sum."""
    found = []
    for value, factor in products:
        if value is None or factor == 0:
            continue
        if factor is None or isinstance(value, Lower) or value.sum is None or value.high is not high:
            return None
        found.append(times(value.sum, factor))
    return tuple(sorted(found, key=repr))


def sum_of_words(products: Sequence[Product], known: int = 0) -> Placed | None:
    """A sum of words, without carries; `known` of its lowest bits do not depend on places."""
    values = [value for value, factor in products if factor != 0]
    for high in (False, True):
        sums = addends(products, high)
        if sums is not None:
            total = _completed(add_sums(sums))
            return Placed(total, high, 0 if high else known, names_of(values)) if total else None
    return other(values, known)


def _completed(total: Terms) -> Terms:
    """A sum of upper words without the carry of the lower ones, if all that it is of are there."""
    for what, factor in total:
        if isinstance(what, Carried) and factor == 1:
            rest = tuple(term for term in total if term[0] is not what)
            if rest == without_stack(add_sums(what.of)):
                return rest
    return total


def upper_part(products: Sequence[Product], upper: Value) -> Value:
    """An upper word and the carry of a sum of lower words, some of whose upper words are still missing."""
    sums = addends(products, False)
    if sums is None or isinstance(upper, Lower) or (upper is not None and not (upper.high and upper.sum)):
        return other([*(value for value, _ in products), upper])
    names = names_of([*(value for value, _ in products), upper])
    whole = add_sums([((Carried(sums), 1),), () if upper is None or upper.sum is None else upper.sum])
    return Placed(_completed(whole), True, 0, names) if sums else upper


def carry(products: Sequence[Product]) -> Value:
    """The carry of a sum of lower words."""
    sums = addends(products, False)
    if sums is None:
        return other(value for value, _ in products)
    sums = tuple(rest for rest in map(without_stack, sums) if rest)
    return Lower(sums, names_of(value for value, _ in products)) if sums else None


def with_carry(products: Sequence[Product], carries: Sequence[Value]) -> Value:
    """A sum of upper words, with the carries of that of the lower ones."""
    present = [one for one in carries if one is not None]
    sums = addends(products, True)
    if sums is None or any(not isinstance(one, Lower) or one.of != sums for one in present):
        return other([*(value for value, _ in products), *present])
    return sum_of_words(products)


def one_of_values(key: Hashable, values: Sequence[Value]) -> Value:
    """One of some values; which, is decided by what does not depend on places, and told apart by `key`."""
    if all(value == values[0] for value in values):
        return values[0]
    if sums_of(values) is None:
        return other(values, known_bits(values))
    high = any(isinstance(value, Placed) and value.high for value in values)
    return Placed(((key, 1),), high, 0 if high else known_bits(values), names_of(values))


def sums_of(values: Sequence[Value]) -> tuple[Terms, ...] | None:
    """The sums that these are words of; None if not all of them are lower words, or upper ones."""
    highs = set()
    for value in values:
        if isinstance(value, Lower) or (value is not None and value.sum is None):
            return None
        if value is not None:
            highs.add(value.high)
    if len(highs) > 1:
        return None
    return tuple(() if value is None else value.sum or () for value in values)  # type: ignore[union-attr]
