"""A warp-specialised Hopper GEMM, whole, against what an H200 counted: TMA, mbarriers, wgmma, setmaxnreg."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsim import TensorMap
from memsim.api.loading import load
from memsim.api.running import run
from memsim.argument_types import ArrayArg
from memsim.captured.analyze_any import analyze

HERE = Path(__file__).parent
RECORDED = json.loads((HERE.parents[1] / "traces/nvidia-h200/hopper/kernels.json").read_text("utf-8"))[
    "kernels"
]
SHARED_BYTES = 4 * 2 * 16384 + 1024


@pytest.fixture(scope="module")
def gemm() -> Any:
    return load(HERE / "data" / "hopper_gemm.cu", ["-arch=sm_90a"])["hopper_gemm"]


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "recorded", RECORDED["hopper_gemm"]["launches"], ids=lambda one: f"{one['size']}-{one['run']}"
)
def test_every_counter_is_equal(gemm: Any, recorded: Any) -> None:
    m, n, k = recorded["size"]
    a, b = (TensorMap(ArrayArg((rows, k), "float16"), (128, 64), 128) for rows in (m, n))
    analysis = analyze(gemm, (n // 128, m // 128), 384, [a, b, ArrayArg((m, n)), n, k], SHARED_BYTES)
    assert not [site for site in analysis.sites if site.unresolved]
    assert analysis.trace.uncertain == ()
    compared = {metric: count for metric, count in analysis.totals.items() if metric in recorded["counters"]}
    assert compared == {metric: recorded["counters"][metric] for metric in compared}
    assert {metric.rpartition("_op_")[2] for metric in compared} >= {
        "gmma.sum",
        "tma_ld.sum",
        "ld.sum",
        "st.sum",
    }
    assert compared["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum"] > 0


@pytest.mark.slow
def test_the_product_of_random_numbers_is_the_chips_bit_for_bit(gemm: Any) -> None:
    """64 products of k = 16 added up, each onto the sum before it."""
    m, n, k = 256, 256, 1024
    random = np.random.default_rng(m)
    a, b = (random.uniform(-1, 1, (rows, k)).astype(np.float16) for rows in (m, n))
    c = np.zeros((m, n), np.float32)
    maps = [TensorMap(array, (128, 64), 128) for array in (a, b)]
    run(gemm, (n // 128, m // 128), 384, [*maps, c, n, k], SHARED_BYTES)
    # what an H200 gave (driver 580, nvcc 13.0)
    assert sha256(c.astype("<f4").tobytes()).hexdigest() == (
        "857656388f92913276f15a14bdb1f9fc942147701c5e084cd5943b09b964fabb"
    )
