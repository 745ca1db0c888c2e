"""The profiler's own numbers, equal to the recording wherever they are said to be known."""

from __future__ import annotations

import numpy as np
import pytest

from lab.probe.instructions import INSTRUCTIONS
from memsim.model import bypass_source_page, global_source_page, shared_access, shared_source_page
from memsim.model.sourcepage import UNKNOWN, copy_source_page
from tests.model.probed import NAMES, RECORDING, figures


@pytest.mark.parametrize("name", [name for name in NAMES if INSTRUCTIONS[name].space == "shared"])
def test_nothing_of_probed_instructions_is_unknown(name: str) -> None:
    instruction, probed = INSTRUCTIONS[name], RECORDING.probed[name]
    page = shared_source_page(probed.addresses, instruction.width, instruction.op, probed.active)
    assert not (page.wavefronts == UNKNOWN).any() and not (page.ideal == UNKNOWN).any()


@pytest.mark.parametrize(("name", "least"), [("LDS64", 20), ("LDS128", 40)])
def test_the_source_page_is_not_the_hardware(name: str, least: int) -> None:
    """Why this model exists: on wide loads the two differ."""
    probed = RECORDING.probed[name]
    cost = shared_access(probed.addresses, INSTRUCTIONS[name].width, "load", probed.active)
    measured = figures(name, "memory_l1_wavefronts_shared")
    assert np.count_nonzero((cost.wavefronts != measured) & (measured >= 0)) >= least


def test_what_was_seen_of_no_load_is_unknown() -> None:
    """Lane 31 active, and in the lower half complete pairs, but not all of its lanes."""
    lanes = np.arange(32)
    active = (lanes < 14) | (lanes == 31)
    page = shared_source_page(lanes // 2 * 16, 16, "load", active)
    assert page.wavefronts == page.ideal == UNKNOWN
    for known in (active & (lanes != 31), active & (lanes != 13), active | (lanes < 16)):
        assert shared_source_page(lanes // 2 * 16, 16, "load", known).wavefronts != UNKNOWN


def test_shapes_are_kept() -> None:
    addresses = np.arange(64).reshape(2, 1, 32) * 16
    assert shared_source_page(addresses, 16, "store").wavefronts.tolist() == [[4], [4]]
    assert global_source_page(addresses[0, 0], 16).ideal == 16


@pytest.mark.parametrize("reading", [32, 31, 16, 2, 1, 0])
def test_lanes_that_do_not_read_conflict_with_none(reading: int) -> None:
    """All read from one bank, of a line each."""
    lanes = np.arange(32)
    page = copy_source_page(lanes * 4, lanes * 128, 4, None, lanes < reading)
    assert (page.wavefronts, page.ideal) == (max(reading, 1), 1)
    assert copy_source_page(lanes * 4, lanes * 128, 4).wavefronts == 32


ROW = np.arange(32) * 16  # 512 bytes side by side


def stacked_rows(bytes_a_row: int, apart: int) -> np.ndarray:
    """Lanes of 16 bytes: rows of so many bytes, so far apart."""
    return ROW // bytes_a_row * apart + ROW % bytes_a_row


@pytest.mark.parametrize(
    ("to", "source", "wavefronts", "sectors"),
    [
        (ROW, ROW, 4, 16),  # side by side
        (ROW ^ 16, ROW, 4, 16),  # the halves of each 32 bytes swapped
        (ROW, stacked_rows(32, 256), 16, 16),  # from a line for each 32 bytes
        (ROW + 64, ROW, 8, 16),  # each line to two of them
        (ROW + 16, ROW, 12, 32),  # the halves of each 32 bytes to two of them
        (ROW, ROW * 0, UNKNOWN, 32),  # from one place
    ],
)
def test_bypass_source_page(to: np.ndarray, source: np.ndarray, wavefronts: int, sectors: int) -> None:
    shared, outside = bypass_source_page(to, source)
    known = wavefronts != UNKNOWN
    assert (int(shared.wavefronts), int(shared.ideal)) == (wavefronts, 4 if known else UNKNOWN)
    assert (int(outside.sectors), int(outside.ideal)) == (sectors, 16)
    assert outside.tag_requests == global_source_page(source, 16).tag_requests


def test_of_copies_to_one_place_the_first_counts() -> None:
    shared, outside = bypass_source_page(ROW // 32 * 16, ROW)  # two lanes each
    assert (shared.wavefronts, shared.ideal, outside.sectors, outside.ideal) == (16, 2, 16, 8)


def test_bypass_source_page_of_idle_lanes() -> None:
    half = np.arange(32) < 16
    shared, outside = bypass_source_page(ROW[None], ROW[None], half[None])
    assert (shared.wavefronts, shared.ideal, outside.sectors) == (2, 2, 8)
    shared, outside = bypass_source_page(ROW[None], ROW[None], None, half[None])  # the others write zeros
    assert (shared.wavefronts, outside.sectors, outside.tag_requests) == (UNKNOWN, 8, 2)
    shared, _ = bypass_source_page(np.array([ROW, ROW]), np.array([ROW, ROW]), None, [half, ~half | half])
    assert shared.wavefronts.tolist() == [UNKNOWN, 4]
