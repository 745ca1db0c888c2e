"""A launch whose counts are uncertain is said to be so by every verb that shows them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

SOURCE = """
extern "C" __global__ void ordered(int *o, const int *a) {
    __shared__ int s[256];
    s[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    o[o > a ? threadIdx.x : threadIdx.x * 8] = s[threadIdx.x * 8 % 256];
}
"""
TOLD = "Not certain: where a and o lie in memory decides the address at k.cu:6"


@pytest.mark.some(2)
@pytest.mark.parametrize("verb", ["analyze", "bound", "suggest", "explain", "heatmap"])
@pytest.mark.parametrize("certain", [False, True])
def test_every_verb_says_so(
    memsim: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, certain: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(SOURCE.replace("o > a", "a[0] > 5") if certain else SOURCE)
    done = memsim(f"{verb} k.cu --grid 1 --block 32 --arg 'i32[256]' --arg 'i32[256]'")
    assert done.code == 0
    told = "some counts are uncertain" if verb == "heatmap" else TOLD
    assert (told in done.out) is not certain
    if verb != "heatmap":
        document = memsim(f"{verb} k.cu --grid 1 --block 32 --arg 'i32[256]' --arg 'i32[256]' --json")
        assert (TOLD.removeprefix("Not certain: ") in json.loads(document.out)["uncertain"]) is not certain
    if verb in ("analyze", "bound", "suggest"):
        assert ("an estimate: at least" in done.out) is not certain
