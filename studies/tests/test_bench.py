"""Timing kernels beside cuBLAS: how often, in which order, and what is refused.

The GPU is the emulator, whose time is made up; with `-m gpu` it is this machine's.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsim.errors import MemsimError
from memsim.kernels.shipped import digest
from studies.bench.measure import (
    BUDGET_MS,
    DEEPEST,
    FEWEST,
    MOST,
    measure_speed,
    small_integers,
    time_launches,
)
from studies.bench.plan import SIZES, plan_bench, read_size, sgemm_names
from studies.bench.recording import CUBLAS, BenchRecording
from studies.dispatch import entry_of
from studies.kernel_ptx import ptx_of
from tests.validate.fake_gpu import (
    CUBLASError,
    CUDARuntimeError,
    Event,
    FakeGpu,
    OutOfMemoryError,
    add_little,
    leave_out,
    spoiled,
)

pytestmark = pytest.mark.slow

SIZE = (64, 36, 16)


@pytest.mark.usefixtures("any_gpu")
def test_kernels_are_checked_and_timed_beside_cublas() -> None:
    names = ["guide_v2", "kernel_v4", "sgemm_128x128x8_texld"]
    shares: list[float] = []
    recording = measure_speed(plan_bench(names, [SIZE, (32, 32, 32)]), shares.append)
    assert recording.sizes == (SIZE, (32, 32, 32)) and shares[-1] == 1.0 and len(shares) == 6
    timed = [(timing.kernel, timing.size) for timing in recording.timings]
    assert timed == [(name, size) for size in recording.sizes for name in (CUBLAS, *names)]
    assert all(0 < time < 60_000 for timing in recording.timings for time in timing.times_ms)
    assert all(FEWEST <= len(timing.times_ms) <= 4 * MOST for timing in recording.timings)
    assert list(recording.kernels) == names and recording.multiprocessors > 0
    assert BenchRecording.from_dict(recording.to_dict()) == recording


def test_what_was_timed_is_written_down(gpu: FakeGpu) -> None:
    gpu.milliseconds = {"kernel_v4": lambda number: 100.0 + number}
    plan = plan_bench(["kernel_v4"], [SIZE])
    recording = measure_speed(plan)
    (spec,) = plan[SIZE]
    assert recording.kernels["kernel_v4"].ptx == digest(ptx_of(spec))
    assert list(recording.kernels["kernel_v4"].sources) == ["kernels/kernel_v4.cu", "kernels/edge.cuh"]
    assert (recording.cublas, recording.device.slug) == ("13.0.2", "nvidia-h100-80gb-hbm3")
    assert (recording.multiprocessors, recording.max_clock_mhz) == (132, 1980)
    # launch 0 is checked, 1 tells how many there will be, 2 warms up
    assert recording.timings[1].times_ms == (103.0, 104.0, 105.0)


@pytest.mark.parametrize(
    ("milliseconds", "launches", "warm"), [(1.0, 50, 50), (10.0, 30, 10), (140.0, 3, 1), (2500.0, 1, 0)]
)
def test_slow_kernels_are_launched_less_often(
    milliseconds: float, launches: int, warm: int, gpu: FakeGpu
) -> None:
    gpu.milliseconds = {"it": lambda number: milliseconds}
    assert (
        time_launches(gpu.cupy, lambda: gpu.launch("it"), BUDGET_MS, gpu.cupy.abs)
        == (milliseconds,) * launches
    )
    first = 0 if milliseconds > 1000 else 1
    asked_again = 3 if milliseconds < 5.0 else 0
    assert len(gpu.launched) == first + asked_again + warm + launches
    assert gpu.waits == first + bool(asked_again) + 1  # and not between launches


def test_short_launches_are_timed_in_groups_while_the_gpu_is_busy(gpu: FakeGpu) -> None:
    gpu.milliseconds = {"it": lambda number: 0.05, "busy": lambda number: 1.0}
    times = time_launches(gpu.cupy, lambda: gpu.launch("it"), 2.0, lambda products: gpu.launch("busy"))
    assert times == (0.05,) * 10  # groups, as many as fit the budget; what keeps the GPU busy is not in them
    rounds = [(name, len(list(launches))) for name, launches in groupby(gpu.launched)]
    assert (
        rounds
        == [("it", 1)]
        + [("busy", 1), ("it", 1)] * 2
        + [("busy", 1), ("it", 1 + 13)]
        + [
            ("busy", 1),
            ("it", 5),
        ]
        * 10
    )


@pytest.mark.parametrize("late", [0.0, 0.3, 4.0])
def test_a_launch_is_short_however_long_python_takes_for_the_first(late: float, gpu: FakeGpu) -> None:
    gpu.milliseconds = {"it": lambda number: 0.01 + late * (number == 0)}
    times = time_launches(gpu.cupy, lambda: gpu.launch("it"), 2.0, lambda products: None)
    assert times == (0.01,) * 10
    assert gpu.launched.count("it") == 1 + 3 + 50 + 10 * 21


def test_a_group_that_the_gpu_came_to_too_early_is_timed_again(
    gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python, which queues it, would be what took the time."""
    early = iter([False] * 3 + [True, True, False, True])
    monkeypatch.setattr(Event, "done", property(lambda event: next(early, False)), raising=False)
    asked: list[int] = []
    gpu.milliseconds = {"it": lambda number: 0.05}
    assert len(time_launches(gpu.cupy, lambda: gpu.launch("it"), 0.6, asked.append)) == 3
    assert asked == [3] * 3 + [3, 6, 12, 12, 24, 24]
    assert gpu.launched.count("it") == 1 + 3 + 4 + 6 * 5


def test_parts_are_added_and_timed(gpu: FakeGpu) -> None:
    gpu.milliseconds = {"sgemm_tile": lambda number: 200.0, "sum_of_parts": lambda number: 50.0}
    size = (20, 24, 1000)
    recording = measure_speed({size: [entry_of("sgemm")]})
    cublas, ours = recording.timings
    assert ours.parts > 1 and set(ours.times_ms) == {250.0} and set(ours.beside_ms) == {100.0}
    assert cublas.parts == 1 and list(recording.kernels) == [ours.kernel, "sum_of_parts"]
    assert BenchRecording.from_dict(recording.to_dict()) == recording


def test_cublas_is_timed_before_and_after_each_kernel(gpu: FakeGpu) -> None:
    launches = iter(range(1000))
    gpu.milliseconds = {CUBLAS: lambda number: 100.0 + next(launches)}
    recording = measure_speed(plan_bench(["guide_v2", "kernel_v4"], [SIZE]))
    order = [(name, len(list(launches))) for name, launches in groupby(gpu.launched)]
    once = 1 + 1 + 3  # how many, to warm up; timed
    before = 1 + once  # precision
    assert [name for name, _ in order] == [CUBLAS, "guide_v2", CUBLAS, "kernel_v4", CUBLAS]
    assert [count for name, count in order if name == CUBLAS] == [before, once, once]
    rounds = [(103.0, 104.0, 105.0), (108.0, 109.0, 110.0), (113.0, 114.0, 115.0)]
    whole, guide_v2, kernel_v4 = recording.timings
    assert whole.times_ms == sum(rounds, ()) and whole.beside_ms == ()
    assert (guide_v2.beside_ms, kernel_v4.beside_ms) == (rounds[0] + rounds[1], rounds[1] + rounds[2])


@pytest.mark.parametrize("spoil", [leave_out, add_little])
def test_a_wrong_product_is_an_error(spoil: Any, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_bench(["kernel_v4"], [SIZE])
    assert measure_speed(plan)
    monkeypatch.setattr(gpu, "function", spoiled(spoil))
    with pytest.raises(
        MemsimError, match="the product is not that in float64: kernel_v4 at 64,36,16"
    ) as caught:
        measure_speed(plan)
    assert caught.value.exit_code == 1


def test_one_wrong_kernel_does_not_hide_another(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    right, wrong = gpu.function, spoiled(add_little)
    monkeypatch.setattr(
        gpu, "function", lambda path, entry: (right if entry == "guide_v3" else wrong)(path, entry)
    )
    with pytest.raises(MemsimError) as caught:
        measure_speed(plan_bench(["guide_v2", "guide_v3", "kernel_v4"], [SIZE]))
    assert caught.value.message.endswith(": guide_v2 at 64,36,16, kernel_v4 at 64,36,16")


def test_cublas_with_tf32_is_no_yardstick(gpu: FakeGpu) -> None:
    plan = plan_bench(["kernel_v4"], [SIZE])
    assert measure_speed(plan)
    gpu.tf32 = True
    with pytest.raises(MemsimError, match="does not keep the bits of float32") as caught:
        measure_speed(plan)
    assert "NVIDIA_TF32_OVERRIDE" in str(caught.value) and caught.value.exit_code == 2


@given(st.tuples(*[st.integers(1, 70)] * 3), st.randoms())
def test_products_of_small_integers_are_exact_in_any_order(size: tuple[int, int, int], random: Any) -> None:
    arrays = small_integers(size)
    assert {name: array.shape for name, array in arrays.items()} == {
        **{"A": size[::2], "B": (size[2], size[1]), "C": size[:2]}
    }
    order = random.sample(range(size[2]), size[2])
    total = np.zeros(size[:2], np.float32)
    for k in order:
        total += np.outer(arrays["A"][:, k], arrays["B"][k])
    exact = arrays["A"].astype(np.int64) @ arrays["B"].astype(np.int64)
    assert np.array_equal(total, exact)


def test_a_depth_at_which_integers_would_be_rounded_is_refused(gpu: FakeGpu) -> None:
    assert np.float32(4 * DEEPEST) == 4 * DEEPEST and np.float32(4 * DEEPEST + 1) == 4 * DEEPEST
    size = (1, 1, DEEPEST + 1)
    with pytest.raises(MemsimError, match=f"up to {DEEPEST} products add up without rounding"):
        measure_speed(plan_bench(["guide_v2"], [size]))


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            CUDARuntimeError("cudaErrorUnsupportedPtxVersion"),
            "kernel_v4 does not run on this GPU: cudaErrorUn",
        ),
        (OutOfMemoryError("allocating 1 TB"), r"kernel_v4 at \(64, 36, 16\) does not fit this GPU"),
    ],
)
def test_a_kernel_that_cuda_refuses(
    error: Exception, says: str, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Any, entry: str) -> Any:
        raise error

    monkeypatch.setattr(gpu, "function", refuse)
    with pytest.raises(MemsimError, match=says) as caught:
        measure_speed(plan_bench(["kernel_v4"], [SIZE]))
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("where", ["handle", "gemm"])
def test_a_cublas_that_does_not_start(where: str, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any, **options: Any) -> Any:
        raise CUBLASError("CUBLAS_STATUS_NOT_INITIALIZED")

    owner = {"handle": gpu.cupy.cuda.device, "gemm": gpu.cupy.cublas}[where]
    monkeypatch.setattr(owner, {"handle": "get_cublas_handle", "gemm": "gemm"}[where], fail)
    with pytest.raises(
        MemsimError, match="cuBLAS does not run on this GPU: CUBLAS_STATUS_NOT_INIT"
    ) as caught:
        measure_speed(plan_bench(["kernel_v4"], [SIZE]))
    assert caught.value.exit_code == 2


def test_an_unknown_chip_is_refused_before_anything_runs(
    gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = {"name": b"Tesla V100", "major": 7, "minor": 0}
    monkeypatch.setattr(gpu.cupy.cuda.runtime, "getDeviceProperties", lambda number: there)
    with pytest.raises(MemsimError, match="no rules for Tesla V100"):
        measure_speed(plan_bench(["kernel_v4"], [SIZE]))
    assert not gpu.launched


def test_every_sgemm_is_planned_and_nothing_else() -> None:
    names = sgemm_names()
    assert len(names) > 25 and {"kernel_v1", "kernel_v5", "sgemm_128x256x8", "opt_7_zorder"} <= set(names)
    assert not {"transpose_xor", "permuted_write", "sgemm"} & set(names)
    plan = plan_bench(names, SIZES)
    assert [len(specs) for specs in plan.values()] == [len(names)] * 4
    assert [size[0] for size in plan] == [1024, 2048, 4096, 8192]


def test_a_dispatcher_stands_for_what_it_picks() -> None:
    plan = plan_bench(["beating_sgemm", "sgemm_128x256x8"], [(1024,) * 3, (4096,) * 3])
    assert [[entry.name for entry in entries] for entries in plan.values()] == [
        ["beating_sgemm", "sgemm_128x256x8"],
        ["sgemm_128x256x8"],
    ]


def test_sizes() -> None:
    assert read_size("4096") == (4096, 4096, 4096)
    assert read_size("64,36, 16") == (64, 36, 16)
    for text in ("", "0", "64,36", "64,36,-1", "big", "1.5", "64,36,16,8"):
        with pytest.raises(MemsimError, match="a size is one positive integer, or three"):
            read_size(text)
