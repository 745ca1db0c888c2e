"""The command line: one module for each verb; arguments in, exit code out.

Exit codes: 0 done; 1 a check failed; 2 bad input or a missing part; 130 interrupted.
Every `MemsimError` is caught here, once, and printed without a traceback.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

import click

import memsim
from memsim.errors import MemsimError

INTERRUPTED = 130


class Interrupted(Exception):
    """Ctrl-C, before click makes a line of it."""


#: A verb, and where its command is: `memsim/cli/MODULE.py`, `COMMAND`.
VERBS = {
    "list": ("list", "list_kernels"),
    "analyze": ("analyze", "analyze"),
    "capture": ("capture", "capture"),
    "heatmap": ("heatmap", "heatmap"),
    "explain": ("explain", "explain"),
    "bound": ("bound", "bound"),
    "suggest": ("suggest", "suggest"),
    "report": ("report", "report"),
    "check": ("check", "check"),
    "baseline": ("baseline", "baseline"),
    "compare": ("compare", "compare_"),
    "sweep": ("sweep", "sweep"),
    "validate": ("validate", "validate"),
    "probe": ("probe", "probe"),
    "bench": ("bench", "bench"),
}


class Verbs(click.Group):
    """Imports a verb's module when it is asked for: no verb waits for what only others need."""

    def invoke(self, ctx: click.Context) -> object:
        """Runs the verb."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs, in the order of a first visit."""
        return [*VERBS, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command, None if there is no such verb."""
        if cmd_name not in VERBS:
            return super().get_command(ctx, cmd_name)
        module, command = VERBS[cmd_name]
        found: click.Command = getattr(import_module(f"memsim.cli.{module}"), command)
        return found


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
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
      memsim heatmap kernel_v4    how its accesses use the banks of shared memory
      memsim explain kernel_v4    one request taken apart, lane by lane
      memsim suggest kernel_v3    a change that removes its bank conflicts, and code to paste
      memsim analyze --help       the same for a kernel of your own
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code; `arguments` default to the process's own."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # source lines may hold any character
    try:
        code = cli.main(arguments, prog_name="memsim", standalone_mode=False) or 0
        sys.stdout.flush()  # what cannot be printed is told here, and not when Python ends
        return code
    except MemsimError as error:
        return _failed(str(error), error.exit_code)
    except click.ClickException as error:
        said = io.StringIO()
        error.show(file=said)
        return _failed(said.getvalue().rstrip("\n"), error.exit_code, prefix="")
    except (Interrupted, click.Abort, KeyboardInterrupt):
        return _failed("interrupted", INTERRUPTED, prefix="")
    except RecursionError:
        return _failed("something is nested too deeply to be read", 2)
    except MemoryError:
        return _failed("there is not enough memory for this", 2)
    except OSError as error:
        if error.filename is not None:
            return _failed(str(error), 2)
        _discard_output()  # of no file, so of a stream
        return _failed(f"cannot write the output: {error.strerror}", 2)


def _failed(message: str, code: int, prefix: str = "error: ") -> int:
    """Tells why, and returns the exit code."""
    from memsim.report.plain import plain

    with suppress(OSError):
        click.echo(plain(f"{prefix}{message}"), err=True)
    return code


def _discard_output() -> None:
    """Nothing can be printed any more; Python would try once more when it ends, and complain."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
