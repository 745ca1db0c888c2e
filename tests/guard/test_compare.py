"""Two sides, line by line: kernels, files, saved analyses, targets, and git revisions."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from docs.schemas import schema_of
from memsim.data import data_folder
from memsim.guard.comparison import compare, compare_all, side_of
from memsim.views.compare_text import ComparisonDocument
from tests.guard.conftest import TARGET, TILE, Folder
from tests.guard.subjects import CLEAN, STORE, TWO_WAY, out, shared, subject, unresolved
from tests.schema import validate
from tests.traces import site

Tile = Callable[..., Folder]
LAUNCH = ("--grid", "1", "--block", "32,32", "--arg", "f32[1024]", "--arg", "f32[1024]", "--arg", "32")
SCHEMA: dict[str, Any] = schema_of(ComparisonDocument, "comparison", "memsim compare")


UNKNOWN = unresolved(site(line=1, array="index"))


def document(folder: Folder, *arguments: str) -> dict[str, Any]:
    done = folder.run("compare", *arguments, "--format", "json")
    assert (done.code, done.err) == (0, "")
    made: dict[str, Any] = json.loads(done.out)
    validate(made, SCHEMA)
    return made


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def history(tile: Tile) -> Folder:
    """A repository with the padded kernel in HEAD~1, without padding in HEAD and in the working tree."""
    project = tile()
    git(project.path, "init", "-q")
    git(project.path, "add", "tile.cu", "memsim.toml")
    git(project.path, "commit", "-qm", "padded")
    project.edit("memsim.toml", "-DPAD=1", "-DPAD=0")
    project.edit("tile.cu", "    __sync", "    // read along a column\n    __sync")
    git(project.path, "commit", "-qam", "not padded")
    return project


# --- the comparison itself


def test_differences_come_first() -> None:
    a = side_of("a", subject(shared(CLEAN, STORE), shared(TWO_WAY), out(CLEAN)).analysis)
    b = side_of("b", subject(shared(CLEAN, STORE), shared(CLEAN), out(TWO_WAY), UNKNOWN).analysis)
    made = compare(a, b)
    kinds = [line.change.kind if line.change else "=" for line in made.lines]
    assert kinds == ["worse", "new", "improved", "="]
    changed = [total.a != total.b for total in made.totals]
    assert changed == sorted(changed, reverse=True)
    assert made.verdict.startswith("a -> b: 1 worse, 1 new, 1 improved, of 4")


def test_equal_is_equal() -> None:
    a = side_of("a", subject(shared(CLEAN), out(CLEAN)).analysis)
    made = compare(a, a)
    assert not made.differs
    assert made.verdict == "a: no difference in 2 accesses"


def test_a_kernel_that_became_worse_comes_before_one_that_improved() -> None:
    clean, conflict = (side_of("k", subject(shared(cost)).analysis) for cost in (CLEAN, TWO_WAY))
    made = compare_all(
        {"same": clean, "improved": conflict, "worse": clean},
        {"same": clean, "improved": clean, "worse": conflict},
    )
    kinds = [pair.lines[0].change and pair.lines[0].change.kind for pair in made.pairs]
    assert kinds == ["worse", "improved", None]


def test_kernels_that_only_one_side_has() -> None:
    one = side_of("k", subject(shared(CLEAN)).analysis)
    other = side_of("k", subject(shared(TWO_WAY)).analysis)
    made = compare_all({"k": one, "same": one, "gone": one}, {"same": one, "k": other, "new": one})
    assert [(pair.a.name, pair.differs) for pair in made.pairs] == [("k", True), ("k", False)]
    assert (made.only_a, made.only_b) == (("gone",), ("new",))
    assert made.verdict == "1 of 2 kernels changed; only in the first: gone; only in the second: new"


# --- what A and B may be


@pytest.mark.slow
def test_two_kernels(folder: Folder) -> None:
    done = folder.run("compare", "kernel_v4_colmajor", "kernel_v4", "--size", "128,128,16")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "kernel_v4_colmajor -> kernel_v4: 4 improved, 2 changed, of 12 accesses"
    assert lines[1].startswith("Time: about ") and "(estimates; within their error of " in lines[1]
    assert lines[4] == "Files: kernel_v4_colmajor.cu -> kernel_v4.cu"
    assert lines[6].split()[:2] == ["change", "line"]
    assert lines[7].startswith("improved  40 -> 43  ")
    assert lines[7].split()[-3:] == ["32", "16", "-16"]
    assert max(map(len, lines[6:])) <= 100
    assert any(line.startswith("=  ") for line in lines)
    assert any(line.startswith("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum") for line in lines)
    assert lines[-1] == "8 other totals of ncu's are equal."


@pytest.mark.slow
def test_two_files(tile: Tile) -> None:
    project = tile()
    project.write("other.cu", TILE.replace("tile[x][y]", "tile[y][x]"))
    made = document(project, "tile.cu", "other.cu", *LAUNCH, "-D", "PAD=0")
    (pair,) = made["kernels"]
    assert pair["verdict"] == "tile.cu -> other.cu: 1 improved, 1 changed, of 4 accesses"
    first = pair["lines"][0]
    assert (first["change"], first["a"]["max_ways"], first["b"]["max_ways"]) == ("improved", 32, 1)
    assert {"quantity": "ways", "a": 32, "b": 1} in first["differences"]
    assert project.run("compare", "tile.cu", "other.cu").code == 2  # with no launch


@pytest.mark.slow
def test_two_files_of_one_name(tile: Tile) -> None:
    project = tile()
    project.write("new/tile.cu", TILE.replace("tile[x][y]", "tile[y][x]"))
    done = project.run("compare", "tile.cu", "new/tile.cu", *LAUNCH, "-D", "PAD=0")
    assert "Files: tile.cu -> new/tile.cu\n" in done.out
    done = project.run("compare", "tile.cu", "tile.cu", *LAUNCH, "-D", "PAD=0")
    assert "Files: tile.cu\n" in done.out


@pytest.mark.slow
def test_saved_analyses_and_traces(tile: Tile) -> None:
    project = tile()
    options = (*LAUNCH, "-D", "PAD=1")
    project.write("before.json", project.run("analyze", "tile.cu", *options, "--json").out)
    project.run("analyze", "tile.cu", *options, "--save-trace", "before.npz")
    assert not document(project, "before.json", "before.npz")["kernels"][0]["differs"]
    made = document(project, "before.json", "tile.cu", *LAUNCH, "-D", "PAD=0")
    assert made["kernels"][0]["verdict"] == "before.json -> tile.cu: 1 worse, of 4 accesses"


@pytest.mark.slow
def test_the_launch_of_a_saved_analysis_is_known(folder: Folder) -> None:
    v4 = ("kernel_v4", "--size", "128,128,16")
    folder.write("v4.json", folder.run("analyze", *v4, "--json").out)
    done = folder.run("compare", "v4.json", *v4)
    assert (done.code, done.err) == (0, "")
    launch = "grid 1x1x1, block 16x16x1, 0 B dynamic shared memory, 1 of 1 blocks, sm_90"
    assert [line for line in done.out.splitlines() if "aunch" in line] == [f"Launch: {launch}"]
    (pair,) = document(folder, "v4.json", *v4)["kernels"]
    assert (pair["a"]["launch"], pair["b"]["launch"]) == (launch, launch)
    assert pair["a"]["time"] == pair["b"]["time"] and pair["a"]["time"]["cycles"]
    done = folder.run("compare", "v4.json", "kernel_v4", "--size", "256,128,16")
    assert [line for line in done.out.splitlines() if "aunch" in line] == [
        f"Launch of A: {launch}",
        f"Launch of B: {launch.replace('grid 1x1', 'grid 1x2').replace('1 of 1', '2 of 2')}",
    ]


@pytest.mark.slow
def test_targets_of_the_project(tile: Tile) -> None:
    project = tile()
    more = TARGET.replace("-DPAD=1", "-DPAD=0") + 'name = "bare"\n'
    project.write("memsim.toml", project.read("memsim.toml") + more)
    made = document(project, "tile", "bare")
    assert made["verdict"] == "tile -> bare: 1 worse, of 4 accesses"


@pytest.mark.slow
def test_two_revisions(history: Folder) -> None:
    made = document(history, "HEAD~1", "HEAD")
    (pair,) = made["kernels"]
    assert pair["verdict"] == "tile: 1 worse, of 4 accesses"
    line = pair["lines"][0]
    assert (line["a"]["line"], line["b"]["line"], line["b"]["max_ways"]) == (6, 7, 32)
    assert not document(history, "HEAD", ".")["kernels"][0]["differs"]
    assert history.run("compare", "HEAD~1", ".").out.startswith("tile: 1 worse")


@pytest.mark.slow
def test_a_file_and_a_target_of_a_revision(history: Folder) -> None:
    history.edit("tile.cu", "tile[x][y]", "tile[y][x]")
    made = document(history, "HEAD:tile.cu", "tile.cu", *LAUNCH, "-D", "PAD=0")
    assert made["kernels"][0]["verdict"] == "HEAD:tile.cu -> tile.cu: 1 improved, 1 changed, of 4 accesses"
    made = document(history, "HEAD~1:tile", "HEAD:tile")
    assert made["verdict"] == "HEAD~1:tile -> HEAD:tile: 1 worse, of 4 accesses"


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize(
    "options", ['["-I", "inc"]', '["-Iinc"]', '["--include-path=inc"]', '["-I{folder}/inc"]']
)
def test_a_revision_has_its_own_headers(folder: Folder, options: str) -> None:
    folder.write("inc/pad.h", "#define PAD 0\n")
    folder.write("src/tile.cu", f'#include "pad.h"\n{TILE}')
    target = TARGET.replace("tile.cu", "src/tile.cu")
    folder.write("memsim.toml", target.replace('["-DPAD=1"]', options.format(folder=folder.path)))
    git(folder.path, "init", "-q")
    git(folder.path, "add", ".")
    git(folder.path, "commit", "-qm", "one")
    assert "no difference" in folder.run("compare", "HEAD", ".").out
    folder.write("inc/pad.h", "#define PAD 1\n")
    assert folder.run("compare", "HEAD", ".").out.startswith("tile: 1 improved, of 4 accesses")
    at_head = ("compare", "HEAD:src/tile.cu", "src/tile.cu", "-I", "inc", *LAUNCH)
    assert "1 improved, of 4 accesses" in folder.run(*at_head).out


@pytest.mark.slow
def test_headers_outside_of_the_repository_stay_where_they_are(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write("outside/pad.h", "#define PAD 0\n")
    folder.write("repository/tile.cu", f'#include "pad.h"\n{TILE}')
    target = TARGET.replace('["-DPAD=1"]', '["-I../outside"]')
    folder.write("repository/memsim.toml", target)
    git(tmp_path / "repository", "init", "-q")
    git(tmp_path / "repository", "add", ".")
    git(tmp_path / "repository", "commit", "-qm", "one")
    monkeypatch.chdir(tmp_path / "repository")
    assert "no difference" in folder.run("compare", "HEAD", ".").out


@pytest.mark.slow
def test_a_repository_is_only_read(history: Folder) -> None:
    before = {path: path.read_bytes() for path in (history.path / ".git").rglob("*") if path.is_file()}
    history.run("compare", "HEAD~1", "HEAD")
    after = {path: path.read_bytes() for path in (history.path / ".git").rglob("*") if path.is_file()}
    assert before == after


@pytest.mark.slow
def test_a_revision_from_before_the_configuration(history: Folder) -> None:
    git(history.path, "rm", "-q", "--cached", "memsim.toml")
    git(history.path, "commit", "-qm", "no configuration")
    assert not document(history, "HEAD", ".")["kernels"][0]["differs"]
    (history.path / "memsim.toml").write_text(TARGET + TARGET.replace("tile.cu", "new.cu"))
    history.write("new.cu", TILE)
    made = document(history, "HEAD", ".")
    assert (made["only_a"], made["only_b"]) == ([], ["new"])


@pytest.mark.slow
def test_a_target_that_fails_is_named_and_the_others_are_compared(history: Folder) -> None:
    history.write("memsim.toml", TARGET + TARGET.replace("tile.cu", "other.cu") + 'name = "other"\n')
    history.write("other.cu", TILE)
    git(history.path, "add", "other.cu")
    git(history.path, "commit", "-qam", "two targets")
    history.edit("tile.cu", "tile[x][y]", "tile[x][y")
    done = history.run("compare", "HEAD", ".", "--format", "json")
    made = json.loads(done.out)
    validate(made, SCHEMA)
    assert (done.code, made["verdict"]) == (2, "0 of 1 kernels changed; NOT COMPARED: tile")
    assert (made["only_a"], made["only_b"], made["not_compared"]) == ([], [], ["tile"])
    assert done.err.startswith("error: tile in .: tile.cu:")
    history.edit("tile.cu", "tile[x][y", "tile[x][y]")
    assert document(history, "HEAD", ".")["verdict"] == "0 of 2 kernels changed"


def test_kernels_that_ship_do_not_change_with_another_repository(folder: Folder) -> None:
    folder.write("memsim.toml", '[[targets]]\nkernel = "transpose_xor"\nsize = "64,64"\n')
    git(folder.path, "init", "-q")
    git(folder.path, "add", ".")
    git(folder.path, "commit", "-qm", "one")
    done = folder.run("compare", "HEAD", ".")
    assert done.code == 2
    assert "no revision of this repository changes" in done.err


@pytest.mark.slow
def test_kernels_that_ship_change_with_their_own_repository(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = data_folder("kernels")
    shutil.copytree(ours, folder.path / "kernels")
    monkeypatch.setattr("memsim.targets.revision.data_folder", lambda name: folder.path / name)
    folder.write("memsim.toml", '[[targets]]\nkernel = "transpose_xor"\nsize = "64,64"\n')
    git(folder.path, "init", "-q")
    git(folder.path, "add", ".")
    git(folder.path, "commit", "-qm", "as it is")
    source = "kernels/transpose_xor.cu"
    assert folder.read(source).count(" ^ ") > 0
    folder.write(source, folder.read(source).replace(" ^ ", " + 0 * "))  # compiled anew: it is not what ships
    git(folder.path, "commit", "-qam", "another kernel")
    made = document(folder, "HEAD~1", "HEAD")
    assert made["kernels"][0]["differs"]
    assert not document(folder, "HEAD~1", ".")["kernels"][0]["differs"]  # the catalogue that is installed


# --- mistakes


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("kernel_v4", "nothing"), "not a kernel, file"),
        (("HEAD", "kernel_v4"), "B a whole project"),
        (("HEAD:gone", "HEAD"), "HEAD has no target 'gone'"),
        (("HEAD:gone.cu", "HEAD:tile.cu", *LAUNCH), "no such file"),
        (("HEAD:tile.cu", "HEAD:tile"), "needs --let A_SIZE, --let C_SIZE"),
        (("kernel_v4", "kernel_v5", "--grid", "1"), "--grid does not apply"),
        (("HEAD", ".", "--size", "64,64"), "--size does not apply"),
        (("gone.npz", "kernel_v4"), "no such file"),
        (("gone.json", "kernel_v4"), "there is no such file"),
        (("memsim.toml", "kernel_v4"), "not a kernel, file"),
        (("no.json", "kernel_v4"), "not a saved analysis"),
        (("other.json", "kernel_v4"), "has schema 99"),
        (("bad.json", "kernel_v4"), "not valid JSON"),
        (("short.json", "kernel_v4"), "short.json is damaged: Object missing required field `launch`"),
    ],
)
def test_what_it_cannot_compare(history: Folder, arguments: tuple[str, ...], message: str) -> None:
    history.write("no.json", "{}")
    history.write("other.json", '{"schema": 99, "sites": [], "totals": {}}')
    history.write("bad.json", "{")
    history.write("short.json", '{"schema": 1, "sites": [], "totals": {}}')
    done = history.run("compare", *arguments)
    assert done.code == 2
    assert message in done.err


# --- formats


@pytest.mark.slow
def test_markdown_has_the_differences_only(history: Folder) -> None:
    text = history.run("compare", "HEAD~1", "HEAD", "--format", "markdown").out
    assert text.startswith("### tile: 1 worse, of 4 accesses\n")
    assert "| worse | tile.cu:6 -\\> tile.cu:7 | `C[y * n + x] = tile[x][y];` |" in text
    assert "| wavefronts 32 -\\> 1,024 (+992); conflicts 0 -\\> 992 (+992); ways 1 -\\> 32 (+31) |" in text
    assert text.count("| worse |") == 1
    assert "A[y" not in text
    assert history.run("compare", "HEAD", ".", "--format", "markdown").out.strip() == (
        "### tile: no difference in 4 accesses"
    )
