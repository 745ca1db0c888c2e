"""A project's configuration: the kernels that it guards, and their budgets.

Read from `memsim.toml`, or the table `[tool.memsim]` of `pyproject.toml`. docs/ci.md describes the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from memsim.boundary import check_inside, confinement
from memsim.errors import MemsimError
from memsim.files import file_exists
from memsim.guard.baseline import Entry
from memsim.guard.budget import EVERY_COUNT, Budget, parse_budget
from memsim.guard.judge import Declared
from memsim.guard.outcome import Problem
from memsim.guard.select import Selector, parse_selector
from memsim.job import Job
from memsim.source.expressions import Number
from memsim.targets.config_tables import ConfigTable, read_toml
from memsim.targets.target import CATALOGUE, CUDA, catalogue, catalogue_job, file_job, file_of, kind_of

OWN_FILE, SHARED_FILE = "memsim.toml", "pyproject.toml"
BASELINE = "memsim-baseline.toml"
EXAMPLE = """for example
[[targets]]               # in pyproject.toml: [[tool.memsim.targets]]
kernel = "kernel_v4"
budgets = ["ways <= 1"]"""
ADD_VALUES = "write targets for the kernels in its comments, with the values that they lack"

PROJECT_KEYS = ("targets", "budgets", "accept", "baseline", "arch")
CATALOGUE_KEYS = ("kernel", *CATALOGUE.keys)
FILE_KEYS = ("file", "instead_of", *CUDA.keys)
GUARD_KEYS = ("budgets", "accept")
TEXTS = ("name", "kernel", "size", "arch", "code", "compiler", "instead_of")

T = TypeVar("T", Budget, Selector)
Failed = Callable[[ConfigTable, MemsimError | None], None]


@dataclass(frozen=True, slots=True)
class FromSource:
    """instead_of: the source's launch that a target's own stands for, if it means another one. let: values of
    names that the source leaves open.
    """

    instead_of: str | None
    let: Mapping[str, Number]


@dataclass(frozen=True)
class Base:
    """The revision that a project is checked against.

    revision: as the user calls it, known: as git does. names: of its targets. entries: of its baseline.
    problems: its targets that cannot be read with the sources that are here. gone: those whose kernels are
    not here any more.
    """

    revision: str
    known: str
    repository: Path
    names: frozenset[str] = frozenset()
    entries: Mapping[str, Entry] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    gone: tuple[str, ...] = ()


@dataclass(frozen=True)
class Project:
    """A configuration. path: of its file. baseline: path of the baseline file.

    from_source: of each target of a CUDA file, by name, what it says of the source's launch. base: what it is
    checked against, if it is.
    """

    path: Path
    targets: tuple[Job, ...]
    rules: tuple[Declared[Budget], ...]
    acceptances: tuple[Declared[Selector], ...]
    baseline: Path
    from_source: Mapping[str, FromSource] = field(default_factory=dict)
    base: Base | None = None

    @property
    def folder(self) -> Path:
        """The folder that file names are relative to."""
        return self.path.parent

    def chosen(self, patterns: Sequence[str]) -> tuple[Job, ...]:
        """The targets that match the patterns; all if there are none.

        Raises:
            MemsimError: a pattern without a match.
        """
        names = [target.name for target in self.targets]
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in names):
                near = get_close_matches(pattern, names, n=3)
                hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names[:8])}"
                raise MemsimError(f"no target is called {pattern!r}", file=str(self.path), hint=hint)
        if not patterns:
            return self.targets
        return tuple(
            target
            for target in self.targets
            if any(fnmatchcase(target.name, pattern) for pattern in patterns)
        )


def find_project(start: Path) -> Path:
    """The configuration of a folder: its own, or the nearest one above.

    Raises:
        MemsimError: there is none, or a folder has two.
    """
    boundary = confinement()
    for folder in (start, *start.parents):
        if boundary is not None and not boundary.holds_folder(folder):
            break
        own, shared = folder / OWN_FILE, folder / SHARED_FILE
        has_own, has_shared = file_exists(own), file_exists(shared)
        has_table = has_shared and _memsim_table(read_toml(shared)[1]) is not None
        if has_own and has_table:
            raise MemsimError(
                f"there are two configurations: {OWN_FILE}, and [tool.memsim] in {SHARED_FILE}",
                file=str(own),
                hint="keep one of them",
            )
        if has_own or has_table:
            return own if has_own else shared
    raise MemsimError(
        f"there is no {OWN_FILE} and no [tool.memsim] in a {SHARED_FILE}, here or above", hint=EXAMPLE
    )


def read_project(
    path: Path, kernels: Path | None = None, tree: Path | None = None, failed: Failed | None = None
) -> Project:
    """The project that a file describes.

    Args:
        path: the file.
        kernels: folder of a catalogue other than ours.
        tree: the folder of its files, if not the file's own; missing ones are skipped.
        failed: is told of a target that cannot be read, with the error, None if its file is missing; it is
            skipped. Else that is an error.

    Raises:
        MemsimError: no such file, not TOML, no targets, or an invalid entry.
    """
    path = path.absolute()
    file, document = read_toml(path)
    values = _memsim_table(document) if path.name == SHARED_FILE else document
    if not isinstance(values, dict):
        file.fail("the table [tool.memsim] is missing", EXAMPLE)
    project = ConfigTable(file, "the project", values)
    project.check_keys(PROJECT_KEYS)

    targets: dict[str, Job] = {}
    from_source: dict[str, FromSource] = {}
    rules: list[Declared[Budget]] = []
    acceptances: list[Declared[Selector]] = []
    for entry in project.tables("targets"):
        try:
            added = list(_jobs(entry, project, kernels, tree))
        except MemsimError as error:
            if failed is None:
                raise
            failed(entry, error)
            continue
        if failed is not None and not added:
            failed(entry, None)
        for target in added:
            _check_name(entry, target.name)
            if targets.setdefault(target.name, target) != target:
                entry.fail(f"there is another target {target.name!r}", "give this one its own name")
        names = tuple(target.name for target in added)
        if "file" in entry.values and kind_of(entry.string("file")) is CUDA:
            from_source |= dict.fromkeys(names, _from_source(entry))
        rules += _declared(entry, "budgets", parse_budget, names)
        acceptances += _declared(entry, "accept", parse_selector, names)
    if not targets and tree is None:
        hint = ADD_VALUES if "#   [[targets]]" in path.read_text("utf-8") else EXAMPLE
        file.fail("there are no targets, so nothing is guarded", hint)

    everyone = tuple(targets)
    rules += _declared(project, "budgets", parse_budget, everyone, general=True)
    acceptances += _declared(project, "accept", parse_selector, everyone, general=True)
    ruled = {name for rule in rules for name in rule.kernels}
    rest = tuple(name for name in targets if name not in ruled)
    if rest:  # targets without a budget are checked against the baseline
        rules.append(Declared(parse_budget(EVERY_COUNT), rest, general=True))
    baseline = path.parent / project.string("baseline", BASELINE)
    check_inside(baseline)
    return Project(path, tuple(targets.values()), tuple(rules), tuple(acceptances), baseline, from_source)


def _from_source(entry: ConfigTable) -> FromSource:
    said = _said(entry, ("instead_of", "let"))
    return FromSource(said.get("instead_of"), said.get("let", {}))


def _check_name(entry: ConfigTable, name: str) -> None:
    """A name appears in reports, logs and the baseline: it must be a visible single line.

    Raises:
        MemsimError: it is empty, or has an invisible character.
    """
    hidden = next((character for character in name if not character.isprintable()), None)
    if hidden is not None:
        entry.fail(f"the name {name!r} contains the invisible character U+{ord(hidden):04X}")
    if not name.strip():
        entry.fail("the name is empty")


def _memsim_table(document: dict[str, Any]) -> Any:
    tools = document.get("tool")
    return tools.get("memsim") if isinstance(tools, dict) else None


def _jobs(entry: ConfigTable, project: ConfigTable, kernels: Path | None, tree: Path | None) -> Iterator[Job]:
    """The jobs of one entry: a pattern may name several kernels of the catalogue."""
    keys = FILE_KEYS if "file" in entry.values else CATALOGUE_KEYS
    entry.check_keys((*keys, *GUARD_KEYS))
    if "file" not in entry.values and "kernel" not in entry.values:
        entry.fail("neither kernel nor file", EXAMPLE)
    arch = project.string("arch", "")
    said = {**({"arch": arch} if arch else {}), **_said(entry, keys)}
    try:
        if "file" in said:
            yield from _of_file(entry, said, tree)
        else:
            yield from _of_catalogue(entry, said, kernels, tree)
    except MemsimError as error:
        if error.file is not None:
            raise  # it already has a place
        entry.fail(error.message, error.hint)


def _said(entry: ConfigTable, keys: Sequence[str]) -> dict[str, Any]:
    """The launch options of an entry; `memsim.targets.target` validates them."""
    said: dict[str, Any] = {key: entry.values[key] for key in keys if key in entry.values}
    said |= {key: entry.string(key) for key in TEXTS if key in said}
    if "args" in said:
        given = entry.value("args", list[str | int | float])
        said["args"] = [value if isinstance(value, str) else repr(value) for value in given]
    if "options" in said:
        said["options"] = entry.strings("options")
    if "let" in said:
        values = entry.value("let", dict[str, int | float])
        said["let"] = {
            name: value if isinstance(value, int) else Fraction(value) for name, value in values.items()
        }
    return said


def _of_catalogue(
    entry: ConfigTable, said: dict[str, Any], kernels: Path | None, tree: Path | None
) -> Iterator[Job]:
    if tree is not None and kernels is not None and not (kernels / "catalog.toml").is_file():
        return
    pattern, size = said.pop("kernel"), said.get("size")
    names = [name for name in catalogue(kernels) if fnmatchcase(name, pattern)]
    if not names and tree is None:
        near = get_close_matches(pattern, catalogue(kernels), n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "memsim list shows them all"
        entry.fail_at(pattern, f"no kernel of the catalogue is called {pattern!r}", hint)
    if "name" in said and len(names) > 1:
        entry.fail(f"the name is for {len(names)} kernels")
    for name in names:
        yield catalogue_job(name, {"name": f"{name}@{size}" if size else name, **said}, kernels=kernels)


def _of_file(entry: ConfigTable, said: dict[str, Any], tree: Path | None) -> Iterator[Job]:
    file, folder = entry.string("file"), tree or entry.file.path.parent
    if file_exists(folder / file_of(file)):
        del said["file"]
        if kind_of(file) is CUDA:
            said.pop("instead_of", None)
        yield file_job(file, said, folder=folder, where=str(entry.file.path))
    elif tree is None:
        hint = "paths are relative to the configuration file"
        entry.fail_at(file, f"there is no file {file_of(file)}", hint)


def _declared(
    table: ConfigTable, key: str, parse: Callable[[str], T], kernels: Sequence[str], general: bool = False
) -> Iterator[Declared[T]]:
    """The budgets or acceptances of a table."""
    for text in table.strings(key):
        try:
            yield Declared(parse(text), kernels, general, table.file.locate)
        except MemsimError as error:
            raise table.file.locate(error) from None
