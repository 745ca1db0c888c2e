"""A project checked against a base branch: what it says there counts, not what a change says of itself.

Settings, budgets, acceptances and the baseline are the base's, its sources are those that are here. Targets
that only this side has are checked as it says.
"""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import replace
from pathlib import Path

from memsim.api.kernel_file import KernelFile
from memsim.api.loading import SOURCE_SUFFIXES
from memsim.boundary import allow
from memsim.errors import MemsimError
from memsim.files import file_exists
from memsim.guard import baseline
from memsim.guard.baseline import Entry
from memsim.guard.judge import restrict_rule
from memsim.guard.outcome import Problem
from memsim.targets.config_tables import ConfigTable
from memsim.targets.project import OWN_FILE, SHARED_FILE, Base, Project, read_project
from memsim.targets.revision import is_revision, repository_root, text_at
from memsim.targets.source_launch import launching_text_of


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
    names = {job.name for job in there}
    mine = [job for job in project.targets if job.name not in names]
    new = [job.name for job in mine]
    gone += [job.name for job in before.targets if job.name not in names and job.name not in new]
    gone += [name for name in entries if name not in names and name not in new and name not in gone]
    only = [restrict_rule(rule, new) for rule in project.rules if set(rule.kernels) & set(new)]
    accepted = [restrict_rule(one, new) for one in project.acceptances if set(one.kernels) & set(new)]
    lost = {problem.kernel for problem in problems}
    return replace(
        project,
        targets=(*there, *mine),
        rules=(*(restrict_rule(rule, names) for rule in before.rules if set(rule.kernels) & names), *only),
        acceptances=(*before.acceptances, *accepted),
        from_source={**project.from_source, **before.from_source},
        base=replace(
            base,
            names=frozenset(names),
            entries=entries,
            problems=tuple(problems),
            gone=tuple(name for name in gone if name not in lost),
        ),
    )


def _baseline_at(base: Base, place: str) -> dict[str, Entry]:
    """The entries of the base's baseline, none if it has none.

    Raises:
        MemsimError: it is damaged.
    """
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
    return plain.isidentifier() and re.search(rf"\b{plain}\b", launching_text_of(kernel)) is None
