"""A row for each timed kernel: speed, the share of cuBLAS's, and the predicted wavefronts beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from statistics import median, quantiles

from memsim.analysis import Analysis
from memsim.kernels import catalog
from memsim.kernels.shipped import digest
from memsim.targets.analyze_targets import analyze_all
from studies.bench.recording import CUBLAS, BenchRecording, Size, Timing
from studies.kernel_ptx import ptx_of

PREDICTED_AT = (1024, 1024, 1024)  # M, N, K; wavefronts a FLOP hardly depend on it


@dataclass(frozen=True, slots=True)
class Speed:
    """A kernel at one size.

    median_ms: of `launches` launches. spread: the middle half of their times, as a share of the median; None
    for a single launch. of_cublas: the speed as a share of cuBLAS's just before and after, by medians.
    """

    size: Size
    launches: int
    median_ms: float
    spread: float | None
    tflops: float
    of_cublas: float


@dataclass(frozen=True, slots=True)
class Row:
    """A kernel, or cuBLAS.

    wavefronts: predicted of shared memory, per 1000 FLOP at `PREDICTED_AT`; None if not known, as of cuBLAS.
    changed: the kernel is not what it was when it was recorded.
    """

    kernel: str
    wavefronts: float | None
    changed: bool
    speeds: tuple[Speed, ...]

    def at(self, size: Size) -> Speed | None:
        """The speed at a size; None if it was not timed."""
        return next((speed for speed in self.speeds if speed.size == size), None)


def flop(size: Size) -> int:
    """Floating-point operations of a product: a multiplication and an addition for each of M N K."""
    return 2 * prod(size)


def unchanged(recording: BenchRecording) -> list[str]:
    """The recorded kernels that are in the catalogue as they were."""
    now = catalog()
    return [
        name
        for name, code in recording.kernels.items()
        if name in now and digest(ptx_of(now[name])) == code.ptx
    ]


def analyze_kernels(names: Sequence[str], cache: Path | None, jobs: int | None = None) -> dict[str, Analysis]:
    """The kernels' analyses at `PREDICTED_AT`; `cache` and `jobs` as in `memsim.targets`."""
    targets = [catalog()[name].job(PREDICTED_AT) for name in names]
    return {measured.name: measured.result() for measured in analyze_all(targets, cache, jobs)}


def wavefronts_per_kflop(analysis: Analysis) -> float | None:
    """Wavefronts of shared memory per 1000 FLOP, of an analysis at `PREDICTED_AT`; None if not known."""
    counts = [site.wavefronts for site in analysis.sites if site.space == "shared"]
    known = [count for count in counts if count is not None]
    return 1000 * sum(known) / flop(PREDICTED_AT) if len(known) == len(counts) else None


def make_rows(recording: BenchRecording, analyses: Mapping[str, Analysis]) -> list[Row]:
    """A row for each kernel and for cuBLAS, the fastest at the last size first.

    analyses: those of the kernels that have not changed.
    """
    rows = []
    for kernel in dict.fromkeys(timing.kernel for timing in recording.timings):
        timings = [timing for timing in recording.timings if timing.kernel == kernel]
        rows.append(
            Row(
                kernel=kernel,
                wavefronts=wavefronts_per_kflop(analyses[kernel]) if kernel in analyses else None,
                changed=kernel != CUBLAS and kernel not in analyses,
                speeds=tuple(map(speed_of, timings)),
            )
        )
    return sorted(rows, key=lambda row: _order(row, recording.sizes))


def speed_of(timing: Timing) -> Speed:
    """The speed that a kernel's times say."""
    middle = median(timing.times_ms)
    spread = None
    if len(timing.times_ms) > 1:
        low, _, high = quantiles(timing.times_ms, n=4, method="inclusive")
        spread = (high - low) / middle
    return Speed(
        size=timing.size,
        launches=len(timing.times_ms),
        median_ms=middle,
        spread=spread,
        tflops=flop(timing.size) / middle / 1e9,
        of_cublas=median(timing.beside_ms) / middle if timing.beside_ms else 1.0,
    )


def _order(row: Row, sizes: Sequence[Size]) -> tuple[float, ...]:
    """Faster at the last size comes first; a kernel that was not timed there, last."""
    speeds = [row.at(size) for size in reversed(sizes)]
    return tuple(-speed.tflops if speed else 0.0 for speed in speeds)
