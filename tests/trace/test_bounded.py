"""What the recorder keeps is bounded, whatever the launch asks for; and no count is another for it."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memsim
from memsim.analysis import Analysis, analyze_trace
from memsim.arch import SM_90, Rule
from memsim.model import alike as model
from memsim.trace import events, record, writers
from memsim.trace.trace import Trace
from memsim.validate.predict import accesses_of, predict
from tests.simt.cuda import kernels_of
from tests.traces import make_trace, site
from tests.traces import requests as any_request

# Every warp asks for something else: of global memory, of shared memory, and by copies between them.
SCATTER = """\
__device__ unsigned mixed(unsigned h) {
    h *= 2654435761u; h ^= h >> 15; h *= 0x85ebca6bu; return h ^ (h >> 13);
}
extern "C" __global__ void k(float *o, const float *a, const float4 *b, int rounds) {
    __shared__ float s[1024];
    __shared__ float4 t[64];
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    s[mixed(i) % 1024] = 1.0f;
    const unsigned to = (unsigned)__cvta_generic_to_shared(&t[threadIdx.x]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(b + mixed(i + 1) % 4096));
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    float sum = t[threadIdx.x ^ 1].x;
    #pragma unroll 1
    for (int j = 0; j < rounds; j++) sum += a[mixed(i + j * 977) % 65536] + s[(threadIdx.x * j) % 1024];
    o[i] = sum;
}
"""


alike = partial(model.alike, arch=SM_90)


def scattered(blocks: int = 16, rounds: int = 9) -> Analysis:
    array = memsim.ArrayArg
    args = [array((64 * blocks,)), array((65536,)), array((4096, 4)), rounds]
    return memsim.analyze(kernels_of(SCATTER)["k"], grid=blocks, block=64, args=args)


def without_notes(analysis: Analysis) -> dict[str, Any]:
    return {key: value for key, value in analysis.to_dict().items() if key != "notes"}


def figures(trace: Trace) -> list[Any]:
    """What is compared with a recording, for each site."""
    return [predict([access], SM_90) for access in accesses_of(trace)]


@pytest.mark.slow
def test_too_many_requests_are_folded_and_no_count_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = scattered()
    monkeypatch.setattr(record, "MOST_ROWS", 64)
    folded = scattered()
    assert len(folded.trace.count) < len(whole.trace.count) / 4
    assert without_notes(folded) == without_notes(whole)
    assert figures(folded.trace) == figures(whole.trace)
    assert whole.trace.notes == ()
    (note,) = folded.trace.notes
    assert "all but one of the requests that cost the same" in note
    assert "k.cu:15" in note
    assert len(scattered(blocks=64).trace.count) < 2 * len(folded.trace.count)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "name"),
    [
        (record, "MOST_REMEMBERED"),
        pytest.param(events, "MOST_MASKS", marks=pytest.mark.slow),
        pytest.param(writers, "MOST_SEEN", marks=pytest.mark.slow),
    ],
)
def test_what_is_forgotten_is_looked_at_again(where: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = scattered().trace
    monkeypatch.setattr(where, name, 1)
    short = scattered().trace
    for column in ("site", "count", "addresses", "active", "partner", "block", "warp", "writers"):
        assert (getattr(short, column) == getattr(whole, column)).all(), column
    assert short.sites == whole.sites


@pytest.mark.slow
@given(data=st.data(), kind=st.sampled_from(SM_90.rules))
def test_what_stands_for_another_costs_the_same(data: st.DataObject, kind: Rule) -> None:
    """Requests of equal numbers, each by itself in a trace: the analysis and the figures are equal."""
    one = site(space=kind.space, op=kind.op, width=data.draw(st.sampled_from(kind.widths)))
    made = [data.draw(any_request(one)) for _ in range(4)]
    columns = make_trace((one, made))
    keys = alike(one.space, one.op, one.width, columns.addresses, columns.active, columns.partner)
    assert keys.shape[0] == 4
    for i in range(4):
        alone = alike(
            one.space,
            one.op,
            one.width,
            *(c[i : i + 1] for c in (columns.addresses, columns.active, columns.partner)),
        )
        assert (alone[0] == keys[i]).all()
    seen: dict[bytes, Any] = {}
    for key, request in zip(keys, made):
        trace = make_trace((one, [dataclasses.replace(request, count=1)]))
        found = analyze_trace(trace)
        answer = list(found.sites), dict(found.undecided), figures(trace)
        assert seen.setdefault(key.tobytes(), answer) == answer


def test_requests_that_differ_in_cost_are_told_apart() -> None:
    lanes = np.arange(32)[None, :]
    on, nowhere = np.ones((1, 32), bool), np.full((1, 32), -1)
    apart = {alike("shared", "load", 4, lanes * step, on, nowhere).tobytes() for step in (4, 8, 16, 128)}
    assert len(apart) == 4
    assert alike("shared", "load", 4, lanes * 4, on, nowhere).tobytes() == (
        alike("shared", "load", 4, lanes[:, ::-1] * 4 + 128, on, nowhere).tobytes()
    )
