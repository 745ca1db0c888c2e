"""`memsim compare`: two kernels, files, revisions or saved analyses, line by line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click

from memsim.analysis import analyze_trace
from memsim.api.kernel_file import KernelFile
from memsim.arch import Arch, get_arch
from memsim.cli.launch_options import LAUNCH, launch_option, launch_said, spell
from memsim.cli.options import (
    allow_named,
    format_option,
    open_cache,
    open_project,
    project_options,
    with_options,
)
from memsim.cli.output import echo_document, say_all
from memsim.errors import MemsimError
from memsim.files import file_exists, read_json
from memsim.guard.comparison import Comparisons, Side, compare, compare_all, side_of, side_of_document
from memsim.job import Job
from memsim.targets.analyze_targets import analyze_all
from memsim.targets.revision import files_at, is_revision, repository_root, targets_at, with_headers_of
from memsim.targets.target import catalogue, file_of, is_file, kind_of, read_job
from memsim.trace.suffixes import is_trace
from memsim.trace.trace import Trace
from memsim.views import compare_text

FORMATS: dict[str, Callable[[Comparisons], str]] = {
    "json": compare_text.as_json,
    "markdown": compare_text.as_markdown,
}
PRESENT = "."


@dataclass
class Operands:
    """What A and B may mean here.

    used: the options that made a difference. failed: targets of a project that could not be analyzed, with
    the errors.
    """

    ctx: click.Context
    arch: Arch | None
    config: Path | None
    jobs: int | None
    cache: Path | None
    stack: ExitStack
    used: set[str] = field(default_factory=set)
    failed: dict[str, list[str]] = field(default_factory=dict)

    def sides(self, name: str) -> Side | dict[str, Side]:
        """A side, or the sides of all targets of a project by name."""
        if name == PRESENT:
            return self.analyzed(name, open_project(self.config).targets)
        if is_trace(name):
            return side_of(name, analyze_trace(Trace.load(name), self.arch))
        if Path(name).suffix == ".json":
            return side_of_document(name, read_json(Path(name)))
        if is_file(name) and file_exists(Path(file_of(name))):
            return self.single(name, self.launched(name, name, Path.cwd()))
        if name in self.known_targets():
            return self.single(name, self.known_targets()[name])
        if name in catalogue():
            return self.single(name, self.launched(name, name))
        return self.at_revision(name)

    def at_revision(self, name: str) -> Side | dict[str, Side]:
        """`REV`, `REV:FILE` or `REV:TARGET`."""
        repository = repository_root(Path.cwd())
        revision, _, inside = name.partition(":")
        if not is_revision(repository, revision):
            raise MemsimError(
                f"{name!r} is not a kernel, file, saved analysis or git revision",
                hint="memsim list shows the kernels that ship; memsim compare --help what else it takes",
            )
        tree = self.stack.enter_context(files_at(repository, revision))
        if is_file(inside):
            here = Path.cwd().resolve().relative_to(repository.resolve())
            job = self.launched(name, inside, tree / here)
            return self.single(name, with_headers_of(job, Path.cwd(), repository, tree))
        targets = {target.name: target for target in targets_at(open_project(self.config), repository, tree)}
        if not inside:
            return self.analyzed(name, tuple(targets.values()))
        if inside not in targets:
            raise MemsimError(f"{revision} has no target {inside!r}", hint=f"it has {', '.join(targets)}")
        return self.single(name, targets[inside])

    def single(self, name: str, target: Job) -> Side:
        # What would help is asked next, as `memsim serve` does.
        (measured,) = analyze_all((target,), self.cache, self.jobs, time="quick", apart=True)
        return side_of(name, measured.result())

    def analyzed(self, name: str, targets: tuple[Job, ...]) -> dict[str, Side]:
        """The sides of those targets of a project that can be analyzed."""
        found = {}
        for measured in analyze_all(targets, self.cache, self.jobs):
            target = measured.name
            if measured.analysis is None:
                self.failed.setdefault(target, []).append(f"error: {target} in {name}: {measured.error}")
            else:
                found[target] = side_of(target, measured.analysis)
        return found

    def launched(self, name: str, target: str, folder: Path = Path()) -> Job:
        """A kernel by the options that say how it is launched, as far as they make sense with it."""
        given = {key: value for key, value in launch_said(self.ctx).items() if key in kind_of(target).keys}
        self.used |= set(given)
        spelt = partial(spell, self.ctx)
        said = {**given, "name": name}
        return read_job(target, said, folder=folder, where="--arg", spell=spelt, verb="compare")

    def known_targets(self) -> Mapping[str, Job]:
        """The files that the project guards, by name; none if there is no project here."""
        try:
            project = open_project(self.config)
        except MemsimError:
            if self.config is not None:
                raise
            return {}
        return {target.name: target for target in project.targets if isinstance(target.kernel, KernelFile)}


@click.command("compare")
@click.argument("a", callback=allow_named)
@click.argument("b", callback=allow_named)
@format_option(*FORMATS)
@with_options(*map(launch_option, LAUNCH))
@project_options
@click.pass_context
def compare_(
    ctx: click.Context,
    /,
    a: str,
    b: str,
    form: str,
    arch: str | None,
    config: Path | None,
    jobs: int | None,
    no_cache: bool,
    **launch: object,
) -> None:
    """Compares the memory cost of two kernels, line by line and in total: A is before, B is after.

    \b
    A and B can each be
      kernel_v3               a kernel from memsim list
      scale                   a target of this project's configuration
      scale.cu                a .cu, .ptx or .cubin file, with --grid, --block and --arg
      before.json, run.npz    what memsim analyze --json printed or --save-trace wrote
      HEAD~1:scale.cu         a file at a git revision
      HEAD~1:scale            a target at a git revision
      main                    a git revision: all targets of the project
      .                       all targets of the project as they are now

    Exit code 2 if a target could not be analyzed; the others are compared.

    \b
    Examples:
      memsim compare kernel_v3 kernel_v4
      memsim compare HEAD . --format markdown
      memsim compare HEAD:scale.cu scale.cu --grid 8 --block 128 --arg 'f32[1024]'
    """
    with ExitStack() as stack:
        operands = Operands(
            ctx, None if arch is None else get_arch(arch), config, jobs, open_cache(no_cache), stack
        )
        first, second = operands.sides(a), operands.sides(b)
    for key in launch_said(ctx):  # an option that changed nothing is a mistake of the user's
        if key not in (*operands.used, "arch"):
            raise click.UsageError(f"{spell(ctx, key)} does not apply to these A and B", ctx)
    for errors in operands.failed.values():
        for error in errors:
            say_all(error, err=True)
    found = _compared(first, second, tuple(operands.failed))
    if form == "text":
        compare_text.write(found, sys.stdout)
    else:
        echo_document(FORMATS[form](found))
    ctx.exit(2 if found.failed else 0)


def _compared(a: Side | dict[str, Side], b: Side | dict[str, Side], failed: tuple[str, ...]) -> Comparisons:
    if isinstance(a, Side) and isinstance(b, Side):
        return Comparisons((compare(a, b),))
    if isinstance(a, Side) or isinstance(b, Side):
        raise MemsimError(
            "A is a single kernel and B a whole project, or the reverse; they cannot be compared",
            hint="REVISION:TARGET selects a single kernel of a revision",
        )
    return compare_all(a, b, failed)
