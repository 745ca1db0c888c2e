"""Elements of arrays: numbers and vectors, by whatever name a source gives them."""

from __future__ import annotations

import pytest

from memsim.compile.cuda_source import compile_cubin
from memsim.errors import MemsimError
from memsim.source.elements import element, struct_argument

SOURCE = """
using real = float;
typedef int4 quad;
struct Particle { float x, y, z; int id; };
"""
LAID_OUT = {
    "real": ("f32", 1),
    "quad": ("i32", 4),
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


@pytest.mark.parametrize("name", ["Particle", "Nowhere"])
def test_what_has_no_layout_here(name: str) -> None:
    assert element(SOURCE, name) is None


def test_sizes_are_the_compilers() -> None:
    code = SOURCE
    for name in LAID_OUT:
        found = element(SOURCE, name)
        assert found is not None
        code += f'static_assert(sizeof({name}) == {found.size}, "{name}");\n'
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
    assert struct_argument("struct size { int n; };" + text, "size", "n") == ("n", ("n",))
    assert struct_argument(text, "float2", "by") == ("f32(by.x,by.y)", ("by.x", "by.y"))
