"""Elements of arrays: numbers, vectors and structs, as the compiler lays them out."""

from __future__ import annotations

import pytest

from memsim.compile.cuda_source import compile_cubin
from memsim.errors import MemsimError
from memsim.source.elements import element, struct_argument

SOURCE = """
#define N 3
struct Particle { float x, y, z; int id; static const int kind = 1; };
struct Point { float x, y, z; __device__ float norm() const { return x * x + y * y + z * z; } };
struct alignas(16) Wide { float a, b; };
struct __align__(8) Pair { float a, b; };
typedef struct { double d; char c; } Old;
namespace g { struct Mixed { float3 x; float w; Wide v[N]; }; }
struct Matrix { float x[N][N + 1]; };
struct Node { Node *next; int value; };
struct Pixel { unsigned char r, g, b; };
struct Shorts { short a; short b[3]; };
struct Quads { float4 a; int2 b; };
struct Derived : Pair { int more; };
struct Flags { int a : 3, b : 5; };
struct Either { union { int c; float d; }; int a; };
struct Virtual { virtual void f(); int a; };
template <typename T> struct Some { T a; };
"""
LAID_OUT = {
    "Particle": ("i32", 4),
    "Point": ("f32", 3),
    "Wide": ("i32", 4),
    "Pair": ("f32", 2),
    "Old": ("i32", 4),
    "g::Mixed": ("i32", 16),
    "Matrix": ("f32", 12),
    "Node": ("i32", 4),
    "Pixel": ("u8", 3),
    "Shorts": ("i16", 4),
    "Quads": ("i32", 8),
    "float": ("f32", 1),
    "float3": ("f32", 3),
    "float4": ("f32", 4),
    "double2": ("f64", 2),
    "uchar4": ("u8", 4),
    "unsigned long long": ("u64", 1),
}


@pytest.mark.parametrize("name", LAID_OUT)
def test_numbers_side_by_side(name: str) -> None:
    found = element(SOURCE, name)
    assert found is not None
    assert (found.short, found.count) == LAID_OUT[name]


@pytest.mark.parametrize("name", ["Derived", "Flags", "Virtual", "Either", "Some", "Nowhere"])
def test_what_has_no_layout_here(name: str) -> None:
    assert element(SOURCE, name) is None


def test_packed_structs_have_none() -> None:
    assert element("struct P { char a; int b; };", "P") is not None
    assert element("#pragma pack(1)\nstruct P { char a; int b; };", "P") is None


def test_sizes_are_the_compilers() -> None:
    code = SOURCE
    for name in LAID_OUT:
        found = element(SOURCE, name)
        assert found is not None
        code += f'static_assert(sizeof({name}) == {found.size}, "{name}");\n'
        code += f'static_assert(alignof({name}) == {found.alignment}, "{name}");\n'
    try:
        compile_cubin(code + "__global__ void k() {}\n")
    except MemsimError as error:
        if "not installed" not in error.message:
            raise
        pytest.skip(error.message)


def test_a_template_s_parameter_is_no_struct() -> None:
    """`class Op` and a number behind it, before a brace."""
    text = "template <template <class> class Op, class T = size_t> void k(const T *in, size_t n) {}"
    assert struct_argument(text, "size_t", "n") is None
    assert struct_argument("struct size { int n; };" + text, "size", "n") == ("i32(n.n)", ("n.n",))
