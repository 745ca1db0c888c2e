"""How long `memsim serve` takes to judge new texts of kernels, and to compare many: a row for each kernel.

Medians of three texts, whose machine code was not seen before, by a server that has judged one. Processor
time is that of all processes; a part of it is NVIDIA's compiler and disassembler, which every text needs
once, and its cure once more.

python -m tests.benchmarks.serve_speed
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from memsim.cli import serve
from memsim.data import data_folder

TEXTS = 100
REDUCE = """\
__global__ void reduce(const float *in, float *out, int n) {
    __shared__ float part[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    part[t] = i < n ? in[i] : 0.0f;
    __syncthreads();
    for (int s = 1; s < 256; s *= 2) {
        int at = 2 * s * t;
        if (at < 256) part[at] += part[at + s];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0];
}
"""
ARRAY, SIZE = " --arg 'f32[1048576]'", " --arg 1024"
SGEMM = f"{3 * ARRAY}{3 * SIZE}"
#: The options of each kernel; those without a text here are the catalogue's.
OPTIONS = {
    "transpose_naive": f"--grid 32,32 --block 32,32{2 * ARRAY}{2 * SIZE}",
    "reduce": f"--grid 4096 --block 256{ARRAY} --arg 'f32[4096]' --arg 1048576",
    "guide_v3": f"--grid 64,64 --block 16,16{SGEMM}",
    "kernel_v3": f"--grid 8,8 --block 16,16{SGEMM}",
    "kernel_v4_colmajor": f"--grid 8,8 --block 16,16{SGEMM}",
    "kernel_v5": f"--grid 8,8 --block 16,16{SGEMM}",
}


def measured(work: Callable[[], object]) -> tuple[float, ...]:
    """Seconds that some work takes: of all processors, of those the tools', of the clock."""
    before, began = os.times(), time.perf_counter()
    work()
    spent = [after - was for after, was in zip(os.times()[:4], before[:4])]
    return sum(spent), sum(spent[2:]), time.perf_counter() - began


def new(text: str, number: int) -> str:
    """Another text that does the same, whose machine code was not seen before."""
    return re.sub(r"(\bint \w+\)\s*\{)", rf"\1 if (gridDim.z == {number + 2}) return;", text, count=1)


def judged(name: str, text: str) -> None:
    """Prints a row: with the cure, and without."""
    file = Path(f"{name}.cu")
    file.write_text(text)
    serve.judge(file.name, new(text, 0), OPTIONS[name])  # the file itself is analyzed, and all is imported
    shown = [f"{name:20}"]
    for first, cures in ((1, True), (4, False)):
        texts = [new(text, number) for number in range(first, first + 3)]
        runs = [measured(partial(serve.judge, file.name, one, OPTIONS[name], cures)) for one in texts]
        shown += [f"{median(column):8.2f}" for column in zip(*runs)]
    print(*shown, flush=True)


def main() -> None:
    """Judges texts of each kernel, and compares many of one."""
    with TemporaryDirectory() as folder:
        os.environ["MEMSIM_CACHE_DIR"] = folder
        os.chdir(folder)
        kernels = data_folder("kernels")
        for header in kernels.glob("*.cuh"):
            Path(header.name).write_text(header.read_text())
        print(f"{'seconds':20}     cure: processor, tools, clock   without: processor, tools, clock")
        for name in OPTIONS:
            judged(name, REDUCE if name == "reduce" else (kernels / f"{name}.cu").read_text())
        text = Path("transpose_naive.cu").read_text()
        texts = {str(number): new(text, number) for number in range(10, 10 + TEXTS)}
        run = measured(lambda: serve.compare_texts("transpose_naive.cu", texts, OPTIONS["transpose_naive"]))
        print(f"compare_texts of {TEXTS} texts: processor {run[0]:.1f}, clock {run[2]:.1f}")


if __name__ == "__main__":
    main()
