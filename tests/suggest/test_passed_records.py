"""Records that a kernel passes on to a function: what is written, its results, and what is left alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memsim.api.kernel_file import KernelFile
from memsim.job import Job
from memsim.launch import Launch
from memsim.source.syntax import parse
from memsim.suggest.footprints import AccessedElements, Footprints
from memsim.suggest.kernel_tree import walk
from memsim.suggest.other_values import SAME, at_other_values
from memsim.suggest.prove import differing_results
from memsim.suggest.records import NAME, records_of_threads
from memsim.suggest.threads import Remapped
from tests.suggest.kernels import analyzed

THREADS = 150
TEXT = """
#define SIDES 5
__device__ float area(const float *box) { return (box[2] - box[0]) * (box[3] - box[1]) * box[4]; }
__device__ float ratio(const float *one, const float two[]) { return area(one) / (1 + area(two)); }
__device__ float some(const float *box) {
    if (box[0] < 0.5f) return 0;
    return box[SIDES - 1];
}
__device__ void filled(float *box, float value) {
    int k;
    for (k = 0; k < 2; ++k) {
        box[k] = value * k;
        box[k + 2] = value - k;
    }
    box[4] = value;
}
__device__ void filled_in_part(float *box, float value) {
    box[0] = value;
    if (value < 0.5f) box[1] = 0;
    box[4] = value;
}
__device__ void doubled(float *box) { for (int k = 0; k < SIDES; ++k) box[k] *= 2; }
__device__ void doubled_in_part(float *box) { for (int k = 1; k < SIDES; ++k) box[k] += box[0]; }
template <typename T, int N> __device__ T sum(const T *box) {
    T all = 0;
    for (int k = 0; k < N; ++k) all += box[k];
    return all;
}
extern "C" __global__ void k(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    BODY
}
"""
READ = "const float *box = in + i * SIDES; out[i] = ratio(box, in);"
IN_PLACE = "out[i] = area(&in[SIDES * i]);"
WRITTEN = "float *box = out + SIDES * i; filled(box, in[i]);"
LOOP = (
    "const float *box = in + i * SIDES; float best = 0; for (int j = i; j < n - 1; j++)"
    " { if (ratio(box, in) > best) best += 1; } out[i] = best;"
)


def cures(folder: Path, body: str) -> tuple[Job, tuple[Remapped, ...]]:
    """What is written for a kernel with a body; the last elements of each array are a record's last."""
    (folder / "k.cu").write_text(TEXT.replace("BODY", body))
    draw = np.random.default_rng(5)
    args = [draw.random(5 * THREADS).astype(np.float32), np.zeros(5 * THREADS, np.float32), THREADS]
    job = Job(KernelFile(folder, "k.cu", "k"), Launch((1, 1, 1), (160, 1, 1)), args)
    return job, records_of_threads(job, analyzed(job))


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("body", "written"),
    [
        (READ, "ratio(&box_passed0[0], in)"),
        (IN_PLACE, "auto in_passed0 = record_at<5, 5>(&in[SIDES * i]);"),
        (WRITTEN, "box_passed0.store(box);"),
        ("out[i] = sum<float, SIDES>(in + SIDES * i);", "record_at<5, 5>(in + SIDES * i);"),
        ("filled(&out[SIDES * i], in[i]);", "out_passed0.store("),
        ("doubled(out + SIDES * i);", "out_passed0.store(out + SIDES * i);"),
        (LOOP, "if (i < n - 1) box_passed0.load(box);"),
    ],
)
def test_each_sector_of_records_is_moved_once(tmp_path: Path, body: str, written: str) -> None:
    job, (cure,) = cures(tmp_path, body)
    assert cure.name == NAME
    assert written in cure.edit.new
    needless = [sum(site.needless_sectors for site in one.sites) for one in (cure.before, cure.analysis)]
    assert needless[1] < needless[0] * 0.1
    assert differing_results(job, cure.job) == ()
    tried = [one.outcome for one in at_other_values(job, cure) if one.name in ("blockDim.x", "n")]
    assert set(tried) <= {SAME, ""}


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "body",
    [
        "out[i] = some(in + SIDES * i);",  # the last element is not always read
        "if (i & 1) out[i] = in[0] > 0 && area(in + SIDES * i) > 0;",
        "float *box = out + SIDES * i; filled_in_part(box, in[i]);",
        "float *box = out + SIDES * i; out[0] = (filled(box, in[i]), box[1]);",  # meanwhile
        "float *box = out + SIDES * i; if (i & 1) doubled(box);",
        "doubled_in_part(out + SIDES * i);",
        "const float *box = in + SIDES * i; for (int j = i; j < n; j++) out[i] = area(box++);",
        "const float *box = out + SIDES * i; out[i] = area(box);",  # written meanwhile
    ],
)
def test_what_may_not_be_moved_is_left_alone(tmp_path: Path, body: str) -> None:
    assert not any("_passed" in cure.edit.new for cure in cures(tmp_path, body)[1])


def test_footprints() -> None:
    tree = parse(
        TEXT.replace("BODY", "area(in); some(in); filled(out, 1); filled_in_part(out, 1); other(in);")
    )
    found = Footprints(tree, {"SIDES": 5})
    kernel = TEXT.index("extern")
    of = {
        tree.text(node.children[0]): found.of_call(node, 0)
        for node in walk(tree.root)
        if node.type == "call_expression" and node.start_byte > kernel
    }
    five = frozenset(range(5))
    assert of["area"] == AccessedElements(five, five, loads=True, stores=False)
    assert of["some"] == AccessedElements(frozenset({0}), frozenset({0, 4}), loads=True, stores=False)
    assert of["filled"] == AccessedElements(five, five, loads=False, stores=True)
    assert of["filled_in_part"] == AccessedElements(
        frozenset({0, 4}), frozenset({0, 1, 4}), loads=False, stores=True
    )
    assert of["other"] is None
    assert [None if one is None else one.length for one in of.values()] == [5, None, 5, None, None]


def test_a_function_of_a_library() -> None:
    """It fills in a state, not each byte of it."""
    tree = parse("__global__ void k(curandState *s, int i) { curand_init(1, i, 0, &s[i]); }")
    (call,) = (node for node in walk(tree.root) if node.type == "call_expression")
    found = Footprints(tree, {}).of_call(call, 3)
    assert found is not None
    assert (found.length, found.loads, found.stores) == (1, True, True)
    assert Footprints(tree, {}).of_call(call, 1) is None
