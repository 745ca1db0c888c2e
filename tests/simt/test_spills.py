"""Spilled registers are known apart: a spilled address does not make the data spilled beside it needed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from memsim.analysis import Analysis
from memsim.api.loading import load
from memsim.api.module import Module
from memsim.api.running import analyze
from memsim.isa.stack import spilled_words
from memsim.kernel import Kernel, SassKernel
from memsim.kernels import compiled as shipped
from memsim.launch import SPILLS
from memsim.simt.dataflow import Dataflow

FEW = ("--maxrregcount=24",)
TEXT = """
extern "C" __global__ void k(const float *x, float *y, int n, int steps) {
    int at[10];
    float sum[10];
    for (int j = 0; j < 10; j++) { at[j] = (threadIdx.x * (2 * j + 3)) % n; sum[j] = 0; }
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


def compiled(folder: Path, text: str, options: tuple[str, ...] = ()) -> Kernel:
    """The machine code of a text. folder: `tmp_path`."""
    return _compiled(folder.parent, text, options)["k"]


@cache
def _compiled(session: Path, text: str, options: tuple[str, ...]) -> Module:
    path = session / "spills.cu"
    path.write_text(text)
    return load(path, list(options))


def flow_of(kernel: Kernel) -> Dataflow:
    assert isinstance(kernel.code, SassKernel)
    return Dataflow(kernel.code.machine.program)


def counts(analysis: Analysis, spilled: bool) -> list[tuple[str, str, int, int]]:
    return sorted(
        (site.space, site.op, site.requests, site.sectors)
        for site in analysis.sites
        if (site.array == SPILLS) == spilled
    )


def test_sums_are_not_needed_where_addresses_are_spilled_too(tmp_path: Path) -> None:
    few = compiled(tmp_path, TEXT, FEW)
    flow = flow_of(few)
    needed = [flow.ops[index].form.opcode for index in flow.needed()]
    assert {"LDL", "STL"} <= set(needed) and "FFMA" not in needed
    assert needed.count("STL") < sum(op.form.opcode == "STL" for op in flow.ops)

    def costs(kernel: Kernel) -> Analysis:
        return analyze(kernel, 2, 64, ["f32[4096]", "f32[4096]", 64, 5])

    assert counts(costs(few), spilled=True)
    assert counts(costs(few), spilled=False) == counts(costs(compiled(tmp_path, TEXT)), spilled=False)


def test_a_word_of_the_stack_that_is_used_again_has_another_value() -> None:
    """This tile spills addresses, and later sums to the same words."""
    flow = flow_of(shipped()["tile_128x64x16_any"].kernel())
    assert spilled_words(flow.program)
    assert "FFMA" not in {flow.ops[index].form.opcode for index in flow.needed()}


def test_each_word_of_a_spilled_vector_counts(tmp_path: Path) -> None:
    flow = flow_of(compiled(tmp_path, TEXT, FEW))
    words = spilled_words(flow.program)
    assert words
    for index, bits in words.items():
        op = flow.ops[index]
        registers = 4 if "128" in op.form.modifiers else 2 if "64" in op.form.modifiers else 1
        assert bits.bit_count() == registers


def test_an_array_on_the_stack_is_one_place(tmp_path: Path) -> None:
    kernel = compiled(tmp_path, ON_THE_STACK)
    flow = flow_of(kernel)
    assert any(op.form.opcode == "STL" for op in flow.ops) and spilled_words(flow.program) == {}
