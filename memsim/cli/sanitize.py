"""`memsim sanitize`: errors of a launch, without a GPU."""

from __future__ import annotations

import sys
from typing import Any

import click

from memsim.api.sanitizing import sanitize_job
from memsim.cli.launch_options import job_of, target_options
from memsim.cli.options import JSON
from memsim.cli.output import echo_json, progress_bar
from memsim.sanitizer.hazards import TOOLS, read_allowance
from memsim.views import sanitize_text


@click.command()
@target_options
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
@JSON
@click.pass_context
def sanitize(
    ctx: click.Context,
    /,
    target: str,
    tools: tuple[str, ...],
    allowed: tuple[str, ...],
    as_json: bool,
    **launch: Any,
) -> int:
    """Finds errors of a launch, without a GPU: races, accesses out of bounds or misaligned,
    reads of shared memory that nobody wrote, and deadlocks.

    Each finding has the source lines, the threads, the array, the index, and what to do. Like a sanitizer it
    goes on after a finding. Exit code 0: none; 1: findings; 2: none, but not all could be judged.

    TARGET and its options are the same as for `memsim analyze`.

    \b
    Examples:
      memsim sanitize kernel.cu --grid 1 --block 64 --arg 'i32[64]'
      memsim sanitize kernel_v4 --tool race --json
    """
    allowances = [read_allowance(text) for text in allowed]
    with progress_bar(target) as report:
        job = job_of(ctx, target)
        found = sanitize_job(job, report, TOOLS if "all" in tools else tools, allowances)
    if as_json:
        echo_json(sanitize_text.to_dict(found))
    else:
        sanitize_text.write(found, sys.stdout)
    return found.exit_code
