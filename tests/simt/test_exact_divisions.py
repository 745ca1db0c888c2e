"""Divisions that are exact whatever the last bit of MUFU, on chips whose unit was not measured."""

from __future__ import annotations

import pytest

import memsim
from memsim.api.loading import Module, from_text

#: Name -> index of a store, from x = 1 to 64 and n = 7.
EXACT = {
    "int_quotient": "(1000 + x) / (n + x - 1)",
    "int_remainder": "(1000 - x) % n",
    "unsigned_quotient": "1000u / (unsigned)x",
    "long_remainder": "(int)((1000000000000ll + x) % (long long)(n + 10000000000ll * x)) & 1023",
    "float_quotient": "(int)((float)x * 100.f / n)",
    "float_reciprocal": "(int)(1000.f / x)",
    "reciprocal_rn": "(int)(__frcp_rn((float)x) * 1000.f)",
    "double_quotient": "(int)(1000.0 / (x + n))",
    "double_reciprocal": "(int)(1.0 / x * 100)",
    "float_root": "(int)sqrtf((float)x * n)",
    "double_root": "(int)(sqrt((double)x * n) * 10)",
}
APPROXIMATE = {
    "fast_quotient": "(int)__fdividef((float)x * 100.f, (float)n)",
    "of_two": "(int)(x * __fdividef(1.f, (float)n) + 1.f / x * 100.f)",
    "ptx_reciprocal": "(int)(rcp((double)x) * 1000)",
}
SOURCE = (
    "__device__ double rcp(double x) {"
    ' double r; asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x)); return r; }\n'
) + "".join(
    f'extern "C" __global__ void {name}(int *o, int n) {{ int x = threadIdx.x + 1; o[{index}] = x; }}\n'
    for name, index in (EXACT | APPROXIMATE).items()
)


@pytest.fixture(scope="module", params=["sm_75", "sm_80", "sm_120"])
def kernels(request: pytest.FixtureRequest) -> tuple[Module, str]:
    return from_text(SOURCE, arch=request.param), request.param


def reasons(kernels: tuple[Module, str], name: str) -> tuple[str, ...]:
    module, arch = kernels
    return memsim.analyze(module[name], 1, 64, ["i32[8192]", 7], arch=arch).trace.uncertain


@pytest.mark.some(2)
@pytest.mark.parametrize("name", EXACT)
def test_exact(name: str, kernels: tuple[Module, str]) -> None:
    assert reasons(kernels, name) == ()


@pytest.mark.parametrize("name", APPROXIMATE)
def test_approximate(name: str, kernels: tuple[Module, str]) -> None:
    assert any("the last bit of MUFU decides the address" in reason for reason in reasons(kernels, name))
