"""Times all choices on this machine's GPU:
`python -m studies.choices.record FOLDER [triton|tiles|unseen|second|third|fourth]`.

It writes a file of that name there, which belong into traces/<gpu>/choices/. Tiles of
`sgemm` are timed as `studies.bench` times kernels, twice, in one order and in the other. Kernels in Triton
are timed by Triton's own `do_bench`, which flushes L2 before each launch, and `do_bench_cudagraph`, which
does not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memsim.validate.device import check_chip, load_cupy, now, this_device
from studies.bench.cublas import CuBlas
from studies.bench.measure import Bench
from studies.bench.recording import Size
from studies.choices.choice import CONFIGURATIONS, Choice, ChoiceRecording, MeasuredChoice
from studies.choices.code import code_of_cubin
from studies.choices.tiles import UNSEEN_SIZES, choice_of, tiles_at
from studies.dispatch import dispatchers
from studies.sizes import DISPATCHER, SIZES

if TYPE_CHECKING:
    from studies.choices.triton_kernels import TunedKernel

BUDGET_MS = 30.0  # of each of the two rounds of a tile, and of each way to time a kernel of Triton
#: By how much a result may differ from torch's, relative to the largest.
TOLERANCE = 2e-2


def measure_tiles(cupy: Any, wrong: list[str], sizes: Iterable[Size]) -> list[MeasuredChoice]:
    """All tiles at these sizes; what computes something wrong is added to `wrong`."""
    cublas, found = CuBlas(cupy), []
    for size in sizes:
        bench = Bench(cupy, cublas, size, dispatchers()[DISPATCHER])
        pieces = {choice_of(size, piece): piece for piece in tiles_at(size)}
        times: dict[Choice, tuple[float, ...]] = {}
        for choice, piece in (*pieces.items(), *reversed(pieces.items())):
            measured = bench.time_kernel([piece], BUDGET_MS)
            if measured is None:
                wrong.append(f"{choice.problem} {choice.choice}")
            else:
                times[choice] = times.get(choice, ()) + measured
        found += [MeasuredChoice(choice, (), warm) for choice, warm in times.items()]
        print(size, {choice.choice: min(warm) for choice, warm in times.items()}, flush=True)
    return found


def measure_configurations(wrong: list[str]) -> list[MeasuredChoice]:
    """All of Triton's kernels."""
    from studies.choices.triton_kernels import KERNELS

    return [one for kernel in KERNELS for one in measure_kernel(kernel, wrong)]


def measure_kernel(kernel: TunedKernel, wrong: list[str]) -> list[MeasuredChoice]:
    """All configurations of a kernel."""
    import torch  # type: ignore[import-not-found,unused-ignore]
    from triton.testing import do_bench, do_bench_cudagraph  # type: ignore[import-not-found,unused-ignore]

    arrays = [_array(torch, shape, dtype) for shape, dtype in kernel.arrays]
    *inputs, output = arrays
    expected = kernel.result(*inputs).double()
    found = []
    for one in kernel.configurations:
        output.zero_()
        compiled = kernel.launch(arrays, one)
        choice = Choice(CONFIGURATIONS, kernel.name, str(one), code_of_cubin(compiled.asm["cubin"]))
        error = (output.double() - expected).abs().max() / expected.abs().max()
        if not error < TOLERANCE:
            wrong.append(f"{choice.problem} {choice.choice}: {float(error)}")
            continue

        def launch(one: Any = one) -> None:
            kernel.launch(arrays, one)

        cold = do_bench(launch, warmup=10, rep=BUDGET_MS, return_mode="all")
        warm = do_bench_cudagraph(launch, rep=BUDGET_MS / 10, return_mode="all")
        found.append(MeasuredChoice(choice, tuple(cold), tuple(warm)))
        print(choice.problem, choice.choice, min(cold), min(warm), flush=True)
    return found


def _array(torch: Any, shape: tuple[int, ...], dtype: str) -> Any:
    torch.manual_seed(0)
    kind = getattr(torch, dtype)
    if kind.is_floating_point:
        return torch.randn(shape, device="cuda").to(kind)
    return torch.randint(0, 100, shape, device="cuda").to(kind)


def main(folder: Path, kinds: Iterable[str]) -> None:
    """Some kinds, each a file."""
    device = this_device()
    check_chip(device)
    cupy = load_cupy()
    clock = cupy.cuda.runtime.deviceGetAttribute(cupy.cuda.runtime.cudaDevAttrClockRate, 0) // 1000
    for name in kinds:
        wrong: list[str] = []
        sizes = UNSEEN_SIZES.get(name, SIZES)
        found = measure_configurations(wrong) if name == "triton" else measure_tiles(cupy, wrong, sizes)
        ChoiceRecording(device, now(), clock, tuple(found), tuple(wrong)).save(folder / f"{name}.json")
        print(name, len(found), "wrong:", wrong, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or ("triton", "tiles"))
