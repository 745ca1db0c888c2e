"""Parameters of kernels and shapes of shared arrays, as CUDA source declares them."""

from __future__ import annotations

import pytest

from memsim.source.kernels import kernels, parameters, template_constants
from memsim.source.values import ArrayShape, array_shape, declarations

CODE = """\
#define HALF (BM / 2)  // a macro
constexpr int BM = 128, BK = 8;
const int PAD = 4, unknown = run_time();
template <int T> __global__ void k() {
    __shared__ __align__(16) float s_a[BK][BM + PAD];   /* float wrong[1]; */
    __shared__ float2 pairs[2][HALF];
    __shared__ unsigned char bytes[3 * 7];
    __shared__ float of_template[T][4], of_unknown[unknown];
    float local[8];
}
"""


@pytest.mark.parametrize(
    "attributes",
    ["", "__launch_bounds__(128, 2)", "__cluster_dims__(2)", "__cluster_dims__(2, 1) __launch_bounds__(64)"],
)
def test_parameters_are_found_behind_attributes(attributes: str) -> None:
    text = f"__global__ void other(int x) {{}}\n__global__ void {attributes} k(const float *a, int n) {{}}"
    assert parameters(text, "_Z1kPKfi") == (("const float *", "a"), ("int", "n"))
    assert parameters(text, "other") == (("int", "x"),)
    assert parameters(text, "none") == ()


def test_templates_of_kernels_are_known() -> None:
    text = """
template <typename T, int N = 4> __global__ void __launch_bounds__(64) scale(T *a) {}
template <typename T> __device__ T twice(T a) { return 2 * a; }
__global__ void plain(float *a) { a[0] = twice(a[0]); }
template __global__ void made<float>(float *a);
// template <typename T> __global__ void gone(T *a) {}
"""
    assert [kernel.plain for kernel in kernels(text) if kernel.template] == ["scale"]


@pytest.mark.parametrize(
    ("name", "size", "extents", "element"),
    [("s_a", 8 * 132 * 4, (8, 132), 4), ("pairs", 2 * 64 * 8, (2, 64), 8), ("bytes", 21, (21,), 1)],
)
def test_extents_are_worked_out(name: str, size: int, extents: tuple[int, ...], element: int) -> None:
    assert array_shape(CODE, name, size) == ArrayShape(extents, element)
    assert array_shape(CODE, name, size + 4) is None


@pytest.mark.parametrize("name", ["of_template", "of_unknown", "local", "wrong", "nothing"])
def test_what_is_not_known_is_no_shape(name: str) -> None:
    assert all(array_shape(CODE, name, size) is None for size in (4, 16, 32, 64))


def test_an_instance_of_a_template_gives_extents_and_elements() -> None:
    text = """
template <typename T, int ROWS, int COLUMNS = 4> __global__ void tile(T *p) {
    __shared__ T t[ROWS][COLUMNS];
    __shared__ T whole[2][8];
}
"""
    known = template_constants(text, "tile<double, 16, 33>")
    assert known == {"ROWS": 16, "COLUMNS": 33}
    assert array_shape(text, "t", 16 * 33 * 8, known) == ArrayShape((16, 33), 8)
    assert array_shape(text, "t", 16 * 33 * 8) is None
    assert array_shape(text, "whole", 2 * 8 * 2) == ArrayShape((2, 8), 2)
    assert array_shape(text, "whole", 2 * 8 * 3) is None  # no element has 3 bytes
    assert template_constants(text, "tile") == template_constants(text, "other<1>") == {}


def test_an_array_whose_size_the_launch_gives_is_declared_and_has_no_shape() -> None:
    text = "extern __shared__ float all[];\n"
    assert array_shape(text, "all", 4096) is None
    (found,) = declarations(text, "all", 4096)
    assert (found.dynamic, found.shape) == (True, ArrayShape((1024,), 4))
    assert text[slice(*found.name)] == "all"


def test_a_name_that_is_defined_twice_is_no_constant() -> None:
    once = "const int N = 4;\n__shared__ int tile[N];"
    assert array_shape(once, "tile", 16) == ArrayShape((4,), 4)
    before = "void f() { const int N = 8; }\n"
    assert array_shape(before + once, "tile", 16) == ArrayShape((4,), 4)  # that of a function is out of scope
    assert array_shape(before + "__shared__ int tile[N];\n" + once, "tile", 32) is None


def test_a_kernel_whose_body_cannot_be_parsed_has_its_parameters() -> None:
    text = (
        "__global__ void k(const float *a, int n) { START if (n) { LOOP(1) f(a); } else {\n#pragma unroll 1\n"
    )
    text += "for (;;) f(a); } }\ntemplate <typename T> // not __global__\n__device__ T f(T a) { return a; }\n"
    assert [kernel.signature for kernel in kernels(text)] == ["k(const float *a, int n)"]
    assert parameters(text, "k") == (("const float *", "a"), ("int", "n"))


def test_an_instance_in_a_namespace_is_one_of_the_template() -> None:
    text = "namespace ns { template <typename T, int N> __global__ void k(T *a) { a[N] = 1; } }"
    assert template_constants(text, "ns::k<float, 8>") == {"N": 8}
    assert parameters(text, "_ZN2ns1kIfLi8EEEvPT_", "ns::k<float, 8>") == (("float *", "a"),)
    assert template_constants(text, "ns::other<float, 8>") == {}


@pytest.mark.some(1)
@pytest.mark.parametrize("opened", ["{", "namespace a {", "\n#if A\n"])
def test_what_is_nested_by_the_thousand_hides_no_kernel_in_front_of_it(opened: str) -> None:
    closed = "\n#endif\n" if "#" in opened else "}"
    nested = f"{opened * 2000} if ( else {closed * 2000}"
    assert parameters(f"__global__ void k(float *a) {{ }}\n{nested}\n", "k") == (("float *", "a"),)
