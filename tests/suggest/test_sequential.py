"""Reductions by neighbours: with threads side by side, and where that would be another reduction."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memsim.argument_types import ArrayArg
from memsim.job import Job
from memsim.suggest.other_values import SAME, at_other_values
from memsim.suggest.prove import differing_results, rounding_between
from memsim.suggest.sequential import sequential
from memsim.suggest.suggestions import Suggestions, _first
from memsim.suggest.threads import Remapped
from memsim.views.suggest.terminal import render
from tests.suggest.kernels import analyzed, launched

PLACES = """
__global__ void k(const int *in, int *out) {
    __shared__ int x[256];
    unsigned t = threadIdx.x;
    x[t] = in[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (unsigned s = 1; s < blockDim.x; s *= 2) {
        int i = 2 * s * t;
        if (i < blockDim.x) {
            x[i] += x[i + s];
        }
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = x[0];
}
"""
TESTED = """
#define N 256
__global__ void k(const int *in, int *out) {
    __shared__ int x[N];
    x[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    for (int s = 1; s < N; s <<= 1) {
        if (threadIdx.x % (2 * s) == 0) x[threadIdx.x] = x[threadIdx.x] ^ x[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = x[0];
}
"""
FLOATS = PLACES.replace("int *", "float *").replace("__shared__ int", "__shared__ float")


Found = tuple[Job, tuple[Remapped, ...]]


def kept(folder: Path, text: str, block: tuple[int, int, int] = (256, 1, 1)) -> Found:
    """What is proposed for four blocks."""
    kind = "f4" if "float" in text else "i4"
    args = [ArrayArg((1024,), kind), ArrayArg((4,), kind)]
    job = launched(folder, text, args, block, grid=(4,))
    return job, sequential(job, analyzed(job))


STEPS = (
    "for (unsigned s = blockDim.x / 2; s > 0; s /= 2) {\n        if (t < s) {\n            x[t] += x[t + s];"
)
MASKED = TESTED.replace("(threadIdx.x % (2 * s) == 0)", "((threadIdx.x & (2 * s - 1)) == 0)")
LARGEST = PLACES.replace("x[i] += x[i + s]", "x[i] = max(x[i], x[s + i])")


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "text, new",
    [
        (PLACES, STEPS),
        (PLACES.replace("2 * s * t", "t * (s * 2)"), STEPS),
        (LARGEST.replace("s *= 2", "s = s * 2"), "x[t] = max(x[t], x[s + t]);"),
        (TESTED, "if (threadIdx.x < s) x[threadIdx.x] = x[threadIdx.x] ^ x[threadIdx.x + s];"),
        (MASKED, "if (threadIdx.x < s) x"),
    ],
)
def test_threads_are_side_by_side(text: str, new: str, tmp_path: Path) -> None:
    job, (done,) = kept(tmp_path, text)
    assert new in done.edit.new
    assert not done.reorders
    assert done.wavefronts[1] < done.wavefronts[0]
    assert done.analysis.conflicts == 0
    assert not differing_results(job, done.job)
    outcomes = {one.outcome for one in at_other_values(job, done)}
    assert SAME in outcomes
    assert outcomes <= {SAME, ""}


def test_sums_of_floats_are_in_another_order(tmp_path: Path) -> None:
    job, (done,) = kept(tmp_path, FLOATS)
    assert done.reorders
    assert done.name == "threads of a reduction side by side, sums in another order"
    differ = differing_results(job, done.job)
    assert differ == ("out",)
    found = rounding_between(job, done.job, differ, reorders=True)
    assert found is not None
    assert "of small whole numbers, whose sums are exact; of these" in found.told
    assert {one.outcome for one in at_other_values(found.before, done)} <= {SAME, ""}
    assert rounding_between(job, done.job, differ) is None


def test_what_has_the_same_results_comes_first(tmp_path: Path) -> None:
    job, (done,) = kept(tmp_path, FLOATS)
    before = analyzed(job)
    other = replace(done, reorders=False)
    found = Suggestions(before, (), remapped=(done, other))
    assert _first(found) is other
    assert _first(replace(found, remapped=(done,))) is done
    said = render(replace(found, taken=done))
    assert "It rounds sums otherwise: --apply writes it only with --take 1." in " ".join(said.split())


def test_the_largest_of_floats_needs_no_order(tmp_path: Path) -> None:
    text = FLOATS.replace("x[i] += x[i + s]", "x[i] = fmaxf(x[i], x[i + s])")
    job, (done,) = kept(tmp_path, text)
    assert not done.reorders
    assert not differing_results(job, done.job)


LEFT_ALONE = {
    "another element is used, too": PLACES.replace("= x[0];", "= x[0] + x[2];"),
    "the whole is used": PLACES.replace("out[blockIdx.x] = x[0];", "out[blockIdx.x] = x[t];"),
    "a difference": PLACES.replace("+=", "-="),
    "a step of four": PLACES.replace("s *= 2", "s *= 4"),
    "neighbours that are further apart": PLACES.replace("x[i + s]", "x[i + 1]"),
    "other places": PLACES.replace("2 * s * t", "2 * s * t & 254"),
    "other threads": TESTED.replace("% (2 * s)", "% (4 * s)"),
    "it begins with two": PLACES.replace("s = 1", "s = 2"),
    "a number that changes": PLACES.replace("    for", "    t ^= 0;\n    for"),
    "a pointer that knows it": PLACES.replace("    for", "    int *p = x;\n    for").replace(
        "x[0];", "p[2];"
    ),
    "something else is done": PLACES.replace("x[i] += x[i + s];", "x[i] += x[i + s]; x[i] &= 255;"),
    "every sum is a result": PLACES.replace("__shared__ int x[256];", "int *x = (int *)in;"),
}


@pytest.mark.parametrize("why", LEFT_ALONE)
def test_where_it_would_be_another_reduction(why: str, tmp_path: Path) -> None:
    assert not kept(tmp_path, LEFT_ALONE[why])[1]


@pytest.mark.parametrize("threads, found", [(192, 0), (128, 1)])
def test_a_power_of_two_of_threads(threads: int, found: int, tmp_path: Path) -> None:
    assert len(kept(tmp_path, PLACES, (threads, 1, 1))[1]) == found


def test_a_plane_of_threads_is_left_alone(tmp_path: Path) -> None:
    assert not kept(tmp_path, PLACES, (128, 2, 1))[1]
