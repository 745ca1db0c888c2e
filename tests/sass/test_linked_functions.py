"""Kernels that call functions of other files, which `nvcc -rdc=true` compiles separately and links."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import memsim
from memsim.sass.cubin import Cubin, read_cubin

pytestmark = pytest.mark.skipif(
    not (shutil.which("nvcc") and shutil.which("nvlink")), reason="needs nvcc and its linker"
)
KERNELS = """\
extern __device__ int twice_square(int x);
extern __device__ int digits(int x);
extern __device__ int strided(const int *a, int i);
typedef int (*Function)(int);
extern __device__ Function functions[2];

extern "C" __global__ void called(int *o) { o[threadIdx.x] = twice_square(threadIdx.x) + 1; }
extern "C" __global__ void recursive(int *o) { o[threadIdx.x] = digits(threadIdx.x * threadIdx.x); }
extern "C" __global__ void by_pointer(int *o) { o[threadIdx.x] = functions[threadIdx.x & 1](threadIdx.x); }
extern "C" __global__ void loads(const int *a, int *o) { o[threadIdx.x] = strided(a, threadIdx.x); }
extern "C" __global__ void alone(int *o) { o[threadIdx.x] = 3; }
"""
FUNCTIONS = """\
__device__ __noinline__ int square(int x) { return x * x; }
__device__ int twice_square(int x) { return square(x + 1) * 2; }
__device__ __noinline__ int digits(int x) { return x < 10 ? 1 : 1 + digits(x / 10); }
__device__ int strided(const int *a, int i) { return a[8 * i]; }
__device__ int negated(int x) { return -x; }
typedef int (*Function)(int);
__device__ Function functions[2] = {square, negated};
"""
THREADS = np.arange(64, dtype=np.int32)


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("linked")
    (folder / "kernels.cu").write_text(KERNELS)
    (folder / "functions.cu").write_text(FUNCTIONS)
    compiler = ["nvcc", "-arch=sm_90"]
    subprocess.run([*compiler, "-lineinfo", "-dc", "kernels.cu", "functions.cu"], cwd=folder, check=True)
    objects = ["kernels.o", "functions.o"]
    subprocess.run([*compiler, "-dlink", "-cubin", *objects, "-o", "all.cubin"], cwd=folder, check=True)
    return folder / "all.cubin"


@pytest.fixture(scope="module")
def cubin(linked: Path) -> Cubin:
    return read_cubin(linked.read_bytes())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("called", 2 * (THREADS + 1) ** 2 + 1),
        ("recursive", [len(str(t * t)) for t in range(64)]),
        ("by_pointer", np.where(THREADS & 1, -THREADS, THREADS**2)),
        ("alone", np.full(64, 3)),
    ],
)
def test_they_compute_what_the_sources_say(linked: Path, name: str, expected: object) -> None:
    out = np.zeros(64, np.int32)
    memsim.run(memsim.load(linked)[name], 1, 64, [out])
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("name", ["called", "recursive", "by_pointer", "alone"])
def test_nothing_of_them_is_uncertain_or_wrong(linked: Path, name: str) -> None:
    launch = memsim.load(linked)[name], 1, 64, [memsim.ArrayArg((64,), "int32")]
    assert memsim.analyze(*launch).trace.uncertain == ()
    assert not memsim.sanitize(*launch).findings


def test_accesses_of_a_linked_function_are_counted_at_its_line(linked: Path) -> None:
    given, out = memsim.ArrayArg((512,), "int32"), memsim.ArrayArg((64,), "int32")
    analysis = memsim.analyze(memsim.load(linked)["loads"], 1, 64, [given, out])
    assert analysis.trace.uncertain == ()
    load, store = sorted(analysis.sites, key=lambda site: site.array)
    assert (load.array, load.source) == (
        "a",
        "__device__ int strided(const int *a, int i) { return a[8 * i]; }",
    )
    assert (store.array, load.sectors, store.sectors) == ("o", 64, 8)
    assert analysis.totals["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 64


def test_only_what_a_kernel_refers_to_is_linked_to_it(cubin: Cubin) -> None:
    always = {"_Z6squarei", "_Z7negatedi"}  # of which the module's table has the addresses
    of = {name: {part for part, _ in kernel.linked} for name, kernel in cubin.kernels.items()}
    assert of["called"] == always | {"_Z12twice_squarei"}
    assert of["recursive"] == always | {"_Z6digitsi"}
    assert of["alone"] == always


def test_functions_begin_where_their_code_does(cubin: Cubin) -> None:
    kernel = cubin.kernels["called"]
    for name, start in kernel.linked:
        assert (kernel.functions[name], start % 128) == (start, 0)
        others = [dict(one.linked).get(name, start) for one in cubin.kernels.values()]
        assert set(others) == {start}
        assert any(kernel.code[start : start + 16])
