"""`memsim baseline` where a target cannot be analyzed: no entry is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.guard.conftest import LAUNCHED, TARGET, Folder

Tile = Callable[..., Folder]
WORDS = 'extern "C" __global__ void words(float *A) {{ A[{} * threadIdx.x] = 1.0f; }}\n'
WORDS_TARGET = '[[targets]]\nfile = "words.cu"\ngrid = 1\nblock = 32\nargs = ["f32[64]"]\n'
BROKEN = "no_such_name"


@pytest.fixture
def two(tile: Tile) -> Folder:
    """A project of two targets, `tile` and then `words`."""
    project = tile()
    project.write("words.cu", WORDS.format(1))
    project.write("memsim.toml", TARGET + WORDS_TARGET)
    return project


@pytest.mark.slow
def test_a_target_that_fails_keeps_its_entry_and_the_others_are_written(two: Folder) -> None:
    assert two.run("baseline").code == 0
    before = two.read("memsim-baseline.toml")
    two.write("tile.cu", LAUNCHED.replace("threadIdx.x", BROKEN))
    two.write("words.cu", WORDS.format(2))
    done = two.run("baseline")
    assert done.code == 2
    assert done.err.startswith("error: tile: tile.cu:3") and BROKEN in done.err
    assert "2 kernels, 5 accesses; changed: words" in done.out
    assert "NOT ANALYZED: tile, whose entry is as before" in done.out
    two.write("tile.cu", LAUNCHED)
    two.write("words.cu", WORDS.format(1))
    assert two.run("check", "tile").code == 0
    assert two.run("baseline").code == 0
    assert two.read("memsim-baseline.toml") == before


@pytest.mark.slow
def test_a_target_that_fails_and_has_no_entry_is_not_passed_by_the_check(two: Folder) -> None:
    two.write("tile.cu", LAUNCHED.replace("threadIdx.x", BROKEN))
    done = two.run("baseline")
    assert done.code == 2
    assert "1 kernel, 1 access" in done.out and "NOT ANALYZED: tile, which has no entry" in done.out
    assert two.run("check", "words").code == 0
    two.write("tile.cu", LAUNCHED)
    checked = two.run("check")
    assert checked.code == 2
    assert "kernel tile is not in the baseline" in checked.out


def test_a_baseline_that_cannot_be_read_is_not_replaced_by_a_part(two: Folder) -> None:
    two.write("memsim-baseline.toml", "<<<<<<< ours\n")
    two.write("tile.cu", LAUNCHED.replace("threadIdx.x", BROKEN))
    done = two.run("baseline")
    assert done.code == 2
    assert "memsim-baseline.toml: not written, for it cannot be read" in done.out
    assert two.read("memsim-baseline.toml") == "<<<<<<< ours\n"
    two.write("tile.cu", LAUNCHED)
    done = two.run("baseline")
    assert done.code == 0 and done.out.endswith("; what was there could not be read\n")
    assert two.run("check").code == 0


@pytest.mark.slow
def test_where_every_target_fails_nothing_is_written(tile: Tile) -> None:
    project = tile()
    project.write("tile.cu", BROKEN)
    done = project.run("baseline")
    assert done.code == 2
    assert "not written, for no target was analyzed" in done.out
    assert not (project.path / "memsim-baseline.toml").exists()
