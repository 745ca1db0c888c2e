"""Atomics of whole warps on one address, as an H100 counted them: ptxas has one lane ask for all."""

from __future__ import annotations

import numpy as np
import pytest

from memsim import analyze, load
from memsim.data import data_folder
from tests.assembler import needs_assembler

RECORDED = np.load(data_folder("traces") / "nvidia-h100-80gb-hbm3" / "one_for_all.npz")
METRICS = [str(name) for name in RECORDED["metrics"]]


@needs_assembler
@pytest.mark.some(1)
@pytest.mark.parametrize("number", range(len(RECORDED["kernels"])), ids=map(str, RECORDED["kernels"]))
def test_the_counts_are_the_chip_s(number: int) -> None:
    name = str(RECORDED["kernels"][number])
    given = np.zeros(256, np.int32)
    given[:64] = np.arange(64) % 7
    grid, block = int(RECORDED["grid"][number]), tuple(map(int, RECORDED["block"][number]))
    kernel = load(str(RECORDED["ptx"]))[name]
    analysis = analyze(kernel, grid, block, [np.zeros(256, np.int32), given, 5])
    counted = dict(zip(METRICS, map(int, RECORDED["counts"][number])))
    for metric, count in counted.items():  # in the order that is executed, where lanes yield
        limits = analysis.undecided.get(metric)
        assert (analysis.totals[metric] if limits is None else limits.estimate) == count, metric
    assert not analysis.undecided or name == "barrier"
