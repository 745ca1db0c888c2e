"""Mbarriers: phases, arrivals and bytes, against a scalar oracle and in kernels that depend on them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsim import MemsimError
from memsim.api.running import run
from memsim.captured.analyze_any import analyze
from memsim.isa.op import PREDICATE, Predicate
from memsim.simt.groups import Groups
from memsim.simt.waits import PhaseWaits, WaitingForPhase
from memsim.state.mbarriers import FULL, Mbarriers, upper_word
from memsim.state.predicates import from_bools
from tests.simt.cuda import HOPPER, machine_kernel

WAITS = """
__device__ u32 arrive(u32 b) {
    u64 s; asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(s) : "r"(b) : "memory");
    return s >> 32; }
__device__ int tested(u32 b, u32 parity) { int done;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(b), "r"(parity) : "memory"); return done; }
__device__ int tried(u32 b, u32 parity) { int done;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(b), "r"(parity) : "memory"); return done; }
__device__ void wait(u32 b, u32 parity) { while (!tried(b, parity)) ; }
"""


def kernel(body: str, name: str = "k") -> Any:
    return machine_kernel(HOPPER + WAITS + body, name)


# A producer that begins at the barriers of the consumer, which are empty: four stages, so many rounds.
PIPELINE = """
extern "C" __global__ void k(int *out, int rounds) {
    __shared__ int s[4][32]; __shared__ u64 full[4], empty[4];
    if (threadIdx.x == 0) for (int i = 0; i < 4; i++) { init(at(full + i), 32); init(at(empty + i), 32); }
    __syncthreads();
    int t = threadIdx.x & 31, sum = 0;
    if (threadIdx.x >= 32)
        for (int i = 0; i < rounds; i++) {
            wait(at(empty + i % 4), (i / 4 & 1) ^ 1);
            s[i % 4][t] = i * 100 + t;
            arrive(at(full + i % 4));
        }
    else {
        for (int i = 0; i < rounds; i++) {
            wait(at(full + i % 4), i / 4 & 1);
            sum += s[i % 4][31 - t];
            arrive(at(empty + i % 4));
        }
        out[t + 32 * blockIdx.x] = sum;
    }
}"""


@pytest.mark.some(1)
@pytest.mark.parametrize("rounds", [1, 4, 13])
def test_a_producer_waits_for_its_consumer(rounds: int) -> None:
    k = kernel(PIPELINE)
    out = np.zeros((3, 32), np.int32)
    run(k, 3, 64, [out, rounds])
    assert (out == sum(i * 100 + 31 - np.arange(32) for i in range(rounds))).all()


def test_how_long_lanes_wait_leaves_the_counts_certain() -> None:
    analysis = analyze(kernel(PIPELINE), 3, 64, [np.zeros((3, 32), np.int32), 13])
    assert analysis.trace.uncertain == ()
    assert analysis.totals["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] == 39
    assert analysis.totals["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"] == 39


def test_arrivals_tell_phase_and_what_is_missing() -> None:
    body = """
extern "C" __global__ void k(u32 *out) {
    __shared__ u64 b;
    if (threadIdx.x == 0) init(at(&b), 96);
    __syncthreads();
    u32 first = arrive(at(&b));
    __syncthreads();
    u32 second = arrive(at(&b));
    out[threadIdx.x] = first >> 31; out[32 + threadIdx.x] = second >> 31;
    out[64 + threadIdx.x] = tested(at(&b), 0); arrive(at(&b)); out[96 + threadIdx.x] = tested(at(&b), 0);
    out[128 + threadIdx.x] = arrive(at(&b)) >> 31;
}"""
    out = np.zeros((5, 32), np.uint32)
    run(kernel(body), 1, 32, [out])
    assert out[:, 0].tolist() == [0, 0, 0, 1, 1]
    assert (out == out[:, :1]).all()


@pytest.mark.some(2)
@pytest.mark.parametrize("missing", [0, 1])
@pytest.mark.parametrize("lanes_each", [1, 4, 32])
def test_lanes_initialise_objects_of_their_own(lanes_each: int, missing: int) -> None:
    """ptxas makes a loop of it, which serves the lanes of one object at a time."""
    body = """
extern "C" __global__ void k(u32 *out, int lanes_each, int missing) {
    __shared__ u64 objects[32];
    u32 mine = at(objects + threadIdx.x / lanes_each);
    init(mine, lanes_each + missing);
    __syncthreads();
    arrive(mine);
    __syncthreads();
    out[threadIdx.x] = tested(mine, 0);
}"""
    out = np.zeros(32, np.uint32)
    run(kernel(body), 1, 32, [out, lanes_each, missing])
    assert out.tolist() == [1 - missing] * 32


NO_COMPLETE = """
extern "C" __global__ void k(const u32 *table, u32 count, u64 *out) {
    __shared__ u64 objects[32];
    init(at(objects + threadIdx.x), 5000);
    __syncthreads();
    u32 w = table[threadIdx.x]; u64 s = 0;
    if (w >> 31)
        asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], %2;"
                     : "=l"(s) : "r"(at(objects + (w & 31))), "r"(count) : "memory");
    out[threadIdx.x] = s;
}"""


@pytest.mark.slow
def test_arrivals_that_complete_nothing_tell_what_an_h200_told() -> None:
    """Each lane at the object in bits 0 to 4 of its word, if bit 31 is set: eight patterns, two counts."""
    recorded = np.load(Path(__file__).with_name("data") / "arrivals_h200.npz")
    k = kernel(NO_COMPLETE)
    for count, patterns in zip(recorded["counts"], recorded["words"], strict=True):
        for table, words in zip(recorded["tables"], patterns, strict=True):
            out = np.zeros(32, np.uint64)
            run(k, 1, 32, [table, count, out])
            assert (out == words[:, 0] | words[:, 1].astype(np.uint64) << np.uint64(32)).all()


ARRIVALS = """
extern "C" __global__ void k(u32 *out, int expected, int lanes) {
    __shared__ u64 object;
    if (threadIdx.x == 0) init(at(&object), expected);
    __syncthreads();
    if (threadIdx.x % 32 < lanes) arrive(at(&object));
    __syncthreads();
    out[threadIdx.x] = tested(at(&object), 0);
}"""


def test_each_warp_may_complete_a_phase() -> None:
    out = np.zeros(96, np.uint32)
    run(kernel(ARRIVALS), 1, 96, [out, 8, 8])
    assert (out == 1).all()  # three phases are over


def test_more_lanes_of_an_instruction_than_a_phase_expects_end_the_launch() -> None:
    """CUDA_ERROR_LAUNCH_FAILED on an H200: 5 and 8 lanes where 4 are expected, 2 where one is."""
    made = kernel(ARRIVALS)
    for expected, lanes in ((4, 5), (4, 8), (1, 2)):
        with pytest.raises(MemsimError, match="by lanes of one instruction: an H200 ends the launch"):
            run(made, 1, 32, [np.zeros(32, np.uint32), expected, lanes])


def test_bytes_hold_a_phase_open() -> None:
    body = """
extern "C" __global__ void k(u32 *out) {
    __shared__ u64 b;
    if (threadIdx.x == 0) { init(at(&b), 1); expect(at(&b), 48); out[0] = tested(at(&b), 0);
        asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 32;" :: "r"(at(&b)) : "memory");
        out[1] = tested(at(&b), 0);
        asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 16;" :: "r"(at(&b)) : "memory");
        out[2] = tested(at(&b), 0); out[3] = tested(at(&b), 1); }
}"""
    out = np.zeros(4, np.uint32)
    run(kernel(body), 1, 32, [out])
    assert out.tolist() == [0, 0, 1, 0]


def test_copies_arrive_when_they_are_issued() -> None:
    body = """
extern "C" __global__ void k(int4 *out, const int4 *in) {
    __shared__ u64 b[2]; __shared__ int4 s[32];
    if (threadIdx.x == 0) { init(at(b), 32); init(at(b + 1), 32); }
    __syncthreads();
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :: "r"(at(s + threadIdx.x)), "l"(in + threadIdx.x) : "memory");
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(at(b)) : "memory");
    asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" :: "r"(at(b + 1)) : "memory");
    arrive(at(b + 1));
    wait(at(b), 0); wait(at(b + 1), 0);
    out[threadIdx.x] = s[31 - threadIdx.x];
}"""
    given, out = np.arange(128, dtype=np.int32).reshape(32, 4), np.zeros((32, 4), np.int32)
    run(kernel(body), 1, 32, [out, given])
    assert (out == given[::-1]).all()


def test_a_wait_gives_up_where_nobody_else_goes_on() -> None:
    """As pipelines do it: ask for the next stage before the last one is given back."""
    body = """
extern "C" __global__ void k(int *out) {
    __shared__ u64 b;
    if (threadIdx.x == 0) init(at(&b), 32);
    __syncthreads();
    int early = tried(at(&b), 0);
    arrive(at(&b));
    if (!early) wait(at(&b), 0);
    out[threadIdx.x] = early;
}"""
    out = np.ones(32, np.int32)
    run(kernel(body), 1, 32, [out])
    assert not out.any()


def test_a_phase_that_is_never_over_is_an_error() -> None:
    body = """
extern "C" __global__ void k(int *out, int many, int bytes) {
    __shared__ u64 b;
    if (threadIdx.x == 0) init(at(&b), many);
    __syncthreads();
    if (bytes) expect(at(&b), bytes); else arrive(at(&b));
    wait(at(&b), 0);
    out[threadIdx.x] = 1;
}"""
    made, out = kernel(body), np.zeros(32, np.int32)
    run(made, 1, 32, [out, 32, 0])
    assert out.all()
    with pytest.raises(MemsimError, match=r"a phase of an mbarrier never completes.*1 arrival is missing"):
        run(made, 1, 32, [out, 33, 0])
    with pytest.raises(MemsimError, match="more arrivals"):
        run(made, 1, 32, [out, 31, 16])


def test_an_object_that_nobody_initialised_is_an_error() -> None:
    body = 'extern "C" __global__ void k(int *out) { __shared__ u64 b; wait(at(&b), 0); out[0] = 1; }'
    with pytest.raises(MemsimError, match="was never initialized") as error:
        run(kernel(body), 1, 32, [np.zeros(32, np.int32)])
    assert error.value.line


@pytest.mark.slow
def test_an_address_that_is_not_known_makes_all_of_them_unknown() -> None:
    body = """
extern "C" __global__ void k(int *out) {
    __shared__ u64 b[2];
    if (threadIdx.x == 0) { init(at(b), 1); arrive(at(b + (clock() & 1))); }
    __syncthreads();
    wait(at(b), 0); out[threadIdx.x] = 1;
}"""
    with pytest.raises(MemsimError, match=r"depends on an unknown value: .*CLOCK"):
        run(kernel(body), 1, 32, [np.zeros(32, np.int32)])


# --- the state itself, against PTX's words read by a scalar machine --------------------------------


class Scalar:
    """One object, one lane at a time."""

    def __init__(self, count: int) -> None:
        self.expected = self.pending = count
        self.tx = self.phase = 0

    def step(self, count: int, tx: int, drops: bool) -> tuple[int, int]:
        before = self.phase, self.pending
        self.tx += tx
        assert count <= self.pending
        self.pending -= count
        self.expected -= count * drops
        if self.pending == 0 and self.tx == 0:
            self.phase ^= 1
            self.pending = self.expected
        return before


@given(
    st.integers(1, 40),
    st.lists(st.tuples(st.lists(st.tuples(st.integers(0, 2), st.sampled_from((0, 0, 16, -16))).filter(any),
                                min_size=1, max_size=40), st.booleans()), max_size=8),
)  # fmt: skip
def test_many_lanes_at_once_are_one_after_the_other(count: int, instructions: Any) -> None:
    objects, scalar = Mbarriers(1), Scalar(count)
    bits = (FULL - count) % FULL << 1 | (FULL - count) % FULL << 43
    objects.initialise(np.zeros(1, int), np.array([64]), np.array([bits], np.uint64))
    for lanes, drops in instructions:
        if any(count for count, _ in lanes) and any(tx for _, tx in lanes):
            lanes = [
                (0, tx) for _, tx in lanes if tx
            ]  # an instruction counts one or the other, or each lane both
        zero = np.zeros(len(lanes), int)
        columns = (np.array(column) for column in zip(*lanes))
        try:
            want = [scalar.step(*lane, drops) for lane in lanes]
        except AssertionError:
            with pytest.raises(MemsimError):
                objects.arrive(zero, zero + 64, *columns, drops)
            return
        phase, missing, _ = objects.arrive(zero, zero + 64, *columns, drops)
        assert set(zip(phase.tolist(), missing.tolist())) == {want[0]}
        assert objects.lacks(0, 64) == (scalar.pending, scalar.tx)
        assert objects.passed(zero[:1], zero[:1] + 64, np.array([scalar.phase ^ 1])).all()
        if scalar.expected == 0:  # nobody is expected any more
            return


def test_each_object_has_a_column() -> None:
    objects = Mbarriers(2)
    assert objects.columns(np.array([[64, 192], [64, 128]])).tolist() == [[0, 2], [0, 1]]
    assert objects.columns(np.array([8, 128, 0])).tolist() == [4, 1, 3]
    assert objects.objects.phase.shape == (2, 5)


def test_the_word_that_an_arrival_gives_back_is_the_chips() -> None:
    """Counts of 40, 8 and 100, and one arrival with 32,000 and 1,000 bytes on their way, on an H200."""
    missing, bytes = np.array([40, 8, 100, 1, 1]), np.array([0, 0, 0, 32000, 1000])
    words = upper_word(np.zeros(5, np.int64), missing, bytes)
    assert words.tolist() == [0x7FFEC000, 0x7FFFC000, 0x7FFCE000, 0x7FFFFBF0, 0x7FFFFBFF]


@pytest.mark.parametrize("ends", ["release", "give_up"])
def test_what_others_still_read_is_kept_when_several_waits_end_at_once(ends: str) -> None:
    """The answer of one wait is a predicate that lanes at another wait may hold something else in."""
    answer = Predicate(PREDICATE)
    waits = [
        WaitingForPhase(SimpleNamespace(index=index, form=SimpleNamespace(operands=(answer,))), mask, 0, 0)  # type: ignore[arg-type]
        for index, mask in (
            (10, from_bools(np.arange(64)[None] < 32)),
            (20, from_bools(np.arange(64)[None] >= 32)),
        )
    ]
    read_behind = {11: 1 << 5, 21: 1 << PREDICATE}
    protected: list[int] = []
    machine: Any = SimpleNamespace(mask=True, protected=0, mbarriers=SimpleNamespace(changes=1))
    machine.write = lambda slot, value, lanes: protected.append(machine.protected)
    code: Any = SimpleNamespace(live=read_behind.__getitem__)
    groups = Groups(machine, code)
    phases = PhaseWaits(machine, code, groups)
    groups.waits, phases.waiting = [phases], waits
    phases.over = lambda entry: True  # type: ignore[method-assign]
    phases.passed = lambda entry, lanes: phases.answer(entry.op, True, lanes)  # type: ignore[method-assign]
    assert getattr(phases, ends)()
    assert protected == [1 << PREDICATE, 1 << 5]
    assert not phases.waiting and [group.pc for group in groups.ready] == [11, 21]
