"""Texture fetches of warps whose lanes are all predicated off, as an H100 counted them."""

from __future__ import annotations

import numpy as np
import pytest

import memsim
from memsim.api.loading import Module
from memsim.argument_types import ArrayArg, Texture
from tests.validate.conftest import H100, TRACES

FILE = np.load(TRACES / H100 / "idle_fetches.npz")
TIMES = 96
TEXTURES = {
    "fetch1d": Texture(ArrayArg((1024,)), 1, memory="linear"),
    "point1d": Texture(ArrayArg((64,)), 1),
    "point2d": Texture(ArrayArg((8, 64))),
    "linear2d": Texture(ArrayArg((8, 64)), filter="linear"),
    "gather2d": Texture(ArrayArg((8, 64))),
    "linear3d": Texture(ArrayArg((4, 8, 64)), 3, filter="linear"),
    "layered2d": Texture(ArrayArg((4, 8, 64)), layered=True),
}


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Module:
    """The machine code that was measured: other compilers take the fetches out of the loop."""
    cubin = tmp_path_factory.mktemp("fetches") / "idle.cubin"
    cubin.write_bytes(FILE["cubin"].tobytes())
    return memsim.load(cubin)


@pytest.mark.some(10)
@pytest.mark.parametrize("row", range(len(FILE["kernels"])))
def test_a_warp_without_lanes_makes_one_request(row: int, kernels: Module) -> None:
    name = str(FILE["kernels"][row])
    which = np.arange(TIMES) % 3 != 0
    on = FILE["masks"][row][which.astype(int)][:, None] >> np.arange(32) & 1
    arguments = [TEXTURES[name], ArrayArg((1024,)), on.astype(np.int32).ravel(), TIMES]
    found = memsim.analyze(kernels[name], 1, 32, arguments)
    counted = dict(zip(map(str, FILE["metrics"]), map(int, FILE["counters"][row]), strict=True))
    assert counted.pop("smsp__inst_executed_op_texture.sum") == TIMES
    assert sum(site.instructions for site in found.sites if site.space == "texture") == TIMES
    for metric, count in counted.items():
        limits = found.undecided.get(metric)
        assert found.totals[metric] == count if limits is None else count in limits, metric
    requests = "l1tex__t_requests_pipe_tex_mem_texture.sum"
    assert found.totals[requests] == counted[requests]
