"""Index arithmetic stays a block's part plus a thread's part: it is never written out for all threads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from memsim.access import SiteAccess
from memsim.arch import SM_90
from memsim.launch import Launch
from memsim.simt.prepared_launch import PreparedLaunch
from memsim.state.address_spaces import GLOBAL_BASE
from memsim.state.registers import Sum, from_array, plus, to_array
from memsim.state.sums import and_ints, high_bits, low_bits, or_ints, shift_right, xor_ints
from tests.ptx_front.loading import load_ptx

GRID, BLOCK = 8, 256


@dataclass
class Addresses:
    """A listener that keeps the addresses as the emulator has them."""

    seen: list[Any] = field(default_factory=list)

    def start_chunk(self, chunk: Any) -> None:
        self.seen.clear()

    def access(self, made: SiteAccess) -> None:
        self.seen.append(made.address)

    def unknown(self, *event: Any) -> None:
        raise AssertionError(f"unknown address: {event}")

    def uncounted(self, *event: Any) -> None:
        raise AssertionError("no such access here")

    def executed(self, start: int, stop: int, mask: Any) -> None:
        pass

    def uncertain(self, what: str) -> None:
        raise AssertionError(what)


def addresses(body: str, grid: int = GRID, block: int = BLOCK) -> list[Any]:
    """The byte offsets of a load: `body` makes %index of %x = blockIdx.x * 256 + threadIdx.x."""
    ptx = f"""
.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 k_in)
{{
.reg .pred %p<9>; .reg .b32 %x, %t, %b, %index, %r<20>; .reg .b64 %base, %at, %d<9>; .reg .f32 %value;
ld.param.u64 %base, [k_in];
mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x;
mad.lo.s32 %x, %b, {block}, %t;
{body}
mad.wide.s32 %at, %index, 4, %base;
ld.global.f32 %value, [%at];
ret;
}}"""
    listener, kernel = Addresses(), load_ptx(ptx)["k"]
    array = np.zeros(1 << 16, np.float32)
    launch = Launch((grid, 1, 1), (block, 1, 1), 0)
    prepared = PreparedLaunch(kernel.executable, launch, [array], ["in"], arch=SM_90, everything=False)
    prepared.finish(prepared.run(listener), listener)
    return [plus(address, -GLOBAL_BASE) for address in listener.seen]


X = np.arange(GRID * BLOCK, dtype=np.int64).reshape(GRID, BLOCK)
THREAD, BLOCK_NUMBER = X % BLOCK, X // BLOCK

IN_PARTS = {
    "x": ("mov.u32 %index, %x;", X),
    "x / 32 by a shift": ("shr.s32 %index, %x, 5;", X // 32),
    "x / 32 unsigned": ("shr.u32 %index, %x, 5;", X // 32),
    "x / 32 by div": ("div.s32 %index, %x, 32;", X // 32),
    "x / 64 by div.u32": ("div.u32 %index, %x, 64;", X // 64),
    "x / 32 as compilers write it for signed numbers": (
        "shr.s32 %r1, %x, 31; shr.u32 %r2, %r1, 27; add.s32 %r3, %x, %r2; shr.s32 %index, %r3, 5;",
        X // 32,
    ),
    "x % 32 as compilers write it for signed numbers": (
        "shr.s32 %r1, %x, 31; shr.u32 %r2, %r1, 27; add.s32 %r3, %x, %r2; and.b32 %r4, %r3, -32;"
        "sub.s32 %index, %x, %r4;",
        X % 32,
    ),
    "x & 31": ("and.b32 %index, %x, 31;", X % 32),
    "x % 32": ("rem.u32 %index, %x, 32;", X % 32),
    "x & 0x60": ("and.b32 %index, %x, 0x60;", X & 0x60),
    "x & -32": ("and.b32 %index, %x, -32;", X // 32 * 32),
    "x * 17 + 3": ("mad.lo.s32 %index, %x, 17, 3;", X * 17 + 3),
    "or as an addition": ("shl.b32 %r1, %b, 8; or.b32 %index, %r1, %t;", X),
    "or with a constant": ("shl.b32 %r1, %x, 2; or.b32 %index, %r1, 3;", X * 4 + 3),
    "bit field": ("bfe.u32 %index, %x, 5, 4;", X >> 5 & 15),
    "bit field insert": ("bfi.b32 %index, %b, %t, 8, 4;", X),
    "xor of a thread's bits": (
        "and.b32 %r1, %t, 7; shr.u32 %r2, %t, 3; xor.b32 %r3, %r1, %r2; mad.lo.s32 %index, %b, 64, %r3;",
        BLOCK_NUMBER * 64 + (THREAD & 7 ^ THREAD >> 3),
    ),
    "xor with a constant": ("xor.b32 %index, %x, 5;", X ^ 5),
    "not": ("not.b32 %r1, %x; and.b32 %index, %r1, 4095;", ~X & 4095),
    "64 bits wide": (
        "cvt.u64.u32 %d1, %x; shl.b64 %d2, %d1, 3; shr.u64 %d3, %d2, 5; cvt.u32.u64 %index, %d3;",
        X * 8 >> 5,
    ),
    "wide products": ("mul.wide.s32 %d1, %x, 12; cvt.u32.u64 %index, %d1;", X * 12),
    "max with 0": ("max.s32 %index, %x, 0;", X),
    "min with the last": ("min.s32 %index, %x, 100000;", X),
}


@pytest.mark.parametrize("name", IN_PARTS)
def test_index_arithmetic_stays_in_parts(name: str) -> None:
    body, wanted = IN_PARTS[name]
    (address,) = addresses(body)
    assert isinstance(address, Sum)
    assert address.f is None
    assert np.array_equal(np.broadcast_to(to_array(address), wanted.shape), wanted * 4)


WRITTEN_OUT = {
    "a carry from both parts": ("add.s32 %r1, %x, 1; shr.s32 %index, %r1, 5;", (X + 1) // 32),
    "a division that is no shift": ("div.s32 %index, %x, 3;", X // 3),
    "xor of both parts": ("xor.b32 %index, %b, %t;", BLOCK_NUMBER ^ THREAD),
}


@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_what_mixes_the_parts_is_written_out(name: str) -> None:
    """The twin: here no parts are right, and the numbers still are."""
    body, wanted = WRITTEN_OUT[name]
    (address,) = addresses(body)
    assert isinstance(address, Sum)
    assert address.f is not None
    assert np.array_equal(np.broadcast_to(to_array(address), wanted.shape), wanted * 4)


def test_what_all_threads_share_is_one_number() -> None:
    (address,) = addresses("shr.u32 %r1, %t, 8; and.b32 %r2, %b, 0; add.s32 %index, %r1, %r2;")
    assert address == 0


def test_a_loop_keeps_the_same_parts() -> None:
    """Only the constant of an address changes from one turn to the next: the arrays are the same objects."""
    body = """
    mov.u32 %r1, 0;
    and.b32 %r3, %x, 31; shr.u32 %r4, %x, 5; mad.lo.s32 %r5, %r4, 64, %r3;
    LOOP:
    add.s32 %index, %r5, %r1;
    mad.wide.s32 %at, %index, 4, %base;
    ld.global.f32 %value, [%at];
    add.s32 %r1, %r1, 64;
    setp.lt.s32 %p1, %r1, 640;
    @%p1 bra LOOP;
    """
    turns = addresses(body)[:10]
    assert [turn.s for turn in turns] == [i * 64 * 4 for i in range(10)]
    assert len({(turn.u.uid, turn.v.uid) for turn in turns}) == 1


def test_shifts_in_a_loop_keep_the_same_parts() -> None:
    """`(x + 256 * i) / 32`: the shifted parts are remembered."""
    parts = Sum(0, from_array(np.arange(4)[:, None] * 512).u, from_array(np.arange(256)[None, :]).v)
    shifted = [shift_right(plus(parts, 256 * i), 5, True, 32) for i in range(4)]
    assert [value.s for value in shifted] == [0, 8, 16, 24]
    assert len({(value.u.uid, value.v.uid) for value in shifted}) == 1


@pytest.mark.parametrize("seed", range(20))
def test_operations_on_parts_are_right(seed: int) -> None:
    """Random sums and constants against plain numpy: parts or not, the numbers agree."""
    rng = np.random.default_rng(seed)
    for _ in range(40):
        scale = int(rng.integers(1, 1 << int(rng.integers(1, 12))))
        u = rng.integers(-50, 200, (5, 1)) * scale
        v = rng.integers(-20, 2000, (1, 32)) * int(rng.choice([1, 4, 8]))
        value = Sum(int(rng.integers(-100, 5000)), from_array(u).u, from_array(v).v)
        plain = value.array
        count = int(rng.integers(0, 34))
        constant = int(rng.integers(-(2**20), 2**20)) >> int(rng.integers(0, 20))
        for found, wanted in (
            (low_bits(value, count), plain & ((1 << count) - 1)),
            (high_bits(value, count), plain & -(1 << count)),
            (shift_right(value, count, True, 64), plain >> count),
            (and_ints(value, constant), plain & constant),
            (or_ints(value, constant), plain | constant),
            (xor_ints(constant, value), plain ^ constant),
            (and_ints(value, from_array(v)), plain & v),
            (or_ints(from_array(u), from_array(v)), u | v),
            (xor_ints(from_array(u), value), u ^ plain),
        ):
            assert np.array_equal(
                np.broadcast_to(to_array(found), plain.shape), np.broadcast_to(wanted, plain.shape)
            )
