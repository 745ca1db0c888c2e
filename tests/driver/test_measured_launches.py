"""The launches of a program as a GPU counted them (`launches.cu` under ncu on an H100), and as exec counts
them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memsim.arch import SM_90
from memsim.compile.toolkit import find_tool, tool_release
from memsim.driver.execute_launches import Launches
from memsim.driver.run_program import run_program

HERE = Path(__file__).parent
#: The release that made the program that was measured: others may make other code.
RELEASE = "13.0."


def is_the_compiler() -> bool:
    nvcc = find_tool("nvcc", wheels_first=False)
    return sys.platform == "linux" and nvcc is not None and tool_release(nvcc).startswith(RELEASE)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cc") or not is_the_compiler(), reason=f"needs nvcc {RELEASE} and Linux")
def test_every_count_equals_the_chips_or_is_left_open(tmp_path: Path) -> None:
    made = tmp_path / "launches"
    command = [
        "nvcc",
        "-arch=sm_90",
        "-lineinfo",
        "-O3",
        "-cudart",
        "shared",
        HERE / "launches.cu",
        "-o",
        made,
    ]
    subprocess.run(command, check=True)
    launches = Launches(SM_90, print, analyze=True)
    assert run_program([str(made)], launches) == 0
    measured = json.loads((HERE / "launches_h100.json").read_text())["launches"]
    kinds = list(launches.kinds.values())
    assert [kind.kernel for kind in kinds] == [one["kernel"] for one in measured]
    equal = 0
    for kind, one in zip(kinds, measured):
        assert [list(kind.shape.grid), list(kind.shape.block)] == [one["grid"], one["block"]]
        assert kind.analysis is not None
        counted = {name: value for name, value in kind.analysis.totals.items() if value is not None}
        assert counted == {name: one["counts"][name] for name in counted}, kind.kernel
        equal += len(counted)
    assert equal == 638
