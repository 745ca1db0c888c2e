"""Numba itself, without a GPU: what `kernel[grid, block]` stands for is compiled and analyzed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import memsim
from memsim.argument_types import ArrayArg
from memsim.errors import MemsimError

pytest.importorskip("numba.cuda")
pytestmark = pytest.mark.filterwarnings("default")

from numba import cuda, float32  # noqa: E402

from memsim.captured.saved_launch import read_launch, write_launch  # noqa: E402


@cuda.jit
def transpose(a, out, factor):
    tile = cuda.shared.array((32, 32), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    tile[y, x] = a[y, x]
    cuda.syncthreads()
    out[y, x] = tile[x, y] * factor


@cuda.jit
def dynamic(a, n):
    tile = cuda.shared.array(0, float32)
    i = cuda.grid(1)
    if i < n:
        tile[cuda.threadIdx.x] = a[i]
        cuda.syncthreads()
        a[i] = tile[cuda.blockDim.x - 1 - cuda.threadIdx.x]


@cuda.jit
def mixed(a, which, flag, z, pair):
    i = cuda.grid(1)
    if flag:
        a[i] = which * z.real + z.imag + pair[0] - pair[1]


def line_of(text: str) -> int:
    lines = Path(__file__).read_text("utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip().startswith(text))


def test_a_configured_kernel_is_analyzed() -> None:
    found = memsim.analyze(
        transpose[1, (32, 32)], args=(np.zeros((32, 32), np.float32), ArrayArg((32, 32)), 2.0)
    )
    assert found.verdict.startswith("transpose: worst is the load at")
    assert "32-way bank conflict" in found.verdict
    rows = {(site.space, site.op): (site.line, site.array) for site in found.sites}
    assert rows["global", "load"] == (line_of("tile[y, x] = a[y, x]"), "a")
    assert rows["global", "store"] == (line_of("out[y, x] = tile[x, y] * factor"), "out")
    assert found.trace.origin.compiler.startswith("Numba ")


@pytest.mark.parametrize(
    ("columns", "sectors"), [(slice(0, None, 2), 8), (slice(1, 33), 5), (slice(0, 32), 4)]
)
def test_shapes_and_strides_reach_the_kernel(columns: slice, sectors: int) -> None:
    a = np.zeros((32, 64), np.float32)[:, columns]
    described = ArrayArg(a.shape, strides=a.strides, offset=4 * columns.start)
    for given in (a, described):
        found = memsim.analyze(transpose[1, (32, 32)], args=(given, ArrayArg((32, 32)), 1.0))
        assert [s.sectors for s in found.sites if s.array == "a"] == [32 * sectors]


def test_dynamic_shared_memory_is_that_of_the_configuration() -> None:
    found = memsim.analyze(dynamic[2, 64, 0, 256], args=(ArrayArg((128,)), 128))
    assert found.trace.launch.shared_bytes == 256
    with pytest.raises(MemsimError, match="cluster are already set by the launch"):
        memsim.analyze(dynamic[2, 64, 0, 256], args=(ArrayArg((128,)), 128), shared_bytes=256)


def test_launches_are_kept_run_and_saved(tmp_path: Path) -> None:
    a = np.arange(128, dtype=np.float32)
    with memsim.capture() as launches:
        dynamic[2, 64, 0, 256](a, 128)
        mixed[1, 32](a, np.int16(3), True, 2 + 5j, (7, 4.0))
    assert a[0] == 0  # without a GPU nothing is executed
    launches[0].run()
    kept = launches[0].args[launches[0].kernel.argument_names.index("a")]
    assert (kept == np.concatenate([np.arange(63, -1, -1), np.arange(127, 63, -1)])).all()
    launches[1].run()
    assert launches[1].args[4][:32].tolist() == [3 * 2 + 5 + 7 - 4.0] * 32
    again = read_launch(write_launch(launches[1], tmp_path))
    assert again.kernel.title == "mixed"
    assert again.analyze().totals == launches[1].analyze().totals


def test_a_kernel_without_a_configuration_is_told_what_to_write() -> None:
    with pytest.raises(MemsimError, match="transpose has no grid and block") as caught:
        memsim.analyze(transpose, args=())
    assert "kernel[grid, block]" in str(caught.value)


def test_afterwards_numba_is_as_it_was() -> None:
    configured = type(transpose[1, 32])
    before = configured.__call__
    with memsim.capture():
        assert configured.__call__ is not before
    assert configured.__call__ is before
