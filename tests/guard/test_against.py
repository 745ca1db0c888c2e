"""`memsim check --against main`: a change is judged by what the base branch says, not by what it says."""

from __future__ import annotations

import subprocess

import pytest

from tests.guard.conftest import LAUNCHED, TARGET, Folder

SCALE = """\
__global__ void scale(float *data) { data[threadIdx.x] *= 2; }
void run(float *data) { scale<<<1, 32>>>(data); }
"""
SECOND = '[[targets]]\nfile = "scale.cu"\nargs = ["f32[1024]"]\n'
OK = "OK: 1 kernel, 1 check passed\n"


def git(folder: Folder, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *words], cwd=folder.path, check=True, capture_output=True)


def commit(folder: Folder) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-m", "so it is")


@pytest.fixture
def main_and_change(folder: Folder) -> Folder:
    """A project whose branch `main` is guarded by its baseline; the branch `change` is checked out."""
    folder.write("tile.cu", LAUNCHED)
    folder.write("memsim.toml", TARGET)
    assert folder.run("baseline").code == 0
    git(folder, "init", "-b", "main")
    commit(folder)
    git(folder, "switch", "-c", "change")
    return folder


def worse(folder: Folder) -> None:
    """The column that is read has conflicts now."""
    folder.edit("tile.cu", "tile[x][y]", "tile[0][2 * x + y]")


@pytest.mark.slow
def test_nothing_changed(main_and_change: Folder) -> None:
    assert main_and_change.run("check", "--against", "main").out == OK


@pytest.mark.slow
def test_a_change_cannot_rewrite_the_baseline_it_is_judged_by(main_and_change: Folder) -> None:
    worse(main_and_change)
    assert main_and_change.run("baseline").code == 0
    assert main_and_change.run("check").code == 0
    done = main_and_change.run("check", "--against", "main")
    assert done.code == 1
    assert "tile: worse than the baseline" in done.out


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "settings",
    [
        TARGET.replace("[[targets]]", "budgets = ['instructions <= 1_000_000']\n[[targets]]"),
        TARGET.replace('name = "tile"', 'name = "other"'),
        TARGET + "budgets = ['local_sectors == 0']\n",
        SECOND,
    ],
)
def test_nor_the_settings(main_and_change: Folder, settings: str) -> None:
    worse(main_and_change)
    main_and_change.write("scale.cu", SCALE)
    main_and_change.write("memsim.toml", settings)
    main_and_change.run("baseline")
    done = main_and_change.run("check", "--against", "main")
    assert done.code == 1
    assert "tile: worse than the baseline" in done.out


@pytest.mark.slow
def test_nor_accept_what_it_makes_unknown(main_and_change: Folder) -> None:
    main_and_change.edit("tile.cu", "C[y * n + x] =", "C[(y * n + x + (int)clock()) % 1024] =")
    main_and_change.write("memsim.toml", "accept = ['sites(global, store)']\n" + TARGET)
    assert main_and_change.run("baseline").code == 0
    assert main_and_change.run("check").code == 0
    done = main_and_change.run("check", "--against", "main")
    assert done.code == 1
    assert (
        "access not analyzed" in done.out
        and "at the same cost\n  where" not in done.out.split("tile.cu:6")[0]
    )


@pytest.mark.slow
def test_what_is_better_needs_no_baseline_yet(main_and_change: Folder) -> None:
    main_and_change.edit("memsim.toml", "-DPAD=1", "-DPAD=0")
    main_and_change.run("baseline")
    commit(main_and_change)
    main_and_change.edit("tile.cu", "[32 + PAD]", "[33 + PAD]")
    done = main_and_change.run("check", "--against", "change")
    assert (done.code, done.out.splitlines()[-1]) == (
        0,
        "OK: 1 kernel, 1 check passed; improved since change",
    )


@pytest.mark.slow
def test_a_new_target_is_checked_as_the_change_says(main_and_change: Folder) -> None:
    main_and_change.write("scale.cu", SCALE)
    done = main_and_change.run("check", "--against", "main")
    assert done.code == 0
    assert done.out.startswith("1 of 2 kernels guarded; new and unguarded: `scale` (scale.cu:1)\n")
    main_and_change.write("memsim.toml", TARGET + SECOND)
    assert "kernel scale is not in the baseline" in main_and_change.run("check", "--against", "main").out
    main_and_change.run("baseline")
    assert main_and_change.run("check", "--against", "main").out == "OK: 2 kernels, 2 checks passed\n"


def test_a_kernel_that_was_unguarded_before_is_not_new(main_and_change: Folder) -> None:
    main_and_change.write("scale.cu", SCALE)
    commit(main_and_change)
    done = main_and_change.run("check", "--against", "change")
    assert done.out.startswith("1 of 2 kernels guarded; unguarded: `scale` (scale.cu:1)\n")


@pytest.mark.some(1)
@pytest.mark.parametrize("launch", ["", "grid = 1\nblock = [32, 32]\n"])
@pytest.mark.parametrize("is_removed", [True, False])
def test_a_kernel_that_is_gone_is_told(main_and_change: Folder, launch: str, is_removed: bool) -> None:
    main_and_change.write("scale.cu", SCALE)
    named = '[[targets]]\nfile = "tile.cu"\nkernel = "turn"\nargs = ["f32[1024]", "f32[1024]", 32]\n'
    main_and_change.write("memsim.toml", f'{named}{launch}options = ["-DPAD=1"]\n')
    main_and_change.run("baseline")
    commit(main_and_change)
    main_and_change.write("memsim.toml", SECOND)
    main_and_change.run("baseline")
    if is_removed:
        (main_and_change.path / "tile.cu").unlink()
    else:
        main_and_change.write("tile.cu", LAUNCHED.replace("turn", "flip"))
    done = main_and_change.run("check", "--against", "change")
    assert done.code == 0
    assert "no longer there: turn\n" in done.out
    assert ("new and unguarded: `flip` (tile.cu:1)" in done.out) is not is_removed


def test_a_base_without_a_project_has_nothing_to_say(folder: Folder) -> None:
    folder.write("README", "nothing")
    git(folder, "init", "-b", "main")
    commit(folder)
    folder.write("tile.cu", LAUNCHED)
    folder.write("memsim.toml", "budgets = ['ways <= 1']\n" + TARGET)
    assert folder.run("check", "--against", "main").out == OK
    done = folder.run("check", "--against", "nowhere")
    assert done.code == 2 and "git knows no revision 'nowhere' here" in done.out


@pytest.mark.slow
def test_a_branch_that_only_the_remote_has(main_and_change: Folder) -> None:
    git(main_and_change, "update-ref", "refs/remotes/origin/base", "main")
    worse(main_and_change)
    assert main_and_change.run("check", "--against", "base").code == 1
