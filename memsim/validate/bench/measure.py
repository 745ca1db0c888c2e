"""SGEMM kernels of the catalogue, and cuBLAS, timed on this machine's GPU.

In: kernels with sizes. Out: `BenchRecording`; nothing is written.

Times are CUDA events' around each of some launches in a row, on random inputs; caches and clocks are as they
come. cuBLAS is timed before and after each kernel, so that it meets the clocks that the kernel met: a hot GPU
is slower at the end of a run than at its start.
Before a kernel is timed, its product of small integers has to be cuBLAS's: float32 sums of those have no
rounding, in whatever order, so that equal means equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import numpy as np

from memsim.errors import MemsimError
from memsim.kernels import Spec
from memsim.validate.bench.cublas import CuBlas
from memsim.validate.bench.recording import CUBLAS, BenchRecording, Code, Size, Timing
from memsim.validate.device import check_chip, load_cupy, this_device
from memsim.validate.live import digest
from memsim.validate.onchip import CODE, launcher, make_arrays, refusals

BUDGET_MS = 300.0  # for the timed launches of a kernel at a size
BESIDE_MS = 100.0  # for those of cuBLAS before and after it
WARM_SHARE = 1 / 3  # of a budget, for launches before those that are timed
FEWEST, MOST = 3, 50  # launches
SLOW_MS = 1000.0  # a launch that takes longer is timed once
SEED = 0

LARGEST = 2  # of the small integers
DEEPEST = 2**24 // LARGEST**2  # so many products add up to what float32 holds exactly
WRONG = 1  # exit code

Progress = Callable[[float], None] | None


def measure_speed(plan: Mapping[Size, Sequence[Spec]], progress: Progress = None) -> BenchRecording:
    """Checks and times the kernels of each size, and cuBLAS.

    Raises:
        MemsimError: CuPy, driver, GPU or cuBLAS missing, an unknown chip, a kernel that fails; or, with exit
            code 1, a kernel that computes something wrong.
    """
    device = this_device()
    check_chip(device)
    cupy = load_cupy()
    runtime = cupy.cuda.runtime
    with refusals(cupy, CUBLAS, ()):
        cublas = CuBlas(cupy)
        cublas.check_precision()
        multiprocessors = runtime.deviceGetAttribute(runtime.cudaDevAttrMultiProcessorCount, 0)
        clock_khz = runtime.deviceGetAttribute(runtime.cudaDevAttrClockRate, 0)

    timings: list[Timing] = []
    wrong: list[str] = []
    done, total = 0, sum(map(len, plan.values()))
    for size, specs in plan.items():
        bench = _Bench(cupy, cublas, size, specs[0])
        cublas_times = [bench.time_cublas()]
        kernels: list[Timing] = []
        for spec in specs:
            times = bench.time_kernel(spec)
            cublas_times.append(bench.time_cublas())
            if times is None:
                wrong.append(f"{spec.name} at {','.join(map(str, size))}")
            else:
                kernels.append(Timing(spec.name, size, times, cublas_times[-2] + cublas_times[-1]))
            done += 1
            if progress is not None:
                progress(done / total)
        timings += [Timing(CUBLAS, size, sum(cublas_times, ())), *kernels]
    if wrong:
        raise MemsimError(
            f"computed on this GPU, the product is not cuBLAS's: {', '.join(wrong)}",
            hint="nothing was recorded; the speed of a wrong kernel says nothing",
            exit_code=WRONG,
        )
    return BenchRecording(
        device=device,
        date=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        code=CODE,
        cublas=cublas.version,
        multiprocessors=multiprocessors,
        max_clock_mhz=clock_khz // 1000,
        seed=SEED,
        kernels={spec.name: _code(spec) for specs in plan.values() for spec in specs},
        timings=tuple(timings),
    )


class _Bench:
    """The matrices of one size on the GPU: random ones to time with, small integers to check with."""

    def __init__(self, cupy: Any, cublas: CuBlas, size: Size, spec: Spec) -> None:
        if size[2] > DEEPEST:
            raise MemsimError(f"K is {size[2]}; up to {DEEPEST} products add up without rounding")
        self._cupy, self._cublas, self._size = cupy, cublas, size
        with refusals(cupy, CUBLAS, size):
            self._random = make_arrays(cupy, spec.job(size, SEED))
            self._exact = {name: cupy.asarray(array) for name, array in small_integers(size).items()}
            self._expected = cupy.empty_like(self._exact["C"])
            self._multiply(self._exact, self._expected)

    def _multiply(self, arrays: Mapping[str, Any], out: Any) -> None:
        self._cublas.product(arrays["A"], arrays["B"], out)

    def time_cublas(self) -> tuple[float, ...]:
        """Milliseconds of cuBLAS's launches."""
        with refusals(self._cupy, CUBLAS, self._size):
            return time_launches(
                self._cupy, lambda: self._multiply(self._random, self._random["C"]), BESIDE_MS
            )

    def time_kernel(self, spec: Spec) -> tuple[float, ...] | None:
        """Milliseconds of a kernel's launches; None if it computes something wrong."""
        job = spec.job(self._size, SEED)
        with refusals(self._cupy, spec.name, self._size):
            self._exact["C"].fill(np.nan)  # so that an element that the kernel leaves out is seen
            launcher(self._cupy, job, self._exact)()
            if not bool((self._exact["C"] == self._expected).all()):
                return None
            return time_launches(self._cupy, launcher(self._cupy, job, self._random), BUDGET_MS)


def small_integers(size: Size) -> dict[str, np.ndarray]:
    """A, B and C of a size as float32; A and B hold integers from -`LARGEST` to `LARGEST`."""
    m, n, k = size
    rng = np.random.default_rng(SEED)
    shapes = {"A": (m, k), "B": (k, n), "C": (m, n)}
    return {
        name: rng.integers(-LARGEST, LARGEST, shape, np.int8, endpoint=True).astype(np.float32)
        for name, shape in shapes.items()
    }


def time_launches(cupy: Any, launch: Callable[[], None], budget_ms: float) -> tuple[float, ...]:
    """GPU milliseconds of each of some launches: as many as fit the budget, or one that is slow."""
    (first,) = _times(cupy, launch, 1)
    if first > SLOW_MS:
        return (first,)
    for _ in range(_how_many(budget_ms * WARM_SHARE, first)):
        launch()
    return _times(cupy, launch, max(FEWEST, _how_many(budget_ms, first)))


def _how_many(budget_ms: float, each_ms: float) -> int:
    return max(1, min(MOST, round(budget_ms / each_ms)))


def _times(cupy: Any, launch: Callable[[], None], count: int) -> tuple[float, ...]:
    """Nothing waits between launches: the GPU, and not Python, has to be what takes the time."""
    events = [(cupy.cuda.Event(), cupy.cuda.Event()) for _ in range(count)]
    for start, stop in events:
        start.record()
        launch()
        stop.record()
    events[-1][1].synchronize()
    return tuple(round(cupy.cuda.get_elapsed_time(*pair), 6) for pair in events)


def _code(spec: Spec) -> Code:
    return Code({name: digest(text) for name, text in spec.kernel().sources.items()}, digest(spec.ptx()))
