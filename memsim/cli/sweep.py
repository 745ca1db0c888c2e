"""`memsim sweep`: many variants of a kernel, a table of what each costs, the frontier; and `memsim prove`:
whether a kernel is free of bank conflicts at every value of some names.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import click

from memsim.cli.launch_options import LAUNCH, launch_option, say_undivided, spell, texts_said
from memsim.cli.options import JOBS, JSON, UNNAMED, UNTRUSTED, allow_named, output_option, with_options
from memsim.cli.output import echo_json, path_of, progress_bar, say
from memsim.errors import MemsimError
from memsim.sweep.results import kept_in
from memsim.sweep.results_shown import sweep_document, write
from memsim.sweep.variants import variants

#: What says how a launch is made that is the same for all variants, and not said here; `prove` has max_steps.
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
    **texts: object,
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
        echo_json(sweep_document(results))
    else:
        write(results, sys.stdout)
    if plot is not None:
        from memsim.sweep.results_shown import frontier_figure

        save(frontier_figure(results), plot)
    for path in named:
        say(f"written: {path}", err=as_json)
    if all(result.counts.error for result in results):
        raise MemsimError("no variant could be analyzed", hint=results[0].counts.error)


def _named(ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """`N=1..8192` as a name and its values."""
    found = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not name.isidentifier() or not values:
            raise click.BadParameter(f"{text!r} is not a name and its values, such as N=1..8192 or B=16|32")
        found[name] = values
    return found


@click.command()
@click.argument("target", callback=allow_named)
@click.option(
    "--for",
    "names",
    multiple=True,
    required=True,
    callback=_named,
    metavar="NAME=VALUES",
    help="A name and its values: N=1..8192, N=0..64..8 or BLOCK=16|32. Repeatable.",
)
@with_options(
    *(launch_option(name, as_text=True) for name in LAUNCH if name not in SINGLE or name == "max_steps")
)
@UNTRUSTED
@JSON
@click.pass_context
def prove(ctx: click.Context, /, target: str, names: dict[str, str], as_json: bool, **texts: object) -> None:
    """Says whether a kernel is free of bank conflicts at every value of some names; exit code 1 if not.

    A name is a macro, a parameter of a Python function, or stands in braces in other options:
    --block '{BLOCK},8', --arg '{N}', --arg 'f32[{N*N}]'. Up to 64 combinations are all replayed. Of a longer
    range each residue modulo 128 bytes is replayed at one value, and others are drawn at random; the answer
    then says so.

    \b
    Examples:
      memsim prove layouts.py:transpose --block 32,32 -D 'layout=(32,32):({LD},1)' --for LD=32..8192
      memsim prove tile.cu --for 'TILE=16|32' --grid 1 --block '{TILE},{TILE}' --arg 'f32[{TILE*TILE}]'
    """
    from memsim.sweep import every_value

    with progress_bar(target) as report:
        found = every_value.prove(target, texts_said(ctx), names, report)
    if all(each.ways is None for each in found.replayed):
        braces = f"a name is a macro unless it stands in braces, as in --arg '{{{next(iter(names))}}}'"
        raise MemsimError("it could be analyzed at no value", hint=f"{found.replayed[0].error}; {braces}")
    if as_json:
        echo_json(every_value.prove_document(target, found))
    else:
        every_value.write(target, found, sys.stdout)
    ctx.exit(0 if found.holds else 1)
