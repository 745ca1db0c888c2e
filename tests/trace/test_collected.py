"""What of another tool's requests belongs to which space, and what is refused of a saved trace."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from memsim.errors import MemsimError
from memsim.launch import Launch
from memsim.state.parts import Part
from memsim.state.predicates import from_bools
from memsim.trace.events import Executions, WarpCounts
from memsim.trace.foreign.collect import WINDOW, Collector
from memsim.trace.suffixes import can_be_written, is_accelsim, is_foreign, is_trace, plain_name
from memsim.trace.trace import Trace
from tests.traces import LANES, SITE, Request, make_trace


def test_a_window_ends_before_the_next() -> None:
    collector = Collector.__new__(Collector)  # the question needs no recorder
    at = np.array([[WINDOW - 1, WINDOW, 2 * WINDOW - 1, 2 * WINDOW]])
    assert collector._in_window(at, WINDOW).tolist() == [[False, True, True, False]]
    assert not collector._in_window(at, None).any()


@pytest.mark.parametrize("replayed", [1, 2, 3])
def test_no_more_blocks_are_replayed_than_there_are(tmp_path: Path, replayed: int) -> None:
    trace = make_trace(
        (SITE, [Request(LANES * 4)]), blocks_replayed=replayed, launch=Launch((2, 1, 1), (32, 1, 1))
    )
    trace.save(tmp_path / "t.npz")
    if replayed <= 2:
        assert Trace.load(tmp_path / "t.npz").blocks_replayed == replayed
    else:
        with pytest.raises(MemsimError, match="more blocks were replayed than there are"):
            Trace.load(tmp_path / "t.npz")


def test_names_of_files() -> None:
    names = [
        "a.npz",
        "k.traceg",
        "k.traceg.xz",
        "k.trace",
        "k.txt",
        "k.log.gz",
        "k.memtrace",
        "k.cu",
        "k.npz.gz",
    ]
    paths = [Path(name) for name in names]
    assert [is_foreign(path) for path in paths] == [False, *[True] * 6, False, False]
    assert [is_trace(name) for name in names] == [*[True] * 7, False, False]
    assert [can_be_written(path) for path in paths] == [True] * 3 + [False] * 6
    assert [is_accelsim(path) for path in paths] == [False, True, True] + [False] * 6
    assert [plain_name(path) for path in paths[1:3]] == ["k.traceg"] * 2


def test_warps_with_a_thread_in_a_mask() -> None:
    counts = WarpCounts()
    counts.start_chunk(3, 2)
    assert (counts.of(True), counts.of(False)) == (6, 0)
    first_warp = Part(np.arange(64)[None, :] < 3)
    assert counts.of(first_warp) == 3 and counts.is_same_in_all(first_warp)
    one_block = Part(np.array([[True], [False], [False]]))
    assert counts.of(one_block) == 2 and not counts.is_same_in_all(one_block)
    shifted = from_bools(np.arange(64)[None, :] // 32 == np.array([[0], [1], [0]]))
    assert counts.of(shifted) == 3 and counts.is_same_in_all(shifted) and counts.is_same_in_all(True)


def test_executions_and_whether_blocks_are_alike() -> None:
    found = Executions()
    for blocks, warps in ((2, 4), (1, 2)):
        found.start_chunk(blocks)
        found.add(1, 3, warps, True)
    assert found.of(4).tolist() == [0, 6, 6, 0] and found.blocks_alike
    assert found.ran == Counter({(1, 3): 6})
    found.start_chunk(1)
    found.add(1, 3, 3, True)
    assert not found.blocks_alike
    other = Executions()
    other.start_chunk(2)
    other.add(0, 1, 0, False)
    assert other.blocks_alike
    other.add(0, 1, 1, False)
    assert not other.blocks_alike
