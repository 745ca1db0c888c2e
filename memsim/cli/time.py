"""`memsim time`: about how many cycles a launch takes, and what its warps wait for."""

from __future__ import annotations

import sys
from typing import Any

import click

from memsim.cli.launch_options import job_of, target_options, trace_of_target
from memsim.cli.options import JSON
from memsim.cli.output import echo_json
from memsim.time.multiprocessor import ABLATIONS
from memsim.time.predict_time import COLD, WARM, PreparedTime
from memsim.views import time_text


@click.command()
@target_options
@click.option(
    "--l2",
    type=click.Choice((COLD, WARM)),
    default=COLD,
    help="The L2 cache before the launch: cold, as under a profiler, or warm. Default: cold.",
)
@click.option(
    "--without",
    type=click.Choice(tuple(ABLATIONS)),
    multiple=True,
    metavar="UNIT",
    help=f"Leave a unit out of the model: {', '.join(ABLATIONS)}. Repeatable.",
)
@JSON
@click.pass_context
def time(
    ctx: click.Context, /, target: str, l2: str, without: tuple[str, ...], as_json: bool, **launch: Any
) -> None:
    """Estimates how many cycles a launch takes, and what its warps wait for.

    One multiprocessor is followed cycle by cycle: the schedule in the machine code, the exact cost of each
    access, four schedulers, pipes, queues. It is an estimate, whose error is in docs/time.md; all counts of
    the other verbs stay exact. Needs machine code for sm_90.

    TARGET and its options are the same as for `memsim analyze`.

    \b
    Examples:
      memsim time kernel_v3
      memsim time kernel_v4 --size 512,512,512 --l2 warm --json
    """
    job = job_of(ctx, target)
    found = PreparedTime(job, trace_of_target(ctx, target, job)).predict(l2, without)
    if as_json:
        echo_json(time_text.to_dict(found))
    else:
        time_text.write(found, sys.stdout)
