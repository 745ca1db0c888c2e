"""Kernels that wait for their whole grid by functions of CUDA's device runtime, as those of Numba do."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memsim.cli import main

pytestmark = [
    pytest.mark.skipif(
        sys.platform != "linux" or not shutil.which("cc"), reason="needs Linux and a C compiler"
    ),
    pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc"),
]
#: Each row is the one before, turned round, plus one.
SOURCE = """\
#include <cstdio>
#include <cuda_device_runtime_api.h>
__global__ void rows(int *m, int count)
{
    unsigned long long grid = cudaCGGetIntrinsicHandle(SCOPE);
    int columns = gridDim.x * blockDim.x, column = blockIdx.x * blockDim.x + threadIdx.x;
    for (int row = 1; row < count; row++) {
        m[row * columns + column] = m[(row - 1) * columns + columns - 1 - column] + 1;
        WAIT;
    }
}
int main()
{
    int *m, count = 8;
    cudaMallocManaged(&m, count * 512 * sizeof(int));
    cudaMemset(m, 0, count * 512 * sizeof(int));
    void *arguments[] = {&m, &count};
    cudaLaunchCooperativeKernel((void *)rows, dim3(4), dim3(128), arguments, 0, 0);
    if (cudaDeviceSynchronize() != cudaSuccess) return 3;
    for (int i = 0; i < count * 512; i++) if (m[i] != i / 512) return 1;
    return 0;
}
"""
WAITS = "if (cudaCGSynchronize(grid, 0) != cudaSuccess) return"


def program(folder: Path, wait: str, scope: str = "cudaCGScopeGrid") -> str:
    source = folder / "rows.cu"
    source.write_text(SOURCE.replace("WAIT", wait).replace("SCOPE", scope))
    command = ["nvcc", "-arch=sm_90", "-rdc=true", "-cudart", "shared", source, "-o", folder / "rows"]
    subprocess.run(command, check=True)
    return str(folder / "rows")


def test_all_blocks_wait_for_each_other(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["exec", "--sanitize", "--", program(tmp_path, WAITS)]) == 0
    assert "rows: no error found" in capfd.readouterr().err


@pytest.mark.slow
def test_without_it_there_is_a_race(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    main(["exec", "--sanitize", "--", program(tmp_path, "(void)grid")])
    assert "rows: race: allocation 0" in capfd.readouterr().err


@pytest.mark.slow
def test_threads_that_do_not_come_are_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["exec", "--", program(tmp_path, f"if (column == 5) while (true) __syncthreads(); {WAITS}")])
        == 3
    )
    assert "a grid barrier that some threads never reach" in capfd.readouterr().err


@pytest.mark.slow
def test_what_is_no_grid_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["exec", "--", program(tmp_path, WAITS, "cudaCGScopeInvalid")]) == 3
    assert "cudaCGSynchronize of something else than the grid" in capfd.readouterr().err
