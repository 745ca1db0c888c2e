"""Chips whose MUFU was not measured: counts are certain where no lane comes near what errors decide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import memsim
from memsim.api.loading import Module, from_text
from memsim.isa import documented_errors, multi_function
from memsim.isa.documented_errors import ERRORS, limits
from memsim.simt import launch_code

#: Name -> what a thread does, of x = 1 to 64 and n = 8.
FAR = {
    "quotient": "o[(int)__fdividef(x * 100.f + 1.f, (float)n)] = 1;",
    "branch": "if (rsqrtf((float)x) < 0.3f) o[x] = 1; else o[2 * x] = 1;",
    "power": "o[(int)(__expf(x / 16.f) * 10.f)] = 1;",
    "angle": "o[(int)(__sinf(x / 16.f) * 10.f + 20.f)] = 1;",
    "clamped": "o[(int)fminf(fmaxf(__log2f((float)x) * 7.3f, 0.f), 63.f)] = 1;",
    "of_another": "o[(int)(__fdividef(50.f, __expf(x / 16.f)) + rsqrtf((float)x) * 3.f)] = 1;",
    "chosen": "float f = x * .7f, g = __fdividef(f, (float)n); o[(int)(x & 1 ? g : f)] = 1;",
    "infinite": "o[(int)fminf(__fdividef(x + .5f, (float)(x & 1)), 100.f)] = 1;",
}
NEAR = {
    "quotient_near": "o[(int)__fdividef(x * 8.f, (float)n) == x ? x : 8 * x] = 1;",
    "branch_near": "if (rsqrtf((float)x) < 0.25f) o[x] = 1; else o[8 * x] = 1;",
    "equal": "o[__fdividef(1.f, (float)x) * x == 1.f ? x : 2 * x] = 1;",
    "power_near": "o[(int)(exp2f((float)(x & 3)) * 3.f) * x] = 1;",
}
#: Limits end where these begin.
NOT_FOLLOWED = {
    "sum": "float s = 0; for (int i = 0; i < n; i++) s += __expf(x * i / 99.f); o[(int)fminf(s, 100.f)] = 1;",
    "bits": "o[__float_as_int(__expf(x / 16.f)) >> 20 & 63] = 1;",
    "shared": "__shared__ float s[64]; s[x - 1] = __expf(x / 16.f); __syncthreads(); o[(int)s[64 - x]] = 1;",
    "shuffled": "o[(int)(__shfl_xor_sync(~0u, __expf(x / 16.f), 1) * 10.f)] = 1;",
}
SOURCE = "".join(
    f'extern "C" __global__ void {name}(int *o, int n) {{ int x = threadIdx.x + 1; {body} }}\n'
    for name, body in (FAR | NEAR | NOT_FOLLOWED).items()
)
REASON = "the last bit of MUFU decides"


@pytest.fixture(scope="module", params=["sm_75", "sm_86", "sm_120"])
def kernels(request: pytest.FixtureRequest) -> tuple[Module, str]:
    return from_text(SOURCE, arch=request.param), request.param


def trace(kernels: tuple[Module, str], name: str) -> Any:
    module, arch = kernels
    return memsim.analyze(module[name], 1, 64, ["i32[8192]", 8], arch=arch).trace


def is_certain(kernels: tuple[Module, str], name: str) -> bool:
    return not any(REASON in reason for reason in trace(kernels, name).uncertain)


@pytest.mark.some(8)
@pytest.mark.parametrize("name", FAR)
def test_what_no_error_can_change_is_certain(name: str, kernels: tuple[Module, str]) -> None:
    assert is_certain(kernels, name)


@pytest.mark.some(8)
@pytest.mark.parametrize("name", [*NEAR, *NOT_FOLLOWED])
def test_what_an_error_may_change_is_not(name: str, kernels: tuple[Module, str]) -> None:
    assert not is_certain(kernels, name)


def sites(kernels: tuple[Module, str], name: str) -> list[tuple[int, int]]:
    module, arch = kernels
    found = memsim.analyze(module[name], 1, 64, ["i32[8192]", 8], arch=arch).sites
    return [(site.requests or 0, site.sectors or 0) for site in found]


@pytest.mark.some(12)
@pytest.mark.parametrize("name", [*FAR, *NEAR])
def test_other_units_count_the_same_exactly_where_that_is_said(
    name: str, kernels: tuple[Module, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Functions that are wrong by as much as they may be, up or down, or anything between."""
    before, differ = sites(kernels, name), False
    monkeypatch.setattr(documented_errors, "FUNCTIONS", dict(multi_function.FUNCTIONS))
    for seed in range(6):
        chance = np.random.default_rng(seed)
        for function in ERRORS:

            def moved(x: Any, function: str = function, chance: Any = chance, seed: int = seed) -> Any:
                low, high = limits(function, np.asarray(x, np.float32))
                between = chance.random(low.shape, np.float32) if seed > 1 else np.float32(seed)
                with np.errstate(all="ignore"):
                    found = np.where(low == high, low, low + (high - low) * between)
                return np.clip(found, low, high).astype(np.float32)

            monkeypatch.setitem(multi_function.FUNCTIONS, function, moved)
        launch_code._steps_of.cache_clear()
        differ |= sites(kernels, name) != before
    launch_code._steps_of.cache_clear()
    assert differ is (name in NEAR)


@pytest.mark.parametrize("name", ERRORS)
def test_the_unit_that_was_measured_is_within_the_limits(name: str) -> None:
    chance = np.random.default_rng(7)
    x = np.ldexp(chance.uniform(-2, 2, 200_000), chance.integers(-20, 20, 200_000)).astype(np.float32)
    x[:8] = 0, -0.0, np.inf, -np.inf, 1, 2, 0.5, 1e-40
    with np.errstate(all="ignore"):
        low, high = limits(name, x)
        found = multi_function.FUNCTIONS[name](x)
    known = ~np.isnan(low)
    assert known[np.abs(x) <= 1].mean() > 0.4
    assert (low <= found)[known].all() and (found <= high)[known].all()
