"""A project in its git repository: its targets and files at a revision, and the paths that reports show.

Of a revision, the files are in a temporary folder. The repository is only read: no checkout, no worktree, no
lock. Submodules are not supported. Paths are relative to the repository or to the working folder, with
slashes, absolute only for files elsewhere.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from memsim.api.kernel_file import KernelFile
from memsim.boundary import allow
from memsim.compile.options import paths_in_tree
from memsim.data import data_folder
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.kernels import Spec
from memsim.targets.project import Project, read_project


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
    kernels = _catalogue_in(repository, tree)
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


def _catalogue_in(repository: Path, tree: Path) -> Path | None:
    """The catalogue's folder in `tree`, if the one that ships is part of the repository."""
    present = data_folder("kernels").resolve()
    if not present.is_relative_to(repository.resolve()):
        return None
    return tree / present.relative_to(repository.resolve())


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
