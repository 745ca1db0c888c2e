"""Launches of our own kernels as an H200 counted them, instruction by instruction.

`boxes`: each lane of a warp stores a box of its own, so ptxas makes a loop of the store that asks by
`R2UR.OR` which lanes are left. `groups`: groups of four warps wait at barriers whose numbers are in
registers. The archive has the launches, their machine code, its source, and the recordings.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from memsim.captured.launch_json import read_launch
from memsim.validate.code_recording import load_code_recording
from memsim.validate.compare_instructions import ARBITRATION, PARTLY, compare_code
from memsim.validate.predict import EXECUTED

ARCHIVE = Path(__file__).parent / "data" / "warps_apart.tar.xz"
BOXES = ("half", "random", "same_sum", "two_warps", "xyt", "y")
GROUPS = ("none", "unequal")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("launches")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(place, filter="data")
    return place


@pytest.mark.parametrize("name", [*(f"boxes_{one}" for one in BOXES), *(f"groups_{one}" for one in GROUPS)])
def test_every_instruction_is_executed_as_often(folder: Path, name: str) -> None:
    launched = read_launch(folder / name / "launch.json")
    recording = load_code_recording(folder / name / "recording.json")
    assert launched.kernel.origin.digest == recording.code.digest
    compared = compare_code(recording.profiles, launched.analyze())
    assert compared.differences == {}
    assert compared.verdict == (PARTLY if name.startswith("boxes") else ARBITRATION)
    copies = [row for row in compared.rows if row.sass.startswith("UTMASTG")]
    assert len(copies) == name.startswith("boxes")
    for row in copies:
        (executed,) = (figure for figure in row.figures if figure.metric == EXECUTED)
        assert executed.predicted == executed.measured
