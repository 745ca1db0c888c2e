"""`memsim sanitize`: errors of a launch, without a GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import click

from memsim.api.sanitizing import sanitize_job
from memsim.cli.launch_options import each_launch, job_of, options_of_target, repeat
from memsim.cli.options import JSON, allow_named, path_here
from memsim.cli.output import echo_json, progress_bar, say
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.sanitizer.hazards import TOOLS, Sanitized, read_allowance
from memsim.views import sanitize_text


@click.command()
@click.argument("target", required=False, callback=allow_named)
@options_of_target
@click.option(
    "--tool",
    "tools",
    type=click.Choice((*TOOLS, "all")),
    multiple=True,
    default=("all",),
    help="What to look for: bounds, sync, race, init, or all, the default. Repeatable.",
)
@click.option(
    "--allow",
    "allowed",
    multiple=True,
    metavar="PATTERN:REASON",
    help="Allow findings on an array, a line (k.cu:12) or two (k.cu:12->k.cu:15). Repeatable.",
)
@click.option(
    "--unwritten",
    multiple=True,
    metavar="NAME",
    help="Nobody has written this array in global memory before the launch. Repeatable.",
)
@JSON
@click.pass_context
def sanitize(
    ctx: click.Context,
    /,
    target: str | None,
    tools: tuple[str, ...],
    allowed: tuple[str, ...],
    unwritten: tuple[str, ...],
    as_json: bool,
    **launch: object,
) -> int:
    """Finds errors of a launch, without a GPU: races, accesses out of bounds or misaligned,
    reads of memory or registers that nobody wrote, and deadlocks.

    Each finding has the source lines, the threads, the array, the index, and what to do. Like a sanitizer it
    goes on after a finding. Exit code 0: none; 1: findings; 2: none, but not all could be judged.

    TARGET and its options are the same as for `memsim analyze`; without one, all targets of the project. A
    CUDA file: each launch that it makes, one after the other.

    \b
    Examples:
      memsim sanitize
      memsim sanitize kernel.cu --grid 1 --block 64 --arg 'i32[64]'
      memsim sanitize kernel_v4 --tool race --json
    """
    allowances = [read_allowance(text) for text in allowed]
    chosen = TOOLS if "all" in tools else tools
    judge = partial(sanitize_job, tools=chosen, allowances=allowances, unwritten=unwritten)
    if target is None:
        if unwritten:
            raise click.UsageError("--unwritten needs a TARGET", ctx)
        targets = ((job.name, _target(ctx, job.name)) for job in _targets())
        return _several(judge, "targets", targets, as_json)
    launches = each_launch(ctx, target)
    if len(launches) > 1:
        return _several(judge, "launches", launches, as_json)
    try:
        job = job_of(ctx, target)
    except MemsimError:  # of several kernels one may be launched
        only = launches[0][1] if len(launches) == 1 else None
        if not isinstance(only, Job):
            raise
        job = only
    with progress_bar(target) as report:
        found = judge(job, report)
    if as_json:
        echo_json(sanitize_text.sanitize_document(found))
    else:
        sanitize_text.write(found, sys.stdout)
    repeat(ctx, job)
    return found.exit_code


def _targets() -> Sequence[Job]:
    """Those of the project here."""
    from memsim.targets.project import read_project

    path = path_here()
    if path is None:
        raise MemsimError("there is no TARGET, and no memsim.toml here", hint="memsim init writes one")
    project = read_project(path)
    for program in project.programs:
        say(f"not looked at: {program.name}, a program: memsim exec --sanitize -- {program}", err=True)
    return project.targets


def _target(ctx: click.Context, name: str) -> Job | MemsimError:
    """One of them, or why it is none with these options."""
    try:
        return job_of(ctx, name)
    except MemsimError as error:
        return error


def _several(
    judge: Callable[..., Sanitized], what: str, jobs: Iterable[tuple[str, Job | MemsimError]], as_json: bool
) -> int:
    """The findings of each of several launches; the greatest exit code, where 1 is before 2."""
    every = []
    for name, job in jobs:
        found = _judged(judge, name, job)
        every.append((name, found))
        if as_json:
            continue
        if isinstance(found, MemsimError):
            for line in f"{name}: not judged: {found}".splitlines():
                say(line, err=True)
        elif found.errors:
            sanitize_text.write(found, sys.stdout, name)
            say()
        else:
            say(f"{name}: {sanitize_text.headline(found)}")
            for line in sanitize_text.notes(found):
                say(f"   {line}")
    codes = [2 if isinstance(found, MemsimError) else found.exit_code for _, found in every]
    if as_json:
        echo_json(sanitize_text.launches_document(every))
    else:
        say(f"{len(codes)} {what}: findings in {codes.count(1)}, not all judged in {codes.count(2)}")
    return 1 if 1 in codes else max(codes, default=0)


def _judged(judge: Callable[..., Sanitized], name: str, job: Job | MemsimError) -> Sanitized | MemsimError:
    """What is found in a launch, or why it was not judged."""
    try:
        if isinstance(job, MemsimError):
            raise job
        with progress_bar(name) as report:
            return judge(job, report)
    except MemsimError as error:
        return error
