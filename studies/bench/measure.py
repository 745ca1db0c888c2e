"""SGEMM kernels of the catalogue, and cuBLAS, timed on this machine's GPU.

Times are CUDA events' around each of some launches in a row, on random inputs; caches and clocks are as they
come. Short launches are timed in groups, queued behind others that keep the GPU busy meanwhile: else Python,
which launches them, and not the GPU would be what takes the time. cuBLAS is timed before and after each
kernel, so that it meets the clocks that the kernel met: a hot GPU is slower at the end than at the start.
Before a kernel is timed, its product of small integers has to be the one computed in float64: float32 sums of
those have no rounding, in whatever order, so that equal means equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from memsim.errors import MemsimError
from memsim.kernels import Spec
from memsim.kernels.shipped import digest
from memsim.validate.device import check_chip, load_cupy, now, this_device
from memsim.validate.profiler import Progress
from memsim.validate.run_cubin import refusals
from studies.bench.cublas import CuBlas
from studies.bench.launching import CODE, launcher, make_arrays
from studies.bench.recording import CUBLAS, BenchRecording, Code, Rest, Size, Timing
from studies.dispatch import Dispatcher, Piece
from studies.kernel_ptx import ptx_of

BUDGET_MS = 300.0  # for the timed launches of a kernel at a size
BESIDE_MS = 100.0  # for those of cuBLAS before and after it
WARM_SHARE = 1 / 3  # of a budget, for launches before those that are timed
FEWEST, MOST = 3, 50  # launches, or groups of them
GROUP_MS = 0.2  # launches that take less are timed in groups that take about as long
LARGEST_GROUP = 40
BUSY = (
    2048  # the extent of the products that keep the GPU busy: 0.35 ms each, while 40 launches take Python 0.4
)
BUSY_PRODUCTS = 3
SLOW_MS = 1000.0  # a launch that takes longer is timed once
UNSURE_MS = 5.0  # so long Python may take to launch something for the first time, however short it is
SEED = 0

LARGEST = 2  # of the small integers
DEEPEST = 2**24 // LARGEST**2  # so many products add up to what float32 holds exactly
WRONG = 1  # exit code

Entry = Spec | Dispatcher


def measure_speed(plan: Mapping[Size, Sequence[Entry]], progress: Progress = None) -> BenchRecording:
    """Checks and times the kernels of each size, and cuBLAS; of a dispatcher, the kernels that it picks.

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
    timed: dict[str, Spec] = {}
    for size, entries in plan.items():
        bench = Bench(cupy, cublas, size, entries[0])
        cublas_times = [bench.time_cublas()]
        kernels: list[Timing] = []
        for entry in entries:
            pieces = pieces_of(entry, size)
            timed |= {spec.name: spec for piece in pieces for spec, _ in piece.launches}
            times = bench.time_kernel(pieces)
            cublas_times.append(bench.time_cublas())
            if times is None:
                wrong.append(f"{pieces[0].spec.name} at {','.join(map(str, size))}")
            else:
                kernels.append(_timing(size, pieces, times, cublas_times[-2] + cublas_times[-1]))
            done += 1
            if progress is not None:
                progress(done / total)
        timings += [Timing(CUBLAS, size, sum(cublas_times, ())), *kernels]
    if wrong:
        raise MemsimError(
            f"computed on this GPU, the product is not that in float64: {', '.join(wrong)}",
            hint="nothing was recorded; the speed of a wrong kernel says nothing",
            exit_code=WRONG,
        )
    return BenchRecording(
        device=device,
        date=now(),
        code=CODE,
        cublas=cublas.version,
        multiprocessors=multiprocessors,
        max_clock_mhz=clock_khz // 1000,
        seed=SEED,
        kernels={name: _code(spec) for name, spec in timed.items()},
        timings=tuple(timings),
    )


def pieces_of(entry: Entry, size: Size) -> tuple[Piece, ...]:
    """What is launched for a size: a kernel is one piece, of all rows."""
    return entry.pieces(size) if isinstance(entry, Dispatcher) else (Piece(0, size, entry, None),)


def _timing(
    size: Size, pieces: Sequence[Piece], times: tuple[float, ...], beside: tuple[float, ...]
) -> Timing:
    first, *others = pieces
    rest = [Rest(piece.spec.name, piece.size[0], piece.parts) for piece in others]
    return Timing(first.spec.name, size, times, beside, first.parts, *rest)


class Bench:
    """The matrices of one size on the GPU: random ones to time with, small integers to check with."""

    def __init__(self, cupy: Any, cublas: CuBlas, size: Size, entry: Entry) -> None:
        if size[2] > DEEPEST:
            raise MemsimError(f"K is {size[2]}; up to {DEEPEST} products add up without rounding")
        self._cupy, self._cublas, self._size = cupy, cublas, size
        self._filler: tuple[Any, Any] | None = None
        with refusals(cupy, CUBLAS, size):
            self._random = make_arrays(cupy, entry.job(size, SEED))
            self._random["C"] = cupy.empty_like(cupy.asarray(np.empty(size[:2], np.float32)))
            self._exact = {name: cupy.asarray(array) for name, array in small_integers(size).items()}
            a, b = (self._exact[name].astype(np.float64) for name in "AB")
            self._expected = (a @ b).astype(np.float32)

    def time_cublas(self) -> tuple[float, ...]:
        """Milliseconds of cuBLAS's launches."""
        with refusals(self._cupy, CUBLAS, self._size):
            return time_launches(
                self._cupy,
                lambda: self._cublas.product(self._random["A"], self._random["B"], self._random["C"]),
                BESIDE_MS,
                self._busy,
            )

    def time_kernel(self, pieces: Sequence[Piece], budget_ms: float = BUDGET_MS) -> tuple[float, ...] | None:
        """Milliseconds of all launches of the pieces; None if they compute something wrong."""
        with refusals(self._cupy, pieces[0].spec.name, self._size):
            self._exact["C"].fill(np.nan)  # so that an element that the kernel leaves out is seen
            self._all(pieces, self._exact)()
            if not bool((self._exact["C"] == self._expected).all()):
                return None
            return time_launches(self._cupy, self._all(pieces, self._random), budget_ms, self._busy)

    def _all(self, pieces: Sequence[Piece], arrays: Mapping[str, Any]) -> Callable[[], None]:
        launches = [launch for piece in pieces for launch in self._launches(piece, arrays)]

        def launch_all() -> None:
            for launch in launches:
                launch()

        return launches[0] if len(launches) == 1 else launch_all

    def _launches(self, piece: Piece, arrays: Mapping[str, Any]) -> list[Callable[[], None]]:
        rows = slice(piece.first, piece.first + piece.size[0])
        arrays = {**arrays, "A": arrays["A"][rows], "C": arrays["C"][rows]}
        job = piece.spec.job(piece.size, SEED)
        if piece.adding is None:
            return [launcher(self._cupy, job, arrays)]
        parts = make_arrays(self._cupy, job)["C"]
        (summed,) = piece.adding.family.inputs
        adding = piece.adding.job(piece.size[:2])
        return [
            launcher(self._cupy, job, {**arrays, "C": parts}),
            launcher(self._cupy, adding, {summed: parts, "C": arrays["C"]}),
        ]

    def _busy(self, products: int) -> None:
        """Keeps the GPU busy for about 0.35 ms per product."""
        if self._filler is None:
            values = np.random.default_rng(SEED).uniform(-1.0, 1.0, (BUSY, BUSY)).astype(np.float32)
            matrix = self._cupy.asarray(values)
            self._filler = matrix, self._cupy.empty_like(matrix)
        matrix, out = self._filler
        for _ in range(products):
            self._cublas.product(matrix, matrix, out)


def small_integers(size: Size) -> dict[str, np.ndarray]:
    """A, B and C of a size as float32; A and B hold integers from -`LARGEST` to `LARGEST`."""
    m, n, k = size
    rng = np.random.default_rng(SEED)
    shapes = {"A": (m, k), "B": (k, n), "C": (m, n)}
    return {
        name: rng.integers(-LARGEST, LARGEST, shape, np.int8, endpoint=True).astype(np.float32)
        for name, shape in shapes.items()
    }


def time_launches(
    cupy: Any, launch: Callable[[], None], budget_ms: float, busy: Callable[[int], None]
) -> tuple[float, ...]:
    """GPU milliseconds of each of some launches: as many as fit the budget, or one that is slow.

    Of short ones each is the mean of a group, launched while the GPU is `busy` with something else.
    """
    (first,) = _times(cupy, launch, 1)
    if first > SLOW_MS:
        return (first,)
    if first < UNSURE_MS:
        first = min(_times(cupy, launch, FEWEST, busy))
    for _ in range(_how_many(budget_ms * WARM_SHARE, first)):
        launch()
    if first >= GROUP_MS:
        return _times(cupy, launch, max(FEWEST, _how_many(budget_ms, first)))
    group = min(LARGEST_GROUP, round(GROUP_MS / first) + 1)

    def launch_group() -> None:
        for _ in range(group):
            launch()

    times = _times(cupy, launch_group, _how_many(budget_ms, GROUP_MS), busy)
    return tuple(round(time / group, 6) for time in times)


def _how_many(budget_ms: float, each_ms: float) -> int:
    return max(1, min(MOST, round(budget_ms / each_ms)))


def _times(
    cupy: Any, launch: Callable[[], None], count: int, busy: Callable[[int], None] | None = None
) -> tuple[float, ...]:
    """Nothing waits between launches: the GPU, and not Python, has to be what takes the time.

    If it is kept busy meanwhile, what it came to before all was queued is timed again, behind more products.
    """
    products = BUSY_PRODUCTS
    events = [(cupy.cuda.Event(), cupy.cuda.Event()) for _ in range(count)]
    for start, stop in events:
        while True:
            if busy is not None:
                busy(products)
            start.record()
            launch()
            stop.record()
            if busy is None or not start.done:
                break
            products *= 2
    events[-1][1].synchronize()
    return tuple(round(cupy.cuda.get_elapsed_time(*pair), 6) for pair in events)


def _code(spec: Spec) -> Code:
    return Code({name: digest(text) for name, text in spec.kernel().sources.items()}, digest(ptx_of(spec)))
