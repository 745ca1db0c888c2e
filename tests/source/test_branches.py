"""Groups `#if ... #endif` inside a declaration or a block: kernels are read, and host code is set aside."""

from __future__ import annotations

import pytest

from memsim.compile.cuda_source import compile_cubin
from memsim.compile.host_code import set_aside
from memsim.sass.cubin import read_cubin
from memsim.source.kernels import kernels, parameters
from memsim.source.syntax import parse

ATTRIBUTES = """
#if __CUDA_ARCH__ <= 500
__global__ __launch_bounds__(128, 2)
#else
__global__ __launch_bounds__(256, 1)
#endif
void k(float *a, int n) { a[n] = 1; }
"""
DEFINED = """
__global__ void
#if defined(__CUDA_ARCH__)
__launch_bounds__(128)
#endif
k(float *a, int n) { a[n] = 1; }
"""
PARAMETERS = """
__global__ void k(float *a,
#ifdef LONG
  long n
#else
  int n
#endif
) { a[n] = 1; }
"""
LOOPS = """
__global__ void k(float *a, int n) {
#if __CUDA_ARCH__ < 500
  for (int i = 0; i < n; i++) {
#else
  if (int i = n) {
#endif
    a[i] = 1;
  }
}
"""
BODIES = """
__device__ float one() { return 1; }
__global__ void k(float *a, int n)
#ifdef LONG
{ a[n] = 2; }
#else
{ a[n] = one(); }
#endif
"""
NESTED = """
#ifdef LONG
#ifdef LONGER
__global__ __launch_bounds__(32)
#else
__global__ __launch_bounds__(64)
#endif
#else
__global__ __launch_bounds__(128)
#endif
void k(float *a, int n) { a[n] = 1; }
"""
CUT = (ATTRIBUTES, DEFINED, PARAMETERS, LOOPS, BODIES, NESTED)
WHOLE = """
#ifdef LONG
__device__ float one() { return 2; }
#else
__device__ float one() { return 1; }
#endif
__global__ void k(float *a, int n) { a[n] = one(); }
"""
BEFORE = "struct Host { std::string name; };\nint before(Host h) { return h.name.size(); }\n"
AFTER = '\nvoid after(int n) { printf("%d", n); }\n__global__ void last(float *z) { z[0] = 2; }\n'


@pytest.mark.parametrize("code", [*CUT, WHOLE])
def test_a_kernel_is_read_and_so_is_the_next(code: str) -> None:
    text = BEFORE + code + AFTER
    found = {kernel.name: [parameter.name for parameter in kernel.parameters] for kernel in kernels(text)}
    assert found == {"k": ["a", "n"], "last": ["z"]}
    assert [name for _, name in parameters(text, "k")] == ["a", "n"]
    assert [name for _, name in parameters(text, "last")] == ["z"]


@pytest.mark.some(3)
@pytest.mark.parametrize("code", [*CUT, WHOLE])
def test_it_is_kept_with_all_branches_and_host_code_is_not(code: str) -> None:
    text = BEFORE + code + AFTER
    left = set_aside({"k.cu": text}, "k.cu")["k.cu"]
    assert code.strip() in left
    assert "Host" not in left and "printf" not in left
    assert len(left) == len(text) and left.count("\n") == text.count("\n")
    assert set(read_cubin(compile_cubin(f'extern "C" {{ {left} }}').cubin).kernels) == {"k", "last"}


def test_a_host_function_goes_with_all_its_bodies() -> None:
    host = 'void other(int n)\n#ifdef LONG\n{ printf("%ld", n); }\n#else\n{ printf("%d", n); }\n#endif\n'
    left = set_aside({"k.cu": host + LOOPS}, "k.cu")["k.cu"]
    assert left.split() == "#ifdef LONG #else #endif".split() + LOOPS.split()


def test_host_code_in_every_branch_goes() -> None:
    first, second = (
        f"namespace a {{\nstruct Clock {{ {kind} t; }};\n" for kind in ("LARGE_INTEGER", "timeval")
    )
    clocks = f"#ifdef _MSC_VER\n{first}#else\n{second}#endif\n}}\n"
    left = set_aside({"k.cu": clocks + LOOPS}, "k.cu")["k.cu"]
    head = [word for word in left.removesuffix(LOOPS).split() if word != ";"]
    assert left.endswith(LOOPS)
    assert head == "#ifdef _MSC_VER namespace a { #else namespace a { #endif }".split()
    used = LOOPS.replace("float *a,", "a::Clock *c, float *a,")
    left = set_aside({"k.cu": clocks + used}, "k.cu")["k.cu"]
    assert "LARGE_INTEGER" in left and "timeval" in left


def test_only_what_cuts_something_is_hidden() -> None:
    assert [parse(code).cuts == () for code in (*CUT, WHOLE)] == [False] * len(CUT) + [True]
    listed = "enum Kind { A,\n#ifdef MORE\n B,\n#else\n C,\n#endif\n D };\n"
    hidden = [place for cut in parse(ATTRIBUTES + listed).cuts for place in cut.hidden]
    assert all(end <= len(ATTRIBUTES) for _, end in hidden)


@pytest.mark.parametrize(
    "damaged", ["#endif\n", "#else\n", "#if A\n", "#if A\n#else\n#else\n(\n#endif\n", "#if\n)\n"]
)
def test_groups_that_do_not_match_are_survived(damaged: str) -> None:
    assert [kernel.name for kernel in kernels(damaged + AFTER)] == ["last"]
