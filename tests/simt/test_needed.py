"""What addresses and branches need, in which lanes. What is left out changes none of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsim.api.running import run
from memsim.captured.analyze_any import analyze
from memsim.isa.op import PREDICATE, Effect, Flow
from memsim.isa.program import Op, Program
from memsim.kernels import catalog
from memsim.sass.decode import decode
from memsim.simt.dataflow import Dataflow
from tests.simt.cuda import machine_kernel
from tests.simt.listings import listing

#: R4 is a product that an address under P1 overwrites; R6 depends on it in all lanes.
REUSED = """
    FMUL R4, R2, R3
    ISETP.NE.AND P1, PT, R1, 0x20, PT
    @P1 SEL R4, RZ, 0x1, !P0
    {between}
    IADD3 R6, R4, R5, RZ
    {after}
    @P1 STS [R6], R7
    EXIT
"""


def needed(text: str) -> set[str]:
    program = decode(listing(text))
    return {program.ops[index].form.opcode for index in Dataflow(program).needed()}


@pytest.mark.parametrize(
    ("between", "after"),
    [("", ""), ("", "BSSY B0, `(.on)\n.on:"), ("@P2 BRA `(.on)\nIADD3 R5, R5, 0x1, RZ\n.on:", "")],
    ids=["straight", "basic block", "branch"],
)
def test_a_value_that_no_lane_uses_is_not_needed(between: str, after: str) -> None:
    """Where P1 does not hold, the sum of a product is computed, too, but nobody reads it."""
    assert "FMUL" not in needed(REUSED.format(between=between, after=after))


#: An address is loaded from shared memory; there a sum is stored later.
STORED_LATER = """
    MOV R9, RZ
    BRA `(.on)
.on:
    LDS R2, [R1]
    STG.E [R2], R7
    {between}
    BRA `(.behind)
.behind:
    FADD R5, R4, R4
    STS [R3], R5
    {after}
    EXIT
"""
BARRIER = "BAR.SYNC.DEFER_BLOCKING 0x0"


@pytest.mark.parametrize(
    ("between", "after", "is_needed"),
    [
        (BARRIER, "", False),
        ("", "", True),
        ("BAR.SYNC.DEFER_BLOCKING 0x1, 0x40", "", True),
        ("BAR.ARV 0x1, 0x40", "", True),
        (f"@P0 {BARRIER}", "", True),
        (f"@P0 BRA `(.behind)\n{BARRIER}", "", True),
        (BARRIER, "@P0 BRA `(.on)", True),
        (BARRIER, "LDS R2, [R3]\nSTG.E [R2], R7", True),
        (BARRIER, "UCGABAR_ARV", True),
    ],
)
def test_a_store_behind_a_barrier_comes_too_late(between: str, after: str, is_needed: bool) -> None:
    assert ("FADD" in needed(STORED_LATER.format(between=between, after=after))) is is_needed


def test_a_store_that_some_reach_without_the_barrier_may_come_first() -> None:
    code = STORED_LATER.format(between=BARRIER, after="")
    past = code.replace("MOV R9, RZ", "@P0 BRA `(.behind)")
    waits = code.replace("MOV R9, RZ", f"@P0 BRA `(.on)\n{BARRIER}")
    assert past != code != waits
    assert "FADD" in needed(past) and "FADD" not in needed(waits)


#: Asks for the space of an address that nobody accesses: half of the lanes have one in shared memory.
ASKS_FOR_SPACE = """
__shared__ float s[32];
extern "C" __global__ void k(float *out, unsigned long long far, unsigned long long stride) {
    int i = threadIdx.x;
    const void *p = i % 2 ? (const void *)(s + i) : (const void *)(far + stride * i);
    s[i] = 0;
    if (__isShared(p)) out[i] = 1.f; else out[32 * i] = 2.f;
}
"""


def test_the_space_of_an_address_needs_both_of_its_words() -> None:
    """As `memsim.run`, which executes everything."""
    kernel, numbers = machine_kernel(ASKS_FOR_SPACE), (np.uint64(1 << 33), np.uint64(4))
    out = np.zeros(1024, np.float32)
    run(kernel, 1, 32, [out, *numbers])
    assert np.flatnonzero(out).tolist() == sorted([*range(1, 32, 2), *range(0, 1024, 64)])
    found = analyze(kernel, 1, 32, [np.zeros(1024, np.float32), *numbers])
    stored = [site for site in found.sites if (site.op, site.space) == ("store", "global")]
    assert [site.sectors for site in sorted(stored, key=lambda site: site.line)] == [4 + 16]
    assert not found.trace.uncertain


#: Inline assembly that sets a register in the lanes of a predicate, and maybe in the others.
IN_TWO_STEPS = """
extern "C" __global__ void k(int *o, const int *v) {
    int i = threadIdx.x, r;
    asm("{ .reg .pred p; setp.lt.s32 p, %1, 7; @p mov.u32 %0, 3; OTHERS }" : "=r"(r) : "r"(v[i]));
    o[r * i] = 1;
}
"""


@pytest.mark.parametrize(("others", "known"), [("@!p mov.u32 %0, 5;", True), ("@!p mov.u32 %0, %0;", False)])
def test_a_register_that_is_written_in_two_steps_is_known(others: str, known: bool) -> None:
    kernel = machine_kernel(IN_TWO_STEPS.replace("OTHERS", others))
    found = analyze(kernel, 1, 64, [np.zeros(512, np.int32), np.arange(64, dtype=np.int32)])
    (store,) = (site for site in found.sites if site.op == "store")
    # 7 lanes by 12 bytes; those from 35 on by 20 bytes, up to 31 and from 32 on.
    expected = len({3 * i // 8 for i in range(7)} | {5 * i // 8 for i in range(7, 32)})
    expected += len({5 * i // 8 for i in range(32, 64)})
    assert (store.sectors == expected) if known else (store.sectors is None or found.trace.uncertain)


@pytest.mark.parametrize(
    ("between", "after"),
    [
        ("", "ISETP.NE.AND P1, PT, R9, 0x20, PT"),
        ("SHFL.IDX PT, R4, R4, RZ, 0x1f", ""),
        ("@P1 IADD3 R4, R4, 0x1, RZ", "STS [R6], R7"),
        ("@!P1 IADD3 R5, R4, 0x1, RZ", "@!P1 STS [R5], R7"),
        ("", "@P2 STS [R6], R7"),
    ],
    ids=["another guard of that name", "other lanes", "all lanes", "the other lanes", "another guard"],
)
def test_a_value_that_some_lane_uses_is_needed(between: str, after: str) -> None:
    assert "FMUL" in needed(REUSED.format(between=between, after=after))


def test_a_sum_whose_carry_is_the_guard_is_computed_from_known_values() -> None:
    text = REUSED.format(between="", after="")
    assert "FMUL" in needed(text.replace("IADD3 R6,", "IADD3 R6, P1,"))
    assert "FMUL" not in needed(text.replace("IADD3 R6,", "IADD3 R6, P2,"))


@pytest.mark.slow
def test_the_sums_of_a_tile_are_not_needed() -> None:
    """Registers of sums are used again for addresses that only some lanes have."""
    for name in ("tile_32x64x32", "tile_32x32x32_any", "tile_32x96x32_any"):
        program = catalog()[name].kernel().machine.program
        assert "FFMA" not in {program.ops[index].form.opcode for index in Dataflow(program).needed()}


# --- random programs, lane by lane ----------------------------------------------------------------

REGISTERS, PREDICATES, STEPS = 5, 3, 60
register = st.integers(1, REGISTERS).map("R{}".format)
predicate = st.integers(0, PREDICATES - 1).map("P{}".format)
guard = st.one_of(st.just(""), st.builds("@{}{} ".format, st.sampled_from(["", "!"]), predicate))


def lines(places: st.SearchStrategy[int]) -> st.SearchStrategy[str]:
    """One line of a program with labels .0, .1, ..."""
    return st.one_of(
        st.builds("{}IADD3 {}, {}, {}, RZ".format, guard, register, register, register),
        st.builds("{}SEL {}, {}, {}, {}".format, guard, register, register, register, predicate),
        st.builds("{}MOV {}, {}".format, guard, register, register),
        st.builds("{}ISETP.GT.AND {}, PT, {}, {}, PT".format, guard, predicate, register, register),
        st.builds("{}STS [{}], R7".format, guard, register),
        st.builds("{}BRA `(.{})".format, guard, places),
    )


@st.composite
def programs(draw: st.DrawFn) -> Program:
    count = draw(st.integers(4, 14))
    line = lines(st.integers(0, count - 1))
    return decode(listing("\n".join(f".{at}:\n{draw(line)}" for at in range(count)) + "\nEXIT"))


def computed(op: Op, slots: dict[int | None, int]) -> int:
    """The result of an instruction in one lane."""
    sources = op.form.operands[2:] if op.form.opcode == "ISETP" else op.form.operands[1:]
    first, *others = [slots[one.slot] for one in sources]
    if op.form.opcode == "IADD3":
        return (first + sum(others)) & 0xFF
    if op.form.opcode == "SEL":
        return first if others[1] else others[0]
    return int(first > others[0]) if op.form.opcode == "ISETP" else first


def execute(program: Program, values: list[int], wanted: Callable[[Op], bool]) -> Iterator[int]:
    """One lane: where it stores and branches. An instruction that is not `wanted` writes nonsense."""
    chance = random.Random(1)
    slots: dict[int | None, int] = {None: 0, **dict(enumerate(values[:REGISTERS], 1))}
    slots |= {PREDICATE + at: value & 1 for at, value in enumerate(values[REGISTERS:])}
    place = 0
    for _ in range(STEPS):
        op = program.ops[place]
        place += 1
        if op.flow is Flow.EXIT:
            return
        if op.guard is not None and bool(slots[op.guard.slot]) == op.guard.negated:
            continue
        first = op.form.operands[0]
        if op.flow is Flow.BRANCH:
            yield place
            place = op.targets[0]
        elif op.effect is Effect.MEMORY:
            yield slots[first.base.slot]
        else:
            result = computed(op, slots)
            slots[first.slot] = result if wanted(op) else chance.choice([0, 1, result ^ 1])


LANE = REGISTERS + PREDICATES


@given(programs(), st.lists(st.integers(0, 3), min_size=LANE, max_size=LANE))
@settings(max_examples=150)
def test_what_is_not_needed_changes_no_address_and_no_branch(program: Program, values: list[int]) -> None:
    found = Dataflow(program).needed()
    everything = list(execute(program, values, lambda op: True))
    assert list(execute(program, values, lambda op: op.index in found)) == everything
