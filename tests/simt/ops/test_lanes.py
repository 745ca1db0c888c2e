"""Instructions that look at other lanes, against the ISA's definitions, in full warps and in partial ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.simt.harness import Verify, WarpCase

Lanes = list[tuple[Any, ...]]

FULL = 0xFFFFFFFF


def ballot(bits: list[bool]) -> int:
    return sum(1 << i for i, bit in enumerate(bits) if bit)


# --- shfl -----------------------------------------------------------------------------------


def shuffled(mode: str, lanes: Lanes) -> list[tuple[int, bool] | None]:
    """ISA, `shfl`: operands value, b and c of each lane. A lane that is not there may not be read."""
    found: list[tuple[int, bool] | None] = []
    for lane, (_, b, c) in enumerate(lanes):
        offset, clamp, segment = b & 31, c & 31, c >> 8 & 31
        top = lane & segment | clamp & ~segment
        if mode == "up":
            source, valid = lane - offset, lane - offset >= top
        elif mode == "down":
            source, valid = lane + offset, lane + offset <= top
        elif mode == "bfly":
            source, valid = lane ^ offset, lane ^ offset <= top
        else:
            source = lane & segment | offset & ~segment
            valid = source <= top
        source = source if valid else lane
        found.append((lanes[source][0], valid) if source < len(lanes) else None)
    return found


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("kind", ["b32", "f32"])
def test_shuffles(verify: Verify, mode: str, kind: str) -> None:
    clamps = [0] if mode == "up" else [31]
    widths = {2: [segment << 8 | clamp for segment in (0, 16, 24, 28, 30, 31) for clamp in clamps]}
    anything = {1: [0, 1, 2, 5, 16, 31, 33, 64], 2: [*widths[2], 0, 31, 0x1F0F, 0x1C03, 0x0507, FULL]}
    for values in ({1: [0, 1, 2, 4, 8, 15, 16, 31], **widths}, anything):
        text = f"shfl.sync.{mode}.b32 {{p}}|{{q}}, {{a}}, {{b}}, {{c}}, -1;"
        both = lambda lanes: shuffled(mode, lanes)  # noqa: E731
        verify(WarpCase(text, (kind, "pred"), (kind, "b32", "b32"), both, values=values))
        text = f"shfl.sync.{mode}.b32 {{p}}, {{a}}, {{b}}, {{c}}, -1;"
        one = lambda lanes: [pair and pair[0] for pair in shuffled(mode, lanes)]  # noqa: E731
        verify(WarpCase(text, (kind,), (kind, "b32", "b32"), one, values=values))


# --- vote, match, redux, elect --------------------------------------------------------------

VOTES: dict[str, Callable[[list[bool]], Any]] = {
    "all": all,
    "any": any,
    "uni": lambda asked: len(set(asked)) == 1,
}


@pytest.mark.parametrize("mode", VOTES)
@pytest.mark.parametrize("values", [[0], [1], [0, 1]])
def test_votes(verify: Verify, mode: str, values: list[int]) -> None:
    gives = lambda lanes: [VOTES[mode]([p for (p,) in lanes])] * len(lanes)  # noqa: E731
    text = f"vote.sync.{mode}.pred {{p}}, {{a}}, -1;"
    verify(WarpCase(text, ("pred",), ("pred",), gives, values={0: values}))
    negated = lambda lanes: [VOTES[mode]([not p for (p,) in lanes])] * len(lanes)  # noqa: E731
    text = f"vote.sync.{mode}.pred {{p}}, !{{a}}, -1;"
    verify(WarpCase(text, ("pred",), ("pred",), negated, values={0: values}))


def test_ballot(verify: Verify) -> None:
    gives = lambda lanes: [ballot([p for (p,) in lanes])] * len(lanes)  # noqa: E731
    verify(WarpCase("vote.sync.ballot.b32 {p}, {a}, -1;", ("b32",), ("pred",), gives))


HALVES = """
.reg .b32 lane, members;
.reg .pred upper;
mov.u32 lane, %laneid;
setp.ge.u32 upper, lane, 16;
selp.b32 members, 0xFFFF0000, 0x0000FFFF, upper;
"""


def by_halves(gives: Callable[[Lanes, int], list[Any]]) -> Callable[[Lanes], list[Any]]:
    """Lanes 0 to 15 and 16 to 31 each by themselves; `gives` is told the first lane."""
    return lambda lanes: [*gives(lanes[:16], 0), *(gives(lanes[16:], 16) if lanes[16:] else [])]


def test_member_masks(verify: Verify) -> None:
    """Two groups of lanes in one instruction, as tiles of cooperative groups have it."""

    def voted(lanes: Lanes, first: int) -> list[Any]:
        asked = [p for (p,) in lanes]
        return [(ballot(asked) << first, all(asked))] * len(lanes)

    text = HALVES + "vote.sync.ballot.b32 {p}, {a}, members; vote.sync.all.pred {q}, {a}, members;"
    verify(WarpCase(text, ("b32", "pred"), ("pred",), by_halves(voted)))

    def added(lanes: Lanes, first: int) -> list[Any]:
        return [(sum(a for (a,) in lanes), max(a for (a,) in lanes))] * len(lanes)

    text = HALVES + "redux.sync.add.u32 {p}, {a}, members; redux.sync.max.u32 {q}, {a}, members;"
    verify(WarpCase(text, ("u32", "u32"), ("u32",), by_halves(added)))

    def matched(lanes: Lanes, first: int) -> list[Any]:
        return [ballot([b == a for (b,) in lanes]) << first for (a,) in lanes]

    text = HALVES + "match.any.sync.b32 {p}, {a}, members;"
    verify(WarpCase(text, ("b32",), ("b32",), by_halves(matched), values={0: [1, 2, 7]}))


@pytest.mark.parametrize("kind", ["b32", "b64"])
def test_match(verify: Verify, kind: str) -> None:
    values = {0: [0, 1, FULL, 1 << 31]}
    gives = lambda lanes: [ballot([b == a for (b,) in lanes]) for (a,) in lanes]  # noqa: E731
    verify(WarpCase(f"match.any.sync.{kind} {{p}}, {{a}}, -1;", ("b32",), (kind,), gives, values=values))

    def everybody(lanes: Lanes) -> list[Any]:
        agreed = len(Counter(lanes)) == 1
        return [((1 << len(lanes)) - 1 if agreed else 0, agreed)] * len(lanes)

    text = f"match.all.sync.{kind} {{p}}|{{q}}, {{a}}, -1;"
    verify(WarpCase(text, ("b32", "pred"), (kind,), everybody, values=values))
    verify(WarpCase(text, ("b32", "pred"), (kind,), everybody, values={0: [5]}))


def bitwise(operation: Callable[[int, int], int]) -> Callable[[list[int]], int]:
    def reduce(numbers: list[int]) -> int:
        total = numbers[0]
        for number in numbers[1:]:
            total = operation(total, number)
        return total

    return reduce


REDUCTIONS: list[tuple[str, str, Callable[[list[int]], int]]] = [
    ("add", "u32", sum),
    ("add", "s32", sum),
    ("min", "u32", min),
    ("min", "s32", min),
    ("max", "u32", max),
    ("max", "s32", max),
    ("and", "b32", bitwise(lambda a, b: a & b)),
    ("or", "b32", bitwise(lambda a, b: a | b)),
    ("xor", "b32", bitwise(lambda a, b: a ^ b)),
]


@pytest.mark.parametrize(("name", "kind", "operation"), REDUCTIONS)
def test_redux(verify: Verify, name: str, kind: str, operation: Callable[[list[int]], int]) -> None:
    gives = lambda lanes: [operation([a for (a,) in lanes])] * len(lanes)  # noqa: E731
    verify(WarpCase(f"redux.sync.{name}.{kind} {{p}}, {{a}}, -1;", (kind,), (kind,), gives))


def test_elect(verify: Verify) -> None:
    """One lane of those named; the chip takes the lowest, as `elect` here does."""
    gives = lambda lanes: [(0, lane == 0) for lane in range(len(lanes))]  # noqa: E731
    verify(WarpCase("elect.sync {p}|{q}, -1;", ("b32", "pred"), ("b32",), gives))


def test_activemask_in_a_branch(verify: Verify) -> None:
    text = """
    mov.b32 {p}, 0;
    mov.b32 {q}, 0;
    @!{a} bra OTHER;
    activemask.b32 {p};
    bra JOIN;
    OTHER:
    activemask.b32 {q};
    JOIN:
    """

    def gives(lanes: Lanes) -> list[Any]:
        taken = [p for (p,) in lanes]
        mask = ballot(taken)
        rest = (1 << len(lanes)) - 1 - mask
        return [(mask, 0) if p else (0, rest) for p in taken]

    verify(WarpCase(text, ("b32", "b32"), ("pred",), gives))


@pytest.mark.slow
def test_guarded_lanes_take_no_part(verify: Verify) -> None:
    """`@p vote`: lanes whose guard is false keep their old result and are not asked."""
    text = """
    .reg .b32 members;
    vote.sync.ballot.b32 members, {a}, -1;
    mov.b32 {p}, 77;
    @{a} vote.sync.ballot.b32 {p}, {b}, members;
    mov.b32 {q}, 77;
    @{a} redux.sync.add.s32 {q}, {p}, members;
    """

    def gives(lanes: Lanes) -> list[Any]:
        mask = ballot([a and b for a, b in lanes])
        total = mask * sum(a for a, _ in lanes)
        return [(mask, total) if a else (77, 77) for a, _ in lanes]

    verify(WarpCase(text, ("b32", "b32"), ("pred", "pred"), gives))
