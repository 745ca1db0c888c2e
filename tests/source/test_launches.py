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
    ns::copy<float><<<4, 128>>>(a, b, n);
    ns::copy<<<4, 256>>>(a, b, n);
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
    first, second, deduced, macro, generic = launches(CODE)
    assert (first.name, first.line) == ("ns::copy<float, 8>", 13)
    assert [(size.text, size.value) for size in first.grid] == [("(n + 31) / 32", None), ("2", 2)]
    assert [size.value for size in first.block] == [32, 8]
    assert first.shared is not None and first.shared.value == 32
    assert first.arguments == ("a", "b", "n")
    assert (second.name, [size.value for size in second.block]) == ("ns::copy<float>", [128])
    assert (deduced.name, deduced.template) == ("ns::copy", ())  # what a compiler deduces is not handled
    assert (macro.name, macro.line, macro.arguments) == ("plain", 16, ("b", "1.5f", "a"))
    assert ([size.value for size in macro.grid], [size.value for size in macro.block]) == ([7], [64])
    assert (generic.template, generic.unknown) == (("T",), {"T"})


@pytest.mark.parametrize(
    ("configuration", "sizes"),
    [
        ("64, 256", (64, 256)),
        ("1 << 6, 1024 >> 2", (64, 256)),
        ("n > 4 ? 64 : 32, 256", (64, 256)),
        ("std::max<int>(64, 8), /* one, two */ 256", (64, 256)),
    ],
)
def test_commas_part_sizes_wherever_there_is_a_sign_for_less(
    configuration: str, sizes: tuple[int, int]
) -> None:
    text = f"void f() {{ const int n = 5; k<<<{configuration}>>>(a, n < 3 ? 1 : 2, /* b, c */ d); }}"
    (found,) = launches(text)
    assert (found.grid[0].value, found.block[0].value) == sizes
    assert found.arguments == ("a", "n < 3 ? 1 : 2", "d")


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        ("float x[]", "float *"),
        ("float x[2][3]", "float *"),
        ("float (*x)[16]", "float *"),
        ("void (*x)(int)", "void *"),
        ("[[maybe_unused]] const float *x", "const float *"),
        ("int x [[maybe_unused]]", "int"),
        ("int x = sizeof(int[4])", "int"),
    ],
)
def test_an_array_is_a_pointer_and_an_attribute_is_none(declared: str, kind: str) -> None:
    (found,) = kernels(f"__global__ void k({declared}) {{}}")
    assert [(parameter.type, parameter.name) for parameter in found.parameters] == [(kind, "x")]


def test_instances_are_those_that_mean_the_same_everywhere() -> None:
    assert instances_of(CODE) == ("ns::copy<float, 8>", "ns::copy<float>")


@pytest.mark.parametrize("text", ["", "// k<<<1, 2>>>()", "int x = 1 <<< 2;", "void f() { k<<<>>>(); }"])
def test_what_is_no_launch_is_none(text: str) -> None:
    assert all(launch.plain == "k" for launch in launches(text))
    assert instances_of(text) == ()


HOST = """\
struct Add {};
template <typename T, int D, int STAGES> __global__ void attention(T *q, int n) {}
template <typename T, int D = 64, int STAGES = (D > 32) ? 1 : 2>
void launch(T *q, int n) {
#ifdef SLOW
    constexpr int rows{D * 2};
#else
    constexpr int rows{D / 8};
#endif
    const int threads = rows * 32;
    attention<T, D, STAGES><<<n / rows, threads, rows * sizeof(T)>>>(q, n);
}
template <int D> void choose(float *q) { launch<float, D>(q, 1024); }
void run(float *q, int d) {
    if (d == 32) choose<32>(q);
    else choose<64>(q);
}
"""


def test_a_template_of_host_functions_launches_what_its_calls_say() -> None:
    (launch,) = launches(HOST)
    assert launch.name == "attention<float, 32, 2>" and not launch.unknown
    assert [size.value for size in launch.block] == [128]
    assert launch.shared is not None and launch.shared.value == 16
    assert instances_of(HOST) == ("attention<float, 32, 2>",)


def test_what_an_explicit_instance_of_a_host_function_says() -> None:
    code = (
        HOST.partition("template <int D> void choose")[0] + "template void launch<double, 16>(double *, int);"
    )
    assert instances_of(code) == ("attention<double, 16, 2>",)


def test_a_parameter_that_no_call_says_is_unknown() -> None:
    code = HOST.partition("template <int D> void choose")[0] + "void run(float *q) { launch(q, 1); }"
    (launch,) = launches(code)
    assert (launch.name, launch.unknown) == ("attention<T, 64, 1>", {"T"})
    assert instances_of(code) == ()


def test_functions_that_call_each_other_end() -> None:
    code = """
template <int N> __global__ void k(int *x) {}
template <int N> void one(int *x);
template <int N> void two(int *x) { one<N>(x); }
template <int N> void one(int *x) { two<N>(x); k<N><<<1, 32>>>(x); }
"""
    (launch,) = launches(code)
    assert launch.unknown == {"N"}


def test_a_macros_launch_sees_the_constants_around_it() -> None:
    code = """
template <int M, int STAGES> __global__ void k(float *x) {}
#define LAUNCH(stages) k<M, (stages)><<<1, THREADS * (stages)>>>(x)
void run(float *x, int stages) {
    const int M = 16;
    constexpr int THREADS = 64;
    if (stages) {
        switch (stages) {
        case 2: LAUNCH(2); break;
        case 3: LAUNCH(3); break;
        }
    }
}
"""
    assert instances_of(code) == ("k<16, 2>", "k<16, 3>")
    assert [launch.block[0].value for launch in launches(code)] == [128, 192]


def test_a_macros_parameter_says_nothing() -> None:
    code = """
template <int D> __global__ void k(float *x) {}
template <int D> void launch(float *x) { k<D><<<1, D>>>(x); }
#define LAUNCH(D) \\\\
    launch<D>(x)
void run(float *x) { LAUNCH(32); }
"""
    (launch,) = launches(code)
    assert launch.unknown == {"D"}
    assert instances_of(code + "void more(float *x) { launch<64>(x); }") == ("k<64>",)


@pytest.mark.parametrize(
    ("declared", "block"),
    [
        ("dim3 block(64, 2);", [64, 2]),
        ("dim3 block(64); int width = block.x; if (block.x == 64) go();", [64]),
        ("dim3 block(64), *other; other->x = 2;", [64]),
        ("dim3 block(64); block.x = block.x / 2;", [None]),
        ("dim3 block(64); if (n > 4) block.y <<= 1;", [None]),
        ("dim3 block(64); block = dim3(32);", [None]),
        ("dim3 block(64); choose(n, &block);", [None]),
        ("dim3 block; block.x = 64; block.y = 2;", [None]),
    ],
)
def test_a_dim3_that_is_written_after_its_declaration_is_unknown(declared: str, block: list[int]) -> None:
    code = f"__global__ void k(int *x) {{}}\nvoid run(int *x, int n) {{ {declared} k<<<8, block>>>(x); }}"
    (launch,) = launches(code)
    assert [size.value for size in launch.block] == block


@pytest.mark.parametrize(
    ("declared", "grid"),
    [
        ("dim3 b(64, 2); dim3 g((1000 + b.x - 1) / b.x, 100 / b.y);", [16, 50]),
        ("dim3 b = dim3(64); dim3 g(1000 / b . x, 8 / b.y, b.z);", [15, 8, 1]),
        ("auto b = dim3(64); dim3 g(b.x * 2);", [128]),
        ("dim3 b(64); b.x /= 2; dim3 g(1000 / b.x, b.y);", [None, None]),
        ("dim3 b(64); int2 size = of(n); dim3 g(size.x, size.y);", [None, None]),
        ("dim3 b(g.x); dim3 g(b.x);", [None]),
    ],
)
def test_members_of_a_dim3_are_known(declared: str, grid: list[int | None]) -> None:
    code = f"__global__ void k(int *x) {{}}\nvoid run(int *x, int n) {{ {declared} k<<<g, b>>>(x); }}"
    (launch,) = launches(code)
    assert [size.value for size in launch.grid] == grid


@pytest.mark.parametrize(
    ("before", "block"),
    [
        ("int s = 64;", 64),
        ("int s; s = 64;", 64),
        ("for (int s = 64; s > n; s >>= 1)", None),
        ("const int s = 64; if (n > 4) { const int s = 32; go(s); }", 64),
        ("int s = 64; if (n > 4) s += 32;", None),
        ("int s = 64; while (s > n) s /= 2;", None),
        ("int s = 64; choose(n, &s);", None),
        ("int s; for (s = 64; s > n; s >>= 1) go(s);", None),
    ],
)
def test_a_size_is_what_its_variable_holds_at_the_launch(before: str, block: int | None) -> None:
    for launch, place in (("k<<<8, s>>>(x);", 0), ("dim3 b(2, s); k<<<8, b>>>(x);", 1)):
        if place and before.endswith(")"):
            launch = f"{{ {launch} }}"
        code = f"__global__ void k(int *x) {{}}\nvoid run(int *x, int n) {{ {before} {launch} }}"
        (found,) = launches(code)
        assert found.block[place].value == block


def test_a_dim3_of_an_inner_scope_is_another_one() -> None:
    code = """
__global__ void k(int *x) {}
void run(int *x, int n) { dim3 b(64); if (n) { dim3 b(32); k<<<1, b>>>(x); } k<<<2, b>>>(x); }"""
    assert {launch.grid[0].value: launch.block[0].value for launch in launches(code)} == {1: 32, 2: 64}


@pytest.mark.parametrize(
    ("declared", "block", "value"),
    [
        ("dim3 grid(up(n, 128), 2);", "128", 128),
        ("const int s = 64; dim3 grid(up(n, s), s);", "s", 64),
        ("dim3 grid(up(n, 128), 2), block;", "block", None),
        ("dim3 block;", "block", None),
    ],
)
def test_a_size_that_another_dim3_has_is_no_dim3_itself(declared: str, block: str, value: int | None) -> None:
    code = f"__global__ void k(int *x) {{}}\nvoid run(int *x, int n) {{ {declared} k<<<8, {block}>>>(x); }}"
    (launch,) = launches(code)
    assert [size.value for size in launch.block] == [value]


@pytest.mark.parametrize(
    ("before", "body", "grid", "block"),
    [
        ("", "", 4, 32),
        ("void f(int &n) { n /= 2; }", "f(n);", 4, None),
        ("void f(const int &n) {}", "f(n);", 4, 32),
        ("void f(int n, dim3 &g) {}", "f(n, grid);", None, 32),
        ("void f(int n, dim3 g) {}", "f(n, grid);", 4, 32),
        ("template <typename T> void f(T &x);", "f<int>(n);", 4, None),
        ("int f(int a, int b) { return a & b; }", "f(n, 3);", 4, 32),
        ("", "auto f = [](int &x) { x = 2; }; f(n);", 4, None),
        ("", "auto f = [](int x) { return x; }; f(n);", 4, 32),
        ("", "int &m = n; m = 7;", 4, None),
        ("", "const auto &m = n;", 4, 32),
        ("", "dim3 &g = grid; g.x = 7;", None, 32),
        ("", "dim3 *g = &grid; g->x = 7;", None, 32),
        ("", "std::swap(n, m);", 4, None),
        ("", "std::max(n, m);", 4, 32),
        ("bool fits(int n);", "assert(n > 0 && fits(n));", 4, 32),
        ("", "int &o = m; int &p = n;", 4, None),
    ],
)
def test_what_is_passed_on_by_reference_may_have_changed(
    before: str, body: str, grid: int | None, block: int | None
) -> None:
    text = (
        f"__global__ void k(float *a) {{}}\n{before}\n"
        f"int main() {{ int n = 32, m = 64; dim3 grid(4); {body} k<<<grid, n>>>(nullptr); }}\n"
    )
    (launch,) = launches(text)
    assert (launch.grid[0].value, launch.block[0].value) == (grid, block)
    later = text.replace(body, "").replace("(nullptr);", f"(nullptr); {body}")
    assert [size.value for size in (*launches(later)[0].grid, *launches(later)[0].block)] == [4, 32]


BRANCHES = """\
__global__ void k(float *a) {}
#if %s
__global__ void one(float *a) {}
void f() { k<<<1, 1>>>(0); }
# if FOO
void g() { k<<<1, 2>>>(0); }
# endif
#else
__global__ void two(float *a) {}
void f() { k<<<2, 1>>>(0); }
#endif
void h() { k<<<3, 1>>>(0); }
"""


@pytest.mark.parametrize(
    ("condition", "lines", "names"),
    [
        ("0", [10, 12], ["k", "two"]),
        ("1", [4, 6, 12], ["k", "one"]),
        ("FAST", [4, 6, 10, 12], ["k", "one", "two"]),
        ("0 || FAST", [4, 6, 10, 12], ["k", "one", "two"]),
    ],
)
def test_what_is_switched_off_by_a_number_is_not_launched(
    condition: str, lines: list[int], names: list[str]
) -> None:
    text = BRANCHES % condition
    assert [launch.line for launch in launches(text)] == lines
    assert [kernel.name for kernel in kernels(text)] == names
    assert [launch.line for launch in launches("/*\n#if 0\n*/\n" + text)] == [line + 3 for line in lines]
