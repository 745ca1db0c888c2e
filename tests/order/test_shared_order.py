"""Warps, or lanes of one, that meet in shared memory unordered: counts that depend on it are not certain."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from memsim.api.running import trace
from tests.simt.cuda import kernels_of

THREADS, BLOCKS = 128, 3
MISSING = "is a __syncthreads() missing?"

#: Kernels with a barrier, or without it (HERE). Loads decide addresses or branches.
TWINS = {
    "compaction": """
        int *sums = a; sums[id] = in[me] & 1;
        __syncthreads();
        for (int s = 1; s < 128; s *= 2) {
            int left = id >= s ? sums[id - s] : 0;
            __syncthreads();
            sums[id] += left;
            HERE
        }
        if (in[me] & 1) out[sums[id]] = me;""",
    "reduction": """
        a[id] = in[me];
        __syncthreads();
        for (int s = 64; s; s /= 2) { if (id < s) a[id] += a[id + s]; HERE }
        __syncthreads();
        out[a[0] & 1023] = 1;""",
    "histogram": """
        a[id] = 0;
        __syncthreads();
        atomicAdd(&a[in[me] & 127], 1);
        HERE
        out[a[id] * id] = 1;""",
    "scatter": """
        b[in[id] & 127] = 1;
        __syncthreads();
        if (id == 0) for (int i = 0, sum = 0; i < 128; i++) { sum += a[i] = in[i] & 3; b[i] = sum; }
        HERE
        out[b[id]] = 1;""",
    "two_buffers": """
        a[id] = in[id];
        __syncthreads();
        for (int i = 0; i < 4; i++) {
            a[128 * ((i + 1) & 1) + id] = in[128 * i + id];
            out[a[128 * (i & 1) + 127 - id]] = 1;
            HERE
        }""",
    "flag": """
        if (id == 0) a[0] = 0;
        __syncthreads();
        if (in[me] == in[40]) a[0] = 1;
        HERE
        if (*(volatile int *)a) out[2 * id] = 1;""",
    "read_again": """
        for (int i = 0; i < 3; i++) {
            if (id == 0) a[0] = in[i];
            __syncthreads();
            out[a[0] * id] = 1;
            HERE
        }""",
    "written_by_the_last_that_read": """
        a[id] = in[me];
        __syncthreads();
        int read = ((volatile int *)a)[0];
        HERE
        if (id == 127) a[0] = 7;
        out[read & 1023] = 1;""",
    "written_by_the_first_that_read": """
        a[id] = in[me];
        __syncthreads();
        int read = ((volatile int *)a)[0];
        HERE
        if (id == 0) a[0] = 7;
        out[read & 1023] = 1;""",
    "bytes": """
        unsigned char *c = (unsigned char *)a; c[id] = in[me];
        HERE
        out[c[(id + 1) & 127]] = 1;""",
    "copied": """
        __pipeline_memcpy_async(a + id, in + me, 4); __pipeline_commit(); __pipeline_wait_prior(0);
        HERE
        out[a[127 - id]] = 1;""",
    "exchange_of_16_bytes": """
        a[id] = 0;
        __syncthreads();
        if (id == 0) asm volatile("{ .reg .b128 r, q; mov.b128 q, {%1, %1};"
            "atom.exch.shared.b128 r, [%0], q; }" ::
            "r"((unsigned)__cvta_generic_to_shared(a)), "l"((long long)in[me]) : "memory");
        HERE
        out[v[id ^ 32]] = 1;""",
}
#: Kernels, and whether they are certain: they need no barrier, or one does not help.
OTHERS = {
    "own_warp": ("a[id] = in[me]; __syncwarp(); out[((volatile int *)a)[id ^ 31]] = 1;", True),
    "neighbouring_bytes": (
        "volatile unsigned char *c = (unsigned char *)a; int p = id * 5 & 127; c[p] = in[me]; out[c[p]] = 1;",
        True,
    ),
    "all_the_same": (
        "if ((id & 31) == 0) a[0] = in[0]; __syncwarp(); out[*(volatile int *)a * id] = 1;",
        True,
    ),
    "one_finds_it": ("if (id == in[blockIdx.x] % 128) a[0] = id; __syncthreads(); out[a[0]] = 1;", True),
    "several_find_it": ("if (in[me] > 400) a[0] = id; __syncthreads(); out[a[0]] = 1;", False),
    "not_read": ("if (in[me] > 400) a[0] = id; a[id + 1] = id; __syncthreads(); out[a[id + 1]] = 1;", True),
    "overwritten": (
        "a[0] = id; __syncthreads(); if (id == 5) a[0] = in[0]; __syncthreads(); out[a[0]] = 1;",
        True,
    ),
    "named_barriers": (
        'if (id < 64) { a[id] = in[me]; asm volatile("bar.arrive 1, 128;" ::: "memory"); }'
        'else { asm volatile("bar.sync 1, 128;" ::: "memory"); out[a[id - 64]] = 1; }',
        True,
    ),
    "values_only": ("a[id] = in[me]; out[id] = ((volatile int *)a)[127 - id];", True),
}
#: (with lanes that nothing orders, the same with __syncwarp() or otherwise certain).
LANES = {
    "two_ways": (
        "int s = 0; if (in[id] & 1) { for (int i = 0; i < (in[id] & 7); i++) s += in[me + i]; v[id] = s; }"
        "else { for (int i = 0; i < (in[id] & 3); i++) s ^= in[i]; out[s] = v[id ^ 1];"
        "out[v[id ^ 1] & 1] = 1; }"
        "out[s] = 3;",
        "int s = 0; if (in[id] & 1) { for (int i = 0; i < (in[id] & 7); i++) s += in[me + i]; v[id] = s; }"
        "__syncwarp(); if (!(in[id] & 1)) { for (int i = 0; i < (in[id] & 3); i++) s ^= in[i];"
        "out[s] = v[id ^ 1]; out[v[id ^ 1] & 1] = 1; } out[s] = 3;",
    ),
    "one_exits": (
        "if (in[id] & 1) { v[id] = in[me]; return; } out[v[id ^ 1] & 1] = 1;",
        "v[id] = in[me]; __syncwarp(); if (in[id] & 1) { out[v[id ^ 1]] = 2; return; }"
        "out[v[id ^ 1] & 1] = 1;",
    ),
    "scan": (
        "int x = in[me] & 3; v[id] = x; for (int s = 1; s < 32; s *= 2) { if (lane >= s && x < 2) {"
        "x += v[id - s]; v[id] = x; }"
        "else if (x == 3) for (int i = 0; i < (in[id] & 7); i++) v[id] = x + i; }"
        "out[x] = 1;",
        "int x = in[me] & 3; v[id] = x; __syncwarp(); for (int s = 1; s < 32; s *= 2) {"
        "int y = lane >= s ? v[id - s] : 0; __syncwarp(); v[id] = x += y; __syncwarp(); } out[x] = 1;",
    ),
    "atomics": (
        "a[id] = 0; __syncthreads(); if (in[me] & 1) atomicAdd(&a[w + (in[me] & 3)], 1); else { int s = 0;"
        "for (int i = 0; i < (in[id] & 7); i++) s += in[i]; out[v[w + (s & 3)]] = 1; }",
        "a[id] = 0; __syncthreads(); if (in[me] & 1) atomicAdd(&a[w + (in[me] & 3)], 1); else { int s = 0;"
        "for (int i = 0; i < (in[id] & 7); i++) s += in[i]; atomicAdd(&a[w + (s & 3)], 2); }"
        "__syncwarp(); out[v[w + (id & 3)]] = 1;",
    ),
    "one_instruction": (
        "a[w + (in[me] & 7)] = id; __syncwarp(); out[v[w + (lane & 7)] & 1023] = 1;",
        "if (lane < 8) a[w + lane] = 0; __syncwarp(); a[w + (in[me] & 7)] = 5; __syncwarp();"
        "out[v[w + (lane & 7)]] = 1;",
    ),
    "exchanges": (
        "a[id] = 0; __syncthreads(); atomicExch(&a[w + (in[me] & 7)], id); __syncwarp(); out[v[id]] = 1;",
        "a[id] = 0; __syncthreads(); atomicExch(&a[id ^ 1], in[me]); __syncwarp(); out[v[id]] = 1;",
    ),
}
HEAD = """
#include <cuda_pipeline.h>
#define KERNEL(name, ...) extern "C" __global__ void name(int *out, const int *in) { \\
    __shared__ __align__(16) int a[256]; __shared__ int b[256]; \\
    int id = threadIdx.x, me = blockIdx.x * 128 + id, lane = id & 31, w = id - lane; \\
    volatile int *v = a; (void)b; (void)me; (void)v; (void)w; __VA_ARGS__ }
"""


def _reasons(name: str, blocks: int) -> tuple[str, ...]:
    def line(body: str, here: str = "") -> str:
        return " ".join(body.replace("HERE", here).split())

    bodies = {f"{one}_good": line(body, "__syncthreads();") for one, body in TWINS.items()}
    bodies |= {f"{one}_bad": line(body) for one, body in TWINS.items()}
    bodies |= {one: body for one, (body, _) in OTHERS.items()}
    bodies |= {f"lanes_{one}_{kind}": twins[kind] for one, twins in LANES.items() for kind in (0, 1)}
    text = HEAD + "\n".join(f"KERNEL({one}, {body})" for one, body in bodies.items())
    numbers = np.random.default_rng(0).permutation(1 << 10).astype(np.int32)
    return trace(
        kernels_of(text, "sass")[name], blocks, THREADS, [np.zeros(1 << 17, np.int32), numbers]
    ).uncertain


@pytest.mark.some(1)
@pytest.mark.parametrize("blocks", [1, BLOCKS])
@pytest.mark.parametrize("name", TWINS)
def test_a_missing_barrier_makes_counts_uncertain(name: str, blocks: int) -> None:
    assert not _reasons(f"{name}_good", blocks)
    assert all(MISSING in reason for reason in _reasons(f"{name}_bad", blocks))
    assert _reasons(f"{name}_bad", blocks)


@pytest.mark.parametrize("blocks", [1, BLOCKS])
@pytest.mark.parametrize("name", OTHERS)
def test_only_values_that_depend_on_timing_are_uncertain(name: str, blocks: int) -> None:
    assert bool(_reasons(name, blocks)) != OTHERS[name][1]


@pytest.mark.some(4)
@pytest.mark.parametrize("blocks", [1, BLOCKS])
@pytest.mark.parametrize("name", LANES)
def test_lanes_of_a_warp_that_nothing_orders_make_counts_uncertain(name: str, blocks: int) -> None:
    assert _reasons(f"lanes_{name}_0", blocks)
    assert not _reasons(f"lanes_{name}_1", blocks)


#: Each warp does what a table tells: (kind, word, value) for each step and warp. One lane stores or adds; a
#: load decides the stride of an access.
INTERPRETER = """
extern "C" __global__ void NAME(int *out, const int *table, int steps) {
    __shared__ TYPE words[4];
    if (threadIdx.x < 4) words[threadIdx.x] = 0;
    __syncthreads();
    for (int i = 0; i < steps; i++) {
        const int *op = table + 3 * ((blockIdx.x * steps + i) * 3 + threadIdx.x / 32);
        if (op[0] == 1 && threadIdx.x % 32 == 0) *(volatile TYPE *)&words[op[1]] = op[2];
        if (op[0] == 2 && threadIdx.x % 32 == 0) ADD;
        if (op[0] == 3) out[*(volatile TYPE *)&words[op[1]] * (threadIdx.x % 32)] = 1;
        if (op[0] == 4) __syncthreads();
        __syncwarp();
    }
}
"""
NOTHING, STORE, ADD, LOAD, BARRIER = range(5)
WARPS, WORDS = 3, 4
Op = tuple[int, int, int]
#: The words, and what was loaded: (barriers passed, warp, number of the operation, value).
State = tuple[tuple[int, ...], frozenset[tuple[int, int, int, int]]]


def _outcomes(epochs: list[list[list[Op]]]) -> set[frozenset[tuple[int, int, int, int]]]:
    """All that loads may find, in any order of the warps' operations between barriers; by plain Python."""
    states: set[State] = {((0,) * WORDS, frozenset())}
    for number, warps in enumerate(epochs):
        states = {end for state in states for end in _ends(number, warps, state)}
    return {seen for _, seen in states}


def _ends(number: int, warps: list[list[Op]], state: State) -> Iterator[State]:
    todo = {((0,) * WARPS, state)}
    known = set(todo)
    while todo:
        at, (words, seen) = todo.pop()
        if all(place == len(ops) for place, ops in zip(at, warps)):
            yield words, seen
        for warp, place in enumerate(at):
            if place == len(warps[warp]):
                continue
            kind, word, value = warps[warp][place]
            changed, found = list(words), seen
            if kind in (STORE, ADD):
                changed[word] = value + (words[word] if kind == ADD else 0)
            else:
                found = seen | {(number, warp, place, words[word])}
            one = (*at[:warp], place + 1, *at[warp + 1 :]), (tuple(changed), found)
            if one not in known:
                known.add(one)
                todo.add(one)


def _program(choose: random.Random, values: list[int], epochs: int) -> list[list[list[Op]]]:
    """Up to two operations of each warp between barriers; values are taken from the list in turn."""
    left = values.copy()

    def op() -> Op:
        kind = choose.choice((STORE, ADD, LOAD, LOAD)) if left else LOAD
        return kind, choose.randrange(WORDS), left.pop() if kind != LOAD else 0

    return [[[op() for _ in range(choose.randrange(3))] for _ in range(WARPS)] for _ in range(epochs)]


def _table(epochs: list[list[list[Op]]], choose: random.Random) -> list[list[Op]]:
    """The steps of a block: three between barriers, in which each warp has its operations at any step."""
    steps: list[list[Op]] = []
    for warps in epochs:
        columns = []
        for ops in warps:
            free = iter(ops)
            idle = set(choose.sample(range(3), 3 - len(ops)))
            columns.append([(NOTHING, 0, 0) if place in idle else next(free) for place in range(3)])
        steps += [list(step) for step in zip(*columns)]
        steps.append([(BARRIER, 0, 0)] * WARPS)
    return steps


def _is_certain(blocks: list[list[list[Op]]], name: str) -> bool:
    texts = (
        INTERPRETER.replace("NAME", "of_words")
        .replace("TYPE", "int")
        .replace("ADD", "atomicAdd(&words[op[1]], op[2])"),
        INTERPRETER.replace("NAME", "of_bytes").replace("TYPE", "unsigned char").replace("ADD", ""),
    )
    arguments = [np.zeros(1 << 17, np.int32), np.array(blocks, np.int32), len(blocks[0])]
    return not trace(kernels_of("".join(texts), "sass")[name], len(blocks), 32 * WARPS, arguments).uncertain


#: As the interpreter, but the three that do what the table tells are the lanes of one warp that go one way.
INTERPRETER_OF_LANES = """
#define WAY(way) for (int i = 0; i < 3; i++, op += 3) { \\
        if (op[0] == 1 && lane == way + 6) *(volatile int *)&words[op[1]] = op[2]; \\
        if (op[0] == 2 && lane == way + 6) atomicAdd(&words[op[1]], op[2]); \\
        if (op[0] == 3) out[*(volatile int *)&words[op[1]] * lane + way] = 1; }
extern "C" __global__ void of_lanes(int *out, const int *table, int epochs) {
    __shared__ int words[4];
    int lane = threadIdx.x;
    if (lane < 4) words[lane] = 0;
    __syncthreads();
    for (int epoch = 0; epoch < epochs; epoch++) {
        const int *op = table + 9 * ((blockIdx.x * epochs + epoch) * 3 + lane % 3);
        if (lane % 3 == 0) { WAY(0) } else if (lane % 3 == 1) { WAY(1) } else { WAY(2) }
        __syncwarp();
    }
}
"""


def _lanes_are_certain(blocks: list[list[list[list[Op]]]]) -> bool:
    padded = [[[[*ops, *[(NOTHING, 0, 0)] * 3][:3] for ops in ways] for ways in one] for one in blocks]
    arguments = [np.zeros(1 << 17, np.int32), np.array(padded, np.int32), len(blocks[0])]
    kernel = kernels_of(INTERPRETER_OF_LANES, "sass")["of_lanes"]
    return not trace(kernel, len(blocks), 32, arguments).uncertain


@pytest.mark.some(10)
@pytest.mark.parametrize(
    "seed", [*range(20), *(pytest.param(n, marks=pytest.mark.slow) for n in range(20, 400))]
)
def test_counts_are_uncertain_exactly_if_orders_of_lanes_differ(seed: int) -> None:
    """The ways of a branch, between which nothing is ordered before the next __syncwarp()."""
    choose = random.Random(seed)
    epochs = _program(choose, [1 << place for place in range(12)], choose.randrange(1, 4))
    others = _program(choose, [1 << place for place in range(12)], len(epochs))
    several, both = (any(len(_outcomes(one)) > 1 for one in these) for these in ([epochs], [epochs, others]))
    assert _lanes_are_certain([epochs]) != several
    assert _lanes_are_certain([epochs, others, epochs]) != both


@pytest.mark.some(10)
@pytest.mark.parametrize(
    "seed", [*range(20), *(pytest.param(n, marks=pytest.mark.slow) for n in range(20, 400))]
)
def test_counts_are_uncertain_exactly_if_orders_of_warps_differ(seed: int) -> None:
    """Stores of different values: uncertain if and only if two orders load different values."""
    choose = random.Random(seed)
    epochs = _program(choose, [1 << place for place in range(12)], choose.randrange(1, 4))
    several = len(_outcomes(epochs)) > 1
    assert _is_certain([_table(epochs, choose)], "of_words") != several
    others = _program(choose, [1 << place for place in range(12)], len(epochs))
    both = several or len(_outcomes(others)) > 1
    assert _is_certain([_table(one, choose) for one in (epochs, others, epochs)], "of_words") != both


@pytest.mark.parametrize(
    "seed", [*range(10), *(pytest.param(n, marks=pytest.mark.slow) for n in range(10, 400))]
)
def test_counts_are_uncertain_if_orders_of_stores_of_equal_bytes_differ(seed: int) -> None:
    choose = random.Random(seed)
    values = [choose.randrange(2) for _ in range(12)]
    epochs = _program(choose, values, choose.randrange(1, 4))
    epochs = [[[op for op in ops if op[0] != ADD] for ops in warps] for warps in epochs]
    if len(_outcomes(epochs)) > 1:
        assert not _is_certain([_table(epochs, choose)], "of_bytes")
