"""`memsim check`: whether the kernels of a project keep within their budgets."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

import memsim
from memsim.cli.progress import progress_bar
from memsim.cli.project import open_cache, open_project, project_options
from memsim.errors import MemsimError
from memsim.guard.outcome import Outcome, Problem
from memsim.job import Job
from memsim.report import check as terminal
from memsim.report import check_json, github, junit, markdown, sarif
from memsim.report.findings import Locate
from memsim.targets.check import check_project
from memsim.targets.places import locator, repository_root

FORMATS: dict[str, Callable[[Outcome, Locate], str]] = {
    "github": github.render,
    "sarif": partial(sarif.render, version=memsim.__version__),
    "junit": junit.render,
    "json": check_json.render,
    "markdown": markdown.render,
}
SUMMARY = "GITHUB_STEP_SUMMARY"  # the file that GitHub Actions shows as the summary of a job


@click.command()
@click.argument("target", nargs=-1)
@click.option("--format", "form", type=click.Choice(["text", *FORMATS]), default="text", show_default=True)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the format to a file; the terminal gets text.",
)
@project_options
@click.pass_context
def check(
    ctx: click.Context,
    /,
    target: tuple[str, ...],
    form: str,
    output: Path | None,
    config: Path | None,
    jobs: int | None,
    no_cache: bool,
) -> None:
    """Checks the kernels of a project against their budgets.

    The targets and budgets are in memsim.toml, or in [tool.memsim] of pyproject.toml. TARGET is a name or
    a pattern such as 'guide_*'; all targets if left out. A target without a budget must cost what the
    baseline says (see memsim baseline).

    Exits with 0 if every budget holds, 1 if one is broken, 2 if something could not be judged: bad input, a
    kernel that does not compile, a budget that nothing falls under.
    """
    if output is not None and form == "text":
        raise click.UsageError("--output needs a --format", ctx)
    here = folder = Path.cwd()
    targets: tuple[Job, ...] = ()
    try:
        project = open_project(config)
        folder, targets = project.folder, project.targets
        with progress_bar("memsim check") as report:
            chosen = project.chosen(target)
            outcome = check_project(project, chosen, open_cache(no_cache), jobs, report)
    except MemsimError as error:  # whoever reads the format must see it too
        outcome = Outcome((), (), (Problem("", error),))

    in_repository = locator(targets, repository_root(folder))
    if form == "text" or output is not None:
        terminal.write(outcome, locator(targets, here), sys.stdout)
    if form != "text":
        _give(FORMATS[form](outcome, in_repository), output)
    if form == "github" and os.environ.get(SUMMARY):
        _append(Path(os.environ[SUMMARY]), markdown.render(outcome, in_repository))
    ctx.exit(outcome.exit_code)


def _give(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text)
        return
    try:
        output.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise MemsimError(f"cannot write it: {error.strerror}", file=str(output)) from None


def _append(path: Path, text: str) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text + "\n")
    except OSError as error:
        raise MemsimError(f"cannot write the summary: {error.strerror}", file=str(path)) from None
