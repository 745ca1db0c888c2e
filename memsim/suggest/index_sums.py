"""Integer expressions as sums of products, so that one can be taken from another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from memsim.source.expressions import quotient

Product = tuple["Atom", ...]


@dataclass(frozen=True)
class Atom:
    """What a product is made of. kind: `uniform` (the same in all threads of a block), `thread`, `local` (a
    variable, of one sum that it is), `loop` and its place (of its least and greatest value and its step), or
    `min`, `max`, `/`, `%` of two sums.
    """

    kind: str
    text: str
    of: tuple[IndexSum, ...] = ()

    def __lt__(self, other: Atom) -> bool:
        return (self.kind, self.text) < (other.kind, other.text)

    @property
    def is_uniform(self) -> bool:
        """Whether it is the same in all threads of a block, and in all iterations."""
        if self.kind == "thread" or self.kind.startswith("loop"):
            return False
        return all(one.is_uniform for one in self.of)

    @property
    def known(self) -> IndexSum:
        """Without variables in it."""
        if self.kind == "local":
            return self.of[0].known
        if self.kind in _OPERATIONS:
            return operation(self.kind, self.of[0].known, self.of[1].known)
        return IndexSum.of(self)


@dataclass(frozen=True)
class IndexSum:
    """terms: products in order, each with its factor, which is not 0."""

    terms: tuple[tuple[Product, int], ...] = ()

    @staticmethod
    def of(what: Atom | int) -> IndexSum:
        """A sum of one term."""
        return _made({(): what} if isinstance(what, int) else {(what,): 1})

    def __add__(self, other: IndexSum) -> IndexSum:
        return _made(dict(self.terms), *other.terms)

    def __sub__(self, other: IndexSum) -> IndexSum:
        return self + other * IndexSum.of(-1)

    def __mul__(self, other: IndexSum) -> IndexSum:
        pairs = product(self.terms, other.terms)
        return _made({}, *((tuple(sorted(one + two)), a * b) for (one, a), (two, b) in pairs))

    @property
    def atoms(self) -> set[Atom]:
        """Of all its products."""
        return {atom for atoms, _ in self.terms for atom in atoms}

    @property
    def within(self) -> Iterator[Atom]:
        """The atoms, and all that these are made of."""
        for atom in self.atoms:
            yield atom
            for one in atom.of:
                yield from one.within

    @property
    def is_uniform(self) -> bool:
        """Whether it is the same in all threads of a block, and in all iterations."""
        return all(atom.is_uniform for atom in self.atoms)

    @property
    def number(self) -> int | None:
        """Its value, if nothing else decides it."""
        return dict(self.terms).get((), 0) if set(dict(self.terms)) <= {()} else None

    @property
    def known(self) -> IndexSum:
        """Without variables in it."""
        return self._with(lambda atom: atom.known)

    @property
    def opened(self) -> IndexSum:
        """With what its variables are."""
        return self._with(lambda atom: atom.of[0] if atom.kind == "local" else IndexSum.of(atom))

    def _with(self, meant: Callable[[Atom], IndexSum]) -> IndexSum:
        """With what is meant by each atom in its place."""
        found = ZERO
        for atoms, factor in self.terms:
            term = IndexSum.of(factor)
            for atom in atoms:
                term *= meant(atom)
            found += term
        return found

    @property
    def flat(self) -> IndexSum:
        """With x for `x / n * n + x % n`."""
        found = self
        for rest in [atom for atom in found.atoms if atom.kind == "%"]:
            whole, by = rest.of
            times, quotient = IndexSum.of(dict(found.terms).get((rest,), 0)), operation("/", whole, by)
            less = found + times * (whole - quotient * by - IndexSum.of(rest))
            found = found if less.atoms & {rest, *quotient.atoms} else less
        return found

    def divided(self, by: Product, number: int = 1) -> tuple[IndexSum, IndexSum]:
        """What a product and a number multiply, which are not 0, and the rest."""
        found, rest = ZERO, ZERO
        for atoms, factor in self.terms:
            left = list(atoms)
            for one in by:
                if one in left:
                    left.remove(one)
            if number == 0 or factor % number or len(left) + len(by) > len(atoms):
                rest += IndexSum(((atoms, factor),))
            else:
                found += IndexSum(((tuple(left), factor // number),))
        return found, rest

    def value(self, known: Mapping[str, int]) -> int:
        """Its value; KeyError where that of a name is not known, ZeroDivisionError."""
        total = 0
        for atoms, factor in self.terms:
            for atom in atoms:
                factor *= _value(atom, known)
            total += factor
        return total

    def text(self, names: Mapping[str, str] | None = None) -> str:
        """It in C; names: what is written for a name."""
        ordered = sorted(self.terms, key=lambda term: (term[1] < 0, not term[0]))
        found = ""
        for atoms, factor in ordered:
            parts = [_text(atom, names or {}) for atom in atoms]
            if abs(factor) != 1 or not parts:
                parts.insert(0, str(abs(factor)))
            sign = "-" if factor < 0 else "+"
            found += f" {sign} {' * '.join(parts)}" if found else f"{'-' * (factor < 0)}{' * '.join(parts)}"
        return found or "0"


ZERO, ONE = IndexSum(), IndexSum((((), 1),))


def operation(kind: str, one: IndexSum, two: IndexSum) -> IndexSum:
    """`min`, `max`, `/` or `%` of two sums; the one that it is in any case."""
    a, b = one.number, two.number
    if a is not None and b:
        return IndexSum.of(_OPERATIONS[kind](a, b))
    if kind in ("min", "max") and (is_less(one, two) or is_less(two, one)):
        return one if is_less(one, two) == (kind == "min") else two
    if kind == "/" and b == 1:
        return one
    text = f"{one.text()} {kind} {two.text()}"
    return IndexSum.of(Atom(kind, text, (one, two)))


def is_less(one: IndexSum, two: IndexSum) -> bool:
    """Whether a sum is known to be less than another one, or equal."""
    apart = (one - two).number
    if apart is not None:
        return apart <= 0
    for these, other, every in ((one, two, "max"), (two, one, "min")):
        alone = these.terms[0][0][0] if len(these.terms) == len(these.atoms) == 1 else None
        if alone is not None and these == IndexSum.of(alone) and alone.kind in ("min", "max"):
            pairs = ((each, other) if every == "max" else (other, each) for each in alone.of)
            if (all if alone.kind == every else any)(is_less(*pair) for pair in pairs):
                return True
    return False


def _made(found: dict[Product, int], *terms: tuple[Product, int]) -> IndexSum:
    for atoms, factor in terms:
        found[atoms] = found.get(atoms, 0) + factor
    return IndexSum(tuple(sorted((atoms, factor) for atoms, factor in found.items() if factor)))


_OPERATIONS: Mapping[str, Callable[[int, int], int]] = {
    "min": min,
    "max": max,
    "/": quotient,
    "%": lambda a, b: a - quotient(a, b) * b,
}


def _value(atom: Atom, known: Mapping[str, int]) -> int:
    if atom.kind in _OPERATIONS:
        return _OPERATIONS[atom.kind](*(one.value(known) for one in atom.of))
    return atom.of[0].value(known) if atom.kind == "local" else known[atom.text]


def _text(atom: Atom, names: Mapping[str, str]) -> str:
    if atom.kind not in _OPERATIONS:
        return names.get(atom.text, atom.text)
    one, two = (each.text(names) for each in atom.of)
    if atom.kind in ("min", "max"):
        return f"{atom.kind}({one}, {two})"
    one, two = (text if text.isidentifier() or text.isdigit() else f"({text})" for text in (one, two))
    return f"({one} {atom.kind} {two})"
