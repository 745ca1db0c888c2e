"""Records what single requests count on this GPU: `python -m lab.record_requests FOLDER`.

Each kernel of `requests.cu` executes one instruction, in one warp of each block, for some rows of a table of
addresses: row d of a launch BASE**d times in all. So the difference of a counter to a launch that executes
nothing has the count of each row as a digit, and one launch measures DIGITS patterns by themselves.

Out: `<gpu>/requests.npz` in FOLDER. Of each kernel NAME the arrays `NAME_tables` uint32 [launches, DIGITS,
32, 4], `NAME_metrics`, and `NAME_counters` int64 [launches, metrics], from which the launch without requests
is subtracted. The machine needs a GPU, CuPy, ncu and nvcc; `--cubin CUBIN` takes what was compiled elsewhere.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lab.probe.patterns import make_patterns
from lab.recordings import write_arrays
from memsim.validate.device import load_cupy, this_device
from memsim.validate.profiler import REPORT_SUFFIX, find_profiler, profile, read_code_report

SOURCE = Path(__file__).with_name("requests.cu")
BASE, DIGITS, BLOCKS, LAUNCHES, SEED = 64, 5, 128, 8, 3
OWN_BYTES, MEMORY_BYTES = 2048, 1 << 17

_GLOBAL = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
_LOCAL = "l1tex__t_{}_pipe_lsu_mem_local_op_{}.sum"
_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"


def _of_spaces(end: str) -> tuple[str, ...]:
    counts = (_GLOBAL.format(what, end) for what in ("requests", "sectors", "set_accesses"))
    local = (_LOCAL.format(what, end) for what in ("requests", "sectors"))
    return (*counts, *local, _WAVEFRONTS.format(end), _CONFLICTS.format(end))


COPIES = (
    *(_GLOBAL.format(what, "ld") for what in ("requests", "sectors", "set_accesses")),
    _CONFLICTS.format("ldgsts"),
)
ATOMICS = (_GLOBAL.format("requests", "atom"), _WAVEFRONTS.format("atom"), _CONFLICTS.format("atom"))
#: Kernel -> bytes per lane, and what is counted.
KERNELS = {
    **{f"copy_{form}": (int(form[2:]), COPIES) for form in ("cg16", "ca4", "ca8", "ca16")},
    **{f"load{width}": (width, _of_spaces("ld")) for width in (1, 4, 8, 16)},
    **{f"store{width}": (width, _of_spaces("st")) for width in (4, 8, 16)},
    **dict.fromkeys(("add4", "max4", "cas4"), (4, ATOMICS)),
    "constant4": (4, ("idc__requests.sum", "smsp__inst_executed_op_ldc.sum")),
}


def table_of(kernel: str, rng: np.random.Generator) -> np.ndarray:
    """Addresses and flags of a kernel's rows, as requests.cu has them; uint32 [launches, digits, 32, 4]."""
    width, count = KERNELS[kernel][0], LAUNCHES * DIGITS
    rows = np.zeros((count, 32, 4), np.uint32)
    rows[..., 0] = make_patterns(count, width, rng, every=True)[0]
    rows[..., 1] = make_patterns(count, width, rng, every=True)[0]
    on = make_patterns(count, width, rng)[1]
    other = make_patterns(count, width, rng)[1] & (np.arange(count) % 3 == 0)[:, None]
    if kernel.startswith("copy"):
        rows[..., 2] = on | other << 1
    elif kernel.startswith("constant"):
        rows[..., 2] = 1  # the compiler loads in all lanes
    else:
        rows[..., 0] %= OWN_BYTES
        number, pick = np.arange(count)[:, None], rng.integers(6, size=(count, 32))
        if kernel in ("add4", "max4", "cas4"):
            space = np.where(number % 2, pick % 2, number // 2 % 2)
        elif width <= 4:  # never global and local memory in one request
            space = np.where(number % 2, pick % 2 + number // 2 % 2, number // 2 % 3)
        else:
            space = np.where(number % 2, pick % 3, number // 2 % 3)
        rows[..., 2] = on | space << 1
    return rows.reshape(LAUNCHES, DIGITS, 32, 4)


def times_of_blocks() -> np.ndarray:
    """How often each block executes each row, uint32 [blocks, digits]; in all BASE**digit."""
    times = np.zeros((BLOCKS, DIGITS), np.uint32)
    for digit in range(DIGITS):
        whole = BASE**digit
        times[0 if whole < BLOCKS else slice(None), digit] = whole if whole < BLOCKS else whole // BLOCKS
    return times


def launches(cubin: Path, plan: Path) -> None:
    """Under ncu, for each kernel of the plan: a launch that executes nothing, then one for each table."""
    from cupyx.profiler import profile as measured  # type: ignore[import-not-found,unused-ignore]

    cupy = load_cupy()
    module = cupy.RawModule(path=str(cubin))
    memory, result = cupy.zeros(2 * MEMORY_BYTES, np.uint8), cupy.zeros(32, np.uint32)
    start = np.uint64(-(-memory.data.ptr // 4096) * 4096)
    for kernel, tables in np.load(plan).items():
        function = module.get_function(kernel)
        for number, table in enumerate([tables[0], *tables]):
            times = times_of_blocks() * np.uint32(number > 0)
            given = (cupy.asarray(table), cupy.asarray(times), np.int32(DIGITS), start, result, np.int32(0))
            cupy.cuda.Device().synchronize()
            with measured():
                function((BLOCKS,), (32,), given)
                cupy.cuda.Device().synchronize()


def record_arrays(cubin: Path, folder: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Name and contents of each array; kernels with the same metrics are measured in one run."""
    rng, profiler = np.random.default_rng(SEED), find_profiler()
    tables = {kernel: table_of(kernel, rng) for kernel in KERNELS}
    plan, report = folder / "plan.npz", folder / f"report{REPORT_SUFFIX}"
    for metrics in dict.fromkeys(metrics for _, metrics in KERNELS.values()):
        kernels = [kernel for kernel in KERNELS if KERNELS[kernel][1] == metrics]
        given: dict[str, Any] = {kernel: tables[kernel] for kernel in kernels}
        np.savez(plan, **given)
        what = ("--cache-control", "none", "--metrics", ",".join(metrics))
        profile(
            profiler,
            report,
            what,
            [sys.executable, "-m", "lab.record_requests", "--run", str(cubin), str(plan)],
        )
        counted = [[one.counters[name].value for name in metrics] for one in read_code_report(report)]
        of_kernels = np.array(counted, np.int64).reshape(len(kernels), 1 + LAUNCHES, len(metrics))
        for kernel, (idle, *found) in zip(kernels, of_kernels, strict=True):
            yield f"{kernel}_tables", tables[kernel]
            yield f"{kernel}_metrics", np.array(metrics)
            yield f"{kernel}_counters", np.array(found) - idle
            print(kernel, flush=True)


def main() -> None:
    """Measures, and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--cubin", type=Path)
    parser.add_argument("--run", nargs=2, metavar=("CUBIN", "PLAN"))
    given = parser.parse_args()
    if given.run:
        launches(*map(Path, given.run))
        return
    device = this_device()
    with tempfile.TemporaryDirectory() as scratch:
        cubin = given.cubin or Path(scratch) / "requests.cubin"
        if not given.cubin:
            subprocess.run(["nvcc", "-arch=sm_90", "-cubin", str(SOURCE), "-o", str(cubin)], check=True)
        path = given.folder / device.slug / "requests.npz"
        arrays = dict(record_arrays(cubin, Path(scratch)))
        write_arrays(arrays, path, device, ncu=find_profiler().version, base=BASE)
    print(f"recorded: {path}")


if __name__ == "__main__":
    main()
