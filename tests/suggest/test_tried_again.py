"""Atomics that are tried again until they succeed: other layouts are not counted, and nothing fails."""

from __future__ import annotations

from pathlib import Path

import pytest

import memsim
from memsim.suggest.proposals import advise

SOURCE = """
extern "C" __global__ void add(TYPE *out) {
    __shared__ TYPE s[1024];
    for (int i = threadIdx.x; i < 1024; i += 32) s[i] = 0;
    __syncthreads();
    atomicAdd(&s[threadIdx.x * 32], TYPE(1));
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x * 32];
}
"""


@pytest.mark.parametrize(("type", "is_tried"), [("int", True), ("float", False)])
def test_an_atomic_that_is_a_loop_keeps_its_layout(type: str, is_tried: bool, tmp_path: Path) -> None:
    path = tmp_path / "add.cu"
    path.write_text(SOURCE.replace("TYPE", type))
    (advice,) = advise(
        memsim.analyze(memsim.load(path)["add"], 1, 32, [memsim.ArrayArg((1024,), type + "32")])
    )
    assert advice.conflicts
    assert bool(advice.proposals) == is_tried
    assert ("is tried again depends on the layout" in advice.why_not) == (not is_tried)
