"""Where arrays lie in memory is up to the system: counts that depend on it are uncertain, and no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memsim.api.running import trace
from memsim.argument_types import Pointers
from memsim.captured.analyze_any import analyze
from memsim.sass.decode import decode
from memsim.simt.dataflow import Dataflow
from memsim.simt.placed_arithmetic import PlacedSources
from memsim.simt.placed_values import decided_by_places
from memsim.simt.placed_words import first_byte
from tests.simt.cuda import kernels_of
from tests.simt.listings import listing

KERNEL = """
typedef unsigned long long u64; typedef int *P;
struct Two { P p[2]; P out; long long n[2]; };
struct Node { P p; long n; }; struct Link { Link *next; P p; };
struct Base { P d; int n; __device__ virtual int at(int i) { return d[i % n]; } };
struct Other : Base { __device__ int at(int i) override { return d[(i * 3) % n]; } };
__device__ int values[256];
__device__ P where = values;
__device__ __noinline__ int both(Two *two, int i) { return two->p[0][i] + two->p[1][i]; }
__device__ __noinline__ int f(int x) { return x * 3 + clock(); }
__device__ __noinline__ int deep(P p, int x, int n) {
    if (n <= 0) return x + clock();
    int a = deep(p, x + 1, n - 1);
    p[threadIdx.x] = a;
    return a ^ x * n;
}
__device__ __noinline__ int g(int x) { return x * 5 + clock(); }
#define KERNEL(name, parameters, ...) \\
    extern "C" __global__ void name parameters { int i = threadIdx.x; __VA_ARGS__ }
"""
ORDER, BITS = "(P o, P a)", "(P o)"
NODES = "Node *t = (Node *)s;"
#: (parameters, body, what the counts depend on). In each pair of kernels one is certain.
UNCERTAIN = {
    "order_as_index": (ORDER, "o[o > a ? i : i * 8] = a[i];", "arg0 and arg1"),
    "order_as_branch": (ORDER, "if (o < a) o[i] = 1;", "arg0 and arg1"),
    "order_of_loaded": (
        "(P *t)",
        "if (t[0] < t[1]) t[0][i] = 1;",
        "arg0[0] and arg0[1]",
    ),
    "order_of_three": (
        "(P *t, int n)",
        "if (t[(i + n) % 3] < t[i % 3]) t[0][i] = 1;",
        "the arrays of loaded pointers",
    ),
    "order_after_a_swap": (
        "(P o, P a, int n)",
        "for (int k = 0; k < n; k++) { P t = o; o = a; a = t; } if (o < a) o[i] = 1;",
        "arg0 and arg1",
    ),
    "equal_distance": (ORDER, "if (a - o == 1024) o[i] = 1; else o[i * 2] = 2;", "arg0 and arg1"),
    "no_lower_bits": (
        ORDER,
        "if (((unsigned)(u64)o | (unsigned)(u64)a) == 0) o[i] = 1; else o[i * 2] = 2;",
        "arg0 and arg1",
    ),
    "distance": (ORDER, "o[(a - o >> 8 & 3) * i] = 1;", "arg0 and arg1"),
    "bits": (BITS, "o[((u64)o >> 8 & 7) + i * 8] = i;", "arg0"),
    "branch_on_a_bit": (BITS, "if ((u64)o & 0x100) o[i] = 1; else o[i * 2] = 2;", "arg0"),
    "hash": (BITS, "o[(unsigned)((u64)(o + i) * 2654435761u) >> 22] = i;", "arg0"),
    "what_a_way_makes_of_a_pointer": (
        "(P o, P a, int n)",
        "unsigned x = 0; for (int k = 0; k < n; k++) x += (u64)a >> 9; o[x & 255] = i;",
        "arg0 and arg1",
    ),
    "bits_of_the_stack": (
        BITS,
        "volatile int x[4]; x[i & 3] = i; o[((u64)(void *)x >> 8 & 7) * i] = x[0];",
        "arg0 and the stack",
    ),
    "bits_through_memory": (
        "(P o, u64 *s)",
        "s[i] = (u64)o >> 10 & 3; __syncthreads(); o[s[i ^ 1] * i] = 1;",
        "arg0",
    ),
    "bits_through_shared_memory": (
        BITS,
        "__shared__ int s[64]; s[i] = (u64)o >> 10 & 3; __syncthreads(); o[s[i ^ 1] * i] = 1;",
        "arg0",
    ),
    "order_through_shared_memory": (
        ORDER,
        "__shared__ P s[2]; if (i < 2) s[i] = i ? o : a; __syncthreads(); o[s[1] > s[0] ? i : i * 8] = 1;",
        "arg0 and arg1",
    ),
    "bits_of_what_is_on_the_stack": (
        ORDER,
        "P s[4] = {o, a, o + 8, a + 8}; o[((u64)s[i & 3] >> 8 & 3) * i] = 1;",
        "arg0 and arg1",
    ),
    "order_through_global_memory": (
        "(P o, P a, u64 *s)",
        "P *t = (P *)s; if (i < 2) t[i] = i ? o : a; __syncthreads(); o[t[1] > t[0] ? i : i * 8] = 1;",
        "arg0 and arg1",
    ),
    "bits_beside_numbers_in_global_memory": (
        "(P o, u64 *s)",
        NODES + "if (i < 32) t[i] = Node{o + i, i}; __syncthreads(); Node m = t[i & 31 ^ 1];"
        "o[((u64)m.p >> 9 & 3) * m.n] = 1;",
        "arg0",
    ),
    "bits_beside_numbers_in_shared_memory": (
        BITS,
        "__shared__ Node t[32]; if (i < 32) t[i] = Node{o + i, i}; __syncthreads(); Node m = t[i & 31 ^ 1];"
        "o[((u64)m.p >> 9 & 3) * m.n] = 1;",
        "arg0",
    ),
    "bits_of_a_variable": (BITS, "o[((u64)where >> 9 & 3) * i] = 1;", "arg0 and values"),
    "halves_of_two_pointers": (
        ORDER,
        "__shared__ uint2 s[64]; s[i] = make_uint2((u64)o, (u64)a); __syncthreads();"
        "uint2 v = s[i ^ 1]; o[(v.x >> 10 & 3) * i + (v.y >> 10 & 3)] = 1;",
        "arg0 and arg1",
    ),
    "bits_kept_by_a_function": (
        "(P *t, int n)",
        "P p = t[0]; int v = deep(p, i, n); t[1][((u64)p >> 10 & 3) * i] = v;",
        "arg0[0] and arg0[1]",
    ),
    "bits_in_limits": (BITS, "o[min((int)((u64)o >> 10 & 3), 2) * i] = 1;", "arg0"),
    "bits_that_equal_others": (BITS, "o[__vcmpeq4((u64)o >> 10, 0x01020301) & i] = 1;", "arg0"),
    "half_or_number": (
        "(P o, P a, int n)",
        "unsigned v = i < 16 ? (unsigned)(u64)a : i * n; o[(v * 17 ^ v >> 9) & 1023] = 1;",
        "arg0 and arg1",
    ),
    "an_error_at_other_places": (
        "(P o, P a, int n)",
        "unsigned v = i < 16 ? (unsigned)(u64)a : i * n; o[(v == 0x10004100 || i > 15 ? 0 : 9000) + i] = 1;",
        "arg0 and arg1",
    ),
    "one_of_halves_at_an_index": (
        "(P o, P a, int n)",
        "unsigned s[4] = {(unsigned)(u64)o, (unsigned)((u64)o >> 32), (unsigned)(u64)a, 0};"
        "unsigned v = s[(n & 1) * 2]; o[((v >> 8) + i * (v >> 9)) & 1023] = 1;",
        "arg0 and arg1",
    ),
    "halves_in_a_frame": (
        "(P o, P a, int n)",
        "volatile unsigned s[4] = {(unsigned)(u64)o, (unsigned)((u64)o >> 32), (unsigned)(u64)a, 0};"
        "unsigned v = s[n + i & 3]; o[((v >> 8) + i * (v >> 9)) & 1023] = 1;",
        "arg0 and arg1",
    ),
    "aligned_beyond_what_is_known": (
        BITS,
        "P p = (P)(((u64)o + 1023) & ~1023ull); p[i] = 1;",
        "arg0",
    ),
}
CERTAIN = {
    "alignment": (
        "(float *o, float *a)",
        "if (((u64)o & 15) == 0 && ((u64)a & 15) == 0) ((float4 *)o)[i] = ((float4 *)a)[i];else o[i] = a[i];",
    ),
    "alignment_of_both": (
        "(float *o, float *a)",
        "if ((((u64)o | (u64)a) & 15) == 0) ((float4 *)o)[i] = ((float4 *)a)[i]; else o[i] = a[i];",
    ),
    "first_aligned": (
        "(float *o)",
        "int head = ((16 - ((u64)(o + 1) & 15)) & 15) / 4; if (i < head) o[1 + i] = 1;"
        "((float4 *)(o + 1 + head))[i] = make_float4(1, 1, 1, 1);",
    ),
    "aligned_up": ("(P o)", "P p = (P)(((u64)o + 127) & ~127ull); p[i] = 1;"),
    "known_bits_in_limits": (BITS, "o[min((int)((u64)(o + 3) >> 1 & 30), 4) * i] = 1;"),
    "bank": ("(P o)", "o[((u64)(o + i) >> 2 & 31) * 2] = 1;"),
    "to_the_end": (
        "(P o, P a, int n)",
        "P e = a + n; int s = 0; for (P p = a + i; p < e; p += blockDim.x) s += *p; o[i] = s;",
    ),
    "from_first_to_last": (
        "(P o, P first, P last)",
        "int s = 0; for (P p = first + i % 8; p != last; p += 8) s += *p; o[i] = s;",
    ),
    "length": ("(P o, P first, P last)", "for (long k = i; k < last - first; k += 64) o[k] = first[k];"),
    "null": ("(P o, P a, P b)", "o[i] = (a ? a[i] : 0) + (b ? b[i] : 0);"),
    "both_null": ("(P o, P a, P b)", "if (!a && !b) o[i] = 1; else o[i * 2] = 2;"),
    "none_null": (ORDER, "if (!a && !o) return; o[i] = a[i];"),
    "one_of_two": ("(P o, P a, int n)", "P p = i < n ? o : a; p[i] = 1;"),
    "one_of_two_to_the_end": (
        "(P o, P a)",
        "P p = blockIdx.x ? o : a; P e = p + 100; for (p += i; p < e; p += 64) *p += 1;",
    ),
    "swapped": (
        "(P o, P a, int n)",
        "for (int k = 0; k < n; k++) { a[i] = o[i] + 1; P t = o; o = a; a = t; __syncthreads(); }",
    ),
    "of_a_table": ("(P *t)", "P p = t[blockIdx.x]; if (p) p[i] = 1;"),
    "of_a_struct": ("(Two t)", "if (i < t.n[blockIdx.x]) t.out[i] = t.p[blockIdx.x][i];"),
    "in_memory": ("(P o, P a)", "Two two{{o, a}, o}; o[i] = both(&two, i);"),
    "through_a_shuffle": ("(P o)", "P p = (P)__shfl_sync(~0u, (u64)o, 3); p[i] = 1; if (p == o) o[i] = 1;"),
    "root": ("(P o, float *a)", "o[(int)sqrtf(a[i])] = 1;"),  # whose rare cases are moved under guards
    "of_the_leader": (
        "(P o, P a)",
        "int v; if (i % 32 == 0) v = atomicAdd(a, 32); v = __shfl_sync(~0u, v, 0); o[v & 31] = 1;",
    ),
    "upper_half": (
        "(float *o, unsigned *a)",
        "unsigned w = a[i]; o[i] = __uint_as_float(w & 0xffff0000) + __uint_as_float(w << 16);",
    ),
    "variable": ("(P o)", "o[i] = values[i * 2];"),
    "stack": (
        "(P o, int n)",
        "int x[64]; for (int k = 0; k < n; k++) x[k + i & 63] = k; o[i] = x[n & 63];",
    ),
    "a_way_that_no_warp_takes": (
        "(P o, P a, int n)",
        "unsigned x = 0; for (int k = 9; k < n; k++) x += (u64)a >> 9; o[x & 255] = i;",
    ),
    "in_shared_memory": (
        ORDER,
        "__shared__ P s[2]; if (i < 2) s[i] = i ? o : a; __syncthreads(); s[i & 1][i] = 1;",
    ),
    "on_the_stack": (ORDER, "P s[4] = {o, a, o + 8, a + 8}; s[i & 3][i] = 1;"),
    "to_an_end_in_shared_memory": (
        "(P o, int n)",
        "__shared__ P s[2]; if (i < 2) s[i] = o + 64 * n * i; __syncthreads();"
        "for (P p = s[0] + i; p < s[1]; p += 64) *p = 1;",
    ),
    "lowest_bits_in_shared_memory": (
        ORDER,
        "__shared__ P s[2]; if (i < 2) s[i] = i ? o : a; __syncthreads(); o[((u64)s[i & 1] & 31) + i] = 1;",
    ),
    "numbers_beside_pointers": (
        "(P o, int n)",
        "__shared__ P s[2]; __shared__ long m[64]; m[i] = n * i; if (i < 2) s[i] = o; __syncthreads();"
        "s[i & 1][m[i ^ 1]] = 1;",
    ),
    "in_global_memory": (
        "(P o, P a, u64 *s)",
        "P *t = (P *)s; if (i < 2) t[i] = i ? o : a; __syncthreads(); t[i & 1][i] = 1;",
    ),
    "numbers_beside_pointers_in_global_memory": (
        "(P o, u64 *s)",
        NODES + "if (i < 32) t[i] = Node{o + i, i}; __syncthreads(); Node m = t[i & 31 ^ 1]; m.p[m.n] = 1;",
    ),
    "to_an_end_in_global_memory": (
        "(P o, u64 *s)",
        NODES + "if (i < 32) t[i] = Node{o + i * 64, i}; __syncthreads();"
        "for (P p = t[i & 31 ^ 1].p; p < t[31].p; p += 64) p[i] = 1;",
    ),
    "list": (
        "(P o, u64 *s)",
        "Link *t = (Link *)s; if (i < 32) t[i] = {i < 31 ? t + i + 1 : 0, o + i}; __syncthreads();"
        " for (Link *l = t + i % 32; l; l = l->next) l->p[i] = 1;",
    ),
    "virtual_functions": (
        "(P o, P a, int n)",
        "Base b; Other c; b.d = c.d = a; b.n = n; c.n = n + 1; Base *p = n & 1 ? &b : (Base *)&c;"
        "int s = 0; for (int k = 0; k < n; k++) s += p->at(i + k); o[i] = s;",
    ),
    "kept_by_a_function": ("(P *t, int n)", "P p = t[0]; int v = deep(p, i, n); p[i] = v;"),
    "number_kept_by_a_function": (
        "(P *t, int n)",
        "P p = t[0]; int v = deep(p, i, n), w = deep(p, n, i & 1) & 0; p[i * n + w] = v;",
    ),
    "lowest_bits_of_a_variable": (BITS, "where[((u64)where & 31) * i] = 1;"),
    "half_or_number_with_the_same_counts": (
        "(P o, P a, int n)",
        "unsigned v = n < 3 ? (unsigned)(u64)a : n; o[(v * 17 ^ v >> 9) & 1023] = 1;",
    ),
    "numbers_beside_halves_in_a_frame": (
        "(P o, P a, int n)",
        "volatile unsigned s[4] = {1, (unsigned)(u64)o, 2, (unsigned)(u64)a}; o[s[i & 2] * i] = 1;",
    ),
    "function": ("(P o, int n)", "int (*p)(int) = n ? f : g; o[i] = p(i) > 0;"),
}
A = [np.zeros(4096, np.int32) for _ in range(4)]
REASON = "in memory decides"


def reasons(name: str, parameters: str) -> list[str]:
    bodies = {one: given[:2] for one, given in (*UNCERTAIN.items(), *CERTAIN.items())}
    text = KERNEL + "\n".join(f"KERNEL({one}, {what}, {body})" for one, (what, body) in bodies.items())
    given: dict[str, list[Any]] = {
        "(P *t)": [Pointers((A[0], A[1]))],
        "(P *t, int n)": [Pointers((A[0], A[1], A[2])), 1],
        "(P o, P a, u64 *s)": [A[0], A[1], np.zeros(64, np.uint64)],
        "(P o, u64 *s)": [A[0], np.zeros(64, np.uint64)],
        "(P o, P first, P last)": [A[0], A[1][:64], A[1][64:]],
        "(P o, P a, P b)": [A[0], A[1], None],
        "(P o, P a, int n)": [A[0], A[1], 5],
        "(P o, int n)": [A[0], 5],
        "(float *o, unsigned *a)": [np.zeros(64, np.float32), np.zeros(64, np.uint32)],
        "(P o, float *a)": [A[0], np.zeros(64, np.float32)],
        "(Two t)": [[A[0], A[1], A[2], np.int64(5), np.int64(6)]],
    }
    floats: list[Any] = [np.zeros(4096, np.float32) for _ in range(parameters.count("*"))]
    arguments = given.get(parameters) or (floats if "float" in parameters else A[: parameters.count("P")])
    found = trace(kernels_of(text, "sass")[name], 1, 64, arguments).uncertain
    return [reason for reason in found if REASON in reason]


@pytest.mark.some(8)
@pytest.mark.parametrize("name", UNCERTAIN)
def test_counts_that_depend_on_where_something_lies_are_uncertain(name: str) -> None:
    parameters, _, names = UNCERTAIN[name]
    found = reasons(name, parameters)
    assert any(reason.startswith(f"where {names} lie") for reason in found), found


@pytest.mark.some(9)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name == "virtual_functions")) for name in CERTAIN],
)
def test_those_of_addresses_differences_and_alignments_are_certain(name: str) -> None:
    assert not reasons(name, CERTAIN[name][0])


def test_bits_of_the_address_of_a_kernel_are_not_known() -> None:
    text = 'extern "C" __global__ void k(int *o) { o[((size_t)(void *)k >> 4 & 7) * threadIdx.x] = 1; }'
    found = analyze(kernels_of(text, "sass")["k"], 1, 64, [A[0]])
    # Compilers write the address into an instruction, and later ones load it.
    assert [site.sectors for site in found.sites] == [None] or "where a function" in found.trace.uncertain[0]


#: R2 is a number in some lanes and bits of a pointer in the others.
PARTS = """
    LDC.64 R6, c[0x0][0x210]
    ISETP.NE.AND P0, PT, R1, RZ, PT
    MOV R2, 0x1
    @!P0 SHF.R.U32.HI R2, RZ, 0xa, R6
    {more}
    LDS R5, [R2]
    EXIT
"""


@pytest.mark.parametrize(
    ("more", "certain"),
    [
        ("", False),
        ("@!P0 MOV R2, 0x3", True),
        ("@P0 MOV R2, 0x3", False),
        ("@!P0 EXIT", True),
        ("@P0 EXIT", False),
        ("ISETP.NE.AND P0, PT, R1, 0x3, PT\n @!P0 MOV R2, 0x3", False),
        ("@!P0 BRA `(.on)\n LDS R5, [R2]\n EXIT\n.on:\n MOV R2, RZ", True),
        ("@P0 BRA `(.on)\n LDS R5, [R2]\n EXIT\n.on:\n MOV R2, RZ", False),
        ("MOV R3, R6\n @P0 MOV R3, 0x8\n @P1 BRA `(.on)\n .on:\n IADD3 R2, R3, R3, RZ", True),
    ],
)
def test_what_is_written_under_a_guard_is_known_in_its_lanes(more: str, certain: bool) -> None:
    graph = Dataflow(decode(listing(PARTS.replace("{more}", more))))
    graph.needed()
    low, high = first_byte("o", "o")
    sources = PlacedSources({(0, 0x210): low, (0, 0x214): high}, {}, (None, None))
    found = decided_by_places(graph, sources, range(len(graph.ops)))
    assert (not found) == certain


@pytest.mark.parametrize(
    ("copy", "certain"),
    [
        ("PLOP3.LUT P2, PT, PT, PT, P0, 0x80, 0x0", True),
        ("PLOP3.LUT P2, PT, P0, PT, PT, 0x80, 0x0", True),
        ("PLOP3.LUT P2, PT, PT, PT, P0, 0x8, 0x0", False),  # the opposite
        ("PLOP3.LUT P2, PT, PT, P1, P0, 0x80, 0x0", False),
        ("PLOP3.LUT PT, P2, PT, PT, P0, 0x80, 0x0", False),  # the second result is never true
    ],
)
def test_a_copy_of_a_carry_is_that_carry(copy: str, certain: bool) -> None:
    text = f"LDC.64 R6, c[0x0][0x210]\n IADD3 R2, P0, R1, R6, RZ\n {copy}"
    graph = Dataflow(decode(listing(f"{text}\n IADD3.X R3, RZ, R7, RZ, P2, !PT\n LDG.E R4, [R2.64]\n EXIT")))
    graph.needed()
    low, high = first_byte("o", "o")
    sources = PlacedSources({(0, 0x210): low, (0, 0x214): high}, {}, (None, None))
    assert (not decided_by_places(graph, sources, range(len(graph.ops)))) == certain


CARRY = "LEA R3, P0, R1, R6, 0x2\n"
INDEXED = "LDC R3, c[0x0][R1+0x210]\n SHF.R.U32.HI R2, RZ, 0xa, R3"


@pytest.mark.parametrize(
    ("more", "indexed", "certain"),
    [
        (CARRY + "@P0 MOV R2, 0x3", (), False),
        (CARRY + "R2P PR, R1, 0x7f\n @P0 MOV R2, 0x3", (), True),
        (CARRY + "R2P PR, R1, 0x7e\n @P0 MOV R2, 0x3", (), False),
        ("R2P PR, R6, 0x1\n @P0 MOV R2, 0x3", (), False),
        (INDEXED, (0x218, 0x21C), True),
        (INDEXED, (0x210, 0x218), False),
    ],
)
def test_predicates_of_a_number_and_constants_at_an_index(
    more: str, indexed: tuple[int, ...], certain: bool
) -> None:
    text = f"LDC.64 R6, c[0x0][0x210]\n MOV R2, 0x1\n {more}\n LDS R5, [R2]\n EXIT"
    graph = Dataflow(decode(listing(text)))
    graph.needed()
    low, high = first_byte("o", "o")
    pointer = {(0, 0x210): low, (0, 0x214): high}
    sources = PlacedSources(pointer, {}, (None, None), {op.index: indexed for op in graph.ops})
    assert (not decided_by_places(graph, sources, range(len(graph.ops)))) == certain


@pytest.mark.parametrize("number", ["0x3", "0xfffffffffffffffffffffffffff3", "-0x80000000000000000003"])
def test_a_number_that_is_no_word_is_no_traceback(number: str) -> None:
    text = f"LDC.64 R6, c[0x0][0x210]\n IADD3 R2, R6, {number}, RZ\n LDS R5, [R2]\n EXIT"
    graph = Dataflow(decode(listing(text)))
    graph.needed()
    low, high = first_byte("o", "o")
    sources = PlacedSources({(0, 0x210): low, (0, 0x214): high}, {}, (None, None))
    found = decided_by_places(graph, sources, range(len(graph.ops)))
    assert [op.index for op, _ in found] == []  # the sum of an array's first byte and a number
