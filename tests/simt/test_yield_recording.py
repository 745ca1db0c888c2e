"""Lanes that yield, against an H200 (`traces/nvidia-h200/yields`): together as recorded, or not certain."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsim import analyze, run
from memsim.api.loading import Module, load
from memsim.data import data_folder
from tests.few import few

FOLDER = data_folder("traces") / "nvidia-h200" / "yields"
#: The lower bits of CS2R and S2UR; of the field that says which register they read, the clock and 0.
READS = (0x805, 0x9C3)
CLOCK, ZERO = 0x50, 0xFF


@cache
def recording(stem: str) -> Any:
    path = FOLDER / f"{stem}.npz"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert digest in (FOLDER / "README.md").read_text("utf-8"), "a recording is never edited"
    return np.load(path)


@cache
def kernels(stem: str, folder: Path) -> Module:
    """The kernels that ran, with 0 for the clock: what they log of it is not compared."""
    code = bytearray((FOLDER / f"{stem}.cubin").read_bytes())
    for place in range(0, len(code) - 15, 16):
        opcode = int.from_bytes(code[place : place + 2], "little") & 0xFFF
        if opcode in READS and code[place + 9] == CLOCK:
            code[place + 9] = ZERO
    path = folder / f"{stem}.cubin"
    path.write_bytes(code)
    return load(path)


NAMES = [
    f"{stem} {name}"
    for stem in ("yield", "nop")
    for name in recording(stem).files
    if not name.endswith("_in")
]


@pytest.mark.parametrize("which", few(NAMES, ("yield once", "nop once")))
def test_lanes_are_together_as_recorded_or_it_is_not_certain(which: str, tmp_path: Path) -> None:
    stem, name = which.split()
    kernel = kernels(stem, tmp_path)[name]
    for given, times in zip(recording(stem)[f"{name}_in"], recording(stem)[name], strict=True):
        assert (times[..., :2] == times[:1, ..., :2]).all(), "each time the same"
        log, read = np.zeros((32, 64, 4), np.uint32), np.zeros(128, np.int32)
        read[: len(given)] = given
        if not analyze(kernel, 1, 32, [log.copy(), read.copy()]).trace.uncertain:
            run(kernel, 1, 32, [log, read])
            assert np.array_equal(log[:, : times.shape[2], :2], times[0, ..., :2])


def test_lanes_that_pass_two_barriers_without_those_that_yielded_are_not_certain(tmp_path: Path) -> None:
    kernel = kernels("yield", tmp_path)["once"]
    given = np.zeros(128, np.int32)
    given[:32] = np.arange(32) // 16 * 2  # the upper half yields within a region of two barriers
    reasons = analyze(kernel, 1, 32, [np.zeros((32, 64, 4), np.uint32), given]).trace.uncertain
    assert any("whether they wait is not known" in why for why in reasons)


def test_which_launches_are_certain(tmp_path: Path) -> None:
    kernel = kernels("yield", tmp_path)["v_dowhile"]
    for given in recording("yield")["v_dowhile_in"]:
        read = np.zeros(128, np.int32)
        read[: len(given)] = given
        assert not analyze(kernel, 1, 32, [np.zeros((32, 64, 4), np.uint32), read]).trace.uncertain
