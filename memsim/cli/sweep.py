"""`memsim sweep`: many variants of a kernel, a table of what each costs, and the frontier."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from memsim.cli.launch_options import LAUNCH, launch_option, say_undivided, spell, texts_said
from memsim.cli.options import JOBS, JSON, UNNAMED, UNTRUSTED, allow_named, output_option, with_options
from memsim.cli.output import echo_json, path_of, progress_bar, say
from memsim.errors import MemsimError
from memsim.sweep.results import kept_in
from memsim.sweep.results_shown import to_dict, write
from memsim.sweep.variants import variants

#: What says how a launch is made that is the same for all variants, and not said here.
SINGLE = ("let", "cluster", "max_steps", "allow_out_of_bounds")


@click.command()
@click.argument("target", callback=allow_named)
@with_options(*(launch_option(name, as_text=True) for name in LAUNCH if name not in SINGLE))
@JOBS
@UNTRUSTED
@output_option(
    *("--output", "-o"),
    help="Save the results as .csv or .parquet; variants already in the file are not analyzed again. "
    "Without FILE, a .csv named after TARGET.",
)
@click.option("--time", "timed", is_flag=True, help="Estimate how long each takes, and rank by that.")
@click.option(
    "--cut",
    type=click.IntRange(1),
    default=1,
    metavar="N",
    help="Split each launch into N parts by blocks, so that several processes share it.",
)
@output_option(
    "--plot", help="Plot the Pareto frontier as .png, .svg or .pdf; without FILE, an .svg named after TARGET."
)
@JSON
@click.pass_context
def sweep(
    ctx: click.Context,
    /,
    target: str,
    jobs: int | None,
    output: Path | None,
    timed: bool,
    cut: int,
    plot: Path | None,
    as_json: bool,
    **texts: Any,
) -> None:
    """Analyzes many variants of a kernel, and shows the cheapest for the shared memory they use.

    Any value can be a list: 0..8 is nine integers, 0..64..8 goes in steps of 8, a|b lists texts. All
    combinations are analyzed. TARGET is as for `memsim analyze`, or several separated by |, or a pattern
    of catalogue names.

    An existing results file is continued: variants analyzed by this memsim with the same launch and
    source file are skipped. Included headers and imported modules are not checked; delete the results
    file if they change.

    --time follows one multiprocessor in time (docs/time.md), about as long again as the
    analysis: an estimate. --cut is for huge launches, one after the other: blocks are divided, and the
    counts are those of one process, which counts all blocks where some decide what others access.

    \b
    Examples:
      memsim sweep 'tile_64x*' --size 1024,1024,1024,1 --time
      memsim sweep tile.cu -D PAD=0..8 --grid 32,32 --block 32,32 --arg 'f32[1048576]'
      memsim sweep layouts.py:transpose --block 32,32 -D 'layout=(32,32):(33,1)|Sw<5,0,5> o (32,32):(32,1)'
      memsim sweep 'transpose_*' --size '256,256|512,512' -o transposes.csv --plot frontier.svg
      memsim sweep histogram.cu --grid 4096 --block 256 --arg @values.npy --cut 64
    """
    from memsim.sweep.analyze_variants import (
        sweep as run_sweep,  # with the emulator, which --help is not to load
    )

    named = []
    if output == UNNAMED:
        output = path_of(f"{target}-sweep", ".csv")
        named.append(output)
    if plot == UNNAMED:
        plot = path_of(f"{target}-sweep", ".svg")
        named.append(plot)
    if output is not None:
        kept_in(output, ())  # a suffix, or pyarrow, is missing before anything is analyzed
    if plot is not None:
        from memsim.views.canvas import check_suffix, save

        check_suffix(plot)
    if timed and cut > 1:
        raise MemsimError("the time of a part of a launch means nothing", hint="--time without --cut")
    chosen = variants(target, texts_said(ctx), partial(spell, ctx), one_will_do=cut > 1, timed=timed)
    with progress_bar(target) as report:
        results = run_sweep(
            *(chosen, output, jobs, report), cut=cut, time="whole" if timed else None, tell=say_undivided
        )
    if as_json:
        echo_json(to_dict(results))
    else:
        write(results, sys.stdout)
    if plot is not None:
        from memsim.sweep.results_shown import frontier_figure

        save(frontier_figure(results), plot)
    for path in named:
        say(f"written: {path}", err=as_json)
    if all(result.counts.error for result in results):
        raise MemsimError("no variant could be analyzed", hint=results[0].counts.error)
