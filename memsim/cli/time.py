"""`memsim time`: about how many cycles a launch takes, and what its warps wait for."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from memsim.cli.launch_options import job_of, repeat, target_options, trace_of_target
from memsim.cli.options import JSON, file_option
from memsim.cli.output import echo_json
from memsim.time.behind_l1 import COLD, WARM
from memsim.time.multiprocessor import ABLATIONS
from memsim.time.predict_time import PreparedTime
from memsim.views import time_text

#: Cycles of which issues are kept at most.
MOST_TRACED = 20_000


@click.command()
@target_options
@click.option(
    "--l2",
    type=click.Choice((COLD, WARM)),
    default=COLD,
    help="The L2 cache before the launch: cold, as under a profiler, or warm. Default: cold.",
)
@click.option(
    "--board",
    metavar="NAME",
    help="The board, by a part of its name, such as H100. Default: the one with the fastest memory.",
)
@click.option(
    "--without",
    type=click.Choice(tuple(ABLATIONS)),
    multiple=True,
    metavar="UNIT",
    help=f"Leave a unit out of the model: {', '.join(ABLATIONS)}. Repeatable.",
)
@click.option(
    "--cycles",
    callback=lambda ctx, param, text: cycles_of(text),
    metavar="FROM:TO",
    help="Show which warp issues what, and what the others wait for, in these cycles.",
)
@file_option(
    "--trace",
    help=f"Write each issue of these cycles (default: 0:{MOST_TRACED}) to FILE, which ui.perfetto.dev opens.",
)
@JSON
@click.pass_context
def time(
    ctx: click.Context,
    /,
    target: str,
    l2: str,
    board: str | None,
    without: tuple[str, ...],
    cycles: range | None,
    trace: Path | None,
    as_json: bool,
    **launch: object,
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
      memsim time transpose_naive --cycles 2000:2200 --trace transpose.json
    """
    job = job_of(ctx, target)
    watched = cycles or (range(MOST_TRACED) if trace else range(0))
    prepared = PreparedTime(job, trace_of_target(ctx, target, job))
    on_board = prepared.on(board) if board else prepared
    found = on_board.predict(l2, without, watched=watched, both_ways=True)
    if trace:
        time_text.write_trace(found, trace)
    if as_json:
        echo_json(time_text.time_document(found))
    elif cycles:
        time_text.write_pipeline(found, cycles, sys.stdout)
    else:
        time_text.write(found, sys.stdout)
    if trace is None:
        repeat(ctx, job)


def cycles_of(text: str | None) -> range | None:
    """The cycles that FROM:TO names."""
    if text is None:
        return None
    first, _, last = text.partition(":")
    if not (first.isdecimal() and last.isdecimal() and 0 < int(last) - int(first) <= MOST_TRACED):
        raise click.BadParameter(f"{text!r} is not FROM:TO, at most {MOST_TRACED:,} cycles")
    return range(int(first), int(last))
