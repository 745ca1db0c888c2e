"""The launches of docs/cures.md: tables, how they become jobs, and how their sources are checked out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from memsim.analysis import analyze_trace
from memsim.api.running import trace_job
from memsim.errors import MemsimError
from studies.cures import development, held_out
from studies.cures.__main__ import check_out
from studies.cures.launch import Data, PublicLaunch, Source
from studies.cures.sets import launches

KERNEL = "__global__ void twice(float *x, int n) { int i = threadIdx.x; if (i < n) x[i] = 2 * x[i]; }\n"


def test_names_are_of_one_launch_and_projects_of_one_half(tmp_path: Path) -> None:
    halves = {half: list(launches(half, tmp_path)) for half in ("development", "held-out")}
    for made in halves.values():
        assert len({name for _, name, _, _ in made}) == len(made)
    projects = [{project for project, *_ in made} for made in halves.values()]
    assert not projects[0] & projects[1]


@pytest.mark.parametrize("launch", [*development.LAUNCHES, *held_out.LAUNCHES], ids=lambda one: one.name)
def test_other_data_have_the_same_shapes(launch: PublicLaunch) -> None:
    one, same, other = (launch.args(Data(seed)) for seed in (1, 1, 2))
    flat = [[*_arrays(args)] for args in (one, same, other)]
    assert [(a.shape, a.dtype) for a in flat[0]] == [(a.shape, a.dtype) for a in flat[2]]
    for a, b in zip(flat[0], flat[1], strict=True):
        assert np.array_equal(a, b, equal_nan=True)
    assert len(launch.source.commit) == 40


def _arrays(args: object) -> list[np.ndarray]:
    if isinstance(args, np.ndarray):
        return [args]
    return [array for part in args for array in _arrays(part)] if isinstance(args, (list, tuple)) else []


def test_seeds_give_other_contents_of_a_range() -> None:
    one, two = Data(1), Data(2)
    assert not np.array_equal(one.floats(8), two.floats(8))
    some = Data(3).ints(1000, low=-1, high=2)
    assert some.dtype == np.int32
    assert set(some.tolist()) == {-1, 0, 1}
    assert not Data(1).zeros(3, 2, dtype="u64").any()


def test_a_launch_is_a_job(tmp_path: Path) -> None:
    source = Source("owner/name", "0123456789abcdef", "src/scale.hpp")
    launch = PublicLaunch(source, "twice", (1,), (32,), lambda d: [d.floats(20), 20])
    assert launch.name == "owner/name|scale|twice|[1]|[32]|"
    file = tmp_path / "owner+name@01234567" / "src" / "scale.hpp.cu"
    with pytest.raises(MemsimError, match="no such file"):
        trace_job(launch.job(tmp_path, 1))
    file.parent.mkdir(parents=True)
    file.write_text(KERNEL)
    job = launch.job(tmp_path, 1)
    assert analyze_trace(trace_job(job), job.arch).sectors == 6


def test_a_file_is_checked_out_as_of_its_commit(tmp_path: Path) -> None:
    project, tree = tmp_path / "project", tmp_path / "trees" / "one"
    (project / "src").mkdir(parents=True)
    _git(project, "init", "-q")
    first = _commit(project, KERNEL)
    _commit(project, "later")
    sources = [Source("owner/name", first, "src/scale.hpp"), Source("owner/name", first, "main.cu", ("src",))]
    for _ in range(2):  # also into a tree that is there
        check_out(str(project), tree, sources)
        assert (tree / "src" / "scale.hpp.cu").read_text() == KERNEL
        assert (tree / "main.cu").read_text() == KERNEL
    assert not (tree / "other.cu").exists()
    with pytest.raises(subprocess.CalledProcessError):
        check_out(str(project), tree, [Source("owner/name", first, "src/none.cu")])


def _commit(project: Path, text: str) -> str:
    for name in ("src/scale.hpp", "main.cu", "other.cu"):
        (project / name).write_text(text)
    _git(project, "add", ".")
    _git(project, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "-m", "one")
    return _git(project, "rev-parse", "HEAD").strip()


def _git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout
