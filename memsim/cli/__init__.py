"""The command line: verbs by subject.

Exit codes: 0 done; 1 a check failed; 2 bad input or a missing part; 130 interrupted.
Every `MemsimError` is caught here, once, and printed without a traceback.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from importlib import import_module
from pathlib import Path

import click

import memsim
from memsim.cli.options import asked_by_environment, trust_nothing, when_asked
from memsim.errors import MemsimError
from memsim.views.plain import print_constant_text, wrap_line

INTERRUPTED = 130
#: Objects that are made before cycles among them are looked for: 700 is Python's own choice, and what a verb
#: imports, reads and decodes is looked through again and again, and stays.
BEFORE_COLLECTION = 100_000


#: Verbs whose answers may be given again (`memsim.cli.answered`).
REPEATED = frozenset(("analyze", "suggest", "time", "sanitize", "check"))


class Interrupted(Exception):
    """Ctrl-C, before click makes a line of it."""


#: A verb, where its command is (`memsim/cli/MODULE.py`, `COMMAND`), and its line in `memsim --help`.
VERBS = {
    "list": ("first_steps", "list_kernels", "List the kernels that ship with memsim."),
    "analyze": ("analyze", "analyze", "Count what each source line's memory accesses cost."),
    "exec": ("exec", "exec_", "Run a CUDA program as it is, without a GPU."),
    "capture": ("capture", "capture", "Record the launches of a script that uses Triton, Warp, ..."),
    "heatmap": ("drawings", "heatmap", "Show which shared-memory banks each access uses."),
    "explain": ("drawings", "explain", "Explain one request lane by lane: why it costs what it costs."),
    "bound": ("analyze", "bound", "Compute a lower bound on the cycles of a launch."),
    "time": ("time", "time", "Estimate how many cycles a launch takes, and what its warps wait for."),
    "sanitize": ("sanitize", "sanitize", "Find races, accesses out of bounds and deadlocks, without a GPU."),
    "suggest": ("suggest", "suggest", "Propose layout changes that remove bank conflicts."),
    "report": ("drawings", "report", "Write an HTML report on a launch."),
    "check": ("check", "check", "Check a project's kernels against their budgets."),
    "baseline": ("check", "baseline", "Record the current counts of a project's kernels."),
    "compare": ("compare", "compare_", "Compare the memory cost of two kernels, line by line."),
    "sweep": ("sweep", "sweep", "Analyze many variants of a kernel and rank them."),
    "prove": ("sweep", "prove", "Say whether a kernel has no bank conflict at every size."),
    "play": ("play", "play", "Open a page on which index math and layouts are tried out."),
    "serve": ("serve", "serve", "Offer the verbs to an assistant (MCP), in one resident process."),
    "validate": ("validate", "validate", "Compare predictions with hardware counters."),
    "probe": ("validate", "probe", "Write a program that measures a GPU without a profiler."),
    "init": ("first_steps", "init", "Create a memsim.toml for the kernels in a folder."),
    "doctor": ("first_steps", "doctor", "Show which tools and devices memsim finds."),
}


class HelpText(click.HelpFormatter):
    """Help whose examples and lists fit, too."""

    def getvalue(self) -> str:
        """The text."""
        return "".join(f"{wrap_line(line, self.width)}\n" for line in super().getvalue().splitlines())


class VerbContext(click.Context):
    """What a verb is called with."""

    formatter_class = HelpText


PLAIN = click.Option(
    ["--plain"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=when_asked(print_constant_text),
    help="Print text without colours, 100 columns wide wherever it goes.",
)


class Verbs(click.Group):
    """Imports a verb's module when it is asked for: no verb waits for what only others need."""

    def invoke(self, ctx: click.Context) -> object:
        """Runs the verb."""
        if asked_by_environment():
            trust_nothing()
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb's command; the error for another word says which verb may be meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            meant = (
                [f"analyze {args[0]}"] if Path(args[0]).is_file() else get_close_matches(args[0], VERBS, n=1)
            )
            if not meant:
                raise
            raise click.UsageError(f"{error.message} Did you mean 'memsim {meant[0]}'?", ctx) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs, in the order of a first visit."""
        return [*VERBS, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command, None if there is no such verb."""
        if cmd_name not in VERBS:
            return super().get_command(ctx, cmd_name)
        module, command, short_help = VERBS[cmd_name]
        found: click.Command = getattr(import_module(f"memsim.cli.{module}"), command)
        found.short_help, found.context_class = short_help, VerbContext
        if PLAIN not in found.params:
            found.params.append(PLAIN)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs and their lines, of which none is imported."""
        with formatter.section("Commands"):
            formatter.write_dl([(verb, short_help) for verb, (_, _, short_help) in VERBS.items()])


def say_version(ctx: click.Context, option: click.Parameter, asked: bool) -> None:
    """Prints what counts depend on: the version, the compilers, and which chips' rules were measured."""
    if not asked or ctx.resilient_parsing:
        return
    from memsim.cli.output import say
    from memsim.doctor import compilers, tables

    say(f"memsim, version {memsim.__version__}")
    say(f"compilers: {', '.join(compilers()) or 'none'}")
    say(f"rules: {'; '.join(tables())}")
    ctx.exit()


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=say_version,
    help="Show the version, the compilers found and the chips whose rules are known, and exit.",
)
def cli() -> None:
    """Counts what a CUDA kernel's memory accesses cost on the hardware, without a GPU.

    memsim executes the compiled kernel's address computations for every thread. For each source
    line that accesses shared or global memory it reports the wavefronts, bank conflicts and
    sectors.

    \b
    First steps:
      memsim list                 the kernels that ship with memsim
      memsim analyze kernel_v4    what one of them costs, line by line
      memsim heatmap kernel_v4    how its accesses use the banks of shared memory
      memsim explain kernel_v4    why a request costs what it costs, lane by lane
      memsim suggest kernel_v3    a layout change that removes its bank conflicts
      memsim analyze --help       the same for a kernel of your own
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code; `arguments` default to the process's own."""
    if arguments is not None:
        return run(cli, arguments, "memsim")
    gc.set_threshold(BEFORE_COLLECTION)  # the process is ours
    atexit.register(_end_quietly)  # runs last: after all that a script registers
    _open_missing_streams()
    exit_code = run(cli, None, "memsim")
    gc.freeze()  # it ends: Python need not look for cycles in all that is left
    return exit_code


def run(command: click.Command, arguments: Sequence[str] | None, name: str) -> int:
    """Runs a command under a name and returns the exit code; whatever goes wrong is a line for people."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # source lines may hold any character
    try:
        # What the verb does not trust is forgotten when it ends: others may run in this process.
        call = partial(command.main, arguments, prog_name=name, standalone_mode=False)

        def work() -> int:
            exit_code: int | None = copy_context().run(call)
            return exit_code or 0

        if arguments is None and sys.argv[1:2] and sys.argv[1] in REPEATED:
            from memsim.cli.answered import answer_with_cache

            exit_code: int = answer_with_cache(sys.argv[1:], work)
        else:
            exit_code = work()
        sys.stdout.flush()  # what cannot be printed is told here, and not when Python ends
        return exit_code
    except MemsimError as error:
        return _failed(str(error), error.exit_code)
    except click.ClickException as error:
        said = io.StringIO()
        error.show(file=said)
        return _failed(said.getvalue().rstrip("\n"), error.exit_code, prefix="")
    except (Interrupted, click.Abort, KeyboardInterrupt):
        return _failed("interrupted", INTERRUPTED, prefix="")
    except RecursionError:
        return _failed("the input is nested too deeply", 2)
    except MemoryError:
        return _failed("out of memory", 2)
    except OSError as error:
        if error.filename is not None:
            return _failed(str(error), 2)
        with suppress(OSError, ValueError, AttributeError):  # of no file, so of a stream
            # Nothing can be printed any more; Python would try once more when it ends, and complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _failed(f"cannot write the output: {error.strerror}", 2)


def _end_quietly() -> None:
    """After a script: what its libraries write while Python ends, such as nanobind's list of what leaked,
    would hide the last lines.
    """
    if "memsim.cli.capture" not in sys.modules:
        return
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)


def _open_missing_streams() -> None:
    """A standard stream that the shell has closed (`>&-`) is None in Python; nothing is the next best."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115


def _failed(message: str, exit_code: int, prefix: str = "error: ") -> int:
    from memsim.cli.output import say_all

    with suppress(OSError):
        say_all(f"{prefix}{message}", err=True)
    return exit_code
