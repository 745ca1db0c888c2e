"""The rules of `cp.async` equal the scalar oracle, and what was recorded of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsim.arch import SM_90
from memsim.captured.analyze_any import analyze
from memsim.errors import MemsimError
from memsim.model import bypass_access, copy_access, copy_source_page, shared_access
from memsim.model.checked_requests import CHUNK
from memsim.model.cp_async import is_certain, limits_of_conflicts, overlaps
from memsim.model.service import serve_copies
from tests.model import oracle
from tests.model.test_against_oracle import LANES, requests
from tests.simt.cuda import machine_kernel


@st.composite
def copies(draw: st.DrawFn, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Addresses, origins, active lanes, and which of them read."""
    (to, active), (source, _) = draw(requests(width)), draw(requests(width))
    reads = draw(st.one_of(st.just([True] * 32), st.lists(st.booleans(), min_size=32, max_size=32)))
    return to, np.abs(source), active, np.array(reads)


@given(st.data(), st.sampled_from([4, 8, 16]))
def test_copies_equal_the_oracle(data: st.DataObject, width: int) -> None:
    to, source, active, read = data.draw(copies(width))
    lists = [column.tolist() for column in (to, source)], [active.tolist(), (active & read).tolist()]
    cost = copy_access(to, source, width, active, read)
    assert oracle.counts_of(cost) == oracle.copied(*lists[0], width, *lists[1])

    service = serve_copies(to, source, width, active, read)
    turns = oracle.copy_turns(*lists[0], width, *lists[1])
    first, size = 0, oracle.GROUP[width]
    for group in range(0, 32, size):
        lanes = range(group, group + size)
        expected = [first + turns[lane] if turns[lane] else 0 for lane in lanes]
        assert service.wavefront[group : group + size].tolist() == expected
        assert service.group[group : group + size].tolist() == [
            group // size + 1 if turns[lane] else 0 for lane in lanes
        ]
        first += max(turns[lane] for lane in lanes)
    elsewhere = copy_access(to + 128, np.where(active & read, source + 2**20, -1), width, active, read)
    assert oracle.counts_of(elsewhere) == oracle.counts_of(cost)


@given(st.data(), st.sampled_from([4, 8, 16]))
def test_on_a_miss_the_lanes_of_a_line_are_not_divided(data: st.DataObject, width: int) -> None:
    """A group has the conflicts of its worst line at least, and one for each lane but the first at most."""
    to, source, active, read = data.draw(copies(width))
    columns = to[None], source[None], width, active[None], read[None]
    fewest = most = 0
    for first in range(0, 32, oracle.GROUP[width]):
        inside = (first <= LANES) & (first + oracle.GROUP[width] > LANES) & active
        lines = {at // 128 for at in source[inside & read].tolist()}
        alone = [(inside & read & (source // 128 == line)).tolist() for line in lines]
        of_lines = [oracle.copied(to.tolist(), source.tolist(), width, one, one) for one in alone]
        fewest += max((one["conflicts"] for one in of_lines), default=0)
        most += max(int(inside.sum()) - 1, 0)
    if is_certain(source[None], width, active[None], read[None], SM_90)[0]:
        fewest = most = int(copy_access(to, source, width, active, read).conflicts)
    found = limits_of_conflicts(*columns)
    assert [int(column[0]) for column in found] == [fewest, most]


@given(st.data())
def test_bypassing_equals_the_oracle(data: st.DataObject) -> None:
    to, source, active, _ = data.draw(copies(16))
    cost = bypass_access(to, source, active)
    expected = oracle.bypassing(to.tolist(), source.tolist(), active.tolist())
    assert {"sectors": int(cost.sectors), "lines": int(cost.lines)} == expected
    assert overlaps(to, active) == (len(set(to[active].tolist())) < active.sum())


@given(st.data(), st.sampled_from([4, 8, 16]))
def test_side_by_side_the_origins_do_not_matter(data: st.DataObject, width: int) -> None:
    to, _, active, _ = data.draw(copies(width))
    source = data.draw(st.integers(0, 2**20)) * 128 + LANES * width
    assert is_certain(source, width, active, active)
    copy, plain = copy_access(to, source, width, active), shared_access(to, width, "cp_async", active)
    assert oracle.counts_of(copy) == oracle.counts_of(plain)


def test_what_is_certain_and_what_hits_decide() -> None:
    everywhere, even = LANES >= 0, LANES % 2 == 0
    assert is_certain(LANES * 4, 4, everywhere, everywhere)
    assert not is_certain(LANES * 4 + 4, 4, everywhere, everywhere)  # over the end of a line
    assert not is_certain(LANES * 4, 4, everywhere, even)  # some write zeros
    assert is_certain(np.where(even, LANES * 4, -1), 4, even, even)  # some are idle
    scattered = LANES % 8 * 4 + LANES // 8 * 4096
    assert not is_certain(scattered, 4, everywhere, everywhere)
    assert is_certain(np.array([LANES * 4, scattered]), 4, everywhere, everywhere).tolist() == [True, False]
    lines = LANES % 8 * 16 + LANES // 8 * 4096
    assert is_certain(lines, 16, everywhere, everywhere)  # each group of 8 lanes has its line


def test_lanes_meet_where_they_read() -> None:
    rows = LANES % 8 * 4 + LANES // 8 * 4096
    assert copy_access(LANES * 4, rows, 4).ways == 4
    assert copy_access(LANES * 4, rows + LANES // 8 * 32, 4).ways == 1
    assert copy_access(LANES * 4, rows, 4, read=LANES < 8).ways == 1
    page = copy_source_page(LANES * 4, rows, 4)
    assert (int(page.wavefronts), int(page.ideal)) == (4, 1)
    chain = np.array(
        [0, 4, 4, *range(12, 128, 4)]
    )  # lane 1 waits for lane 0 where it writes, 2 for 1 where it reads
    to, source = chain.copy(), chain.copy()
    to[1], to[2] = 0, 4
    assert copy_access(to, source, 4).wavefronts == 3
    assert copy_source_page(to, source, 4).wavefronts == 3
    apart = source.copy()
    apart[2] = 8
    assert copy_access(to, apart, 4).wavefronts == 2


def test_many_copies_are_the_same_as_one_by_one() -> None:
    rng = np.random.default_rng(3)
    to, source = rng.integers(0, 64, (2, CHUNK + 3, 32)) * 16
    active = rng.random(to.shape) < 0.7
    source[1] += 2**40
    every, past = copy_access(to, source, 16, active), bypass_access(to, source, active)
    page = copy_source_page(to, source, 16, active)
    for row in (0, 1, CHUNK - 1, CHUNK, CHUNK + 2):
        one = copy_access(to[row], source[row], 16, active[row])
        assert oracle.counts_of(every, row) == oracle.counts_of(one)
        assert past.sectors[row] == bypass_access(to[row], source[row], active[row]).sectors
        assert page.wavefronts[row] == copy_source_page(to[row], source[row], 16, active[row]).wavefronts
    shapes = (2, 3, 32), (2, 3)
    assert copy_access(np.zeros(shapes[0], int), np.zeros(shapes[0], int), 4).wavefronts.shape == shapes[1]


def test_bad_copies_are_refused() -> None:
    copy_access(LANES * 4, LANES * 4, 4)
    for call in (copy_access, copy_source_page):
        with pytest.raises(MemsimError, match="shape"):
            call(LANES * 4, np.tile(LANES * 4, (2, 1)), 4)
        with pytest.raises(MemsimError, match="misaligned"):
            call(LANES * 4, LANES * 4 + 2, 4)
        with pytest.raises(MemsimError, match="2 bytes per lane"):
            call(LANES * 4, LANES * 4, 2)
        call(LANES * 4, LANES * 4 + 2, 4, read=LANES < 0)  # nobody reads there


SCATTERED = """
extern "C" __global__ void k(float *o, const float *a, int n) {
    __shared__ float s[1024];
    unsigned to = __cvta_generic_to_shared(&s[threadIdx.x * n % 1024]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(a + threadIdx.x * APART));
    asm volatile("cp.async.commit_group;\\n cp.async.wait_group 0;");
    __syncthreads();
    o[threadIdx.x] = s[threadIdx.x];
}
"""


@pytest.mark.parametrize(("apart", "certain"), [(1, True), (3, False)])
def test_first_lines_say_that_copies_are_counted_as_hits(apart: int, certain: bool) -> None:
    k = machine_kernel(SCATTERED.replace("APART", str(apart)))
    found = analyze(k, 1, 32, [np.zeros(1024, np.float32), np.zeros(4096, np.float32), 16])
    (copy,) = (site for site in found.sites if site.op == "cp_async" and site.space == "shared")
    told = "conflicts of cp.async are counted for data in the L1 cache"
    assert copy.conflicts and bool(copy.ranges) is not certain
    assert (told in found.verdict) is not certain
    assert found.bound.lacks == (() if certain else (told,))
    assert found.bound.verdict.startswith("at least" if certain else "an estimate: at least")
