"""What CUDA C++ says of single numbers, in Python's integers, floats and fractions.

Nothing here is numpy or memsim's. An integer is within its type's range; a `float` fits binary32.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from ctypes import c_float
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tests.isa.oracle import F32, F64, encode, fused, pieces, signed

Number = Any  # an int or a float


@dataclass(frozen=True)
class Type:
    """A number's type in CUDA C++; `short` names it in intrinsics (`__float2ull_rz`)."""

    text: str
    bits: int
    signed: bool = False
    floating: bool = False
    short: str = ""


I8, U8 = Type("signed char", 8, True), Type("unsigned char", 8)
I16, U16 = Type("short", 16, True), Type("unsigned short", 16)
I32, U32 = Type("int", 32, True, short="int"), Type("unsigned", 32, short="uint")
I64, U64 = Type("long long", 64, True, short="ll"), Type("unsigned long long", 64, short="ull")
FLOAT, DOUBLE = (
    Type("float", 32, floating=True, short="float"),
    Type("double", 64, floating=True, short="double"),
)
WORDS, LONGS, FLOATS = (I32, U32), (I64, U64), (FLOAT, DOUBLE)
INTEGERS = (I8, U8, I16, U16, *WORDS, *LONGS)


def wrap(value: int, to: Type) -> int:
    """Modulo the type's size."""
    return signed(value, to.bits) if to.signed else value & ((1 << to.bits) - 1)


def bits_of(value: Number, kind: Type) -> int:
    """The representation of a float, 0 for any NaN; an integer modulo 2^64."""
    if not kind.floating:
        return int(value) & (1 << 64) - 1
    if math.isnan(value):
        return 0
    return int.from_bytes(struct.pack("<d" if kind is DOUBLE else "<f", value), "little")


def of_bits(bits: int, kind: Type) -> Number:
    """A number from its representation."""
    if not kind.floating:
        return wrap(bits, kind)
    return struct.unpack("<d" if kind is DOUBLE else "<f", bits.to_bytes(kind.bits // 8, "little"))[0]


def convert(value: Number, to: Type) -> Number:
    """A cast of an integer, or of a float to a float: modulo the size, or to the nearest (ties to even)."""
    if to is FLOAT and isinstance(value, int):
        return of_bits(encode(Fraction(value), F32), FLOAT)
    if to.floating:
        return c_float(value).value if to is FLOAT else float(value)
    return wrap(value, to)


def truncated(value: float, source: Type, to: Type) -> int:
    """A float as an integer of 32 or 64 bits, saturated: `__double2uint_rz`. NaN: PTX ISA, `cvt`."""
    if math.isnan(value):
        return 0 if source is FLOAT and to.bits == 32 else wrap(1 << to.bits - 1, to)
    least, most = (-(1 << to.bits - 1), (1 << to.bits - 1) - 1) if to.signed else (0, (1 << to.bits) - 1)
    if math.isinf(value):
        return most if value > 0 else least
    return min(max(int(value), least), most)


# --- integers of any size ---------------------------------------------------------------------------


def quotient(a: int, b: int) -> int:
    """Towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _safe(kind: Type, b: int) -> bool:
    return b not in (0, wrap(-1, kind))


#: Name of a function template in `generate.PRELUDE` -> its result before it is wrapped.
BINARY: dict[str, Callable[[Type, int, int], int]] = {
    "add": lambda kind, a, b: a + b,
    "sub": lambda kind, a, b: a - b,
    "mul": lambda kind, a, b: a * b,
    "quot": lambda kind, a, b: quotient(a, b) if _safe(kind, b) else a,
    "rem": lambda kind, a, b: a - quotient(a, b) * b if _safe(kind, b) else a,
    "conj": lambda kind, a, b: a & b,
    "disj": lambda kind, a, b: a | b,
    "exor": lambda kind, a, b: a ^ b,
    "left": lambda kind, a, b: a << (b & kind.bits - 1),
    "right": lambda kind, a, b: a >> (b & kind.bits - 1),
    "least": lambda kind, a, b: min(a, b),
    "most": lambda kind, a, b: max(a, b),
}
UNARY: dict[str, Callable[[int], int]] = {"neg": lambda a: -a, "inv": lambda a: ~a, "size": abs}
COMPARISONS: dict[str, Callable[[Number, Number], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}

# --- intrinsics -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Intrinsic:
    """A function of CUDA."""

    name: str
    takes: tuple[Type, ...]
    gives: Type
    compute: Callable[..., Number]


def leading_zeros(value: int, bits: int) -> int:
    return bits - (value & ((1 << bits) - 1)).bit_length()


def first_set(value: int) -> int:
    return (value & -value).bit_length()


def turned(value: int, bits: int) -> int:
    return int(f"{value:0{bits}b}"[::-1], 2)


def chosen_bytes(a: int, b: int, selector: int) -> int:
    both = b << 32 | a
    return sum((both >> 8 * (selector >> 4 * i & 7) & 0xFF) << 8 * i for i in range(4))


def dot(a: int, b: int, c: int, is_signed: bool) -> int:
    pairs = zip(pieces(a, 8, is_signed), pieces(b, 8, is_signed))
    return c + sum(x * y for x, y in pairs)


def _each(size: int, is_signed: bool, compute: Callable[[int, int], int]) -> Callable[[int, int], int]:
    """A SIMD intrinsic."""

    def whole(a: int, b: int) -> int:
        found = [compute(x, y) for x, y in zip(pieces(a, size, is_signed), pieces(b, size, is_signed))]
        return sum((value & (1 << size) - 1) << size * i for i, value in enumerate(found))

    return whole


def _simd() -> list[Intrinsic]:
    def clamp(value: int, size: int, is_signed: bool) -> int:
        low, high = (-(1 << size - 1), (1 << size - 1) - 1) if is_signed else (0, (1 << size) - 1)
        return min(max(value, low), high)

    found = []
    for size, count in ((8, 4), (16, 2)):
        whole = (1 << size) - 1
        for name, is_signed, compute in (
            ("add", False, lambda x, y: x + y),
            ("sub", False, lambda x, y: x - y),
            ("addus", False, lambda x, y, n=size: clamp(x + y, n, False)),
            ("addss", True, lambda x, y, n=size: clamp(x + y, n, True)),
            ("subus", False, lambda x, y, n=size: clamp(x - y, n, False)),
            ("subss", True, lambda x, y, n=size: clamp(x - y, n, True)),
            ("minu", False, min),
            ("mins", True, min),
            ("maxu", False, max),
            ("maxs", True, max),
            ("avgu", False, lambda x, y: (x + y + 1) >> 1),
            ("haddu", False, lambda x, y: (x + y) >> 1),
            ("absdiffu", False, lambda x, y: abs(x - y)),
            ("cmpeq", False, lambda x, y, ones=whole: ones * (x == y)),
            ("cmpgtu", False, lambda x, y, ones=whole: ones * (x > y)),
            ("cmplts", True, lambda x, y, ones=whole: ones * (x < y)),
            ("setgtu", False, lambda x, y: x > y),
        ):
            found.append(Intrinsic(f"__v{name}{count}", (U32, U32), U32, _each(size, is_signed, compute)))
    return found


def _rooted(value: float, kind: Type) -> float:
    return convert(math.sqrt(value), kind) if value >= 0 else value if value == 0 else math.nan


def _divided(a: float, b: float) -> float:
    if b:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1, b)


def _fused(a: float, b: float, c: float, kind: Type) -> float:
    form = F32 if kind is FLOAT else F64
    words = [form.nan if math.isnan(x) else bits_of(x, kind) for x in (a, b, c)]
    return float(of_bits(fused(*words, form), kind))


def _lesser(a: float, b: float) -> float:
    """-0 is less than +0 (PTX ISA, min); a NaN loses."""
    if math.isnan(a) or math.isnan(b):
        return b if math.isnan(a) else a
    return min((a, math.copysign(1, a)), (b, math.copysign(1, b)))[0]


def _of_floats() -> list[Intrinsic]:
    found = []
    for kind, mark, end in ((FLOAT, "f", "f"), (DOUBLE, "d", "")):
        one, two, three = (kind,) * 1, (kind,) * 2, (kind,) * 3
        found += [
            Intrinsic(f"__{mark}add_rn", two, kind, lambda a, b, k=kind: convert(a + b, k)),
            Intrinsic(f"__{mark}sub_rn", two, kind, lambda a, b, k=kind: convert(a - b, k)),
            Intrinsic(f"__{mark}mul_rn", two, kind, lambda a, b, k=kind: convert(a * b, k)),
            Intrinsic(f"__{mark}div_rn", two, kind, lambda a, b, k=kind: convert(_divided(a, b), k)),
            Intrinsic(f"__{mark}sqrt_rn", one, kind, lambda a, k=kind: _rooted(a, k)),
            Intrinsic(f"fma{end}", three, kind, lambda a, b, c, k=kind: _fused(a, b, c, k)),
            Intrinsic(f"fmin{end}", two, kind, _lesser),
            Intrinsic(f"fmax{end}", two, kind, lambda a, b: -_lesser(-a, -b)),
            Intrinsic(f"fabs{end}", one, kind, abs),
            *(
                Intrinsic(
                    f"{name}{end}",
                    one,
                    kind,
                    lambda a, f=step: math.copysign(f(a), a) if math.isfinite(a) else a,
                )
                for name, step in (
                    ("floor", math.floor),
                    ("ceil", math.ceil),
                    ("trunc", math.trunc),
                    ("rint", round),
                )
            ),
            *(
                Intrinsic(
                    f"__{kind.short}2{to.short}_rz", one, to, lambda a, k=kind, t=to: truncated(a, k, t)
                )
                for to in (*WORDS, *LONGS)
            ),
        ]
    return found


INTRINSICS = [
    Intrinsic("__umulhi", (U32, U32), U32, lambda a, b: a * b >> 32),
    Intrinsic("__mulhi", (I32, I32), I32, lambda a, b: a * b >> 32),
    Intrinsic("__umul64hi", (U64, U64), U64, lambda a, b: a * b >> 64),
    Intrinsic("__mul64hi", (I64, I64), I64, lambda a, b: a * b >> 64),
    Intrinsic("__mul24", (I32, I32), I32, lambda a, b: wrap(signed(a, 24) * signed(b, 24), I32)),
    Intrinsic("__umul24", (U32, U32), U32, lambda a, b: wrap((a & 0xFFFFFF) * (b & 0xFFFFFF), U32)),
    Intrinsic(
        "__funnelshift_l", (U32, U32, U32), U32, lambda a, b, n: (b << 32 | a) << (n & 31) >> 32 & 0xFFFFFFFF
    ),
    Intrinsic(
        "__funnelshift_r", (U32, U32, U32), U32, lambda a, b, n: (b << 32 | a) >> (n & 31) & 0xFFFFFFFF
    ),
    Intrinsic(
        "__funnelshift_lc",
        (U32, U32, U32),
        U32,
        lambda a, b, n: (b << 32 | a) << min(n, 32) >> 32 & 0xFFFFFFFF,
    ),
    Intrinsic(
        "__funnelshift_rc", (U32, U32, U32), U32, lambda a, b, n: (b << 32 | a) >> min(n, 32) & 0xFFFFFFFF
    ),
    Intrinsic("__byte_perm", (U32, U32, U32), U32, chosen_bytes),
    Intrinsic("__popc", (U32,), I32, int.bit_count),
    Intrinsic("__popcll", (U64,), I32, int.bit_count),
    Intrinsic("__clz", (I32,), I32, lambda a: leading_zeros(a, 32)),
    Intrinsic("__clzll", (I64,), I32, lambda a: leading_zeros(a, 64)),
    Intrinsic("__ffs", (I32,), I32, first_set),
    Intrinsic("__ffsll", (I64,), I32, first_set),
    Intrinsic("__brev", (U32,), U32, lambda a: turned(a, 32)),
    Intrinsic("__brevll", (U64,), U64, lambda a: turned(a, 64)),
    Intrinsic("__sad", (I32, I32, U32), U32, lambda a, b, c: wrap(abs(a - b) + c, U32)),
    Intrinsic("__usad", (U32, U32, U32), U32, lambda a, b, c: wrap(abs(a - b) + c, U32)),
    Intrinsic("__hadd", (I32, I32), I32, lambda a, b: (a + b) >> 1),
    Intrinsic("__uhadd", (U32, U32), U32, lambda a, b: (a + b) >> 1),
    Intrinsic("__rhadd", (I32, I32), I32, lambda a, b: (a + b + 1) >> 1),
    Intrinsic("__dp4a", (I32, I32, I32), I32, lambda a, b, c: wrap(dot(a, b, c, True), I32)),
    Intrinsic("__dp4a", (U32, U32, U32), U32, lambda a, b, c: wrap(dot(a, b, c, False), U32)),
    *_simd(),
    *_of_floats(),
]
