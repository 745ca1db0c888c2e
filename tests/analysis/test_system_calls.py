"""printf, malloc and free: what an H100 counts lies within the totals, and equals those that are certain."""

from __future__ import annotations

import numpy as np
import pytest

import memsim
from memsim.api.loading import Module
from tests.validate.conftest import H100, TRACES

FILE = np.load(TRACES / H100 / "calls.npz")


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Module:
    """The machine code that was measured."""
    cubin = tmp_path_factory.mktemp("calls") / "calls.cubin"
    cubin.write_bytes(FILE["cubin"].tobytes())
    return memsim.load(cubin)


@pytest.mark.parametrize("row", range(len(FILE["kernels"])))
def test_what_the_chip_counts_lies_within_the_totals(row: int, kernels: Module) -> None:
    callers = int(FILE["callers"][row])
    arguments = ["f32[16384]", "f32[16384]", callers]
    found = memsim.analyze(kernels[str(FILE["kernels"][row])], 1, 256, arguments)
    counted = dict(zip(map(str, FILE["metrics"]), map(int, FILE["counters"][row]), strict=True))
    certain = {metric for metric in counted if found.totals.get(metric) is not None}
    wrong = {metric: counted[metric] for metric in certain if found.totals[metric] != counted[metric]}
    assert wrong == {}
    for metric, limits in found.undecided.items():
        assert metric not in counted or counted[metric] in limits, metric
    assert any("shared_op_ld" in metric for metric in certain)
    assert callers or len(certain) > 15  # the calls that nobody makes take no count away
