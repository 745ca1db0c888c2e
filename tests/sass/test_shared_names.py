"""Names of static shared arrays: what PTX says, against the addresses in machine code."""

from __future__ import annotations

import re

import pytest

from memsim.compile.cuda_source import compile_cubin
from memsim.errors import MemsimError
from memsim.sass.cubin import read_cubin
from memsim.sass.disassemble import disassemble
from memsim.sass.shared_names import dynamic_arrays, shared_arrays

PTX = """\
.version 8.0
.target sm_80
.extern .shared .align 16 .b8 dynamic[];
.shared .align 4 .b8 unused[1000]; // shared by nobody
.shared .align 4 .b8 late[20];
.shared .f64 natural[3];
.global .align 4 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
.func second(.param .b64 p);
.func first(.param .b64 p)
{
	.shared .align 8 .b8 of_first[24];
	st.shared.u32 [of_first], 1;
	ret;
}
.func second(.param .b64 p)
{
	.shared .align 1 .b8 of_second[7];
	st.shared.u8 [of_second], 1;
	st.shared.f64 [natural], 0d0000000000000000;
	ret;
}
.visible .entry kernel(.param .u64 p)
{
	.shared .align 4 .b8 mine[10];
	.shared .align 64 .v4 .f32 wide;
	st.shared.u8 [mine], 1; { st.shared.u8 [wide], 1; }
	st.shared.u32 [late], 1;
	call.uni first, (p);
	call.uni second, (p);
	ret;
}
.visible .entry other(.param .u64 p)
{
	st.shared.u32 [dynamic], 1;
	st.shared.u32 [late], 1;
	ret;
}
.visible .entry none(.param .u64 p) { ret; }
"""
# Of the two functions, `second` is declared first; 160 is a multiple of 16.
EXPECTED = [
    ("mine", 0, 10),
    ("wide", 64, 16),
    ("late", 80, 20),
    ("natural", 104, 24),
    ("of_second", 128, 7),
    ("of_first", 136, 24),
]


def test_the_order_of_ptxas() -> None:
    assert shared_arrays(PTX, "kernel", 160) == EXPECTED
    moved = [(name, place + 0x400, size) for name, place, size in EXPECTED]
    assert shared_arrays(PTX, "kernel", 0x400 + 160, 0x400) == moved


def test_only_what_the_kernel_reaches() -> None:
    assert shared_arrays(PTX, "other", 20) == [("late", 0, 20)]
    assert shared_arrays(PTX, "other", 32) == [("late", 0, 20)]  # rounded up for the dynamic array
    assert shared_arrays(PTX, "none", 0) == []
    assert (dynamic_arrays(PTX, "other"), dynamic_arrays(PTX, "kernel")) == (["dynamic"], [])


def test_no_name_is_better_than_a_wrong_one() -> None:
    nameless = [("shared memory", 0x400, 160)]
    for ptx, kernel, size in [
        (PTX, "kernel", 164),  # the total does not match
        (PTX, "absent", 160),
        ("", "kernel", 160),
        (PTX.replace("{ st.shared.u8 [wide], 1; }", ""), "kernel", 160),  # the kernel's own, unused
        (PTX.replace("call.uni first", "call.uni %rd1"), "kernel", 160),
        (PTX.replace("of_first", "mine"), "kernel", 160),
    ]:
        found = shared_arrays(ptx, kernel, 0x400 + size, 0x400)
        assert found == [(*nameless[0][:2], size)]


def test_a_linker_orders_anew() -> None:
    assert shared_arrays(PTX, "kernel", 160, linked=True) == [("shared memory", 0, 160)]
    assert shared_arrays(PTX, "other", 20, linked=True) == [("late", 0, 20)]


SOURCE = """\
extern __shared__ int dynamic[];
__shared__ int of_module[10];
__noinline__ __device__ void inner(int *p, int i)
{
    __shared__ int of_inner[7];
    __shared__ double wide_inner[3];
    of_inner[i] = p[i];
    wide_inner[i] = p[i];
    __syncthreads();
    p[i + 1] = of_inner[i ^ 1] + wide_inner[i ^ 1] + of_module[i ^ 1];
}
template <int N>
__device__ int part(int *p, int i)
{
    __shared__ short of_part[N];
    static __shared__ char bytes[N + 1];
    of_part[i] = p[i];
    bytes[i] = p[i];
    __syncthreads();
    return of_part[i ^ 1] + bytes[i ^ 3];
}
extern "C" __global__ void kernel(int *p)
{
    __shared__ int small[5];
    __shared__ int4 large[6];
    const int i = threadIdx.x;
    small[i] = p[i];
    large[i].x = p[i];
    of_module[i] = p[i];
    __syncthreads();
    p[i + 2] = small[i ^ 1] + large[i ^ 1].x + part<11>(p, i) + part<12>(p, i);
    inner(p, i);
}
"""


def test_machine_code_agrees() -> None:
    """On sm_80 a store names its array's address: `STS [R0.X4+0x80]`."""
    try:
        cubin = read_cubin(compile_cubin(SOURCE, arch="sm_80").cubin)
        listing = disassemble(compile_cubin(SOURCE, arch="sm_80").cubin)
    except MemsimError as error:
        pytest.skip(error.message)
    stores = re.findall(r"STS(\S*) \[\w+(?:\.X\d+)?(?:\+(0x[0-9a-f]+))?\]", listing)
    image = cubin.kernels["kernel"]
    assert cubin.ptx is not None
    arrays = shared_arrays(cubin.ptx, "kernel", image.static_shared, image.reserved_shared)

    def stored(width: str) -> list[int]:
        return sorted(int(at or "0", 16) for store, at in stores if store == width)

    def named(*names: str) -> list[int]:
        return sorted(place for array, place, _ in arrays if any(name in array for name in names))

    assert len(arrays) == len(stores) == 9
    assert stored(".U8") == named("bytes")
    assert stored(".U16") == named("of_part")
    assert stored(".64") == named("wide_inner")
    assert stored("") == named("small", "large", "of_module", "of_inner")
