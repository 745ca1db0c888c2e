"""A project in its git repository: its targets and files at a revision, the paths that reports show, and a
project checked against a base branch.

Of a revision, the files are in a temporary folder. The repository is only read: no checkout, no worktree, no
lock. Submodules are not supported. Paths are relative to the repository or to the working folder, with
slashes, absolute only for files elsewhere.

Against a base branch counts what the base says, not what a change says of itself: settings, budgets,
acceptances and the baseline are the base's, its sources are those that are here. Targets that only this side
has are checked as it says.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from memsim.api.kernel_file import KernelFile
from memsim.api.loading import SOURCE_SUFFIXES
from memsim.boundary import allow
from memsim.compile.options import paths_in_tree
from memsim.data import data_folder
from memsim.errors import MemsimError
from memsim.files import file_exists
from memsim.guard import baseline
from memsim.guard.baseline import Entry
from memsim.guard.judge import restrict_rule
from memsim.guard.outcome import Problem
from memsim.job import Job
from memsim.kernels import Spec
from memsim.targets.config_tables import ConfigTable
from memsim.targets.project import OWN_FILE, SHARED_FILE, Base, Project, read_project


def repository_root(folder: Path) -> Path:
    """The nearest enclosing folder of a git repository; else the folder itself."""
    return next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)


def locator(targets: Sequence[Job], root: Path) -> Callable[[str, str], str]:
    """A function of a target's name and a file that its accesses name ("": the target's own)."""
    by_name = {target.name: target for target in targets}

    def locate(kernel: str, file: str) -> str:
        source = by_name[kernel].kernel if kernel in by_name else None
        path = (Path(file) if source is None else source.folder / (file or source.file)).absolute()
        try:
            return path.resolve().relative_to(root.resolve()).as_posix()
        except ValueError:
            return path.as_posix()

    return locate


def is_revision(repository: Path, name: str) -> bool:
    """Whether git knows a commit of this name."""
    done = _git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return done is not None and done.returncode == 0


def text_at(repository: Path, revision: str, place: str) -> str | None:
    """The text of a file, by its path in the repository, at a revision; None if it has no such file."""
    done = _git(repository, "cat-file", "blob", f"{revision}:{place}")
    return None if done is None or done.returncode else done.stdout.decode("utf-8", "replace")


@contextmanager
def files_at(repository: Path, revision: str) -> Iterator[Path]:
    """A temporary folder with the repository's files at a revision.

    Raises:
        MemsimError: git is not installed, or there is no such revision.
    """
    done = _git(repository, "archive", "--format=tar", "--end-of-options", revision)
    if done is None:
        raise MemsimError("git is not installed or cannot be run")
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise MemsimError(f"git cannot read revision {revision!r}: {said}")
    with tempfile.TemporaryDirectory(prefix="memsim-") as folder:
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            if hasattr(tarfile, "data_filter"):  # rejects paths outside of the folder
                archive.extraction_filter = tarfile.data_filter
            archive.extractall(folder)
        allow(Path(folder))
        yield Path(folder)


def targets_at(project: Project, repository: Path, tree: Path) -> tuple[Job, ...]:
    """The targets as the files in `tree` describe them.

    If they have no configuration yet, the present one describes the launches, and missing files are skipped.

    Raises:
        MemsimError: the old configuration is invalid, or the repository contains none of the kernels.
    """
    kernels, present = None, data_folder("kernels").resolve()
    if present.is_relative_to(repository.resolve()):  # the catalogue that ships is a part of the repository
        kernels = tree / present.relative_to(repository.resolve())
    path = tree / project.path.relative_to(repository)
    if path.is_file():
        targets = read_project(path, kernels).targets
    else:
        targets = read_project(project.path, kernels, path.parent).targets
    targets = tuple(with_headers_of(target, project.folder, repository, tree) for target in targets)
    if kernels is None and all(isinstance(target.kernel, Spec) for target in targets):
        raise MemsimError(
            "the targets are kernels that ship with memsim, which no revision of this repository changes",
            file=str(project.path),
        )
    return targets


def with_headers_of(job: Job, folder: Path, repository: Path, tree: Path) -> Job:
    """The job with its include folders, now relative to `folder`, moved to `tree`."""
    kernel = job.kernel
    if not isinstance(kernel, KernelFile):
        return job
    options = tuple(paths_in_tree(kernel.options, folder, repository, tree))
    return replace(job, kernel=replace(kernel, options=options))


def _git(repository: Path, *arguments: str) -> subprocess.CompletedProcess[bytes] | None:
    try:
        return subprocess.run(["git", *arguments], cwd=repository, capture_output=True, check=False)
    except OSError:
        return None


def project_against(project: Project, revision: str) -> Project:
    """The project as a revision of its repository describes it, with the targets that only `project` has.

    revision: as git names it; a branch that is only known of the remote `origin` is meant, too.

    Raises:
        MemsimError: no repository or no such revision, or its configuration or baseline is damaged.
    """
    repository = repository_root(project.folder)
    known = next((one for one in (revision, f"origin/{revision}") if is_revision(repository, one)), None)
    if known is None:
        hint = "fetch it; in GitHub Actions, actions/checkout with fetch-depth: 0"
        raise MemsimError(f"git knows no revision {revision!r} here", hint=hint)
    said = _configuration_at(project, repository, known)
    if said is None:
        return replace(project, base=Base(revision, known, repository))
    place, text = said
    with tempfile.TemporaryDirectory(prefix="memsim-") as folder:
        allow(Path(folder))
        path = Path(folder).resolve() / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        try:
            return _merge(project, Base(revision, known, repository), path, place)
        except MemsimError as error:
            if error.file is not None and Path(error.file) == path:
                error.file = f"{known}:{place}"
            raise


def _configuration_at(project: Project, repository: Path, revision: str) -> tuple[str, str] | None:
    """(place in the repository, text) of the revision's configuration in the project's folder, if any."""
    folder = project.folder.resolve().relative_to(repository.resolve())
    for name in dict.fromkeys((project.path.name, OWN_FILE, SHARED_FILE)):
        place = (folder / name).as_posix()
        text = text_at(repository, revision, place)
        if text is not None and (
            name != SHARED_FILE or re.search(r"^\s*\[+\s*tool\s*\.\s*memsim\b", text, re.M)
        ):
            return place, text
    return None


def _merge(project: Project, base: Base, path: Path, place: str) -> Project:
    """The base's project, at `path` for now, with what only `project` has."""
    problems: list[Problem] = []
    gone: list[str] = []

    def failed(entry: ConfigTable, error: MemsimError | None) -> None:
        file = Path(str(entry.values.get("file", ""))).stem
        name = str(entry.values.get("name") or entry.values.get("kernel") or file)
        if error is None or _is_gone(_file_of(entry, project.folder)):
            gone.append(name)
            return
        if error.file is not None and Path(error.file) == path:
            error.file = f"{base.known}:{place}"
        problems.append(Problem(name, error))

    before = read_project(path, tree=project.folder, failed=failed)
    there = [job for job in before.targets if not _is_gone(job.kernel)]
    written = os.path.relpath(before.baseline, path.parent)
    entries = _baseline_at(base, (Path(place).parent / written).as_posix())
    names = {job.name for job in there} | {program.name for program in before.programs}
    mine = [job for job in project.targets if job.name not in names]
    programs = (*before.programs, *(one for one in project.programs if one.name not in names))
    new = [job.name for job in mine] + [one.name for one in project.programs if one.name not in names]
    gone += [job.name for job in before.targets if job.name not in names and job.name not in new]
    known = {*names, *new, *gone, *(name for name in entries if any(one.makes(name) for one in programs))}
    gone += [name for name in entries if name not in known]
    only = [restrict_rule(rule, new) for rule in project.rules if set(rule.kernels) & set(new)]
    accepted = [restrict_rule(one, new) for one in project.acceptances if set(one.kernels) & set(new)]
    lost = {problem.kernel for problem in problems}
    return replace(
        project,
        targets=(*there, *mine),
        programs=programs,
        rules=(*(restrict_rule(rule, names) for rule in before.rules if set(rule.kernels) & names), *only),
        acceptances=(*before.acceptances, *accepted),
        base=replace(
            base,
            names=frozenset(names),
            entries=entries,
            problems=tuple(problems),
            gone=tuple(name for name in gone if name not in lost),
        ),
    )


def _baseline_at(base: Base, place: str) -> dict[str, Entry]:
    """The entries of the base's baseline, none if it has none."""
    text = text_at(base.repository, base.known, os.path.normpath(place).replace(os.sep, "/"))
    return {} if text is None else baseline.parse(text, f"{base.known}:{place}")


def _file_of(entry: ConfigTable, folder: Path) -> KernelFile | None:
    """The kernel that a target of a file names."""
    file, kernel, options = (entry.values.get(key) for key in ("file", "kernel", "options"))
    if not isinstance(file, str) or not isinstance(kernel, str):
        return None
    words = tuple(filter(lambda word: isinstance(word, str), options if isinstance(options, list) else ()))
    return KernelFile(folder=folder, file=file, name=kernel, options=words)


def _is_gone(kernel: object) -> bool:
    """Whether the source of a kernel does not even mention it any more."""
    if not isinstance(kernel, KernelFile) or kernel.name is None:
        return False
    if Path(kernel.file).suffix not in SOURCE_SUFFIXES or not file_exists(kernel.folder / kernel.file):
        return False
    plain = kernel.name.partition("<")[0].strip().rpartition("::")[2]
    return plain.isidentifier() and re.search(rf"\b{plain}\b", kernel.launching_text()) is None
