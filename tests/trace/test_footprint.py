"""The sectors that a launch touches: against a scalar oracle, and beside what DRAM delivered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memsim
from lab.experiments import RATES
from lab.rates.judge_rates import RateLaunch
from memsim.access import Site, SiteRequests
from memsim.data import data_folder
from memsim.instruction import Instruction
from memsim.kernels import catalog
from memsim.state.parts import Part
from memsim.state.registers import Sum
from memsim.trace import footprint
from memsim.trace.footprint import READS, WRITES, Footprint, Marks
from memsim.trace.record import Recorder
from tests.simt.cuda import kernels_of

BLOCKS, THREADS = 3, 4
SMALL = st.integers(0, 40)


def part(draw: st.DrawFn, rows: int, columns: int) -> Part:
    values = draw(st.lists(st.integers(0, 300), min_size=rows * columns, max_size=rows * columns))
    return Part(np.array(values).reshape(rows, columns))


@st.composite
def executions(draw: st.DrawFn) -> list[tuple[str, int | Sum, bool | Part]]:
    """Executions of accesses whose addresses have some of the parts that addresses have."""
    parts = {
        "u": part(draw, BLOCKS, 1),
        "v": part(draw, 1, THREADS),
        "f": part(draw, BLOCKS, THREADS),
    }
    masks: list[bool | Part] = [True]
    for shape in ((BLOCKS, 1), (1, THREADS), (BLOCKS, THREADS)):
        bits = draw(st.lists(st.booleans(), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
        masks.append(Part(np.array(bits).reshape(shape)))
    found = []
    for _ in range(draw(st.integers(1, 12))):
        start = draw(st.integers(0, 200))
        named = draw(st.sampled_from([(), ("u",), ("v",), ("u", "v"), ("f",)]))
        address = Sum(start, **{name: parts[name] for name in named}) if named else start
        op = draw(st.sampled_from(["load", "store", "atomic", "cp_async"]))
        found.append((op, address, draw(st.sampled_from(masks))))
    return found


def written_out(address: int | Sum, active: bool | Part) -> list[int]:
    total: Any = address if isinstance(address, int) else address.array
    lanes = active.array if isinstance(active, Part) else np.array(active)
    addresses, on = np.broadcast_arrays(total, lanes)
    return [int(one) for one, is_on in zip(addresses.flat, on.flat) if is_on]


def oracle(made: list[tuple[str, int | Sum, bool | Part]]) -> Footprint:
    read: set[int] = set()
    written: set[int] = set()
    for op, address, active in made:
        sectors = {one // 32 for one in written_out(address, active)}
        if op in READS:
            read |= sectors - written
        if op in WRITES:
            written |= sectors
    return Footprint(len(read), len(written))


@given(executions(), st.sampled_from([1, 3, 24]), st.sampled_from([1, 4096]))
def test_it_is_the_set_of_sectors(
    made: list[tuple[str, int | Sum, bool | Part]], piece_bits: int, waiting: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(footprint, "PIECE_BITS", piece_bits)
        patch.setattr(footprint, "IN_PIECE", (1 << piece_bits) - 1)
        patch.setattr(footprint, "MOST_PIECES", 1 << 12)
        patch.setattr(footprint, "MOST_WAITING", waiting)
        marks = Marks()
        for op, address, active in made:
            marks.access(op, address, active)
        assert marks.footprint == oracle(made)


def test_what_has_no_room_in_the_map_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footprint, "MOST_PIECES", 1)
    marks = Marks()
    marks.sectors("load", np.array([7, 7, 8]))
    marks.sectors("load", np.array([9, 1 << 40]))
    assert marks.footprint == Footprint(3, 0)


def test_pieces_far_apart_have_room_for_what_is_touched() -> None:
    """And those between them take none."""
    marks = Marks()
    piece = 1 << footprint.PIECE_BITS
    marks.sectors("load", np.array([3, 40 * piece + 5, 90 * piece]))
    assert marks.footprint == Footprint(3, 0) and sorted(marks.pieces) == [0, 40, 90]


def test_of_a_piece_in_one_state_only_that_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """And it can be written afterwards."""
    monkeypatch.setattr(footprint, "PIECE_BITS", 3)
    monkeypatch.setattr(footprint, "IN_PIECE", 7)
    marks = Marks()
    for made in (np.arange(16), np.arange(8), np.arange(4)):
        marks.sectors("load", made)
    (states, rest) = (piece.states for piece in marks.pieces.values())
    assert states.base is not None
    assert states.base.size == rest.base.size == 1
    assert marks.footprint == Footprint(16, 0)
    marks.sectors("store", np.array([2]))
    marks.sectors("load", np.array([2, 9]))
    assert marks.footprint == Footprint(16, 1)


def test_what_other_blocks_touched_is_added_also_to_a_piece_in_one_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Theirs were told as they read and wrote alone: what both touched has been read and written."""
    monkeypatch.setattr(footprint, "PIECE_BITS", 3)
    monkeypatch.setattr(footprint, "IN_PIECE", 7)
    marks, others = Marks(), Marks()
    marks.sectors("load", np.arange(16))
    marks.sectors("load", np.arange(8))  # of which one state is stored
    others.sectors("load", np.array([30]))
    others.sectors("store", np.array([1, 2]))
    others.sectors("store", np.array([9]))
    theirs = others.sectors_so_far
    told = {number: (first, states.tolist()) for number, (first, states) in theirs.items()}
    assert told == {0: (1, [2, 2]), 1: (1, [2]), 3: (6, [1])}  # from the first to the last, no more
    marks.add(theirs)
    assert marks.footprint == Footprint(17, 3)
    assert others.footprint == Footprint(1, 3)
    marks.sectors("load", np.array([1, 40]))
    assert marks.footprint == Footprint(18, 3)
    empty = Marks()
    empty.sectors("store", np.zeros(0, np.int64))
    empty.add({})
    assert empty.footprint == Footprint(0, 0) and not empty.pieces


@pytest.mark.parametrize("beyond", [0, 1 << 64, 5 << 70])
def test_addresses_have_64_bits_whatever_a_listing_says(beyond: int) -> None:
    lanes = Sum(128 + beyond, v=Part(np.arange(0, 128, 4, dtype=np.int64)[None]))
    marks = Marks()
    marks.access("load", lanes, True)
    marks.access("store", 96 + beyond, True)
    assert marks.footprint == Footprint(4, 1)


def test_copied_stretches_of_bytes() -> None:
    marks = Marks()
    marks.stretches("bulk_load", np.array([0, 64, 1040]), np.array([64, 32, 16]))
    marks.stretches("bulk_store", np.array([0]), np.array([128]))
    assert marks.footprint == Footprint(4, 4)


def test_stretches_from_any_byte_on() -> None:
    random = np.random.default_rng(31)
    for _ in range(30):
        start, length = random.integers(0, 4000, 5), random.integers(1, 200, 5)
        marks = Marks()
        marks.stretches("bulk_load", start, length)
        touched = {byte // 32 for at, size in zip(start, length) for byte in range(at, at + size)}
        assert marks.footprint == Footprint(len(touched), 0)


def test_what_a_launch_wrote_itself_is_not_read_from_dram() -> None:
    source = """
    extern "C" __global__ void k(float *a, float *b) {
        int i = blockIdx.x * 64 + threadIdx.x;
        a[i] = i;
        __syncthreads();
        b[i] = a[i ^ 1] + b[i];
    }
    """
    a, b = np.zeros(256, np.float32), np.zeros(256, np.float32)
    trace = memsim.analyze(kernels_of(source)["k"], 4, 64, (a, b)).trace
    assert trace.footprint == Footprint(32, 64)


FEW = ("kernel_v4", "opt_6_double_buffer", "transpose_naive")
#: What was recorded of the catalogue with DRAM's counters.
RECORDED = [
    pytest.param(launch, id=launch.name, marks=() if launch.name in FEW else pytest.mark.slow)
    for launch in RATES.newest(data_folder("traces")).launches
    if launch.name in catalog()
]


@pytest.mark.some(1)
@pytest.mark.parametrize("launch", RECORDED)
def test_dram_delivered_at_least_these(launch: RateLaunch) -> None:
    """ncu empties the caches before a launch, which then needs its code, too."""
    found = catalog()[launch.name].trace().footprint
    assert found is not None
    assert found.read <= launch.counters["dram__sectors_read.sum"]


def test_index_math_has_the_footprint_of_its_kernel() -> None:
    def transpose(t: memsim.Thread) -> None:
        tile = memsim.SharedArray("tile", (32, 32), "f32")
        a, c = memsim.GlobalArray("A", (64, 64)), memsim.GlobalArray("C", (64, 64))
        row, column = t.blockIdx.y * 32, t.blockIdx.x * 32
        a[row + t.y, column + t.x].load()
        tile[t.y, t.x].store()
        t.sync()
        tile[t.x, t.y].load()
        c[column + t.y, row + t.x].store()

    sketched = memsim.analyze(transpose, grid=(2, 2), block=(32, 32)).trace.footprint
    assert sketched == catalog()["transpose_naive"].trace((64, 64)).footprint == Footprint(512, 512)


def test_copies_that_are_written_out_read_their_other_side() -> None:
    recorder = Recorder()
    addresses = np.arange(32)[None, :] * 16
    partner = np.where(np.arange(32) < 16, 2 * addresses, -1)
    one = np.zeros(1, np.int64)
    made = SiteRequests(addresses, np.ones((1, 32), bool), partner, one, one)
    recorder.requests(Site(0, Instruction("LDGSTS"), "cp_async_cg", "shared", 16), made)
    assert recorder.marks.footprint == Footprint(16, 0)


def test_what_is_remembered_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes in another order each time: the same sectors by other addresses."""
    monkeypatch.setattr(footprint, "MOST_REMEMBERED", 1 << 16)
    marks, generator = Marks(), np.random.default_rng(0)
    kept = 0
    for _ in range(300):
        order = generator.permutation(256)[None, :] * 4
        marks.access("load", Sum(0, v=Part(order)), True)
        kept = max(kept, len(marks.by_parts))
    assert marks.footprint == Footprint(32, 0)
    assert kept * 256 * 8 <= 2 << 16
    marks.start_chunk()
    left = marks.remembered
    marks.start_chunk()
    assert marks.remembered == left


def test_executions_that_wait_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footprint, "MOST_WAITING", 8)
    marks, lanes = Marks(), np.arange(32)[None, :] * 4
    for number in range(100):
        marks.access("load", Sum(4096 * number, v=Part(lanes)), True)
        assert sum(len(shape.waiting) for shape in marks.waiting) <= 8
    assert marks.footprint == Footprint(400, 0)
