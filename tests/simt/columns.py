"""Operands of one instruction: how they vary between threads, their raw bits, and the PTX that loads them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tests.simt.reference import FLOATS, decode, encode, width

BLOCKS, THREADS = 4, 32

#: How the operands of one column vary.
COLUMNS = {
    1: ("full", "thread", "block", "uniform", "sum", "immediate"),
    2: (
        "full full",
        "thread uniform",
        "block thread",
        "sum uniform",
        "sum sum",
        "uniform thread",
        "sum immediate",
        "immediate block",
    ),
    3: (
        "full full full",
        "thread uniform block",
        "sum uniform sum",
        "block immediate thread",
        "sum immediate immediate",
        "uniform uniform uniform",
    ),
    4: (
        "full full full full",
        "thread uniform block sum",
        "sum sum immediate immediate",
        "uniform thread uniform immediate",
    ),
}


@dataclass(frozen=True)
class Column:
    """One operand: a type, how it varies, and its bits (for a sum: the blocks' parts, then the threads')."""

    kind: str
    how: str
    raws: np.ndarray
    threads: int

    def spread(self) -> np.ndarray:
        """The bits in every thread."""
        blocks, threads = self.raws[:, None], self.raws[None, :]
        if self.how == "full":
            return self.raws
        if self.how == "sum":
            ones = np.uint64((1 << width(self.kind)) - 1)
            return ((blocks[:BLOCKS] + threads[:, BLOCKS:]) & ones).reshape(-1)
        one = blocks if self.how == "block" else threads
        return np.broadcast_to(one, (BLOCKS, self.threads)).reshape(-1)

    def load(self, name: str, at: int, bits: int | None) -> list[str]:
        """PTX that declares register `name` and loads the operand, which begins at word `at`."""
        kind = "b32" if self.kind == "pred" else self.kind
        size = bits or max(width(kind), 16)
        access = f"ld.global.{kind if kind in ('f32', 'f64') and not bits else f'b{size}'}"
        base = {"full": "%by_both", "thread": "%by_thread", "block": "%by_block", "uniform": "%in"}
        if self.how == "sum":
            return [
                f".reg .b{size} {name}, {name}u, {name}v;",
                f"{access} {name}u, [%by_block+{at * 8}];",
                f"{access} {name}v, [%by_thread+{(at + BLOCKS) * 8}];",
                f"add.s{size} {name}, {name}u, {name}v;",
            ]
        if self.kind == "pred":
            return [
                f".reg .b32 {name}x;",
                f".reg .pred {name};",
                f"{access} {name}x, [{base[self.how]}+{at * 8}];",
                f"setp.ne.s32 {name}, {name}x, 0;",
            ]
        return [f".reg {register(kind, bits)} {name};", f"{access} {name}, [{base[self.how]}+{at * 8}];"]


def register(kind: str, bits: int | None = None) -> str:
    """The register type for a type."""
    if kind in ("pred", "f32", "f64") and not bits:
        return f".{kind}"
    return f".b{bits or max(width(kind), 16)}"


def store(kind: str, name: str, where: int, bits: int | None) -> list[str]:
    """PTX that stores a result at byte `where` of the thread's results."""
    if kind == "pred":
        return [
            f".reg .b32 {name}x;",
            f"selp.b32 {name}x, 1, 0, {name};",
            f"st.global.b32 [%out+{where}], {name}x;",
        ]
    access = kind if kind in ("f32", "f64") and not bits else f"b{bits or max(width(kind), 16)}"
    return [f"st.global.{access} [%out+{where}], {name};"]


def literal(kind: str, raw: int) -> str:
    """Bits as a PTX constant."""
    if kind == "f32":
        return f"0f{raw:08X}"
    if kind == "f64":
        return f"0d{raw:016X}"
    return str(decode(kind, raw)) if kind[0] == "s" else f"{raw}U"


def is_integer(kind: str) -> bool:
    """Is it an integer or untyped?"""
    return kind[0] in "sub" and kind[1:].isdigit()


# --- operands -------------------------------------------------------------------------------


def edge_values(kind: str) -> list[int]:
    """Raw bits where things go wrong."""
    if kind == "pred":
        return [0, 1]
    if kind.endswith("x2"):
        halves = edge_values(kind[:-2])
        return [low | high << 16 for low, high in zip(halves, halves[3:] + halves[:3])]
    if is_integer(kind):
        top = 1 << (width(kind) - 1)
        return [0, 1, 2, 5, 32, top - 1, top, top + 1, 2 * top - 7, 2 * top - 1]
    digits, lowest, highest = FLOATS[kind]
    tiny = 2.0**lowest
    last = 2.0 ** (1 - digits)
    largest = 2.0**highest * (2 - last)
    numbers = [0.0, 1.0, 1 + last, 1.5, 2 - last, tiny, tiny - tiny * last, tiny * last, largest, math.inf]
    edges = [encode(kind, sign * x) for x in numbers for sign in (1, -1)]
    return [*edges, encode(kind, math.nan)]


def random_values(rng: np.random.Generator, kind: str, count: int) -> np.ndarray:
    """Raw bits: anything, small integers, or floats near 1 (which are the ones that add up)."""
    if kind.endswith("x2"):
        low, high = (random_values(rng, kind[:-2], count) for _ in range(2))
        return low | high << np.uint64(16)
    bits = width(kind)
    ones = np.uint64((1 << bits) - 1)
    anything = rng.integers(0, 1 << 64, count, np.uint64) & ones
    if kind in FLOATS:
        digits, _, highest = FLOATS[kind]
        exponents = rng.integers(highest - 4, highest + 5, count).astype(np.uint64) << np.uint64(digits - 1)
        kept = np.uint64(1 << (bits - 1) | ((1 << (digits - 1)) - 1))
        small = anything & kept | exponents
    else:
        small = rng.integers(-64, 256, count).astype(np.uint64) & ones
    return np.where(rng.random(count) < 0.4, anything, small)


def small_parts(rng: np.random.Generator, kind: str, count: int) -> np.ndarray:
    """A block's and a thread's part that add up without overflow, as in index arithmetic."""
    bits = width(kind)
    step = 1 << int(rng.choice([0, 2, 3, bits // 4]))
    lowest = -int(rng.integers(2)) * 9
    blocks = rng.integers(lowest, 1 << (bits // 2 - 4), BLOCKS) * step
    threads = rng.integers(lowest, 1 << (bits // 4), count)
    return np.concatenate([blocks, threads]).astype(np.uint64) & np.uint64((1 << bits) - 1)
