"""An edit as a patch that git applies, as a commit on a branch, and as blocks for a review."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from memsim.api import kernel_file
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.launch import Launch
from memsim.suggest import landing
from memsim.suggest.edit import Edit, Replacement

TEXT = "int a;\nint b;\n__shared__ float t[32][32];\nint c;\nint d;\nt[y][x] = 0;"
ADDED = "\nstatic_assert(true);"


def git(folder: Path, *command: str) -> str:
    """What git prints."""
    done = subprocess.run(["git", *command], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a kernel in a folder."""
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "config", "user.name", "A B")
    git(tmp_path, "config", "user.email", "a@b.c")
    (tmp_path / "src").mkdir()
    return tmp_path


def edited(project: Path, text: str, ends: str = "\n") -> tuple[Job, Edit]:
    """The job of a committed text, and an edit of it: a longer row, and a line more."""
    (project / "src" / "k.cu").write_bytes(text.replace("\n", ends).encode())
    git(project, "add", ".")
    git(project, "commit", "-qm", "first")
    job = Job(kernel_file.KernelFile(project / "src", "k.cu", "k"), Launch((1, 1, 1), (32, 1, 1)))
    row, end = text.index("32]", text.index("][")), text.index(";\nint c") + 1
    return job, Edit("k.cu", text, (Replacement(row, row + 2, "32 + 1"), Replacement(end, end, ADDED)))


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "\n", "\n\n", "\nint e;"])
def test_git_applies_the_patch(project: Path, last: str, ends: str) -> None:
    _, edit = edited(project, TEXT + last, ends)
    (project / "cure.patch").write_bytes(
        landing.patch(project / "src/k.cu", edit, "title\n\nbody\n").encode()
    )
    git(project, "apply", "--check", "cure.patch")
    git(project, "apply", "cure.patch")
    assert (project / "src" / "k.cu").read_bytes() == edit.new.replace("\n", ends).encode()


def test_a_branch_leaves_the_working_tree_alone(project: Path) -> None:
    _, edit = edited(project, TEXT)
    (project / "other.txt").write_text("mine")
    git(project, "add", ".")
    commit = landing.branch(project / "src/k.cu", edit, "cure", "a title\n\nand more\n")
    assert git(project, "show", "cure:src/k.cu") == edit.new
    assert git(project, "log", "--format=%H %s %an", "main..cure").split() == [commit, "a", "title", "A", "B"]
    assert git(project, "diff", "--name-only", "main", "cure").split() == ["src/k.cu"]
    assert git(project, "status", "--short") == "A  other.txt\n"
    assert git(project, "rev-parse", "--abbrev-ref", "HEAD") == "main\n"
    with pytest.raises(MemsimError, match="there is a branch cure already"):
        landing.branch(project / "src/k.cu", edit, "cure", "again\n")
    with pytest.raises(MemsimError, match="no name of a branch"):
        landing.branch(project / "src/k.cu", edit, "a..b", "again\n")


def test_a_file_that_changed_is_not_edited(project: Path) -> None:
    job, edit = edited(project, TEXT)
    (project / "src" / "k.cu").write_text(TEXT + "\n// mine")
    with pytest.raises(MemsimError, match="the file changed during the analysis"):
        landing.path_of(job, edit)
    ours = replace(edit, text=TEXT + "\n// mine")
    with pytest.raises(MemsimError, match="the file is not as it was committed"):
        landing.branch(project / "src/k.cu", ours, "cure", "title\n")


def test_a_review_has_a_block_for_each_run_of_lines(project: Path) -> None:
    _, edit = edited(project, TEXT)
    text = landing.review(project / "src/k.cu", edit, "title\n\ncounts\n")
    assert text.startswith("**title**\n\ncounts\n\n`src/k.cu`, line 3:\n\n```suggestion\n")
    block = text.split("```suggestion\n")[1].split("```")[0]
    assert block == "__shared__ float t[32][32 + 1];\nstatic_assert(true);\n"
    assert text.count("```suggestion") == 1


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("int a;", "long a;", "line 1"),
        ("int a;\nint b;\n", "long a, b;\n", "lines 1 to 2"),
        ("b;\n__shared__ float t[32][32];\nint c", "more", "lines 2 to 4"),
        ("int b;\n__shared__ float t[32][32];\n", "", "lines 2 to 4"),
        ("\nint b;", "", "lines 1 to 2"),
        ("int b;\n", "int b;\nint e;\n", "line 2"),
    ],
)
def test_a_review_replaces_all_lines_that_a_replacement_spans(
    project: Path, old: str, new: str, lines: str
) -> None:
    edited(project, TEXT)
    start = TEXT.index(old)
    edit = Edit("k.cu", TEXT, (Replacement(start, start + len(old), new),))
    ((first, last, inside),) = edit.runs
    told = TEXT.split("\n")
    assert "\n".join([*told[: first - 1], *inside, *told[last:]]) == edit.new
    (changed,) = edit.lines
    assert changed.line == first and changed.old == "\n".join(told[first - 1 : last])
    assert f"`src/k.cu`, {lines}:" in landing.review(project / "src/k.cu", edit, "title\n")
