"""Neighbouring global accesses as one: the sectors are those of a kernel that makes it one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memsim.analysis import analyze_trace
from memsim.kernels import catalog
from memsim.suggest.global_accesses import Wider, wider
from tests.suggest.kernels import Case, analyzed
from tests.traces import Request, make_trace, site

LANES = np.arange(32)


def copy(body: str) -> Case:
    """A copy of 1024 floats by 64 threads."""
    text = f'extern "C" __global__ void k(const float *in, float *out) {{ int t = threadIdx.x; {body} }}'
    return Case(text, (64,), ((1024, "float32"), (1024, "float32")))


@pytest.mark.slow
def test_four_floats_of_a_thread_one_by_one_and_at_once(tmp_path: Path) -> None:
    one_by_one = "for (int i = 0; i < 4; ++i) __stcg(out + 4 * t + i, __ldcg(in + t + 64 * i));"
    at_once = "__stcg((float4 *)out + t, make_float4(in[t], in[t + 64], in[t + 128], in[t + 192]));"
    apart = analyzed(copy(one_by_one).job(tmp_path))
    joined = analyzed(copy(at_once).job(tmp_path))
    (store,) = [site.sectors for site in joined.sites if site.op == "store"]
    (found,) = wider(apart)
    assert apart.sites[found.site].op == "store"
    assert (found.times, found.width, found.sectors) == (4, 16, (2 * 4 * 16, store))


def test_the_stores_of_a_product_one_by_one_become_those_of_its_twin() -> None:
    """opt_5_float4 stores as kernel_v3 does, four floats at once."""
    (found,) = wider(catalog()["kernel_v3"].analyze(size=(128, 128, 16)))
    twin = catalog()["opt_5_float4"].analyze(size=(128, 128, 16))
    (store,) = [site.sectors for site in twin.sites if (site.op, site.space) == ("store", "global")]
    assert (found.times, found.width, found.sectors[1]) == (4, 16, store)


def neighbours(first: int, number: int, step: int = 4, last: int = 3) -> list[Request]:
    """Requests 64 bytes apart from lane to lane, `step` bytes from one to the next."""
    counts = [3] * (number - 1) + [last]
    return [Request(first + LANES * 64 + step * i, count=count) for i, count in enumerate(counts)]


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        (neighbours(0, 4), Wider(0, 4, 16, (3 * 4 * 32, 3 * 32))),
        (neighbours(16, 4), Wider(0, 4, 16, (3 * 4 * 32, 3 * 32))),
        (neighbours(8, 4), Wider(0, 2, 8, (3 * 4 * 32, 3 * 2 * 32))),  # not aligned to 16 bytes
        (neighbours(0, 2), Wider(0, 2, 8, (3 * 2 * 32, 3 * 32))),
        (neighbours(0, 3), None),  # one is left over
        (neighbours(4, 2), None),
        (neighbours(0, 2, 8), None),
        (neighbours(0, 2, last=2), None),  # not made together
    ],
)
def test_only_neighbours_join(requests: list[Request], expected: Wider | None) -> None:
    analysis = analyze_trace(make_trace((site(space="global", array="A"), requests)))
    assert wider(analysis) == (() if expected is None else (expected,))


def test_other_lanes_and_what_is_coalesced_do_not_join() -> None:
    one, two = neighbours(0, 2)
    other = Request(two.addresses, count=3, active=LANES > 3)
    assert wider(analyze_trace(make_trace((site(space="global"), [one, other])))) == ()
    packed = [Request(LANES * 4 + 128 * i) for i in range(4)]
    assert wider(analyze_trace(make_trace((site(space="global"), packed)))) == ()
