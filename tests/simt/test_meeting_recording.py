"""Which lanes are together, against `%activemask` recorded on an H100 (`meeting.npz`)."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsim import analyze, run
from memsim.api.loading import Module, load
from memsim.compile.toolkit import find_tool
from memsim.data import data_folder
from memsim.isa.op import Flow
from tests.ptx_front.loading import PtxKernels, load_ptx

FOLDER = data_folder("traces") / "nvidia-h100-80gb-hbm3"
FILES = ("1", "2")


@cache
def recording() -> Any:
    path = FOLDER / "meeting.npz"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert digest in (FOLDER / "README.md").read_text("utf-8"), "a recording is never edited"
    return np.load(path)


@cache
def module(file: str) -> PtxKernels:
    return load_ptx(str(recording()[f"ptx_{file}"]))


KERNELS = [(file, str(name)) for file in FILES for name in np.unique(recording()[f"kernel_{file}"])]


def logs(file: str, name: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """(lanes at each place as predicted, as recorded) of each launch."""
    found = []
    for launch in np.flatnonzero(recording()[f"kernel_{file}"] == name):
        log = np.zeros_like(recording()[f"log_{file}"][launch])
        run(module(file)[name], 1, 32, [log, recording()[f"given_{file}"][launch].copy()])
        found.append((log, recording()[f"log_{file}"][launch]))
    return found


@pytest.mark.some(1)
@pytest.mark.parametrize(("file", "name"), KERNELS)
def test_lanes_go_the_same_ways_as_on_the_chip(file: str, name: str) -> None:
    launches = logs(file, name)
    assert len(launches) == 6
    for log, recorded in launches:
        assert (log[..., 0] == recorded[..., 0]).all()


@cache
def assembled(file: str) -> Module:
    """The kernels as the machine code that ptxas makes; nothing in them is new in PTX 9.0."""
    return load(str(recording()[f"ptx_{file}"]).replace(".version 9.0", ".version 8.0"), arch="sm_90")


#: Groups of a warp yield in turn, or while others are at several places, and what follows is not known.
TAKING_TURNS = ("early_loop", "nested", "two_loops")


@pytest.mark.skipif(find_tool("ptxas") is None, reason="needs ptxas")
@pytest.mark.some(1)
@pytest.mark.parametrize(("file", "name"), KERNELS)
def test_machine_code_is_exact_or_not_certain(file: str, name: str) -> None:
    kernel = assembled(file)[name]
    for launch in np.flatnonzero(recording()[f"kernel_{file}"] == name):
        recorded, given = recording()[f"log_{file}"][launch], recording()[f"given_{file}"][launch]
        reasons = analyze(kernel, 1, 32, [np.zeros_like(recorded), given.copy()]).trace.uncertain
        assert any("lanes that yield" in why for why in reasons) == (name in TAKING_TURNS)
        if name not in TAKING_TURNS:
            log = np.zeros_like(recorded)
            run(kernel, 1, 32, [log, given.copy()])
            assert np.array_equal(log, recorded)


@pytest.mark.skipif(find_tool("ptxas") is None, reason="needs ptxas")
def test_ten_kernels_yield() -> None:
    kernels = [assembled(file)[name] for file, name in KERNELS]
    programs = [kernel.executable.program for kernel in kernels]
    assert sum(any(op.flow is Flow.YIELD for op in program.ops) for program in programs) == 10


SPIN = """extern "C" __global__ void spin(int *y) {{
    __shared__ volatile int flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 0) {{ int n = 0; while ({until}) n++; y[0] = n; }}
    else if (threadIdx.x == 10) flag = 1;
    y[32 + threadIdx.x] = 1;
}}"""


@pytest.mark.parametrize(("until", "waits"), [("flag == 0", True), ("((volatile int *)y)[n] < 0", False)])
def test_lanes_that_wait_for_a_store_of_their_warp_are_not_certain(
    until: str, waits: bool, tmp_path: Path
) -> None:
    path = tmp_path / "spin.cu"
    path.write_text(SPIN.format(until=until))
    kernel = load(path)["spin"]
    assert any(op.flow is Flow.YIELD for op in kernel.machine.program.ops)
    reasons = analyze(kernel, 1, 32, [np.zeros(64, np.int32)]).trace.uncertain
    assert any("may wait for a store to shared memory" in why for why in reasons) == waits


@pytest.mark.slow
def test_how_many_were_recorded_is_as_the_model_s_page_says() -> None:
    launches = sum(len(list(logs(*kernel))) for kernel in KERNELS)
    page = (Path(__file__).parents[2] / "docs" / "model.md").read_text("utf-8")
    assert f"in {len(KERNELS)} kernels ({launches} launches)" in page
