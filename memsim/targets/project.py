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
from typing import Literal, TypeVar

import msgspec

from memsim.arch import SM_90, get_arch
from memsim.boundary import check_inside, confinement
from memsim.document import JsonObject
from memsim.errors import MemsimError
from memsim.files import file_exists
from memsim.guard.baseline import Entry
from memsim.guard.budget import EVERY_COUNT, Budget, parse_budget
from memsim.guard.judge import Declared
from memsim.guard.outcome import Problem
from memsim.guard.select import Selector, parse_selector
from memsim.job import Job
from memsim.targets.config_tables import ConfigTable, read_toml
from memsim.targets.program_target import ProgramTarget, words_of
from memsim.targets.target import CATALOGUE, CUDA, catalogue, catalogue_job, file_job, file_of

OWN_FILE, SHARED_FILE = "memsim.toml", "pyproject.toml"
BASELINE = "memsim-baseline.toml"
EXAMPLE = """for example
[[targets]]               # in pyproject.toml: [[tool.memsim.targets]]
kernel = "kernel_v4"
budgets = ["ways <= 1"]"""
ADD_VALUES = "write a target, as its comments show"

CATALOGUE_KEYS = ("kernel", *CATALOGUE.keys)
FILE_KEYS = ("file", *CUDA.keys)
PROGRAM_KEYS = ("command", "name", "arch", "max_steps")
GUARD_KEYS = ("budgets", "accept")
#: A key that is not there.
Unsaid = msgspec.UnsetType

T = TypeVar("T", Budget, Selector)
Failed = Callable[[ConfigTable, MemsimError | None], None]


class ProjectTable(msgspec.Struct, frozen=True):
    """The keys of a configuration."""

    targets: tuple[JsonObject, ...] = ()
    budgets: tuple[str, ...] = ()
    accept: tuple[str, ...] = ()
    baseline: str = BASELINE
    arch: str | Unsaid = msgspec.UNSET


class TargetTable(msgspec.Struct, frozen=True):
    """The keys of a target, but for those whose values `memsim.targets.target` validates."""

    file: str | Unsaid = msgspec.UNSET
    kernel: str | Unsaid = msgspec.UNSET
    command: str | tuple[str, ...] | Unsaid = msgspec.UNSET
    let: dict[str, int | float] | Unsaid = msgspec.UNSET
    name: str | Unsaid = msgspec.UNSET
    arch: str | Unsaid = msgspec.UNSET
    size: str | Unsaid = msgspec.UNSET
    compiler: Literal["nvrtc", "nvcc"] | Unsaid = msgspec.UNSET
    options: tuple[str, ...] | Unsaid = msgspec.UNSET
    args: tuple[str | int | float, ...] | Unsaid = msgspec.UNSET
    budgets: tuple[str, ...] = ()
    accept: tuple[str, ...] = ()

    @property
    def said(self) -> JsonObject:
        """These keys as `memsim.targets.target` takes them."""
        said = {
            key: value for key, value in msgspec.structs.asdict(self).items() if value is not msgspec.UNSET
        }
        if "args" in said:
            said["args"] = [value if isinstance(value, str) else repr(value) for value in said["args"]]
        if "let" in said:
            numbers = said["let"].items()
            said["let"] = {
                name: value if isinstance(value, int) else Fraction(value) for name, value in numbers
            }
        return said


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
    """A configuration. path: of its file. programs: targets whose launches are known when they have run.
    baseline: path of the baseline file.

    base: what it is checked against, if it is.
    """

    path: Path
    targets: tuple[Job, ...]
    rules: tuple[Declared[Budget], ...]
    acceptances: tuple[Declared[Selector], ...]
    baseline: Path
    base: Base | None = None
    programs: tuple[ProgramTarget, ...] = ()

    @property
    def folder(self) -> Path:
        """The folder that file names are relative to."""
        return self.path.parent

    def program_of(self, launch: str) -> ProgramTarget | None:
        """The program that makes a launch of this name; None if it is a target's own."""
        return next((program for program in self.programs if program.makes(launch)), None)

    def chosen(self, patterns: Sequence[str]) -> tuple[Job | ProgramTarget, ...]:
        """The targets that match the patterns; all if there are none.

        Raises:
            MemsimError: a pattern without a match.
        """
        all_of_them: tuple[Job | ProgramTarget, ...] = (*self.targets, *self.programs)
        names = [target.name for target in all_of_them]
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in names):
                near = get_close_matches(pattern, names, n=3)
                hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names[:8])}"
                raise MemsimError(f"no target is called {pattern!r}", file=str(self.path), hint=hint)
        if not patterns:
            return all_of_them
        return tuple(
            target for target in all_of_them if any(fnmatchcase(target.name, pattern) for pattern in patterns)
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

    kernels: folder of a catalogue other than ours. tree: the folder of its files, if not the file's own;
    missing ones are skipped. failed: is told of a target that cannot be read, with the error, None if its
    file is missing; it is skipped. Else that is an error.

    Raises:
        MemsimError: no such file, not TOML, no targets, or an invalid entry.
    """
    path = path.absolute()
    file, document = read_toml(path)
    values = _memsim_table(document) if path.name == SHARED_FILE else document
    if not isinstance(values, dict):
        file.fail("the table [tool.memsim] is missing", EXAMPLE)
    table = ConfigTable(file, "the project", values)
    table.check_keys(ProjectTable.__struct_fields__)
    project = table.read_as(ProjectTable)

    targets: dict[str, Job | ProgramTarget] = {}
    rules: list[Declared[Budget]] = []
    acceptances: list[Declared[Selector]] = []
    for number, entry_values in enumerate(project.targets, 1):
        entry = ConfigTable(file, f"targets {number}", entry_values)
        try:
            told = _told(entry)
            added = list(_jobs(entry, told, project, kernels, tree))
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
        rules += _declared(entry, told.budgets, parse_budget, names)
        acceptances += _declared(entry, told.accept, parse_selector, names)
    if not targets and tree is None:
        hint = ADD_VALUES if "#   [[targets]]" in path.read_text("utf-8") else EXAMPLE
        file.fail("there are no targets, so nothing is guarded", hint)

    everyone = tuple(targets)
    rules += _declared(table, project.budgets, parse_budget, everyone, general=True)
    acceptances += _declared(table, project.accept, parse_selector, everyone, general=True)
    ruled = {name for rule in rules for name in rule.kernels}
    rest = tuple(name for name in targets if name not in ruled)
    if rest:  # targets without a budget are checked against the baseline
        rules.append(Declared(parse_budget(EVERY_COUNT), rest, general=True))
    baseline = path.parent / project.baseline
    check_inside(baseline)
    return Project(
        path,
        tuple(target for target in targets.values() if isinstance(target, Job)),
        tuple(rules),
        tuple(acceptances),
        baseline,
        programs=tuple(target for target in targets.values() if isinstance(target, ProgramTarget)),
    )


def _check_name(entry: ConfigTable, name: str) -> None:
    """A name appears in reports, logs and the baseline: it must be a visible single line."""
    hidden = next((character for character in name if not character.isprintable()), None)
    if hidden is not None:
        entry.fail(f"the name {name!r} contains the invisible character U+{ord(hidden):04X}")
    if not name.strip():
        entry.fail("the name is empty")


def _memsim_table(document: dict[str, object]) -> object:
    tools = document.get("tool")
    return tools.get("memsim") if isinstance(tools, dict) else None


def _told(entry: ConfigTable) -> TargetTable:
    """The keys of one entry, which must be those of its kind."""
    kinds = {"command": PROGRAM_KEYS, "file": FILE_KEYS, "kernel": CATALOGUE_KEYS}
    keys = next((keys for key, keys in kinds.items() if key in entry.values), None)
    if keys is None:
        entry.check_keys(tuple(dict.fromkeys((*kinds, *FILE_KEYS, "size", *GUARD_KEYS))))
        entry.fail("neither kernel nor file nor command", EXAMPLE)
    entry.check_keys((*keys, *GUARD_KEYS))
    return entry.read_as(TargetTable)


def _jobs(
    entry: ConfigTable, told: TargetTable, project: ProjectTable, kernels: Path | None, tree: Path | None
) -> Iterator[Job | ProgramTarget]:
    """The jobs of one entry, or its program: a pattern may name several kernels of the catalogue."""
    given = {**({"arch": project.arch} if project.arch else {}), **entry.values, **told.said}
    said: JsonObject = {key: value for key, value in given.items() if key not in GUARD_KEYS}
    try:
        if "command" in said:
            words, folder = words_of(said["command"]), tree or entry.file.path.parent
            name, chip = said.get("name", Path(words[0]).name), get_arch(said.get("arch", SM_90))
            yield ProgramTarget(name, words, folder, chip, said.get("max_steps"))
        elif "file" in said:
            yield from _of_file(entry, said, tree)
        else:
            yield from _of_catalogue(entry, said, kernels, tree)
    except MemsimError as error:
        if error.file is not None:
            raise  # it already has a place
        entry.fail(error.message, error.hint)


def _of_catalogue(
    entry: ConfigTable, said: JsonObject, kernels: Path | None, tree: Path | None
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


def _of_file(entry: ConfigTable, said: JsonObject, tree: Path | None) -> Iterator[Job]:
    file, folder = said.pop("file"), tree or entry.file.path.parent
    if file_exists(folder / file_of(file)):
        yield file_job(file, said, folder=folder, where=str(entry.file.path))
    elif tree is None:
        hint = "paths are relative to the configuration file"
        entry.fail_at(file, f"there is no file {file_of(file)}", hint)


def _declared(
    table: ConfigTable,
    texts: Sequence[str],
    parse: Callable[[str], T],
    kernels: Sequence[str],
    general: bool = False,
) -> Iterator[Declared[T]]:
    """The budgets or acceptances of a table."""
    for text in texts:
        try:
            yield Declared(parse(text), kernels, general, table.file.locate)
        except MemsimError as error:
            raise table.file.locate(error) from None
