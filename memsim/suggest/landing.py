"""An edit on its way into a project: a patch for `git apply`, blocks for a review on GitHub, a branch.

Paths in them begin at the top of the repository that has the file, and line ends are those of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memsim.analysis import Analysis
from memsim.errors import MemsimError
from memsim.estimated_time import time_change
from memsim.files import file_exists, read_bytes, read_text, write_text
from memsim.job import Job
from memsim.programs import run_program, text_of
from memsim.suggest.edit import Edit, git_diff
from memsim.suggest.other_values import SAME, OtherValue
from memsim.suggest.prove import Proof
from memsim.suggest.threads import Remapped


def path_of(job: Job, edit: Edit) -> Path:
    """The file that an edit changes.

    Raises:
        MemsimError: there is none, or it is not what was analyzed.
    """
    path = job.kernel.folder / edit.file
    if not file_exists(path):
        raise MemsimError("the file that the change is of was not found", file=edit.file)
    if read_text(path) != edit.text:
        raise MemsimError("the file changed during the analysis", file=str(path), hint="run it again")
    return path


def apply(path: Path, edit: Edit) -> None:
    """Writes the edited text into its file.

    Raises:
        MemsimError: it cannot be written.
    """
    write_text(path, _with_line_ends(path, edit.new), "it")


def patch(path: Path, edit: Edit, message: str) -> str:
    """The change as a patch, below its message; `git apply` takes it at the top of the repository."""
    old, new = (_with_line_ends(path, text) for text in (edit.text, edit.new))
    return f"{message}---\n{git_diff(_in_repository(path)[1], old, new)}"


def review(path: Path, edit: Edit, message: str) -> str:
    """The change as Markdown: for each run of changed lines a block that GitHub applies by a click."""
    name = _in_repository(path)[1]
    title, _, body = message.partition("\n")
    parts = [f"**{title}**", "", *body.strip().splitlines(), ""]
    for first, last, new in edit.runs:
        lines = f"line {first}" if first == last else f"lines {first} to {last}"
        parts += [f"`{name}`, {lines}:", "", "```suggestion", *new, "```", ""]
    return "\n".join(parts)


def branch(path: Path, edit: Edit, name: str, message: str) -> str:
    """A branch of the repository, one commit from HEAD, with the change; its commit's hash.

    The working tree and the index stay as they are.

    Raises:
        MemsimError: no repository, a branch of that name, or a file that differs from HEAD's.
    """
    top, inside = _in_repository(path)
    if top is None:
        raise MemsimError("it is in no git repository, so that there is no branch", file=str(path))
    if _git(top, "check-ref-format", "--branch", name) is None:
        raise MemsimError(f"{name!r} is no name of a branch")
    if _git(top, "rev-parse", "--verify", "--quiet", f"refs/heads/{name}") is not None:
        raise MemsimError(f"there is a branch {name} already", hint="choose another name")
    committer, entry = _git(top, "var", "GIT_COMMITTER_IDENT"), _git(top, "ls-tree", "HEAD", "--", inside)
    if committer is None:
        raise MemsimError("git does not know who you are", hint="git config user.name and user.email")
    same = run_program(["git", "diff", "--quiet", "HEAD", "--", inside], "git", cwd=str(top)).returncode == 0
    if not entry or not same:
        raise MemsimError("the file is not as it was committed", file=inside, hint="commit it first")
    content = _with_line_ends(path, edit.new).encode()
    text = message.encode()
    head = f"commit refs/heads/{name}\ncommitter {committer}\ndata {len(text)}\n".encode()
    start = f"\nfrom {_git(top, 'rev-parse', 'HEAD')}\nM {entry.split()[0]} inline {inside}\n".encode()
    stream = head + text + start + f"data {len(content)}\n".encode() + content + b"\n"
    done = run_program(["git", "fast-import", "--quiet"], "git", given=stream, cwd=str(top))
    if done.returncode:
        raise MemsimError(f"git made no branch: {text_of(done).strip()}")
    return _git(top, "rev-parse", f"refs/heads/{name}") or ""


def commit_message(
    before: Analysis, taken: Proof | Remapped, tried: Sequence[OtherValue], what: str, results: str
) -> str:
    """What the change does, in counts and estimated time before and after, and at which values it was tried.

    what: its name, in a line. results: in which sense they are the same.
    """
    after, launch = taken.analysis, before.trace.launch
    counts = [
        ("shared wavefronts", before.wavefronts, after.wavefronts),
        ("bank conflicts", before.conflicts, after.conflicts),
        ("global sectors", before.sectors, after.sectors),
    ]
    if not before.bound.lacks:
        counts.append(("lower bound in cycles", before.bound.cycles, after.bound.cycles))
    rows = [
        f"  {name}: {old:,} -> {new:,}"
        for name, old, new in counts
        if old is not None and new is not None and (old or new)
    ]
    change = time_change(before.estimate, taken.analysis.estimate)
    same = [f"{each.name} = {each.value}" for each in tried if each.outcome == SAME]
    shape = "grid {}, block {}".format(*("x".join(map(str, each)) for each in (launch.grid, launch.block)))
    return "\n".join(
        (
            what,
            "",
            f"{before.trace.kernel}, {shape}, counted by memsim on {before.arch.name}:",
            *rows,
            *([f"  time: {change}"] if change else ()),
            f"The results are {results}.",
            *([f"So are they at {', '.join(same)}."] if same else ()),
            *(f"The caller has to keep {each.told}." for each in taken.asks),
            "",
        )
    )


def _with_line_ends(path: Path, text: str) -> str:
    return text.replace("\n", "\r\n") if b"\r\n" in read_bytes(path) else text


def _in_repository(path: Path) -> tuple[Path | None, str]:
    """The top of the repository that a file is in and its name there; None and its name here without one."""
    found = _git(path.parent, "rev-parse", "--show-toplevel")
    if found is None:
        here = path.resolve()
        return None, (here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here).as_posix()
    top = Path(found)
    return top, path.resolve().relative_to(top.resolve()).as_posix()


def _git(folder: Path, *command: str) -> str | None:
    """What git prints, without its last line end; None if it fails, or is not installed."""
    try:
        done = run_program(["git", *command], "git", cwd=str(folder))
    except MemsimError:
        return None
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else None
