"""An edit at other values of what it touches: macros, template parameters, arguments, the block.

In each of the three kernels an edit with the numbers of this launch stores outside of the array at the next
value of the source's own constant.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memsim.api import kernel_file
from memsim.argument_types import ArrayArg
from memsim.job import Job
from memsim.launch import Launch
from memsim.suggest import prove, suggest
from memsim.suggest.maps import Padding, XorSwizzle
from memsim.suggest.other_values import (
    REFUSED,
    SAME,
    OtherValue,
    at_other_values,
    edit_with_assertions,
    knobs_of_edit,
)
from memsim.suggest.prove import Proof
from tests.suggest.kernels import analyzed

SQUARE = """
#define SIDE 16
extern "C" __global__ void k(const float *in, float *out) {
    __shared__ float t[SIDE * SIDE];
    int x = threadIdx.x;
    for (int y = 0; y < SIDE; ++y) t[y * SIDE + x] = in[y * SIDE + x];
    __syncthreads();
    #pragma unroll 1
    for (int y = 0; y < SIDE; ++y) out[y * SIDE + x] = t[x * SIDE + y];
}
"""

REDUCTION = """
template <int THREADS> __global__ void k(const float *in, float *out) {
    __shared__ float t[THREADS];
    int x = threadIdx.x;
    t[x] = in[x];
    __syncthreads();
    for (int s = 1; s < THREADS; s *= 2) {
        int at = 2 * s * x;
        if (at < THREADS) t[at] += t[at + s];
        __syncthreads();
    }
    if (x == 0) out[0] = t[0];
}
template __global__ void k<256>(const float *, float *);
"""

RECTANGLE = """
#define ROWS 16
#define COLUMNS 32
extern "C" __global__ void k(const float *in, float *out) {
    __shared__ float t[ROWS][COLUMNS];
    int at = threadIdx.y * COLUMNS + threadIdx.x;
    t[threadIdx.y][threadIdx.x] = in[at];
    __syncthreads();
    out[at] = t[at % ROWS][at / ROWS];
}
"""


def job_of(folder: Path, text: str, block: tuple[int, int, int], name: str | None = None) -> Job:
    """The kernel in a file of its own, in one block, with room for larger ones."""
    (folder / "k.cu").write_text(text)
    source = kernel_file.KernelFile(folder, "k.cu", name or "k")
    return Job(source, Launch((1, 1, 1), block), [ArrayArg((8192,)), ArrayArg((8192,))])


def proof_of(job: Job, kind: type[Padding | XorSwizzle]) -> Proof:
    """The first proposal of a kind, compiled and replayed."""
    found = suggest(analyzed(job))
    return prove(job, [next(each for each in found.proposals if isinstance(each.change, kind) and each.edit)])


@pytest.mark.slow
def test_the_extent_grows_with_the_macro_in_it(tmp_path: Path) -> None:
    job = job_of(tmp_path, SQUARE, (16, 1, 1))
    proof = proof_of(job, Padding)
    assert "float t[SIDE * (SIDE + 1)];" in proof.edit.new
    assert list(at_other_values(job, proof)) == [OtherValue("SIDE", value, SAME) for value in (32, 8, 24)]


@pytest.mark.slow
def test_the_extent_grows_with_the_template_parameter_in_it(tmp_path: Path) -> None:
    job = job_of(tmp_path, REDUCTION, (256, 1, 1), "k<256>")
    proof = proof_of(job, Padding)
    assert "float t[THREADS + THREADS / 32];" in proof.edit.new
    tried = list(at_other_values(job, proof))
    assert tried == [OtherValue("THREADS", value, SAME) for value in (512, 128)] + [
        OtherValue("THREADS", 384, ""),  # the kernel itself reads what lies behind its array
        OtherValue("THREADS", 1024, SAME),
    ]
    assert edit_with_assertions(proof.edit, tried, knobs_of_edit(job, proof.edit)) is proof.edit


@pytest.mark.slow
def test_a_swizzle_keeps_its_mask_and_asserts_what_it_needs(tmp_path: Path) -> None:
    job = job_of(tmp_path, RECTANGLE, (32, 16, 1))
    proof = proof_of(job, XorSwizzle)
    assert "t[threadIdx.y][threadIdx.x ^ ((threadIdx.y & 15) << 1)]" in proof.edit.new
    assert 'static_assert(COLUMNS % 32 == 0, "of this layout");' in proof.edit.new
    outcomes = {(each.name, each.value): each.outcome for each in at_other_values(job, proof)}
    assert outcomes["ROWS", 32] == SAME
    assert outcomes["COLUMNS", 16] == REFUSED
    assert not any(outcome not in (SAME, REFUSED, "") for outcome in outcomes.values())


@pytest.mark.slow
def test_an_edit_with_the_numbers_of_a_launch_is_bound_to_them(tmp_path: Path) -> None:
    """As if the extent were not in the source's symbols: what goes wrong elsewhere is told, and asserted."""
    job = job_of(tmp_path, SQUARE, (16, 1, 1))
    proof = proof_of(job, Padding)
    careless = tuple(
        replace(each, new="SIDE * SIDE + 16") if each.new == "SIDE * (SIDE + 1)" else each
        for each in proof.edit.replacements
    )
    tried = list(at_other_values(job, replace(proof, edit=replace(proof.edit, replacements=careless))))
    wrong = {each.value: each.outcome for each in tried if each.is_wrong}
    assert list(wrong) == [32, 24]
    assert all("out-of-bounds" in outcome for outcome in wrong.values())
    safe = edit_with_assertions(proof.edit, tried, knobs_of_edit(job, proof.edit))
    assert safe is not None
    assert '    static_assert(SIDE == 8 || SIDE == 16, "of this layout");\n' in safe.new


@pytest.mark.slow
def test_what_is_no_constant_cannot_be_asserted(tmp_path: Path) -> None:
    text = SQUARE.replace("const float *in", "const float *in, int n").replace("* SIDE +", "* n +")
    job = replace(job_of(tmp_path, text, (16, 1, 1)), args=[ArrayArg((256,)), 16, ArrayArg((256,))])
    proof = proof_of(job, Padding)
    names = knobs_of_edit(job, proof.edit)
    assert [(each.name, each.kind) for each in names] == [("SIDE", "source"), ("n", "argument")]
    tried = [OtherValue("SIDE", value, SAME) for value in (32, 8)]
    assert (
        edit_with_assertions(proof.edit, [*tried, OtherValue("n", 8, "out came out different")], names)
        is None
    )
    assert edit_with_assertions(proof.edit, tried, names) is proof.edit


def test_a_constant_that_is_not_judged_at_two_others_is_bound_to_those_it_has(
    tmp_path: Path,
) -> None:
    job = job_of(tmp_path, SQUARE, (16, 1, 1))
    proof = proof_of(job, Padding)
    names = knobs_of_edit(job, proof.edit)
    for tried, condition in (
        ([OtherValue("SIDE", value, "") for value in (32, 8)], "SIDE == 16"),
        ([OtherValue("SIDE", 32, SAME), OtherValue("SIDE", 8, "")], "SIDE == 16 || SIDE == 32"),
    ):
        bound = edit_with_assertions(proof.edit, tried, names)
        assert bound is not None
        assert f'    static_assert({condition}, "of this layout");\n' in bound.new
    judged = [OtherValue("SIDE", 32, SAME), OtherValue("SIDE", 8, REFUSED)]
    assert edit_with_assertions(proof.edit, judged, names) is proof.edit


# A block of twice SIDE threads: half of them bring rows, half do nothing.
HALVES = """
#define SIDE 16
extern "C" __global__ void k(const float *in, float *out) {
    __shared__ float t[SIDE * SIDE];
    int x = threadIdx.x;
    if (x < SIDE) for (int y = 0; y < SIDE; ++y) t[y * SIDE + x] = in[y * SIDE + x];
    __syncthreads();
    if (x >= SIDE) for (int y = 0; y < SIDE; ++y) out[y * SIDE + x - SIDE] = t[(x - SIDE) * SIDE + y];
}
"""

# Rows of a row's length, in as much dynamic memory as they need.
DYNAMIC = """
extern __shared__ float t[];
extern "C" __global__ void k(const float *in, float *out) {
    int x = threadIdx.x;
    for (int y = 0; y < 32; ++y) t[x * 32 + y] = in[y * blockDim.x + x];
    __syncthreads();
    for (int y = 0; y < 32; ++y) out[x * 32 + y] = t[x * 32 + y];
}
"""


@pytest.mark.slow
def test_extents_that_are_multiples_of_a_constant_change_with_it(tmp_path: Path) -> None:
    job = job_of(tmp_path, HALVES, (32, 1, 1))
    proof = proof_of(job, Padding)
    assert [each for each in at_other_values(job, proof) if each.name == "SIDE"] == [
        OtherValue("SIDE", value, SAME) for value in (32, 8, 24)
    ]


@pytest.mark.slow
def test_an_edit_of_dynamic_memory_is_judged_at_other_blocks(tmp_path: Path) -> None:
    job = job_of(tmp_path, DYNAMIC, (32, 1, 1))
    job = replace(job, launch=replace(job.launch, shared_bytes=4096))
    for kind in (Padding, XorSwizzle):
        tried = list(at_other_values(job, proof_of(job, kind)))
        assert [each for each in tried if each.outcome] == [
            OtherValue("blockDim.x", value, SAME) for value in (64, 16, 48)
        ]


# Made for four rows of threads: those of the next four are where longer rows do not end before.
FOUR_ROWS = """
extern "C" __global__ void k(const float *in, float *out) {
    extern __shared__ float t[];
    int x = threadIdx.x, y = threadIdx.y, at = blockIdx.x * 128 + y * 32 + x;
    t[y % 4 * 32 + x + y / 4 * 129] = in[at];
    __syncthreads();
    out[at] = t[x % 4 * 32 + x / 4 + y % 4 * 8 + y / 4 * 129];
}
"""


def outcomes_of_eight_rows(folder: Path, text: str) -> list[str]:
    """How an edit is judged in blocks of eight rows of threads."""
    job = replace(job_of(folder, text, (32, 4, 1)), launch=Launch((3, 1, 1), (32, 4, 1), 4096))
    found = suggest(analyzed(job))
    chosen = next(each for each in found.proposals if isinstance(each.change, Padding) and each.edit)
    tried = at_other_values(job, prove(job, [chosen]))
    return [one.outcome for one in tried if (one.name, one.value) == ("blockDim.y", 8)]


@pytest.mark.slow
def test_a_block_in_which_the_kernel_has_races_says_nothing(tmp_path: Path) -> None:
    text = FOUR_ROWS.replace("__sync", "if (blockDim.y < 5) __sync")
    assert outcomes_of_eight_rows(tmp_path, text) == [""]


@pytest.mark.slow
def test_a_block_in_which_only_the_edit_is_wrong_says_so(tmp_path: Path) -> None:
    assert outcomes_of_eight_rows(tmp_path, FOUR_ROWS) == ["out came out different"]
