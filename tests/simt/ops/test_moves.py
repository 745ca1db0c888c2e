"""Moves, packing, generic addresses, loads into wider registers, and special registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.simt.columns import BLOCKS, COLUMNS
from tests.simt.harness import Case, Verify, WarpCase, case


@pytest.mark.parametrize(
    "kind", ["b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"]
)
def test_mov(verify: Verify, kind: str) -> None:
    verify(case(f"mov.{kind}", kind, kind, lambda a: a))


@pytest.mark.parametrize(("whole", "size", "count"), [("b32", 16, 2), ("b64", 32, 2), ("b64", 16, 4)])
def test_packing(verify: Verify, whole: str, size: int, count: int) -> None:
    """The first element makes the lowest bits."""
    names = ", ".join(f"{{{letter}}}" for letter in "abcd"[:count])
    packed = lambda *items: sum(item << size * i for i, item in enumerate(items))  # noqa: E731
    parts = (f"b{size}",) * count
    verify(Case(f"mov.{whole} {{p}}, {{{{{names}}}}};", (whole,), parts, packed, immediates=False))
    kept = ["_"] * count
    for first in range(count - 1):  # two elements at a time; the rest goes to the bit bucket
        kept[first], kept[first + 1] = "{p}", "{q}"
        text = f"mov.{whole} {{{{{', '.join(kept)}}}}}, {{a}};"
        kept[first] = kept[first + 1] = "_"

        def two(a: int, at: int = first * size) -> tuple[int, int]:
            return a >> at, a >> at + size

        verify(Case(text, (f"b{size}",) * 2, (whole,), two, immediates=False))


def test_floats_are_packed_by_their_bits(verify: Verify) -> None:
    text = "mov.b64 {p}, {{{a}, {b}}};"
    verify(Case(text, ("b64",), ("b32", "b32"), lambda a, b: b << 32 | a, immediates=False))
    text = ".reg .f32 sum; add.f32 sum, {a}, {a}; mov.b64 {p}, {{sum, {a}}};"
    one = {0: [0x3F800000, 0xC0000000]}
    doubled = lambda a: {1.0: 0x3F80000040000000, -2.0: 0xC0000000C0800000}[a]  # noqa: E731
    verify(Case(text, ("b64",), ("f32",), doubled, values=one, immediates=False))


@pytest.mark.some(12)
@pytest.mark.parametrize("kind", ["b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32"])
@pytest.mark.parametrize("size", [16, 32, 64])
def test_loads_into_wider_registers(verify: Verify, kind: str, size: int) -> None:
    """A signed type is extended with its sign, every other with zeros; a store cuts off."""
    bits = int(kind[1:])
    if bits > size:
        return
    text = f"""
    .reg .b64 at;
    .reg .b{size} wide;
    .local .align 8 .b8 room[8];
    mov.u64 at, room;
    st.local.b64 [at], {{a}};
    ld.local.{kind} {{p}}, [at];
    st.local.b64 [at], 0;
    ld.local.{kind} wide, [at];
    mov.b{size} wide, {{p}};
    st.local.{kind} [at], wide;
    ld.local.b64 {{q}}, [at];
    """

    def gives(a: int) -> tuple[int, int]:
        low = a & ((1 << bits) - 1)
        return (low - (1 << bits) if kind[0] == "s" and low >> bits - 1 else low), low

    verify(Case(text, (f"b{size}", "b64"), ("b64",), gives))


def test_generic_addresses(verify: Verify) -> None:
    """`cvta` there and back; `isspacep` knows the windows; loads find the bytes."""
    text = """
    .shared .align 4 .b32 tile[4];
    .local .align 4 .b32 mine[4];
    .reg .b64 at, generic, local, back;
    .reg .b32 bit, found;
    .reg .pred here;
    mov.u64 at, tile;
    cvta.shared.u64 generic, at;
    cvta.to.shared.u64 back, generic;
    sub.s64 back, back, at;
    mov.u64 at, mine;
    cvta.local.u64 local, at;
    st.u32 [local+4], {a};
    ld.local.u32 {p}, [mine+4];
    cvt.u32.u64 {q}, back;
    isspacep.shared here, generic;
    selp.u32 bit, 1, 0, here;
    or.b32 {q}, {q}, bit;
    isspacep.local here, generic;
    selp.u32 bit, 2, 0, here;
    or.b32 {q}, {q}, bit;
    isspacep.local here, local;
    selp.u32 bit, 4, 0, here;
    or.b32 {q}, {q}, bit;
    isspacep.global here, %out;
    selp.u32 bit, 8, 0, here;
    or.b32 {q}, {q}, bit;
    isspacep.global here, local;
    selp.u32 bit, 16, 0, here;
    or.b32 {q}, {q}, bit;
    """
    verify(Case(text, ("b32", "b32"), ("b32",), lambda a: (a, 1 + 4 + 8)))


LANE_MASKS = {
    "lanemask_eq": lambda lane: 1 << lane,
    "lanemask_lt": lambda lane: (1 << lane) - 1,
    "lanemask_le": lambda lane: (2 << lane) - 1,
    "lanemask_gt": lambda lane: -(2 << lane),
    "lanemask_ge": lambda lane: -(1 << lane),
    "laneid": lambda lane: lane,
}


@pytest.mark.parametrize("name", LANE_MASKS)
def test_lane_masks(verify: Verify, name: str) -> None:
    gives = lambda lanes: [LANE_MASKS[name](lane) for lane in range(len(lanes))]  # noqa: E731
    verify(WarpCase(f"mov.u32 {{p}}, %{name};", ("b32",), ("b32",), gives))


@dataclass(frozen=True)
class ThreadCase(Case):
    """A case whose results depend on the thread alone; `gives` takes its number."""

    def answers(self, operands: list[tuple[Any, ...]]) -> list[Any]:
        """The results of every thread."""
        return [self.gives(thread) for thread in range(len(operands))]


def test_coordinates(verify: Verify) -> None:
    """`%tid`, `%ctaid` and the shape of the launch, told by where each thread stores."""
    text = """
    .reg .b32 x;
    mov.u32 {p}, %ctaid.x;
    mov.u32 x, %ntid.x;
    mul.lo.u32 {p}, {p}, x;
    mov.u32 x, %tid.x;
    add.u32 {p}, {p}, x;
    mov.u32 {q}, %nctaid.x;
    mov.u32 x, %ntid.y;
    mul.lo.u32 {q}, {q}, x;
    mov.u32 x, %nctaid.z;
    mul.lo.u32 {q}, {q}, x;
    mov.u32 x, %tid.y;
    add.u32 {q}, {q}, x;
    mov.u32 x, %ctaid.z;
    add.u32 {q}, {q}, x;
    """
    verify(ThreadCase(text, ("b32", "b32"), ("b32",), lambda thread: (thread, BLOCKS)))


def test_shared_memory_size(verify: Verify) -> None:
    """`%total_smem_size` counts what the block has, in steps of 128 bytes."""
    text = """
    .shared .align 4 .b8 room[200];
    .reg .b32 at;
    mov.u32 at, room;
    st.shared.u32 [at], {a};
    mov.u32 {p}, %total_smem_size;
    mov.u32 {q}, %dynamic_smem_size;
    """
    columns = len(COLUMNS[1])  # each with a room of its own
    verify(Case(text, ("b32", "b32"), ("b32",), lambda a: (-(-200 * columns // 128) * 128, 0)))
