"""`memsim analyze` and `memsim bound`: what memory accesses cost, and the least cycles of a launch."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from memsim.cli.launch_options import (
    analysis_of,
    analyze_target,
    asks_what_there_is,
    echo_offers,
    job_of,
    launch_said,
    repeat,
    target_options,
)
from memsim.cli.options import JSON, jobs_option
from memsim.cli.output import echo_json, say
from memsim.errors import MemsimError
from memsim.targets.target import is_file
from memsim.trace.suffixes import SUFFIX, can_be_written, is_trace
from memsim.views.analyze import terminal
from memsim.views.analyze.terminal import next_command


@click.command()
@target_options
@JSON
@jobs_option("1")
@click.option("--sass", is_flag=True, help="Show the machine instructions below each source line.")
@click.option("--metrics", is_flag=True, help="Also print the totals under ncu's metric names.")
@click.option(
    "--sort",
    type=click.Choice(terminal.SORTS),
    default="cost",
    help="Order of each table's rows: highest cost first (default), most waste first, or by line number.",
)
@click.option(
    "--every-row", is_flag=True, help=f"Show all rows of tables with more than {terminal.LONG_TABLE}."
)
@click.option(
    "--save-trace",
    type=click.Path(path_type=Path),
    metavar="FILE.npz",
    help="Save the memory trace; FILE.traceg saves it in Accel-Sim's format.",
)
@click.option(
    "--save-launch",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Save the launch: launch.json, the machine code, and the arrays with known contents.",
)
@click.pass_context
def analyze(
    ctx: click.Context,
    /,
    target: str,
    as_json: bool,
    jobs: int | None,
    sass: bool,
    metrics: bool,
    sort: terminal.Sort,
    every_row: bool,
    save_trace: Path | None,
    save_launch: Path | None,
    **launch: object,
) -> None:
    """Counts what the memory accesses of each source line cost.

    \b
    TARGET is one of
      kernel_v4               a kernel from `memsim list`
      scale                   a target in memsim.toml
      scale.cu                a .cu, .ptx or .cubin file, or a program or library with GPU code
      scale.cu:scale          a kernel in such a file
      run, run/launch.json    a launch saved by memsim capture, exec --record
                              or --save-launch
      ~/.triton/cache/XYZ     a folder of Triton's cache
      layouts.py:transpose    a Python function that describes the accesses
      v4.npz                  a trace saved by --save-trace
      kernel-1.traceg         a trace of Accel-Sim (.traceg) or of NVBit's mem_trace (.txt, .log)

    A code file also needs --grid, --block and one --arg per kernel parameter, except for what the
    launch in a CUDA file states itself. Without options, if there are several kernels or some of the
    launch is open: lists the kernels, each with a command line. A Triton cache folder needs --grid and
    the kernel's declared arguments. A Python function needs --block; -D NAME=VALUE sets one of its
    parameters.

    \b
    An --arg is a number, an array given by type and shape, an array from a
    file, a texture, or a struct given by its fields, each naturally aligned:
      1024   1.0   true   'f32[1024,1024]'   'i32[64]=iota'   @matrix.npy
      'f32(1,2)+i32(3)'   'f32[64]+i32(3)' (a pointer and a number)
      'u8[256]=zeros'
      'tex2d(u8[480,640,4],filter=linear,as_floats)'
      'tex1d(f32[4096])' (linear memory)
      'tensormap(f16[1024,1024],box=64x64,swizzle=128)' (CUtensorMap)

    Arrays are random by default: floats from -1 to 1, integers from 0 to 127, 8-bit integers over their
    full range. Types include bf16, e4m3 and e5m2; null is a null pointer.

    --jobs divides the blocks of the launch among processes, with the same counts: it pays where indices come
    from data, or lanes diverge.

    \b
    Examples:
      memsim analyze kernel_v4
      memsim analyze kernel_v4 --size 512,512,512 --json
      memsim analyze scale.cu --grid 8 --block 128 --arg 'f32[1024]' --arg 2.0 -D N=1024
      memsim analyze kernel_v4 --save-trace v4.npz && memsim analyze v4.npz
      memsim analyze layouts.py:transpose --block 32,32 -D pad=1
      memsim analyze kernel-1.traceg.xz
    """
    if save_trace is not None and not can_be_written(save_trace):
        hint = f"name it {save_trace.stem}{SUFFIX}"
        raise MemsimError("a trace cannot be saved under this suffix", file=str(save_trace), hint=hint)
    if save_launch is not None and is_trace(target):
        raise MemsimError(
            "a saved trace has no launch to save",
            file=target,
            hint="use --save-launch when you analyze the kernel itself",
        )
    if asks_what_there_is(ctx, target):
        echo_offers(target, launch_said(ctx).get("options", ()), as_json=as_json)
        return
    job = job_of(ctx, target)
    analysis = analysis_of(ctx, target, job, with_time=True)
    if save_launch is not None:
        from memsim.captured.launched import Launched
        from memsim.captured.saved_launch import write_launch

        write_launch(Launched.of(job), save_launch)
    if save_trace is not None:
        analysis.trace.save(save_trace)
    if as_json:
        echo_json(analysis.to_dict(sass=sass))
    else:
        terminal.write(analysis, sys.stdout, sass=sass, metrics=metrics, sort=sort, every_row=every_row)
        suggestion = next_command(analysis, target, options=is_file(target))
        if suggestion:
            say(suggestion)
    if save_launch is None and save_trace is None:
        repeat(ctx, job)


@click.command()
@target_options
@JSON
@click.pass_context
def bound(ctx: click.Context, /, target: str, as_json: bool, **launch: object) -> None:
    """Computes a lower bound on the cycles of a launch, per hardware unit, and the limiting unit.

    The bound is the time each unit needs if it never waits. It shows whether bank conflicts can
    matter at all before you rewrite the kernel. Needs machine code and all blocks.

    TARGET and its options are the same as for `memsim analyze`.

    \b
    Examples:
      memsim bound kernel_v3
      memsim bound kernel_v4 --size 512,512,512 --json
    """
    from memsim.views import bound_text

    analysis = analyze_target(ctx, target)
    if as_json:
        echo_json(bound_text.bound_document(analysis))
    else:
        bound_text.write(analysis, sys.stdout)
