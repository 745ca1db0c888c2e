"""Approximations that decide addresses: as the chip counts on sm_90, uncertain where that is not measured."""

from __future__ import annotations

import pytest

import memsim
from memsim.analysis import Analysis
from memsim.api.loading import Module, from_text

BODIES = {
    "compared": "float f = __fdividef(t + 1, n); o[f * 37.f == t + 1 ? t : t * 8] = 1;",
    "scaled": "float w = n * .01f; o[(int)(t * w / w) * 8] = 1;",
    "divided": "o[(int)((float)(t * n) / (float)n) * 8] = 1;",
    "reciprocal": 'float r; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"((float)n));'
    " o[(int)(r * (t * n)) * 8] = 1;",
    "full": 'float r; asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"((float)(t * n)), "f"((float)n));'
    " o[(int)r * 8] = 1;",
    "exact": "o[(int)__fdiv_rn((float)(t * n), (float)n) * 8] = 1;",
    "stored": "o[t * 8] = (int)(1e6f * __expf(t * .01f) / n);",
}
SOURCE = "".join(
    f'extern "C" __global__ void {name}(int *o, int n) {{ int t = threadIdx.x; {body} }}\n'
    for name, body in BODIES.items()
)
#: Sectors of the store by kernel, blocks and n, as an H100 counted them (nvcc 13.0 and NVRTC 12.9).
COUNTED = {
    ("compared", 2, 37): 80,
    ("scaled", 1, 3): 53,
    ("scaled", 1, 5): 49,
    ("scaled", 1, 27): 64,
    ("divided", 1, 33): 58,
    ("divided", 1, 35): 64,
    ("divided", 1, 37): 59,
    ("reciprocal", 2, 37): 118,
    ("full", 1, 33): 58,
    ("full", 1, 37): 59,
    ("exact", 1, 37): 64,
}


@pytest.fixture(scope="module")
def kernels() -> dict[str, Module]:
    return {arch: from_text(SOURCE, ["-use_fast_math"], arch) for arch in ("sm_80", "sm_90")}


def analyzed(kernels: dict[str, Module], name: str, blocks: int, n: int, arch: str = "sm_90") -> Analysis:
    return memsim.analyze(kernels[arch][name], blocks, 64, ["i32[4096]", n], arch=arch)


@pytest.mark.some(3)
@pytest.mark.parametrize(("name", "blocks", "n"), COUNTED)
def test_addresses_by_approximations_are_those_of_the_chip(
    name: str, blocks: int, n: int, kernels: dict[str, Module]
) -> None:
    found = analyzed(kernels, name, blocks, n)
    assert found.totals["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"] == COUNTED[name, blocks, n]
    assert not found.trace.uncertain


@pytest.mark.parametrize("name", ["compared", "scaled", "divided", "reciprocal", "full"])
def test_where_the_unit_was_not_measured_they_are_uncertain(name: str, kernels: dict[str, Module]) -> None:
    found = analyzed(kernels, name, 1, 37, "sm_80")
    assert any("the last bit of MUFU decides the address" in reason for reason in found.trace.uncertain)


@pytest.mark.parametrize("name", ["exact", "stored"])
def test_exact_quotients_and_what_decides_nothing_are_certain_everywhere(
    name: str, kernels: dict[str, Module]
) -> None:
    assert not analyzed(kernels, name, 1, 37, "sm_80").trace.uncertain
