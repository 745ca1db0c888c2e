"""Which lanes run a line together, after branches that parted them.

Each kernel writes down, at each `P(line, turn)` that a lane comes to, the lanes that are there with it. On a
GPU (`pytest -m gpu`) the same kernels run on the chip.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pytest

from memsim import analyze, load, run
from memsim.compile import compile_cuda

LANES, VISITS = 32, 48
FRAME = """
#define P(line, turn) {{ unsigned mask; asm volatile("activemask.b32 %0;" : "=r"(mask) :: "memory"); \\
    unsigned *to = out + (threadIdx.x * {visits} + n++) * 3; to[0] = line; to[1] = turn; to[2] = mask; }}
extern "C" __global__ void k(unsigned *out, {kind} int *in, int *more) {{
    int i = threadIdx.x, n = 0, x = in[i], y;
    {body}
}}
"""

# All lanes that come to a line in the same turn run it together.
TOGETHER = {
    "else of and": "if (x & 1 && in[i + 32] & 2) P(1, 0) else { P(2, 0) more[i] = 1; } P(3, 0)",
    "then of or": """
        if (x & 1 || in[i + 32] & 2 || in[i + 64] & 4) { P(1, 0) more[i] = 1; } else P(2, 0)
        P(3, 0)""",
    "and in and": """
        if (x & 1 && in[i + 32] & 2) P(1, 0)
        else {
            if (x & 4 && in[i + 64] & 1) P(2, 0) else { P(3, 0) more[i] = 2; }
            P(4, 0)
        }
        P(5, 0)""",
    "break in if": """
        for (int t = 0; t < 5; t++) {
            if (x & 1) { if (in[i + 32] == t) break; P(1, t) }
            P(2, t)
        }
        P(3, 0)""",
    "break in else": """
        int t = 0;
        while (true) {
            t++;
            if ((x + t) & 1) P(1, t) else { if (t > (in[i + 32] & 7)) break; P(2, t) }
            P(3, t)
        }
        P(4, 0)""",
    "continue": """
        for (int t = 0; t < 4; t++) {
            if (in[i + 32 * t] & 1) { P(1, t) continue; }
            P(2, t)
        }
        P(3, 0)""",
    "return in if": "if (x & 1) { if (x & 2) { P(1, 0) more[i] = 1; return; } P(2, 0) } P(3, 0)",
    "loops of own length": """
        for (int t = 0; t < (x & 7); t++) {
            P(1, t)
            for (int u = 0; u < (in[i + 32] & 3); u++) P(2, t * 8 + u)
            P(3, t)
        }
        P(4, 0)""",
    "do while": """
        int t = 0;
        do { P(1, t) } while (++t < (in[i + t] & 7));
        P(2, 0)
        if (x & 8) P(3, 0)
        P(4, 0)""",
    "atomic that nobody reads": """
        int t = 0;
        do { P(1, t) atomicAdd(&more[i & 3], x); } while (++t < (x & 7));
        P(2, 0)""",
    "atomic read behind the loop": """
        int t = 0, l;
        do { P(1, t) l = atomicAdd(&more[i & 3], x); } while (++t < (x & 7));
        P(2, 0) more[i] = l;""",
    "volatile load that ends nothing": """
        int t = 0;
        do { P(1, t) if (((volatile int *)more)[i] > x) more[i] = t; P(2, t) } while (++t < (x & 7));
        P(3, 0)""",
    "switch behind a guard in a loop": """
        for (int t = 0; t < 5; t++) {
            if (t == i % 5) continue;
            P(1, t)
            switch ((in[i] + t) & 7) {
                case 0: P(2, t) more[i] = 1; break;
                case 1: P(3, t) more[i] = 2; break;
                case 2: P(4, t) more[i] = 3; break;
                default: P(5, t) more[i] = 4;
            }
            P(6, t)
        }
        P(7, 0)""",
    "loop with several ways out in a loop": """
        for (int t = 0; t < 4; t++) {
            int s = (x + t * i) & 255;
            while (true) {
                s = (s * 5 + 1) & 255;
                if (((s & 1) && s > 7) || s == 4) break;
                if ((s & 6) == 2) { s ^= 1; continue; }
                if (s > 200) break;
                s++;
            }
            more[i] = s;
            P(1, t)
        }
        P(2, 0)""",
    "barrier after a loop": "int t = 0; do { P(1, t) } while (++t < (x & 7)); __syncthreads(); P(2, 0)",
}

# Some turns of the loop let those that wait for it go on: it reads what other lanes may write.
MAY_WAIT = {
    "do while": "int t = 0; do { P(1, t) } while (++t < (in[i] & 7)); P(2, t)",
    "break": """
        int t = 0;
        while (true) { P(1, t) if (++t > (in[i] & 7)) break; P(2, t) }
        P(3, t)
        if (x & 8) P(4, t)""",
    "atomic": "int t = 0; do { P(1, t) } while (atomicAdd(&more[i], 1) < (x & 7) && ++t < 9); P(2, t)",
    "flag": """
        int t = 0, c = 0;
        while (c < 3) { P(1, t) t++; if ((in[i] + t) & 1) { P(2, t) more[i] = t; c++; } P(3, t) }
        P(4, t)""",
    "barrier behind it": """
        int t = 0;
        while (t < (in[i] & 7)) { P(1, t) t++; }
        __syncthreads();
        for (int u = i; u < 32; u += 32) P(2, 0)
        P(3, 0)""",
    "barrier in a loop": """
        for (int u = 0; u < 3; u++) {
            int t = 0;
            do { P(1, 9 * u + t) } while (atomicAdd(&more[i], 1) < (x & 7) && ++t < 9);
            __syncthreads();
            if (x & 1) P(2, u)
            P(3, u)
        }
        P(4, 0)""",
}

# ptxas has to choose where lanes meet.
CONTESTED = {
    "goto": """
        if (x & 1) goto a;
        P(1, 0)
        if (x & 2) goto b;
        P(2, 0) more[i] = 1;
     a: P(3, 0)
        if (x & 4) goto c;
     b: P(4, 0) more[i] = 2;
     c: P(5, 0)""",
    "two ways out": """
        int t;
        for (t = 0; t < 6; t++) {
            if (x == t) { P(1, 0) goto found; }
            P(2, t)
            if (in[64 + t] == x) break;
            P(3, t)
        }
        P(4, 0)
     found: P(5, 0)""",
}

Arrays = list[np.ndarray]


def compiled(body: str, kind: str = "const") -> str:
    return compile_cuda(FRAME.format(visits=VISITS, body=body, kind=kind), name="k.cu")


def arguments(seed: int) -> Arrays:
    given = np.random.default_rng(seed).integers(0, 16, 160).astype(np.int32)
    return [np.zeros(LANES * VISITS * 3, np.uint32), given, np.zeros(LANES, np.int32)]


def on_emulator(ptx: str, arrays: Arrays) -> None:
    run(load(ptx, code="ptx")["k"], 1, LANES, arrays)


def on_chip(ptx: str, arrays: Arrays) -> None:
    import cupy

    there = [cupy.asarray(array) for array in arrays]
    module = cupy.cuda.function.Module()
    module.load(ptx.encode())
    module.get_function("k")((1,), (LANES,), tuple(there))
    for array, result in zip(arrays, there):
        array[:] = cupy.asnumpy(result)


@pytest.fixture(params=[on_emulator, pytest.param(on_chip, marks=pytest.mark.gpu)])
def execute(request: pytest.FixtureRequest) -> Callable[[str, Arrays], None]:
    return request.param


def groups(log: np.ndarray) -> dict[tuple[int, int], dict[int, int]]:
    """For each (line, turn): the lanes that came to it, each with the mask that it saw there."""
    found: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    for lane, visits in enumerate(log.reshape(LANES, VISITS, 3).tolist()):
        for line, turn, mask in visits:
            if line:
                found[line, turn][lane] = mask
    return found


@pytest.mark.parametrize("name", TOGETHER)
def test_lanes_run_a_line_together(name: str, execute: Callable[[str, Arrays], None]) -> None:
    ptx = compiled(TOGETHER[name])
    for seed in range(6):
        arrays = arguments(seed)
        execute(ptx, arrays)
        for place, seen in groups(arrays[0]).items():
            here = sum(1 << lane for lane in seen)
            assert set(seen.values()) == {here}, place
    assert analyze(load(ptx, code="ptx")["k"], 1, LANES, arguments(0)).trace.unsure == ()


@pytest.mark.parametrize("name", MAY_WAIT)
def test_who_leaves_a_loop_that_may_wait_goes_on_alone(
    name: str, execute: Callable[[str, Arrays], None]
) -> None:
    ptx = compiled(MAY_WAIT[name], "const" if "atomic" in MAY_WAIT[name] else "volatile")
    for seed in range(6):
        arrays = arguments(seed)
        execute(ptx, arrays)
        for place, seen in groups(arrays[0]).items():
            here = sum(1 << lane for lane in seen)
            assert set(seen.values()) == {here}, place  # the turn in which it left is told apart
    notes = analyze(load(ptx, code="ptx")["k"], 1, LANES, arguments(0)).trace.unsure
    assert [note.partition(" at ")[0] for note in notes] == ["which lanes go on together after the loop"]


@pytest.mark.parametrize("name", CONTESTED)
def test_what_ptxas_chooses_is_said(name: str) -> None:
    kernel = load(compiled(CONTESTED[name]), code="ptx")["k"]
    notes = analyze(kernel, 1, LANES, arguments(0)).trace.unsure
    assert notes
    assert all(note.startswith("which lanes meet after the branch at k.cu:") for note in notes)
    uniform = arguments(0)
    uniform[1][:] = 3
    assert analyze(kernel, 1, LANES, uniform).trace.unsure == ()


@pytest.mark.parametrize("barrier", ["__syncthreads();", ""])
def test_a_barrier_brings_together_who_left_a_loop_apart(barrier: str) -> None:
    kernel = load(
        compile_cuda(
            f"""extern "C" __global__ void k(const int *in, int *more) {{
                for (int i = threadIdx.x, t; i < 40; i += blockDim.x)
                    do t = atomicAdd(&more[64 + i], 1); while (t < in[i]);
                {barrier}
                for (int u = threadIdx.x; u < 64; u += blockDim.x) more[u] = u;
            }}""",
            name="k.cu",
        ),
        code="ptx",
    )["k"]
    given, more = np.arange(64, dtype=np.int32) % 5, np.zeros(128, np.int32)
    rows = analyze(kernel, 2, 64, [given, more]).sites
    stores = [row.requests for row in rows if row.op == "store"]
    assert (stores == [4]) == bool(barrier)
