"""`memsim analyze`: what a kernel's memory accesses cost, from the catalogue, a file or a saved trace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from memsim.captured.launch_json import write_launch
from memsim.captured.launched import Launched
from memsim.cli.target import analyzed, asks_what_there_is, echo_offers, job_of, target_options
from memsim.errors import MemsimError
from memsim.report import json, text
from memsim.report.hints import next_command
from memsim.targets.target import is_file
from memsim.trace.source import SUFFIX, can_be_written, is_trace


@click.command()
@target_options
@click.option("--json", "as_json", is_flag=True, help="Print the same records as JSON.")
@click.option("--sass", is_flag=True, help="Below each source line its machine instructions.")
@click.option(
    "--save-trace",
    type=click.Path(path_type=Path),
    metavar="FILE.npz",
    help="Keep the addresses; as FILE.traceg in Accel-Sim's format.",
)
@click.option(
    "--save-launch",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Keep the launch: launch.json, the code, and the arrays that have values.",
)
@click.pass_context
def analyze(
    ctx: click.Context,
    /,
    target: str,
    as_json: bool,
    sass: bool,
    save_trace: Path | None,
    save_launch: Path | None,
    **launch: Any,
) -> None:
    """Tells what each source line that touches shared or global memory costs.

    TARGET is a kernel's name from `memsim list`, or a target's from memsim.toml; a .cu, .ptx or .cubin file,
    or a program or library with machine code in it; a launch.json, as memsim capture and --save-launch write
    it; a folder of Triton's cache; a function in Python, layouts.py:transpose; a trace that --save-trace
    wrote, or Accel-Sim (.traceg), or NVBit's mem_trace (.txt, .log).
    A file of code also needs --grid, --block and an --arg for each parameter of the kernel; what the
    launch in a CUDA file says need not be given. A CUDA file with nothing else: its kernels, each
    with a command line. A folder of Triton's cache needs --grid and the arguments that the kernel declares;
    a function needs --block, and -D NAME=VALUE sets one of its parameters.

    \b
    An --arg is a number, an array by type and shape, an array from a file, or a
    struct by its numbers and arrays, each at its alignment:
      1024   1.0   true   'f32[1024,1024]'   'i32[64]=iota'   'u8[256]=zeros'   @matrix.npy
      'f32(1,2)+i32(3)'   'f32[64]+i32(3)' (a pointer and a number)
    Arrays are random if nothing else is said: floats from -1 to 1, integers from
    0 to 127, those of 8 bits any. bf16, e4m3 and e5m2 are types, too; null is a null pointer.

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
        hint = f"call it {save_trace.stem}{SUFFIX}, so that memsim analyze knows it as one"
        raise MemsimError("a saved trace has another suffix", file=str(save_trace), hint=hint)
    if save_launch is not None and is_trace(target):
        raise MemsimError("a saved trace has no launch to save", file=target, hint="save it with its kernel")
    if asks_what_there_is(ctx, target):
        echo_offers(target)
        return
    analysis = analyzed(ctx, target)
    if save_launch is not None:
        write_launch(Launched.of(job_of(ctx, target)), save_launch)
    if save_trace is not None:
        analysis.trace.save(save_trace)
    if as_json:
        click.echo(json.render(analysis, sass=sass))
    else:
        text.write(analysis, sys.stdout, sass=sass)
        suggestion = next_command(analysis, target, options=is_file(target))
        if suggestion:
            click.echo(suggestion)
