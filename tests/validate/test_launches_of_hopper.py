"""Launches of our own kernels as an H200 counted them, instruction by instruction.

`boxes`: each lane of a warp stores a box of its own, so ptxas makes a loop of the store that asks by
`R2UR.OR` which lanes are left. `groups`: groups of four warps wait at barriers whose numbers are in
registers. `beside`: four warps multiply while others load or store in shared memory. `stretches`: copies and
reductions of bytes. `fragments`: products of registers and shared memory. The archive has the launches, their
machine code, its source, and the recordings.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from memsim.captured.saved_launch import read_launch
from memsim.validate.code_recording import load_code_recording
from memsim.validate.compare_instructions import (
    ARBITRATION,
    EQUAL,
    PARTLY,
    UNMODELLED,
    CodeComparison,
    compare_code,
)
from memsim.validate.predict import EXECUTED, THREADS
from tests.archives import unpack

ARCHIVE = Path(__file__).parent / "data" / "hopper_launches.tar.xz"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("launches")
    with tarfile.open(ARCHIVE) as archive:
        unpack(archive, place)
    return place


def compared(folder: Path, name: str) -> CodeComparison:
    launched = read_launch(folder / name / "launch.json")
    recording = load_code_recording(folder / name / "recording.json")
    assert launched.kernel.origin.digest == recording.code.digest
    found = compare_code(recording.profiles, launched.analyze())
    assert found.differences == {}
    return found


@pytest.mark.parametrize("pattern", ["half", "random", "same_sum", "two_warps", "xyt", "y"])
def test_a_loop_of_copies_makes_one_for_each_place(folder: Path, pattern: str) -> None:
    found = compared(folder, f"boxes_{pattern}")
    (copy,) = (row for row in found.rows if row.sass.startswith("UTMASTG"))
    figures = {figure.metric: figure for figure in copy.figures}
    assert figures[EXECUTED].predicted == figures[EXECUTED].measured
    lanes = 16 if pattern == "half" else 32
    assert figures[THREADS].predicted == figures[EXECUTED].measured * lanes
    assert found.verdict == EQUAL


@pytest.mark.parametrize("rounds", ["none", "unequal"])
def test_groups_of_warps_pass_barriers_of_their_own(folder: Path, rounds: str) -> None:
    assert compared(folder, f"groups_{rounds}").verdict == ARBITRATION


@pytest.mark.parametrize("lanes", ["four", "all"])
def test_copies_of_bytes_are_not_in_the_columns_of_memory(folder: Path, lanes: str) -> None:
    found = compared(folder, f"stretches_{lanes}")
    copies = [row for row in found.rows if row.sass.startswith("U")]
    assert len(copies) == 4
    threads = {figure.predicted for row in copies for figure in row.figures if figure.metric == THREADS}
    assert threads == ({2, 32} if lanes == "four" else {2, 2048})
    assert found.verdict == EQUAL


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "name", ["fragments", "beside_neither", "beside_products", "beside_stores", "beside_loads"]
)
def test_products_have_the_wavefronts_of_their_operands(folder: Path, name: str) -> None:
    assert compared(folder, name).verdict == EQUAL


@pytest.mark.some(1)
@pytest.mark.parametrize(("name", "op"), [("both", "st"), ("both_4way", "st"), ("both_loads", "ld")])
def test_wavefronts_beside_products_have_no_rule(folder: Path, name: str, op: str) -> None:
    found = compared(folder, f"beside_{name}")
    assert found.verdict == PARTLY
    (left,) = (figure for figure in found.figures if figure.verdict == UNMODELLED)
    assert left.metric == WAVEFRONTS.format(op)
