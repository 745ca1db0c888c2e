"""A project's configuration: which kernels it guards, and by which budgets.

In: `memsim.toml`, or the table `[tool.memsim]` of `pyproject.toml`. Out: a `Project`, or one `MemsimError`
with the place of the mistake. docs/ci.md describes the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

from memsim.errors import MemsimError
from memsim.guard.budget import EVERY_COUNT, parse_budget
from memsim.guard.judge import Acceptance, Rule
from memsim.guard.select import parse_selector
from memsim.targets.tables import File, Table, is_integer, read_toml
from memsim.targets.target import CatalogueTarget, FileTarget, Target, catalogue

OWN_FILE, SHARED_FILE = "memsim.toml", "pyproject.toml"
BASELINE = "memsim-baseline.toml"
ARCH = "sm_90"
EXAMPLE = """for example
[[targets]]               # in pyproject.toml: [[tool.memsim.targets]]
kernel = "kernel_v4"
budgets = ["ways <= 1"]"""

PROJECT_KEYS = ("targets", "budgets", "accept", "baseline", "arch")
COMMON_KEYS = ("name", "kernel", "blocks", "max_steps", "budgets", "accept", "arch")
CATALOGUE_KEYS = (*COMMON_KEYS, "size")
FILE_KEYS = (*COMMON_KEYS, "file", "grid", "block", "args", "shared_bytes", "options")

Parsed = TypeVar("Parsed")


@dataclass(frozen=True)
class Project:
    """What a configuration says. path: of its file. baseline: the path of the baseline's file."""

    path: Path
    targets: tuple[Target, ...]
    rules: tuple[Rule, ...]
    acceptances: tuple[Acceptance, ...]
    baseline: Path

    @property
    def folder(self) -> Path:
        """What the names of files are relative to."""
        return self.path.parent

    def chosen(self, patterns: Sequence[str]) -> tuple[Target, ...]:
        """The targets that the patterns name; all if there are no patterns.

        Raises:
            MemsimError: a pattern names none.
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
    """The configuration that holds in a folder: its own, or the nearest one above.

    Raises:
        MemsimError: there is none, or a folder has two.
    """
    for folder in (start, *start.parents):
        own, shared = folder / OWN_FILE, folder / SHARED_FILE
        has_table = shared.is_file() and _memsim_table(read_toml(shared)[1]) is not None
        if own.is_file() and has_table:
            raise MemsimError(
                f"there are two configurations: {OWN_FILE}, and [tool.memsim] in {SHARED_FILE}",
                file=str(own),
                hint="keep one of them",
            )
        if own.is_file() or has_table:
            return own if own.is_file() else shared
    raise MemsimError(
        f"there is no {OWN_FILE} and no [tool.memsim] in a {SHARED_FILE}, here or above", hint=EXAMPLE
    )


def read_project(path: Path, kernels: Path | None = None) -> Project:
    """The project that a file describes; `kernels` is the folder of another catalogue than ours.

    Raises:
        MemsimError: no such file, no TOML, nothing to guard, or an entry that is wrong.
    """
    path = path.absolute()
    file, document = read_toml(path)
    values = _memsim_table(document) if path.name == SHARED_FILE else document
    if not isinstance(values, dict):
        file.fail("there is no table [tool.memsim]", EXAMPLE)
    project = Table(file, "the project", values)
    project.check_keys(PROJECT_KEYS)

    targets: dict[str, Target] = {}
    rules: list[Rule] = []
    acceptances: list[Acceptance] = []
    for entry in project.tables("targets"):
        added = list(_targets(entry, project.string("arch", ARCH), kernels))
        for target in added:
            if targets.setdefault(target.name, target) != target:
                entry.fail(f"another target is called {target.name!r} too", "give this one a name")
        names = tuple(target.name for target in added)
        rules += _rules(entry, names)
        acceptances += _acceptances(entry, names)
    if not targets:
        file.fail("there are no targets, so nothing is guarded", EXAMPLE)

    everyone = tuple(targets)
    rules += _rules(project, everyone, general=True)
    acceptances += _acceptances(project, everyone, general=True)
    ruled = {name for rule in rules for name in rule.kernels}
    rest = tuple(name for name in targets if name not in ruled)
    if rest:  # what has no budget is held to the baseline
        rules.append(Rule(parse_budget(EVERY_COUNT), rest, general=True))
    baseline = path.parent / project.string("baseline", BASELINE)
    return Project(path, tuple(targets.values()), tuple(rules), tuple(acceptances), baseline)


def _memsim_table(document: dict[str, Any]) -> Any:
    tools = document.get("tool")
    return tools.get("memsim") if isinstance(tools, dict) else None


def _targets(entry: Table, arch: str, folder: Path | None) -> Iterator[Target]:
    """The targets of one entry: a pattern may name several kernels of the catalogue."""
    arch = entry.string("arch", arch)
    if "file" in entry.values:
        yield _file_target(entry, arch)
        return
    entry.check_keys(CATALOGUE_KEYS)
    if "kernel" not in entry.values:
        entry.fail("neither kernel nor file", EXAMPLE)
    pattern, size = entry.string("kernel"), entry.string("size", "") or None
    kernels = [name for name in catalogue(folder) if fnmatchcase(name, pattern)]
    if not kernels:
        near = get_close_matches(pattern, catalogue(folder), n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "memsim list shows them all"
        entry.fail_at(pattern, f"no kernel of the catalogue is called {pattern!r}", hint)
    if "name" in entry.values and len(kernels) > 1:
        entry.fail(f"one name for {len(kernels)} kernels")
    for kernel in kernels:
        name = entry.string("name", f"{kernel}@{size}" if size else kernel)
        blocks, steps = entry.integer("blocks", 1), entry.integer("max_steps", 1)
        yield CatalogueTarget(name, kernel, size, blocks, arch, folder, steps)


def _file_target(entry: Table, arch: str) -> FileTarget:
    entry.check_keys(FILE_KEYS)
    file, folder = entry.string("file"), entry.file.path.parent
    if not (folder / file).is_file():
        entry.fail_at(file, f"there is no file {file}", "it is looked for in the folder of the configuration")
    kernel = entry.string("kernel", "") or None
    return FileTarget(
        name=entry.string("name", kernel or Path(file).stem),
        folder=folder,
        file=Path(file).as_posix(),
        grid=entry.extent("grid"),
        block=entry.extent("block"),
        args=tuple(_argument(entry, value) for value in entry.items("args")),
        kernel=kernel,
        shared_bytes=entry.integer("shared_bytes", 0) or 0,
        options=tuple(entry.strings("options")),
        blocks=entry.integer("blocks", 1),
        arch=arch,
        where=str(entry.file.path),
        max_steps=entry.integer("max_steps", 1),
    )


def _argument(entry: Table, value: Any) -> str:
    if isinstance(value, str):
        return value
    if not is_integer(value) and not isinstance(value, float):
        entry.fail(f"{value!r} is no argument", "such as 1024, 1.0 or 'f32[1024,1024]'")
    return repr(value)


def _rules(table: Table, kernels: Sequence[str], general: bool = False) -> list[Rule]:
    budgets = _parsed(table.file, table.strings("budgets"), parse_budget)
    return [Rule(budget, kernels, general, table.file.locate) for budget in budgets]


def _acceptances(table: Table, kernels: Sequence[str], general: bool = False) -> list[Acceptance]:
    selectors = _parsed(table.file, table.strings("accept"), parse_selector)
    return [Acceptance(selector, kernels, general, table.file.locate) for selector in selectors]


def _parsed(file: File, texts: Sequence[str], parse: Callable[[str], Parsed]) -> Iterator[Parsed]:
    for text in texts:
        try:
            yield parse(text)
        except MemsimError as error:
            raise file.locate(error) from None
