"""Launches of Warp and CuTe DSL as tools/record_corpus.py recorded them: no package is needed."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import pytest

from memsim.captured.launched import Launched
from memsim.captured.saved_launch import read_launch
from tests.archives import unpack
from tests.captured.compiled import CUTE, WARP, check

CORPUS = Path(__file__).with_name("corpus")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("corpus")
    for package in ("warp", "cute"):
        with tarfile.open(CORPUS / f"{package}.tar.xz") as archive:
            unpack(archive, place / package)
    return place


def launches(folder: Path) -> list[Launched]:
    return [read_launch(path) for path in sorted(folder.glob("*/launch.json"))]


@pytest.mark.slow
def test_launches_of_warp_cost_what_they_should(folder: Path) -> None:
    found = {launched.kernel.called: launched for launched in launches(folder / "warp")}
    assert set(found) == set(WARP)
    for name, costs in WARP.items():
        check(found[name], costs, "warp_kernels.py")


def test_launches_of_cute_cost_what_they_should(folder: Path) -> None:
    found = launches(folder / "cute")
    assert [launched.kernel.called for launched in found] == [
        "scale_kernel",
        *["transpose_kernel"] * 2,
        "move_kernel",
    ]
    for launched, costs in zip(found, CUTE, strict=True):
        check(launched, costs, "cute_kernels.py")


def test_a_recorded_launch_of_warp_runs(folder: Path) -> None:
    launched = read_launch(folder / "warp" / "2_transpose" / "launch.json")
    launched.run()
    _, a, out = launched.args
    np.testing.assert_array_equal(out[0], a[0].T)
    assert a[0].any()


def test_a_recorded_launch_of_cute_runs(folder: Path) -> None:
    launched = read_launch(folder / "cute" / "0_scale_kernel" / "launch.json")
    launched.run()
    x, out, _ = launched.args
    np.testing.assert_array_equal(out[0], 3 * x[0][::2])


def test_a_recorded_launch_of_cute_copies_by_tma(folder: Path) -> None:
    launched = read_launch(folder / "cute" / "3_move_kernel" / "launch.json")
    launched.run()
    a, out = launched.args
    assert (a.box, a.swizzle, out.box) == ((32, 32), 0, (32, 32))
    tiles = a.array.reshape(2, 32, 3, 32)
    np.testing.assert_array_equal(out.array.reshape(3, 32, 2, 32), tiles.transpose(2, 1, 0, 3) + 1)
    assert a.array.any()


def test_the_corpus_has_only_own_sources(folder: Path) -> None:
    sources = {path.name for path in folder.rglob("*") if path.suffix in (".py", ".h", ".cu", ".cuh")}
    assert sources == {"warp_kernels.py", "cute_kernels.py"}
    for source in sources:
        kept = {path.read_bytes() for path in folder.rglob(source)}
        assert kept == {(CORPUS / source).read_bytes()}
