"""`memsim sanitize`: races of a launch, without a GPU."""

from __future__ import annotations

import sys
from typing import Any

import click

from memsim.cli.launch_options import job_of, target_options
from memsim.cli.output import progress_bar
from memsim.sanitize.sanitize import sanitize_job
from memsim.views.sanitize import terminal


@click.command()
@target_options
@click.pass_context
def sanitize(ctx: click.Context, /, target: str, **launch: Any) -> int:
    """Finds races of a launch in shared memory, without a GPU.

    Two accesses race if one of them writes, and no barrier or the like orders them: which comes first
    depends on timing. Each finding has both source lines, both threads, the array, the index and what would
    order them. Exit code 0: none; 1: findings; 2: not judged.

    TARGET and its options are the same as for `memsim analyze`.

    \b
    Examples:
      memsim sanitize kernel.cu --grid 1 --block 64 --arg 'i32[64]'
      memsim sanitize kernel_v4
    """
    with progress_bar(target) as report:
        found = sanitize_job(job_of(ctx, target), report)
    terminal.write(found, sys.stdout)
    return 1 if found.errors else 2 if found.unjudged else 0
