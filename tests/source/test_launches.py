"""Kernels and launches as CUDA source writes them."""

from __future__ import annotations

import pytest

from memsim.source.kernels import kernels
from memsim.source.launches import instances_of, launches

CODE = """\
#define WIDTH 32
namespace ns {
template <typename T, int N = 4>
__global__ void __launch_bounds__(256) copy(const T *__restrict__ in, T *out, const int n) {}
}
extern "C" __global__ void plain(unsigned int *x, float scale, float grid[]) {}
__device__ int helper(int x) { return x; }
#define LAUNCH(kernel, blocks, ...) kernel<<<blocks, WIDTH * 2>>>(__VA_ARGS__)
void run(int n) {
    constexpr int tile = 8;
    float *a, *b;
    dim3 grid((n + 31) / 32, 2), block(WIDTH, tile);
    ns::copy<float, tile><<<grid, block, tile * sizeof(float), stream>>>(a, b, n);
    ns::copy<<<4, 128>>>(a, b, n);
    LAUNCH(plain, 7, b, 1.5f, a);
}
template <typename T> void generic(T *a) { ns::copy<T><<<1, 32>>>(a, a, 1); }
"""


def test_kernels_have_their_c_parameters() -> None:
    copy, plain = kernels(CODE)
    assert copy.signature == "ns::copy<typename T, int N>(const T *in, T *out, const int n)"
    assert (copy.line, copy.plain, copy.template[1].default) == (4, "copy", "4")
    assert [(parameter.type, parameter.name) for parameter in plain.parameters] == [
        ("unsigned int *", "x"),
        ("float", "scale"),
        ("float *", "grid"),
    ]
    assert kernels("int main() {}") == ()


def test_launches_say_template_grid_block_shared_and_names() -> None:
    first, second, macro, generic = launches(CODE)
    assert (first.name, first.line) == ("ns::copy<float, 8>", 13)
    assert [(size.text, size.value) for size in first.grid] == [("(n + 31) / 32", None), ("2", 2)]
    assert [size.value for size in first.block] == [32, 8]
    assert first.shared is not None and first.shared.value == 32
    assert first.arguments == ("a", "b", "n")
    assert (second.name, [size.value for size in second.block]) == ("ns::copy<float>", [128])
    assert (macro.name, macro.line, macro.arguments) == ("plain", 15, ("b", "1.5f", "a"))
    assert ([size.value for size in macro.grid], [size.value for size in macro.block]) == ([7], [64])
    assert (generic.template, generic.known) == (("T",), False)


def test_instances_are_those_that_mean_the_same_everywhere() -> None:
    assert instances_of(CODE) == ("ns::copy<float, 8>", "ns::copy<float>")


@pytest.mark.parametrize("text", ["", "// k<<<1, 2>>>()", "int x = 1 <<< 2;", "void f() { k<<<>>>(); }"])
def test_what_is_no_launch_is_none(text: str) -> None:
    assert all(launch.plain == "k" for launch in launches(text))
    assert instances_of(text) == ()
