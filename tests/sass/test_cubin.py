"""What a cubin says about its kernels, against sources that say it too; damaged files end in one error."""

from __future__ import annotations

import random
import shutil
import struct

import pytest

from memsim.compile.cuda_source import compile_cubin
from memsim.errors import MemsimError
from memsim.isa.program import Parameter, Pointer
from memsim.sass.cubin import Cubin, read_cubin
from memsim.sass.elf import Relocation

SOURCE = """\
__constant__ float table[64] = {1, 2, 3};
__device__ int counter = 7;
__device__ float buffer[1024];
__device__ float *pointer = buffer + 3;
struct Arguments { float *p; int n; float q[7]; };
__noinline__ __device__ float helper(float x) { return x / (x * x + 1.0f); }

extern "C" __global__ void __launch_bounds__(256) first(float *x, int n, char c, double d)
{
    __shared__ float a[128];
    __shared__ double b[17];
    const int t = threadIdx.x;
    a[t] = x[t];
    b[t % 17] = d;
    __syncthreads();
    x[t] = a[t ^ 1] + b[(t + 1) % 17] + table[t & 63] + buffer[t] + *pointer + c;
    if (n == 0) atomicAdd(&counter, 1);
}
extern "C" __global__ void CLUSTER second(Arguments s, long long n)
{
    float local[40];
    for (int i = 0; i < 40; i++) local[i] = s.p[i] * s.q[i % 7];
    s.p[n / threadIdx.x] = helper(local[s.n]);
}
extern "C" __global__ void third() {}
"""
CLUSTER = ["-DCLUSTER=__cluster_dims__(2)"]

try:
    CUBIN = compile_cubin(SOURCE, CLUSTER).cubin
except MemsimError as error:
    pytest.skip(error.message, allow_module_level=True)


@pytest.fixture(scope="module")
def cubin() -> Cubin:
    return read_cubin(CUBIN)


def test_kernels_are_in_the_order_of_the_file(cubin: Cubin) -> None:
    assert set(cubin.kernels) == {"first", "second", "third"}
    names = [CUBIN.index(b".text." + name.encode()) for name in cubin.kernels]
    assert names == sorted(names)


def test_the_chip_and_the_compiler(cubin: Cubin) -> None:
    assert cubin.arch == "sm_90"
    assert cubin.compiler is not None and cubin.compiler.startswith("ptxas 1")
    assert read_cubin(compile_cubin(SOURCE, CLUSTER, arch="sm_90a").cubin).arch == "sm_90a"


def test_parameters(cubin: Cubin) -> None:
    first, second, third = (cubin.kernels[name] for name in ("first", "second", "third"))
    assert first.parameters == (
        Parameter("param_0", "b64", 8, 8, 0),
        Parameter("param_1", "b32", 4, 4, 8),
        Parameter("param_2", "b8", 1, 1, 12),
        Parameter("param_3", "b64", 8, 8, 16),
    )
    assert (first.parameter_base, first.parameter_size) == (0x210, 24)
    assert [(p.offset, p.size) for p in second.parameters] == [(0, 40), (40, 8)]
    assert (third.parameters, third.parameter_base, third.parameter_size) == ((), 0x210, 0)
    assert len(first.constants[0]) == 0x210 + 24 and not any(first.constants[0])


def test_memory_and_launch_bounds(cubin: Cubin) -> None:
    first, second, third = (cubin.kernels[name] for name in ("first", "second", "third"))
    assert (first.reserved_shared, first.static_shared) == (0x400, 0x400 + 128 * 4 + 17 * 8)
    assert third.static_shared == 0x400
    assert (first.local_bytes, second.local_bytes) == (0, 160)
    assert 0 < third.registers <= first.registers < 255
    assert (first.max_threads, second.max_threads, first.required_threads) == ((256, 1, 1), None, None)
    assert (first.cluster, second.cluster) == (None, (2, 1, 1))


def test_helpers_lie_behind_their_kernel(cubin: Cubin) -> None:
    second = cubin.kernels["second"]
    assert any("helper" in name for name in second.functions)
    assert any("div_s64" in name for name in second.functions)
    assert all(0 < offset < len(second.code) and offset % 16 == 0 for offset in second.functions.values())
    assert cubin.kernels["first"].functions == {}


def test_variables_and_pointers_to_them(cubin: Cubin) -> None:
    variables = {variable.name: variable for variable in cubin.variables}
    assert variables["counter"].init == struct.pack("<i", 7)
    assert variables["buffer"].size == 4096 and variables["buffer"].init is None
    assert variables["pointer"].pointers == (Pointer(0, "buffer", 12),)
    assert not variables["counter"].pointers and not variables["buffer"].pointers


def test_constants(cubin: Cubin) -> None:
    bank = cubin.kernels["first"].constants[3]
    assert struct.pack("<4f", 1.0, 2.0, 3.0, 0.0) in bank and len(bank) >= 256


def test_code_waits_for_addresses(cubin: Cubin) -> None:
    """As immediates of instructions, or, as of CUDA 12.3, in constant bank 4."""
    first = cubin.kernels["first"]
    symbols = {relocation.symbol for relocation in first.relocations}
    symbols |= {each.symbol for each in first.pointers.get(4, ())}
    assert {"buffer", "counter", "pointer"} <= symbols
    assert all(relocation.offset < len(first.code) for relocation in first.relocations)
    assert isinstance(first.relocations[:1], tuple)


def test_the_ptx_is_in_it(cubin: Cubin) -> None:
    assert cubin.ptx is not None
    assert cubin.ptx.startswith(".version")
    assert "\n.target sm_90\n" in cubin.ptx and ".entry first(" in cubin.ptx


@pytest.mark.some(1)
@pytest.mark.parametrize(("arch", "base"), [("sm_75", 0x160), ("sm_80", 0x160), ("sm_89", 0x160)])
def test_older_chips_reserve_nothing(arch: str, base: int) -> None:
    first = read_cubin(compile_cubin(SOURCE, ["-DCLUSTER="], arch=arch).cubin).kernels["first"]
    assert (first.parameter_base, first.reserved_shared) == (base, 0)
    assert first.static_shared == 128 * 4 + 17 * 8


@pytest.mark.some(1)
@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_90a", "sm_100a", "sm_120"])
def test_what_nvcc_writes(arch: str) -> None:
    large = """
struct Large { int a[1352]; };
extern "C" __global__ void large(int *p, Large b) { *p = b.a[*p]; }
"""
    options = ["-DCLUSTER="] if arch == "sm_80" else CLUSTER
    compiled = compile_cubin(SOURCE + large, options, arch=arch, compiler="nvcc")
    read = read_cubin(compiled.cubin)
    assert read.arch == arch
    assert read.compiler == compiled.compiler.replace("nvcc", "ptxas")
    first = read.kernels["first"]
    assert [parameter.offset for parameter in first.parameters] == [0, 8, 12, 16]
    assert first.static_shared - first.reserved_shared == 128 * 4 + 17 * 8
    assert {"buffer", "counter", "pointer"} <= {each.symbol for each in first.pointers.get(4, ())}
    assert read.kernels["large"].parameters[1] == Parameter("param_1", "b8", 5408, 5408, 8)
    assert read.kernels["second"].local_bytes == 160


# --- files that are not as they should be


def test_what_is_no_cubin_is_told() -> None:
    for data, message in [
        (b"", "not an ELF file"),
        (b"\x50\xed\x55\xba" + bytes(60), "not an ELF file"),
        (b"\x7fELF\x01\x01" + bytes(60), "not a 64-bit"),
        (b"\x7fELF\x02\x01" + bytes(12) + struct.pack("<HI", 62, 1) + bytes(60), "machine 62"),
    ]:
        with pytest.raises(MemsimError, match=message) as caught:
            read_cubin(data, file="x.cubin")
        assert (caught.value.exit_code, caught.value.file) == (2, "x.cubin")


def test_a_file_that_is_cut_off() -> None:
    for size in range(64, len(CUBIN), len(CUBIN) // 50):
        with pytest.raises(MemsimError, match="damaged or truncated"):
            read_cubin(CUBIN[:size])


def test_flipped_bytes_make_no_traceback() -> None:
    rng = random.Random(0)
    refused = 0
    for _ in range(300):
        data = bytearray(CUBIN)
        for _ in range(rng.choice([1, 4, 40])):
            tables = rng.random() < 0.6  # sections, symbols and headers are at the end
            data[rng.randrange(len(data) - 4000 if tables else 4, len(data))] = rng.randrange(256)
        try:
            read_cubin(bytes(data))
        except MemsimError:
            refused += 1
    assert refused > 30


def test_a_relocation_is_a_record() -> None:
    assert Relocation(16, "buffer", 0, 0x38) == Relocation(16, "buffer", 0, 0x38)
