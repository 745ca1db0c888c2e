"""Warp itself, without a GPU: its launches are kept, made on the CPU, and cost what they should."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import memsim
from memsim.captured.launched import Launched
from memsim.captured.saved_launch import read_launch, write_launch
from memsim.errors import MemsimError
from tests.captured.compiled import WARP, check

wp = pytest.importorskip("warp")
pytestmark = pytest.mark.filterwarnings("default")

sys.path.insert(0, str(Path(__file__).with_name("corpus")))
import warp_kernels  # type: ignore[import-not-found]  # noqa: E402


@pytest.fixture(scope="module")
def captured() -> tuple[list[Launched], dict[str, np.ndarray]]:
    with memsim.capture("sm_90") as launches:
        results = warp_kernels.launch_all()
    return launches, results


def test_launches_cost_what_they_should(captured: tuple[list[Launched], dict[str, np.ndarray]]) -> None:
    launches, _ = captured
    assert [launched.kernel.called for launched in launches] == list(WARP)
    for launched, costs in zip(launches, WARP.values(), strict=True):
        check(launched, costs, "warp_kernels.py")


def test_shapes_are_those_of_a_gpu(captured: tuple[list[Launched], dict[str, np.ndarray]]) -> None:
    scale, lengths, transpose = captured[0]
    assert (scale.grid, scale.block, scale.shared_bytes) == ((4, 1, 1), (256, 1, 1), 0)
    assert (lengths.grid, lengths.block) == ((8, 1, 1), (128, 1, 1))
    assert (transpose.grid, transpose.block, transpose.shared_bytes) == ((16, 1, 1), (64, 1, 1), 1024)


def test_the_launch_is_made_and_memsim_agrees(
    captured: tuple[list[Launched], dict[str, np.ndarray]], tmp_path: Path
) -> None:
    launches, results = captured
    for launched in launches:
        again = read_launch(write_launch(launched, tmp_path / launched.kernel.name))
        again.run()
        np.testing.assert_array_equal(again.args[-1][0], results[str(launched.kernel.called)])


def test_arguments_are_as_they_were_before_the_launch(
    captured: tuple[list[Launched], dict[str, np.ndarray]],
) -> None:
    launches, results = captured
    for launched in launches:
        assert not launched.args[-1][0].any()
        assert results[str(launched.kernel.called)].any()


def test_a_blocks_limit_and_a_kernel_without_a_loop() -> None:
    x, out = wp.zeros((1024, 3), dtype=float), wp.zeros(1024, dtype=float)
    points = wp.array(x.numpy(), dtype=wp.vec3)
    with memsim.capture("sm_90") as launches:
        wp.launch(warp_kernels.lengths, dim=1024, inputs=[points], outputs=[out], max_blocks=2)
        wp.launch(warp_kernels.lengths, dim=0, inputs=[points], outputs=[out])
    assert [launched.grid for launched in launches] == [(2, 1, 1)]


def test_an_array_of_an_indexed_kind_is_refused() -> None:
    @wp.kernel
    def read(a: wp.indexedarray(dtype=float), out: wp.array(dtype=float)):
        i = wp.tid()
        out[i] = a[i]

    a, index = wp.zeros(8, dtype=float), wp.array([1, 3], dtype=int)
    with memsim.capture("sm_90"), pytest.raises(MemsimError, match=r"indexedarray.*does not support"):
        wp.launch(read, dim=2, inputs=[wp.indexedarray(a, [index])], outputs=[wp.zeros(2, dtype=float)])


def test_warp_is_as_it_was_afterwards() -> None:
    before, options = wp.launch, dict(warp_kernels.scale.module.options)
    with memsim.capture("sm_90"):
        assert wp.launch is not before
        warp_kernels.launch_all()
    assert wp.launch is before
    assert warp_kernels.scale.module.options == options
