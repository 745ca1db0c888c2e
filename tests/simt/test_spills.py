"""Spilled registers are known apart: a spilled address does not make the data spilled beside it needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memsim.analysis import Analysis
from memsim.api.running import run
from memsim.captured.analyze_any import analyze
from memsim.isa.stack import load_spilled, store_spilled
from memsim.kernel import Kernel
from memsim.kernels import catalog as shipped
from memsim.launch import SPILLS
from memsim.sass.decode import decode
from memsim.simt.dataflow import Dataflow
from memsim.state.partial import NEVER_WRITTEN, Partial, merge_lanes
from memsim.state.poison import Poison
from memsim.state.predicates import from_bools, to_bools
from memsim.state.registers import from_array, ints, to_array
from tests.simt.cuda import kernels_of
from tests.simt.listings import listing

FEW = "--maxrregcount=24"
TEXT = """
extern "C" __global__ void k(const float *x, float *y, int n, int steps) {
    int at[10];
    float sum[10];
    for (int j = 0; j < 10; j++) { at[j] = (threadIdx.x * (2 * j + 3)) % n; sum[j] = j + 1; }
    for (int i = 0; i < steps; i++)
        for (int j = 0; j < 10; j++) sum[j] += sum[(j + 1) % 10] * x[at[j] + i * 32];
    for (int j = 0; j < 10; j++) y[at[j]] = sum[j];
}"""
ON_THE_STACK = """
extern "C" __global__ void k(const int *pick, int *out) {
    int mine[8];
    for (int j = 0; j < 8; j++) mine[(j + pick[j]) % 8] = j;
    out[threadIdx.x] = mine[pick[threadIdx.x]];
}"""


def compiled(text: str, *options: str) -> Kernel:
    return kernels_of(text, "sass", *options)["k"]


def flow_of(kernel: Kernel) -> Dataflow:
    return Dataflow(kernel.machine.program)


def counts(analysis: Analysis, spilled: bool) -> list[tuple[str, str, int, int]]:
    return sorted(
        (site.space, site.op, site.requests, site.sectors)
        for site in analysis.sites
        if (site.array == SPILLS) == spilled
    )


@pytest.mark.slow
def test_sums_are_not_needed_where_addresses_are_spilled_too() -> None:
    few = compiled(TEXT, FEW)
    flow = flow_of(few)
    needed = [flow.ops[index].form.opcode for index in flow.needed()]
    assert {"LDL", "STL"} <= set(needed) and "FFMA" not in needed
    assert needed.count("STL") < sum(op.form.opcode == "STL" for op in flow.ops)

    def costs(kernel: Kernel) -> Analysis:
        return analyze(kernel, 2, 64, ["f32[4096]", "f32[4096]", 64, 5])

    assert counts(costs(few), spilled=True)
    assert counts(costs(few), spilled=False) == counts(costs(compiled(TEXT)), spilled=False)


def test_a_word_of_the_stack_that_is_used_again_has_another_value() -> None:
    """This tile spills addresses, and later sums to the same words."""
    flow = flow_of(shipped()["tile_32x32x32_any"].kernel())
    assert any(op.spills for op in flow.ops)
    assert "FFMA" not in {flow.ops[index].form.opcode for index in flow.needed()}


def test_each_word_of_a_spilled_vector_has_a_slot() -> None:
    spilling = [op for op in flow_of(compiled(TEXT, FEW)).ops if op.spills]
    assert {op.form.opcode for op in spilling} == {"LDL", "STL"}
    for op in spilling:
        registers = 4 if "128" in op.form.modifiers else 2 if "64" in op.form.modifiers else 1
        assert len(op.spills) == registers
        touched = op.reads if op.form.opcode == "LDL" else op.writes
        assert all(touched >> word & 1 for word in op.spills)


def test_a_place_below_the_stack_pointer_is_no_slot() -> None:
    """Its word would be a register's slot."""
    above, below = (decode(listing(f"STL [R1{place}], R4 \n EXIT")) for place in ("+0x4", "+-0x4"))
    assert above.ops[0].spills and not below.ops[0].spills
    assert below.ops[0].writes == 0


def test_an_array_on_the_stack_is_one_place() -> None:
    flow = flow_of(compiled(ON_THE_STACK))
    assert any(op.form.opcode == "STL" for op in flow.ops) and not any(op.spills for op in flow.ops)


def test_results_are_those_without_spills() -> None:
    x = np.random.default_rng(1).standard_normal(4096).astype(np.float32)

    def result(kernel: Kernel) -> np.ndarray:
        y = np.zeros(4096, np.float32)
        run(kernel, 2, 64, [x, y, 64, 5])
        return y

    found = result(compiled(TEXT, FEW))
    assert found.any() and np.array_equal(found, result(compiled(TEXT)))


# --- pieces of words ------------------------------------------------------------------------------


class Slots:
    """The registers of four threads."""

    def __init__(self, count: int) -> None:
        self.slots: list[Any] = [None] * count

    def write(self, slot: int, value: Any, active: Any) -> None:
        self.slots[slot] = merge_lanes(active, value, self.slots[slot])


FIRST_TWO = from_bools(np.array([[True, True, False, False]]))
WORDS = [0x80F1E2D3, 0x12345678, -1, 0x7FFF8000]


def moved(text: str, machine: Slots, active: Any = True) -> None:
    """Execute one LDL or STL of R4."""
    program = decode(listing(f"{text} \n LDL R9, [R1] \n EXIT"))
    op = program.ops[0]
    machine.slots += [None] * (program.slots - len(machine.slots))
    move: Any = load_spilled if op.form.opcode == "LDL" else store_spilled
    move(machine, op, [4], active)


@pytest.mark.parametrize(("modifier", "kind"), [("U8", "u1"), ("S8", "i1"), ("U16", "u2"), ("S16", "i2")])
@pytest.mark.parametrize("place", [0, 2])
def test_a_piece_that_is_loaded_is_that_of_its_bytes(modifier: str, kind: str, place: int) -> None:
    machine = Slots(16)
    words = np.array([WORDS], np.int64).astype(np.int32)
    machine.slots[4] = from_array(words.astype(np.int64))
    moved("STL [R1], R4", machine)
    moved(f"LDL.{modifier} R4, [R1+{place:#x}]", machine)
    pieces = words.view(kind)[:, place // np.dtype(kind).itemsize :: 4 // np.dtype(kind).itemsize]
    assert to_array(machine.slots[4]).tolist() == pieces.astype(np.int64).tolist()


@pytest.mark.parametrize(("modifier", "kind"), [("U8", "u1"), ("U16", "u2")])
@pytest.mark.parametrize("place", [0, 2])
def test_a_piece_that_is_stored_leaves_the_rest_of_the_word(modifier: str, kind: str, place: int) -> None:
    machine = Slots(16)
    words = np.array([WORDS], np.int64).astype(np.int32)
    machine.slots[4] = from_array(words.astype(np.int64))
    moved("STL [R1], R4", machine)
    machine.slots[4] = 0x0BADCAFE
    moved(f"STL.{modifier} [R1+{place:#x}], R4", machine, FIRST_TWO)
    moved("LDL R4, [R1]", machine)
    expected = words.copy()
    expected.view(kind)[0, place // np.dtype(kind).itemsize :: 4 // np.dtype(kind).itemsize][:2] = (
        0x0BADCAFE & (1 << 8 * np.dtype(kind).itemsize) - 1
    )
    assert to_array(machine.slots[4]).tolist() == expected.astype(np.int64).tolist()


def test_the_rest_of_a_word_that_is_written_in_part_is_zero() -> None:
    """Of the threads that write; the others have never written the word."""
    machine = Slots(16)
    machine.slots[4] = 7
    moved("STL.U16 [R1+0x2], R4", machine, FIRST_TWO)
    moved("LDL R4, [R1]", machine)
    assert isinstance(machine.slots[4], Partial) and machine.slots[4].poison is NEVER_WRITTEN
    assert ints(machine.slots[4].value) == 7 << 16
    assert np.array_equal(to_bools(machine.slots[4].known), FIRST_TWO.array)  # type: ignore[union-attr]


def test_a_piece_of_an_unknown_word_is_unknown() -> None:
    machine = Slots(16)
    machine.slots[4] = Poison("lost", None)
    moved("STL [R1], R4", machine)
    moved("LDL.U16 R4, [R1]", machine)
    assert isinstance(machine.slots[4], Poison) and "lost" in machine.slots[4].story()
