"""What a verb is about: the TARGET that most verbs take, with the options that say how it is launched.

In: TARGET (a catalogue kernel, a target of a project, a file with code, a saved trace) and its options. Out:
its job, or its trace. An option that would change nothing is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from memsim import api
from memsim.analysis import Analysis, analyze_trace
from memsim.arch import SM_90
from memsim.cli.output import say
from memsim.cli.progress import progress_bar
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.kernels import catalog
from memsim.targets.project import find_project, read_project
from memsim.targets.target import TARGET, check_keys, is_file, kind_of, read_job, vary
from memsim.trace.source import TraceSource

Command = TypeVar("Command", bound=Callable[..., Any])


def integers(text: str) -> tuple[int, ...]:
    """`8`, `8,8` or `8x8`."""
    try:
        return tuple(int(item) for item in text.replace("x", ",").split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not integers with commas between, such as 8,8") from None


OPTIONS = (
    click.option("--size", metavar="M,N,K", help="Problem size, for a catalogue kernel."),
    click.option("--kernel", metavar="NAME", help="Which kernel of the file; needed if it has several."),
    click.option("--grid", type=integers, metavar="X[,Y[,Z]]", help="Blocks in the grid."),
    click.option("--block", type=integers, metavar="X[,Y[,Z]]", help="Threads in a block."),
    click.option(
        "--arg", multiple=True, metavar="VALUE", help="A kernel argument; repeat it, in the kernel's order."
    ),
    click.option(
        "-D", "define", multiple=True, metavar="NAME[=VALUE]", help="A macro for the compiler; repeatable."
    ),
    click.option("-I", "include", multiple=True, metavar="DIR", help="A folder of headers; repeatable."),
    click.option(
        "--code",
        type=click.Choice(api.FORMS),
        help="Read machine code (sass), or PTX, which is an estimate of it. Default: sass if it can be had.",
    ),
    click.option(
        "--compiler",
        type=click.Choice(("nvrtc", "nvcc")),
        help="Who compiles a CUDA file. Default: NVRTC first.",
    ),
    click.option(
        "--shared-bytes", type=click.IntRange(0), default=0, help="Dynamic shared memory per block, bytes."
    ),
    click.option("--blocks", type=click.IntRange(1), help="Replay only so many blocks of the grid."),
    click.option(
        "--max-steps",
        type=click.IntRange(1),
        metavar="N",
        help="Instructions after which a launch is endless.",
    ),
    click.option(
        "--allow-out-of-bounds",
        is_flag=True,
        help="Count loads outside of every array; what they give is not known.",
    ),
)
ARCH = click.option(
    "--arch", default=SM_90.name, show_default=True, help="The chip whose measured rules to use."
)
# What `read_job` calls what these options say.
KEYS = {
    **{name: name for name in ("size", "kernel", "grid", "block", "code", "compiler", "shared_bytes")},
    **{name: name for name in ("blocks", "max_steps", "allow_out_of_bounds", "arch")},
    **{"arg": "args", "define": "options", "include": "options"},
}


def launch_options(command: Command) -> Command:
    """The options that say how TARGET is launched."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def target_options(command: Command) -> Command:
    """The argument TARGET, the options that say how it is launched, and `--arch`."""
    return click.argument("target")(launch_options(ARCH(command)))


def said(ctx: click.Context) -> dict[str, Any]:
    """What the user says of a launch, as `read_job` takes it; what is only a default is not said."""
    found: dict[str, Any] = {}
    for name in _given(ctx):
        key, value = KEYS[name], ctx.params[name]
        if key == "options":
            value = [*found.get(key, ()), *(f"-{'D' if name == 'define' else 'I'}{text}" for text in value)]
        found[key] = value
    return found


def spell(ctx: click.Context, key: str) -> str:
    """How the user writes, or wrote, a key of `said`."""
    names = [*_given(ctx), *KEYS]
    name = next((name for name in names if KEYS[name] == key), key)
    return next((option.opts[0] for option in ctx.command.params if option.name == name), key)


def _given(ctx: click.Context) -> list[str]:
    names = [option.name or "" for option in ctx.command.params]
    return [
        name
        for name in names
        if name in KEYS and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]


def job_of(ctx: click.Context, target: str, *, beside: bool = False) -> Job:
    """The job of TARGET, with what the command line says of its launch.

    beside: it is looked at beside the TARGET that the options are for; they count as far as they make sense.

    Raises:
        MemsimError: as `read_job`.
    """
    project = _of_project(target) if not is_file(target) and target not in catalog() else None
    kind, given = TARGET if project else kind_of(target), said(ctx)
    if beside:
        given = {key: value for key, value in given.items() if key in kind.keys}
    if project is None:
        return read_job(target, given, where="--arg", spell=partial(spell, ctx))
    check_keys(kind, given, partial(spell, ctx))
    return vary(project, given)


def analyzed(ctx: click.Context, target: str, *, beside: bool = False) -> Analysis:
    """The analysis of TARGET; `beside` as in `job_of`.

    Raises:
        MemsimError: as `job_of`, and whatever goes wrong in the kernel.
    """
    job = job_of(ctx, target, beside=beside)
    with progress_bar(target) as report:
        trace = api.trace_job(job, report)
    for note in () if isinstance(job.kernel, TraceSource) else job.loaded.notes:
        say(f"note: {note}", err=True)
    return analyze_trace(trace, job.arch)


def asks_what_there_is(ctx: click.Context, target: str) -> bool:
    """Whether TARGET is CUDA source, and nothing is said of a launch."""
    return is_source(target) and not said(ctx).keys() - {"options", "code", "compiler", "arch"}


def is_source(target: str) -> bool:
    """Whether TARGET is a file of CUDA source that there is."""
    return Path(target).suffix in api.SOURCE_SUFFIXES and Path(target).is_file()


def echo_offers(target: str) -> None:
    """Prints the kernels of a source, each with a command line.

    Raises:
        MemsimError: it has none.
    """
    from memsim.targets.offers import lines

    found = lines(target, Path(target).read_text(encoding="utf-8", errors="replace"))
    if not found:
        hint = "a kernel is a __global__ function; one that a macro makes is analyzed with --grid and --block"
        raise MemsimError("no kernel is found in it", file=target, hint=hint)
    click.echo("\n".join(found))


def _of_project(name: str) -> Job | None:
    """The target of that name in the project that holds here; None if there is none."""
    try:
        path = find_project(Path.cwd())
    except MemsimError:
        return None  # no project here
    return next((job for job in read_project(path).targets if job.name == name), None)
