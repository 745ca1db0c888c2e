"""`memsim sweep`: many variants of a kernel, a table of what each costs, and the frontier."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from memsim.arch import SM_90
from memsim.cli.output import save_figure
from memsim.cli.progress import progress_bar
from memsim.cli.target import spell
from memsim.errors import MemsimError
from memsim.report import sweep as table
from memsim.sweep.results import sweep as run_sweep
from memsim.sweep.variants import variants

SUFFIX = ".csv"
TEXTS = ("size", "kernel", "grid", "block", "code", "compiler", "shared_bytes", "blocks", "arch")


@click.command()
@click.argument("target")
@click.option("--size", metavar="M,N,K", help="Problem size, for a catalogue kernel.")
@click.option("--kernel", metavar="NAME", help="Which kernel of the file; needed if it has several.")
@click.option("--grid", metavar="X[,Y[,Z]]", help="Blocks in the grid.")
@click.option("--block", metavar="X[,Y[,Z]]", help="Threads in a block.")
@click.option("--arg", multiple=True, metavar="VALUE", help="A kernel argument; repeat it, in order.")
@click.option("-D", "define", multiple=True, metavar="NAME=VALUE", help="A macro, or a function's parameter.")
@click.option("-I", "include", multiple=True, metavar="DIR", help="A folder of headers; repeatable.")
@click.option("--code", metavar="FORM", help="sass or ptx.")
@click.option("--compiler", metavar="NAME", help="nvrtc or nvcc.")
@click.option("--shared-bytes", metavar="N", help="Dynamic shared memory per block, bytes.")
@click.option("--blocks", metavar="N", help="Replay only so many blocks of the grid.")
@click.option("--arch", default=SM_90.name, show_default=True, help="The chip whose measured rules to use.")
@click.option("--jobs", "-j", type=click.IntRange(1), metavar="N", help="Processes; one for each processor.")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.csv",
    help="Keep the results; of a file that is there, what it has is not analyzed again.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Draw the frontier: .png, .svg or .pdf.",
)
@click.pass_context
def sweep(
    ctx: click.Context,
    /,
    target: str,
    arg: tuple[str, ...],
    define: tuple[str, ...],
    include: tuple[str, ...],
    jobs: int | None,
    output: Path | None,
    plot: Path | None,
    **texts: Any,
) -> None:
    """Analyzes many variants of a kernel, and shows which cost least for their shared memory.

    Any value may stand for several: 0..8 for nine integers, 0..64..8 in steps, and a|b for texts. All
    combinations are analyzed. TARGET is as in `memsim analyze`, or several with | between, or a pattern of
    the catalogue's names.

    A file of results is gone on with: what it has of this memsim, this launch and this source file is
    skipped. Headers and modules that the file includes are not looked at; delete the results if they change.

    \b
    Examples:
      memsim sweep tile.cu -D PAD=0..8 --grid 32,32 --block 32,32 --arg 'f32[1048576]'
      memsim sweep layouts.py:transpose --block 32,32 -D 'layout=(32,32):(33,1)|Sw<5,0,5> o (32,32):(32,1)'
      memsim sweep 'transpose_*' --size '256,256|512,512' -o transposes.csv --plot frontier.svg
    """
    if output is not None and output.suffix != SUFFIX:
        raise MemsimError("results are a table", file=str(output), hint=f"call it {output.stem}{SUFFIX}")
    if plot is not None:
        from memsim.report.figures.canvas import check_suffix

        check_suffix(plot)
    said = {key: text for key in TEXTS if (text := texts.get(key)) is not None}
    if arg:
        said["args"] = list(arg)
    options = [*(f"-D{macro}" for macro in define), *(f"-I{folder}" for folder in include)]
    chosen = variants(target, said, options, lambda key: spell(ctx, key))
    with progress_bar(target) as report:
        results = run_sweep(chosen, output, jobs, report)
    table.write(results, sys.stdout)
    if plot is not None:
        from memsim.report.figures.frontier import frontier_figure

        save_figure(plot, lambda: frontier_figure(results))
    if all(result.counts.error for result in results):
        raise MemsimError("no variant could be analyzed", hint=results[0].counts.error)
