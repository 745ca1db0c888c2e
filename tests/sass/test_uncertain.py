"""Counts that depend on the order of warps say so; others do not."""

from __future__ import annotations

import pytest

import memsim
from memsim.analysis import Analysis
from memsim.api.loading import Module
from memsim.views.analyze.terminal import render
from tests.simt.cuda import kernels_of

FRAME = """
extern "C" __global__ void {name}(int *n, const int *in, int *out)
{{
    __shared__ int s[128];
    int i = threadIdx.x;
    s[i] = in[i];
    __syncthreads();
    {body}
}}
"""
#: One thread for each j, in both blocks.
OWN = "if (i >= 64) return; int j = 64 * blockIdx.x + i;"
CERTAIN = {
    "an atomic without a use of its result": "atomicAdd(n, in[i]);",
    "a generic atomic without a result in what nobody reads": (
        "int *p = *in == 1234567 ? s : out; atomicOr(p + (out[64 + (i & 31)] & 63), 1 << i % 31);"
    ),
    "a result that is only stored": "out[i] = atomicAdd(n, 1);",
    "a result that is stored beside indices": "out[i] = atomicAdd(n, 1); out[in[i ^ 1] & 127] = 1;",
    "an index from memory that nobody writes": "out[in[i] & 127] = 1;",
    "an exponential that is only stored": "out[i] = (int)__expf(s[i] * 0.01f);",
    "a quotient of exponentials that is only stored": (
        "out[i] = (int)(__expf(s[i] * 0.01f) / (__expf(in[i] * 0.02f) + 0.5f));"
    ),
    "a branch on an exponential": "if (__expf(s[i] * 0.01f) > 1.5f) out[i] = s[i * 2 & 127] + in[i];",
    "a root that is only stored": "out[i] = (int)sqrtf(s[i]) + (int)rsqrtf(in[i] + 1);",
    "a branch on a quotient": "if (s[i] / (in[i] | 1) > 3) out[i] = s[i * 2 & 127];",
    "a fence of the device": "__threadfence(); out[i] = s[i];",
    "a whole warp that sleeps": "__nanosleep(100); out[i] = s[i];",
    "a variable that nobody writes": "out[variable[i ^ 1] & 127] = 1;",
    "a variable that nobody reads": "variable[i] = out[in[i] & 127];",
    "shared memory between barriers": "out[s[i ^ 1] & 127] = 1;",
    "a sum with what the next warp stores beside indices": (
        "__shared__ int t[128], p[128]; t[i] = i; p[i] = in[i] & 127; __syncthreads();"
        "t[i] += t[i + 2 & 127]; __syncthreads(); out[p[i ^ 1]] = t[i];"
    ),
    "an update in place": f"{OWN} int v = out[j]; out[j] = v + i; if (v & 1) n[j] = 1;",
    "an update in place that is read after a barrier": (
        f"{OWN} out[j] += i; __syncthreads(); n[out[j ^ 1] & 127] = 1;"
    ),
    "bytes in place": f"{OWN} char *b = (char *)out; char v = b[j]; b[j] = v + i; if (v & 1) n[j] = 1;",
    "an update in place by warps that diverge": (
        f"{OWN} volatile int *own = out + j; while (*own & 7) *own = *own + 1; n[j] = *own;"
    ),
    "a function's result on the stack": "int a[2]; put(a, in[i]); out[a[0] + a[1] & 127] = 1;",
    "an atomic's result on the stack": "int a[2]; put(a, atomicAdd(n, 1)); out[s[i] & 127] = a[0] + a[1];",
    "an atomic's result in shared memory by a function": (
        "__shared__ int t[129]; put(t + i, atomicAdd(n, 1)); out[in[i ^ 1] & 127] = t[i];"
    ),
    "an atomic's result in an array by a function": (
        "put(out + i % 64, atomicAdd(n, 1)); n[s[i ^ 1] & 63] = 1;"
    ),
    "a function's result in an array that nobody reads": "put(out + 2 * i % 64, in[i]); n[s[i] & 127] = 1;",
}
UNCERTAIN = {
    "a function's result in an array": (
        "put(out + 2 * i % 64, s[i]); __syncthreads(); n[out[i ^ 1] & 63] = 1;",
        "what the kernel itself writes at",
    ),
    "an atomic's result on the stack as an address": (
        "int a[2]; put(a, atomicAdd(n, 1)); out[a[0] + a[1] & 127] = 1;",
        "decides the address at",
    ),
    "an atomic's result in shared memory by a function as an address": (
        "put(s + i % 64, atomicAdd(n, 1)); __syncthreads(); out[s[i ^ 1] & 127] = 1;",
        "decides the address at",
    ),
    "an atomic's result either in shared memory or in an array": (
        "put(in[i] < 3 ? s + i % 64 : out, atomicAdd(n, 1)); __syncthreads(); out[s[i ^ 1] & 127] = 1;",
        "decides the address at",
    ),
    "an address": ("out[atomicAdd(n, 1) & 127] = i;", "decides the address at"),
    "a branch": ("if (atomicAdd(n, 1) == 5) out[i] = s[i * 2 & 127];", "decides"),
    "through shared memory": (
        "if (i == 0) s[0] = atomicAdd(n, 1); __syncthreads(); out[s[0] & 63] = i;",
        "decides the address at",
    ),
    "through global memory": (
        "out[i] = atomicAdd(n, 1); __syncthreads(); n[out[i ^ 1] & 63] = i;",
        "the result of an atomic decides the address at",
    ),
    "through a shuffle": (
        "int b = 0; if (i % 32 == 0) b = atomicAdd(n, 32); out[(__shfl_sync(~0u, b, 0) + i) & 127] = i;",
        "decides the address at",
    ),
    "a loop of compare-and-swaps": (
        "int old = n[i & 1], seen; do { seen = old; old = atomicCAS(n + (i & 1), seen, seen * 3 + 1); }"
        " while (old != seen);",
        "decides the branch at",
    ),
    "a fence of the system": (
        "__threadfence_system(); out[i] = s[i];",
        "some machines make a store to global memory for the fence at",
    ),
    "lanes that sleep": (
        "if (i % 32 == 3) __nanosleep(100); __syncwarp(); out[i] = s[i];",
        "may not reconverge with the rest of their warp",
    ),
    "a lane that waits for another": (
        "volatile int *flag = out; if (i % 32 == 0) { while (flag[1] == 0); } else flag[1] = 1;",
        "what the kernel itself writes at",
    ),
    "an update in place that is read without a barrier": (
        f"{OWN} out[j] += i; n[out[j ^ 1] & 127] = 1;",
        "what the kernel itself writes at",
    ),
    "an update in place that another warp reads": (
        f"{OWN} int v = out[j]; out[j ^ 32] = v + i; if (v & 1) n[j] = 1;",
        "what the kernel itself writes at",
    ),
    "an update in place that others read after half a barrier": (
        "int j = 64 * blockIdx.x + (i & 63); if (i < 32) out[j] = i;"
        ' if (i < 64) asm volatile("bar.sync 1, 64;"); else n[out[j ^ 32] & 127] = 1;',
        "what the kernel itself writes at",
    ),
    "two threads that store to one place": (
        "int j = 64 * blockIdx.x + i / 2; out[j] = i; __syncthreads(); n[out[j ^ 1] & 127] = 1;",
        "what the kernel itself writes at",
    ),
    "bytes beside each other that others read": (
        f"{OWN} char *b = (char *)out; b[j] = i; n[b[j ^ 1] & 127] = 1;",
        "what the kernel itself writes at",
    ),
    "a generic atomic without a result in what others read": (
        "int *p = *in == 1234567 ? s : out; atomicOr(p + (out[i & 31] & 63), 1 << i % 31);",
        "what the kernel itself writes at",
    ),
    "an index that is a sum with what the next warp stores": (
        "__shared__ int t[128], p[128]; t[i] = i; p[i] = in[i] & 127; __syncthreads();"
        "t[i] += t[i + 2 & 127]; __syncthreads(); out[t[i ^ 1] & 127] = p[i];",
        "and another loads at",
    ),
    "a sum with what the next warp stores among indices": (
        "__shared__ int t[128], p[256]; p[i] = p[i + 128] = in[i] & 127; __syncthreads();"
        "p[i] += p[i + 2 & 127]; __syncthreads(); out[p[(in[i] & 1) * 128 + (i ^ 1)] & 127] = 1;",
        "and another loads at",
    ),
    "indices from what the next warp stores through the array": (
        "__shared__ int t[128]; t[i] = i; __syncthreads(); t[i] += t[i + 2 & 127]; out[i] = t[i];"
        "__syncthreads(); n[out[i ^ 1] & 127] = 1;",
        "and another loads at",
    ),
    "what the kernel writes itself": (
        "out[i] = i * 5; __syncthreads(); out[out[(i + 1) & 127] & 127] = 1;",
        "what the kernel itself writes at",
    ),
    "a variable that the kernel writes": (
        "variable[i] = i * 5; __syncthreads(); out[variable[(i + 1) & 127] & 127] = 1;",
        "what the kernel itself writes at",
    ),
}


@pytest.fixture(scope="module")
def kernels() -> Module:
    """A kernel for each body, compiled together."""
    bodies = {**CERTAIN, **{name: body for name, (body, _) in UNCERTAIN.items()}}
    text = (
        "__device__ int variable[128];"
        "__device__ __noinline__ void put(int *to, int value) { *to = value; to[1] = value + 1; }"
    )
    return kernels_of(
        text + "".join(FRAME.format(name=entry(name), body=body) for name, body in bodies.items())
    )


def entry(name: str) -> str:
    return name.replace(" ", "_").replace("-", "_").replace("'", "")


def analysis(kernels: Module, name: str) -> Analysis:
    args = [
        memsim.ArrayArg((128,), "int32", "zeros"),
        memsim.ArrayArg((128,), "int32"),
        memsim.ArrayArg((128,), "int32"),
    ]
    return memsim.analyze(kernels[entry(name)], 2, 128, args)


@pytest.mark.some(8)
@pytest.mark.parametrize("name", CERTAIN)
def test_what_does_not_depend_on_the_order_is_certain(name: str, kernels: Module) -> None:
    found = analysis(kernels, name)
    assert found.trace.uncertain == ()
    assert "some counts are uncertain" not in found.verdict


@pytest.mark.some(8)
@pytest.mark.parametrize("name", UNCERTAIN)
def test_what_depends_on_the_order_says_so(name: str, kernels: Module) -> None:
    _, reason = UNCERTAIN[name]
    found = analysis(kernels, name)
    assert any(reason in told for told in found.trace.uncertain), found.trace.uncertain
    assert all("k.cu:" in told for told in found.trace.uncertain)
    assert "some counts are uncertain" in found.verdict
    assert f"Not certain: {found.trace.uncertain[0]}" in render(found)
