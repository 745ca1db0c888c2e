"""Logic, shifts, bit fields, bit counts and byte permutations, bit for bit."""

from __future__ import annotations

import pytest

from tests.simt.harness import Case, Verify, case

AMOUNTS = [0, 1, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 2**31, 2**32 - 1]
#: Bit positions and lengths of fields. The ISA allows up to 255 and says that the low 8 bits of more
#: are taken. An H100 does that in 32-bit fields, but not in 64-bit ones.
FIELDS = [0, 1, 2, 5, 8, 16, 31, 32, 33, 63, 64, 65, 127, 200, 255]
BEYOND = {"32": [256, 257, 2**32 - 1], "64": []}


def bits(kind: str) -> int:
    return int(kind[1:])


def bit(x: int, i: int) -> int:
    return x >> i & 1


@pytest.mark.parametrize("kind", ["b16", "b32", "b64"])
def test_bitwise(verify: Verify, kind: str) -> None:
    two = f"{kind} {kind}"
    verify(case(f"and.{kind}", kind, two, lambda a, b: a & b))
    verify(case(f"or.{kind}", kind, two, lambda a, b: a | b))
    verify(case(f"xor.{kind}", kind, two, lambda a, b: a ^ b))
    verify(case(f"not.{kind}", kind, kind, lambda a: ~a))
    if kind == "b32":
        verify(case("cnot.b32", "b32", "b32", lambda a: a == 0))


@pytest.mark.parametrize("name", ["and", "or", "xor"])
@pytest.mark.parametrize("masks", [[0x7F], [0x60, 0xF0F0, 0x7FFFFFFF], [0xFFFFFFE0, 0xFFFFFFFF, 0xFFFF00FF]])
def test_bitwise_with_a_mask(verify: Verify, name: str, masks: list[int]) -> None:
    """Sums and constants: runs of ones at the bottom, in the middle and at the top."""
    gives = {"and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b}[name]
    verify(case(f"{name}.b32", "b32", "b32 b32", gives, values={1: masks}))
    verify(case(f"{name}.b32", "b32", "b32 b32", gives, values={0: masks}))
    wide = [mask | (mask >> 31) * 0xFFFFFFFF00000000 for mask in masks]
    verify(case(f"{name}.b64", "b64", "b64 b64", gives, values={1: wide}))


def test_logic_of_predicates(verify: Verify) -> None:
    verify(case("and.pred", "pred", "pred pred", lambda a, b: a and b))
    verify(case("or.pred", "pred", "pred pred", lambda a, b: a or b))
    verify(case("xor.pred", "pred", "pred pred", lambda a, b: a != b))
    verify(case("not.pred", "pred", "pred", lambda a: not a))
    verify(case("mov.pred", "pred", "pred", lambda a: a))


@pytest.mark.parametrize("table", [0x00, 0x1B, 0x80, 0x96, 0xE8, 0xFE, 0xFF])
def test_lop3(verify: Verify, table: int) -> None:
    def gives(a: int, b: int, c: int) -> int:
        return sum(bit(table, bit(a, i) * 4 + bit(b, i) * 2 + bit(c, i)) << i for i in range(32))

    text = f"lop3.b32 {{p}}, {{a}}, {{b}}, {{c}}, {table:#x};"
    verify(Case(text, ("b32",), ("b32",) * 3, gives))


@pytest.mark.parametrize("kind", ["s16", "u16", "b16", "s32", "u32", "b32", "s64", "u64", "b64"])
def test_shifts(verify: Verify, kind: str) -> None:
    if kind[0] == "b":
        verify(case(f"shl.{kind}", kind, f"{kind} u32", lambda a, b: a << min(b, 64), values={1: AMOUNTS}))
    verify(case(f"shr.{kind}", kind, f"{kind} u32", lambda a, b: a >> min(b, 64), values={1: AMOUNTS}))


@pytest.mark.parametrize("mode", ["wrap", "clamp"])
def test_funnel_shifts(verify: Verify, mode: str) -> None:
    def amount(c: int) -> int:
        return min(c, 32) if mode == "clamp" else c & 31

    three, values = "b32 b32 u32", {2: AMOUNTS}
    left = lambda a, b, c: (b << 32 | a) << amount(c) >> 32  # noqa: E731
    right = lambda a, b, c: (b << 32 | a) >> amount(c)  # noqa: E731
    verify(case(f"shf.l.{mode}.b32", "b32", three, left, values=values))
    verify(case(f"shf.r.{mode}.b32", "b32", three, right, values=values))


@pytest.mark.parametrize("kind", ["s32", "u32", "s64", "u64"])
def test_bfe(verify: Verify, kind: str) -> None:
    msb = bits(kind) - 1

    def gives(a: int, b: int, c: int) -> int:
        pos, length = b & 0xFF, c & 0xFF
        sign = 0 if kind[0] == "u" or length == 0 else bit(a, min(pos + length - 1, msb))
        taken = (bit(a, pos + i) if i < length and pos + i <= msb else sign for i in range(msb + 1))
        return sum(b << i for i, b in enumerate(taken))

    values = dict.fromkeys((1, 2), FIELDS + BEYOND[kind[1:]])
    verify(case(f"bfe.{kind}", kind, f"{kind} u32 u32", gives, values=values, immediates=False))
    small = {1: [0, 3, 5, 8], 2: [1, 4, 7, 16]}
    verify(case(f"bfe.{kind}", kind, f"{kind} u32 u32", gives, values=small))


@pytest.mark.parametrize("kind", ["b32", "b64"])
def test_bfi(verify: Verify, kind: str) -> None:
    msb = bits(kind) - 1

    def gives(a: int, b: int, c: int, d: int) -> int:
        pos, length = c & 0xFF, d & 0xFF
        for i in range(length):
            if pos + i <= msb:
                b = b & ~(1 << pos + i) | bit(a, i) << pos + i
        return b

    values = dict.fromkeys((2, 3), FIELDS + BEYOND[kind[1:]])
    verify(case(f"bfi.{kind}", kind, f"{kind} {kind} u32 u32", gives, values=values, immediates=False))
    small = {2: [0, 3, 5, 8], 3: [0, 1, 4, 7, 16]}
    verify(case(f"bfi.{kind}", kind, f"{kind} {kind} u32 u32", gives, values=small))


@pytest.mark.parametrize("mode", ["wrap", "clamp"])
def test_szext_bmsk(verify: Verify, mode: str) -> None:
    def extended(a: int, b: int) -> int:
        n = min(b, 32) if mode == "clamp" else b % 32
        return a & ((1 << n) - 1)

    def sign_extended(a: int, b: int) -> int:
        n = min(b, 32) if mode == "clamp" else b % 32
        low = extended(a, b)
        return low - (1 << n) if n and bit(low, n - 1) else low

    def mask(a: int, b: int) -> int:
        if mode == "wrap":
            a, b = a % 32, b % 32
        return ((1 << min(b, 32)) - 1) << a if a < 32 else 0

    verify(case(f"szext.{mode}.u32", "u32", "u32 u32", extended, values={1: AMOUNTS}))
    verify(case(f"szext.{mode}.s32", "s32", "s32 u32", sign_extended, values={1: AMOUNTS}))
    verify(case(f"bmsk.{mode}.b32", "b32", "u32 u32", mask, values={0: AMOUNTS, 1: AMOUNTS}))


@pytest.mark.parametrize("kind", ["b32", "b64"])
def test_counts(verify: Verify, kind: str) -> None:
    n = bits(kind)
    verify(case(f"popc.{kind}", "u32", kind, lambda a: bin(a).count("1")))
    verify(case(f"clz.{kind}", "u32", kind, lambda a: n - a.bit_length()))
    verify(case(f"brev.{kind}", kind, kind, lambda a: int(f"{a:0{n}b}"[::-1], 2)))


@pytest.mark.parametrize("kind", ["s32", "u32", "s64", "u64"])
def test_bfind(verify: Verify, kind: str) -> None:
    def position(a: int) -> int:
        return (~a if a < 0 else a).bit_length() - 1

    def amount(a: int) -> int:
        return bits(kind) - 1 - position(a) if position(a) >= 0 else -1

    verify(case(f"bfind.{kind}", "u32", kind, position))
    verify(case(f"bfind.shiftamt.{kind}", "u32", kind, amount))


def test_prmt(verify: Verify) -> None:
    def pick(a: int, b: int, selector: int) -> int:
        byte = (b << 32 | a) >> 8 * (selector & 7) & 0xFF
        return (0xFF if byte & 0x80 else 0) if selector & 8 else byte

    def gives(a: int, b: int, c: int) -> int:
        return sum(pick(a, b, c >> 4 * i & 15) << 8 * i for i in range(4))

    selectors = [0x3210, 0x7654, 0x5410, 0x0123, 0xBA98, 0xFEDC, 0xF7B3, 0x12345678, 0xFFFFFFFF]
    verify(case("prmt.b32", "b32", "b32 b32 b32", gives))
    verify(case("prmt.b32", "b32", "b32 b32 b32", gives, values={2: selectors}))


# The bytes from the lowest to the highest, for each value of the selector (ISA, `prmt`).
PRMT = {
    "f4e": ["0123", "1234", "2345", "3456"],
    "b4e": ["0765", "1076", "2107", "3210"],
    "rc8": ["0000", "1111", "2222", "3333"],
    "ecl": ["0123", "1123", "2223", "3333"],
    "ecr": ["0000", "0111", "0122", "0123"],
    "rc16": ["0101", "2323", "0101", "2323"],
}


@pytest.mark.parametrize("mode", PRMT)
def test_prmt_modes(verify: Verify, mode: str) -> None:
    def gives(a: int, b: int, c: int) -> int:
        return sum(((b << 32 | a) >> 8 * int(n) & 0xFF) << 8 * i for i, n in enumerate(PRMT[mode][c & 3]))

    verify(case(f"prmt.b32.{mode}", "b32", "b32 b32 b32", gives))
