"""Which lanes are together, against `%activemask` recorded on an H100 (`meeting.npz`)."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsim import run
from memsim.api import Module, load, trace
from memsim.data import data_folder

FOLDER = data_folder("traces") / "nvidia-h100-80gb-hbm3"
FILES = ("1", "2")

# Told, not equal: branches that ptxas can gather in several ways; loops that may wait, one behind another.
TOLD = {
    "gotos",
    "gotos2",
    "loop_two_exits",
    "loop_two_exits2",
    "bounds_loop",
    "sw_loop",
    "nested",
    "two_loops",
}
# A loop that may wait, in a function that is not inlined.
NOT_SEEN = {"call"}


@cache
def recording() -> Any:
    path = FOLDER / "meeting.npz"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert digest in (FOLDER / "README.md").read_text("utf-8"), "a recording is never edited"
    return np.load(path)


@cache
def module(file: str) -> Module:
    return load(str(recording()[f"ptx_{file}"]), code="ptx")


KERNELS = [(file, str(name)) for file in FILES for name in np.unique(recording()[f"kernel_{file}"])]


@pytest.mark.parametrize(("file", "name"), KERNELS)
def test_lanes_are_together_as_on_the_chip(file: str, name: str) -> None:
    launches = np.flatnonzero(recording()[f"kernel_{file}"] == name)
    assert len(launches) == 6
    for launch in launches:
        given, recorded = recording()[f"given_{file}"][launch], recording()[f"log_{file}"][launch]
        log = np.zeros_like(recorded)
        run(module(file)[name], 1, 32, [log, given.copy()])
        assert (log[..., 0] == recorded[..., 0]).all()  # the same ways in any case
        if name not in TOLD | NOT_SEEN:
            assert (log == recorded).all()
        elif not (log == recorded).all():
            unsure = trace(module(file)[name], 1, 32, [np.zeros_like(log), given.copy()]).unsure
            assert bool(unsure) == (name in TOLD)


def test_how_many_are_equal_is_as_the_model_s_page_says() -> None:
    equal = 0
    for file, name in KERNELS:
        for launch in np.flatnonzero(recording()[f"kernel_{file}"] == name):
            log = np.zeros_like(recording()[f"log_{file}"][launch])
            run(module(file)[name], 1, 32, [log, recording()[f"given_{file}"][launch].copy()])
            equal += bool((log == recording()[f"log_{file}"][launch]).all())
    page = (Path(__file__).parents[2] / "docs" / "model.md").read_text("utf-8")
    assert "in 26 kernels (156 launches)" in page and len(KERNELS) == 26
    assert f"equal to it in {equal} launches" in page
