"""The command line: one module for each verb; arguments in, exit code out.

Exit codes: 0 done; 1 a check failed; 2 bad input or a missing part; 130 interrupted.
Every `MemsimError` is caught here, once, and printed without a traceback.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

import click

import memsim
from memsim.cli.analyze import analyze
from memsim.cli.list import list_kernels
from memsim.cli.validate import validate
from memsim.errors import MemsimError

INTERRUPTED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(memsim.__version__, prog_name="memsim")
def cli() -> None:
    """Counts what a CUDA kernel's memory accesses cost on the hardware, without a GPU.

    memsim runs the index math of the kernel's own compiled code for every thread and tells, for
    every source line that touches shared or global memory, how many wavefronts, bank conflicts
    and sectors it costs.

    \b
    First steps:
      memsim list                 the kernels that ship with memsim
      memsim analyze kernel_v4    what one of them costs, line by line
      memsim analyze --help       the same for a kernel of your own
    """


cli.add_command(list_kernels)
cli.add_command(analyze)
cli.add_command(validate)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code; `arguments` default to the process's own."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # source lines may hold any character
    try:
        return cli.main(arguments, prog_name="memsim", standalone_mode=False) or 0
    except MemsimError as error:
        click.echo(f"error: {error}", err=True)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
