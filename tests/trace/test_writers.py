"""Who wrote each word of shared memory: what the recorder remembers equals what the kernel says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import memsim
from memsim.kernels import catalog
from memsim.state.parts import Part
from memsim.state.predicates import from_bools
from memsim.state.registers import Sum
from memsim.trace import writers as writers_module
from memsim.trace.trace import Trace
from memsim.trace.writers import MOST_WORDS, SwappedWords, Writers
from tests.simt.cuda import kernels_of
from tests.traces import make_trace

KERNEL = """\
extern "C" __global__ void k(float *out) {
    __shared__ float tile[4][64];
    const int t = threadIdx.x;
    if (t >= 8) tile[0][t] = 1.0f;
    tile[1][t] = 1.0f;
    __syncthreads();
    tile[1][63 - t] = 2.0f;
    if (t < 16) reinterpret_cast<float4 &>(tile[2][t * 4]) = make_float4(0, 1, 2, 3);
    if (blockIdx.x == 1) tile[3][t] = 3.0f;
    __syncthreads();
    out[blockIdx.x * 64 + t] = tile[t % 4][t];
}
"""


def test_the_first_thread_of_the_first_block_is_the_owner() -> None:
    trace = memsim.analyze(kernels_of(KERNEL)["k"], grid=2, block=64, args=[memsim.ArrayArg((128,))]).trace
    (first,) = [start // 4 for name, _, start, _ in trace.arrays if name == "tile"]
    padded = np.full(first + 256, -1)
    padded[: len(trace.writers)] = trace.writers
    rows = padded[first:].reshape(4, 64)
    assert rows[0].tolist() == [-1] * 8 + list(range(8, 64))
    assert rows[1].tolist() == list(range(64))
    assert rows[2].tolist() == [word // 4 for word in range(64)]
    assert rows[3].tolist() == [-1] * 64


def test_what_is_remembered_of_stores_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers_module, "MOST_SEEN", 2)
    writers = Writers()
    for word in (*range(6), *range(6)):
        writers.wrote(4 * word, 4, Part(np.arange(32)[None] == word), 32)
        assert 1 <= len(writers.seen) <= 3
    assert writers.threads.tolist() == list(range(6))


def test_of_threads_that_write_a_word_at_once_the_first_owns_it() -> None:
    writers = Writers()
    writers.wrote(Sum(8, v=Part(np.arange(32)[None] // 8 * 4)), 4, True, 32)
    assert writers.threads.tolist() == [-1, -1, 0, 8, 16, 24]


@pytest.mark.parametrize("width", [1, 4, 8, 16])
def test_owners_are_those_of_one_store_after_the_other(width: int) -> None:
    """Threads in any order, some idle, each store twice; of several blocks the first counts."""
    random = np.random.default_rng(width)
    threads, writers = 64, Writers()
    stores = [
        (
            Sum(
                int(random.integers(8)) * width,
                u=Part(random.integers(0, 8, (2, 1)) * width),
                v=Part(random.integers(0, 16, (1, threads)) * width),
            ),
            Part(random.random((2, threads)) < 0.3),
        )
        for _ in range(8)
    ]
    owners: dict[int, int] = {}
    for address, active in [*stores, *stores]:
        writers.wrote(address, width, active, threads)
        for thread in np.flatnonzero(active.array[0]).tolist():
            first = int(address.array[0, thread])
            for word in {byte // 4 for byte in range(first, first + width)}:
                owners.setdefault(word, thread)
    writers.wrote(0, width, False, threads)
    assert writers.threads.tolist() == [owners.get(word, -1) for word in range(max(owners) + 1)]


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("blocks", [1, 2])
def test_warps_meet_where_two_update_a_word_of_one_block(blocks: int, width: int) -> None:
    random = np.random.default_rng(10 * blocks + width)
    several = 0
    for _ in range(60):
        words, owners, meet = SwappedWords(), {}, False
        words.start_chunk(np.zeros(blocks, np.int64))
        for _ in range(int(random.integers(1, 4))):
            at = width * (
                random.integers(0, 40, (blocks, 64)) + 40 * (np.arange(64) // 32) * random.integers(2)
            )
            active = random.random((blocks, 64)) < 0.1
            words.update(Sum(0, v=Part(at)), width, from_bools(active), 64)
            for block, thread in zip(*np.nonzero(active)):
                for part in range(width // 4):
                    word = block, int(at[block, thread]) // 4 + part
                    meet |= owners.setdefault(word, thread // 32) != thread // 32
        assert words.meet == meet
        if not meet:  # a word has room once it is updated
            assert words.owner.shape == (blocks, max((word for _, word in owners), default=-1) + 1)
        several += meet
    assert 0 < several < 60
    words = SwappedWords()
    words.start_chunk(np.zeros(2, np.int64))
    words.update(0, width, False, 64)
    assert not words.meet
    words.update(4 * MOST_WORDS, width, True, 64)
    assert words.meet, "it is not looked at"
    parted = SwappedWords()
    parted.start_chunk(np.array([0, 1]))
    parted.update(0, width, from_bools(np.arange(64)[None, :] == 3), 64)
    assert parted.meet, "rows of one block may meet"


COPY = """\
__device__ void copy(float4 *to, const float4 *from) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at), "l"(from));
}
extern "C" __global__ void k(const float4 *in, float *out) {
    __shared__ float4 tile[64];
    const int t = threadIdx.x;
    if (t < 16) copy(&tile[t], in + t);
    if (t < 32) copy(&tile[63 - t], in + t);
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    out[t] = tile[t].x;
}
"""


def test_copies_past_the_cache_have_owners_and_what_nobody_copied_has_none() -> None:
    args = [memsim.ArrayArg((256,)), memsim.ArrayArg((64,))]
    trace = memsim.analyze(kernels_of(COPY)["k"], grid=1, block=64, args=args).trace
    assert {site.op for site in trace.sites} == {"cp_async_cg", "load", "store"}
    (first,) = [start // 4 for name, _, start, _ in trace.arrays if name == "tile"]
    owners = trace.writers[first : first + 256].reshape(64, 4)
    assert (owners == owners[:, :1]).all()  # a thread brings all 16 bytes
    assert owners[:, 0].tolist() == [*range(16), *[-1] * 16, *range(31, -1, -1)]


@pytest.mark.slow
def test_a_loop_with_two_buffers_fills_both() -> None:
    trace = catalog()["kernel_v5"].trace(size=(128, 128, 32))
    arrays = {name: (start // 4, size // 4) for name, space, start, size in trace.arrays if space == "shared"}
    for first, words in arrays.values():
        owners = trace.writers[first : first + words]
        assert len(owners) == words
        assert set(owners.tolist()) == set(range(256))


def test_owners_are_saved_and_may_be_unknown(tmp_path: Path) -> None:
    trace = make_trace(writers=np.array([3, -1, 0], np.int32))
    trace.save(tmp_path / "t.npz")
    assert Trace.load(tmp_path / "t.npz").writers.tolist() == [3, -1, 0]
    assert make_trace().writers.shape == (0,)
