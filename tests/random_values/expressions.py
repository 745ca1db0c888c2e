"""Random expressions: the text of each in CUDA C++, and its value for one thread."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.random_values.scalars import (
    BINARY,
    COMPARISONS,
    DOUBLE,
    FLOAT,
    FLOATS,
    I32,
    INTEGERS,
    INTRINSICS,
    LONGS,
    UNARY,
    WORDS,
    Number,
    Type,
    bits_of,
    convert,
    of_bits,
    truncated,
    wrap,
)

#: A thread's variables.
Values = dict[str, Number]

#: Operations without a case that C++ leaves undefined: sums are unsigned, shifts are by less than the size,
#: and nothing is divided by 0 or -1.
PRELUDE = """
typedef unsigned long long u64;
template <int> struct Sized { typedef unsigned U; };
template <> struct Sized<8> { typedef u64 U; };
#define OP(name, does) template <class T> __device__ __forceinline__ T name(T a, T b) { \\
    typedef typename Sized<sizeof(T)>::U U; return T(does); }
OP(add, U(a) + U(b)) OP(sub, U(a) - U(b)) OP(mul, U(a) * U(b))
OP(quot, b == 0 || b == T(-1) ? a : T(a / b)) OP(rem, b == 0 || b == T(-1) ? a : T(a % b))
OP(conj, a & b) OP(disj, a | b) OP(exor, a ^ b) OP(left, U(a) << (U(b) & (sizeof(T) * 8 - 1)))
OP(right, a >> (U(b) & (sizeof(T) * 8 - 1))) OP(least, a < b ? a : b) OP(most, a > b ? a : b)
template <class T> __device__ __forceinline__ T neg(T a) { return T(0 - typename Sized<sizeof(T)>::U(a)); }
template <class T> __device__ __forceinline__ T inv(T a) { return T(~a); }
template <class T> __device__ __forceinline__ T size(T a) { return a < T(0) ? neg(a) : a; }
__device__ __forceinline__ u64 bits(float a) { return a != a ? 0 : __float_as_uint(a); }
__device__ __forceinline__ u64 bits(double a) { return a != a ? 0 : __double_as_longlong(a); }
template <class T> __device__ __forceinline__ u64 bits(T a) { return u64(a); }
"""


@dataclass(frozen=True)
class Expression:
    """What is written, of which type it is, and what it is for a thread's variables."""

    text: str
    kind: Type
    value: Callable[[Values], Number]


def literal(bits: int, kind: Type) -> Expression:
    """A constant of this representation."""
    if kind is FLOAT:
        text = f"__uint_as_float({bits:#x}u)"
    elif kind is DOUBLE:
        text = f"__longlong_as_double({bits:#x}ull)"
    else:
        text = f"({kind.text}){bits:#x}ull"
    number = of_bits(bits, kind)
    return Expression(f"({text})", kind, lambda values: number)


def variable(name: str, kind: Type) -> Expression:
    """A variable's value."""
    return Expression(name, kind, lambda values: values[name])


def cast(of: Expression, kind: Type) -> Expression:
    """To another type; of a float to an integer towards zero, saturated."""
    if of.kind is kind:
        return of
    value, source = of.value, of.kind
    if source.floating and not kind.floating:
        wide = kind if kind.bits >= 32 else I32
        text = f"({kind.text})__{source.short}2{wide.short}_rz({of.text})"
        return Expression(
            f"({text})", kind, lambda values: wrap(truncated(value(values), source, wide), kind)
        )
    return Expression(f"(({kind.text})({of.text}))", kind, lambda values: convert(value(values), kind))


def called(name: str, kind: Type, compute: Callable[..., Number], *taken: Expression) -> Expression:
    """A function of expressions."""
    readers = [one.value for one in taken]
    text = f"{name}({', '.join(one.text for one in taken)})"
    return Expression(text, kind, lambda values: compute(*(read(values) for read in readers)))


def masked(of: Expression, limit: int) -> Expression:
    """An int below a power of two."""
    inner = cast(of, I32)
    return Expression(f"({inner.text} & {limit - 1})", I32, lambda values: inner.value(values) & limit - 1)


class Expressions:
    """Makes expressions of the variables that are known."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.known: list[Expression] = []

    def make(self, kind: Type | None = None, depth: int = 3) -> Expression:
        """One of any type, or of this."""
        chance = self.chance
        if kind is None:
            kind = chance.choice([*INTEGERS, *WORDS, *WORDS, *LONGS, *FLOATS])
        if depth == 0 or chance.random() < 0.15:
            return self.leaf(kind)
        makers = [self.intrinsic, self.choice, self.changed]
        makers += [] if kind.floating else [self.binary] * 4 + [self.unary, self.comparison]
        return chance.choice(makers)(kind, depth - 1)

    def leaf(self, kind: Type) -> Expression:
        if self.known and self.chance.random() < 0.8:
            return cast(self.chance.choice(self.known), kind)
        return literal(random_bits(self.chance, kind), kind)

    def changed(self, kind: Type, depth: int) -> Expression:
        return cast(self.make(None, depth), kind)

    def binary(self, kind: Type, depth: int) -> Expression:
        name = self.chance.choice(list(BINARY))
        apply = BINARY[name]

        def compute(a: Number, b: Number) -> Number:
            return wrap(apply(kind, a, b), kind)

        return called(f"{name}<{kind.text}>", kind, compute, self.make(kind, depth), self.make(kind, depth))

    def unary(self, kind: Type, depth: int) -> Expression:
        # Of 16 bits, ptxas takes neg and abs of -32768 as 32768.
        name = self.chance.choice([one for one in UNARY if one == "inv" or kind.bits >= 32])
        apply = UNARY[name]
        return called(f"{name}<{kind.text}>", kind, lambda a: wrap(apply(a), kind), self.make(kind, depth))

    def test(self, depth: int) -> Expression:
        kind, relation = self.chance.choice([*INTEGERS, *FLOATS]), self.chance.choice(list(COMPARISONS))
        a, b, holds = self.make(kind, depth), self.make(kind, depth), COMPARISONS[relation]
        text = f"({a.text} {relation} {b.text})"
        return Expression(text, I32, lambda values: int(holds(a.value(values), b.value(values))))

    def comparison(self, kind: Type, depth: int) -> Expression:
        return cast(self.test(depth), kind)

    def choice(self, kind: Type, depth: int) -> Expression:
        test, yes, no = self.test(min(depth, 1)), self.make(kind, depth), self.make(kind, depth)
        text = f"({test.text} ? {yes.text} : {no.text})"
        return Expression(text, kind, lambda v: yes.value(v) if test.value(v) else no.value(v))

    def intrinsic(self, kind: Type, depth: int) -> Expression:
        fitting = [one for one in INTRINSICS if one.gives is kind]
        one = self.chance.choice(fitting or INTRINSICS)
        taken = [self.make(takes, depth) for takes in one.takes]
        return cast(called(one.name, one.gives, one.compute, *taken), kind)


def random_bits(chance: random.Random, kind: Type) -> int:
    """Of a number: at random, near a power of two, small, or a float of moderate size."""
    whole = (1 << kind.bits) - 1
    if kind.floating and chance.random() < 0.7:
        number = chance.choice([0.0, 1.0, -1.0, 0.5, chance.uniform(-100, 100), chance.uniform(-1e9, 1e9)])
        return bits_of(convert(number, kind), kind)
    near = (1 << chance.randrange(kind.bits)) + chance.choice([-1, 0, 1])
    return chance.choice([chance.getrandbits(kind.bits), near, -near, chance.randint(-9, 40)]) & whole
