"""What a verb is about: the TARGET that most verbs take, with the options that say how it is launched.

In: TARGET (a catalogue kernel, a target of a project, a file with code, a saved trace) and its options. Out:
its trace. An option that would change nothing is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from memsim import api
from memsim.cli.progress import Report, progress_bar
from memsim.errors import MemsimError
from memsim.kernels import catalog
from memsim.targets.arguments import read_arguments
from memsim.targets.project import find_project, read_project
from memsim.targets.target import CatalogueTarget, FileTarget, Target, only_kernel
from memsim.trace.trace import Trace

Command = TypeVar("Command", bound=Callable[..., Any])


def integers(text: str) -> tuple[int, ...]:
    """`8` or `8,8`."""
    try:
        return tuple(int(item) for item in text.split(","))
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
)


def target_options(command: Command) -> Command:
    """The argument TARGET, the options that say how it is launched, and `--arch`."""
    arch = click.option(
        "--arch", default="sm_90", show_default=True, help="The chip whose measured rules to use."
    )
    for decorate in (arch, *reversed(OPTIONS), click.argument("target")):
        command = decorate(command)
    return command


def trace_target(ctx: click.Context, target: str, options: dict[str, Any], *, beside: bool = False) -> Trace:
    """The trace of TARGET with the `options` of `target_options`.

    beside: it is looked at beside the TARGET that the options are for; they count as far as they make sense.

    Raises:
        MemsimError, click.UsageError: as the kind of TARGET demands.
    """
    what, trace_of, allowed = _kind_of(target)
    if not beside:
        _refuse_other_options(ctx, what, allowed)
    with progress_bar(target) as report:
        return trace_of(target, report, **{name: options[name] for name in allowed})


def _kind_of(target: str) -> tuple[str, Callable[..., Trace], tuple[str, ...]]:
    """What TARGET is, what makes a trace of it, and the options that make sense with it."""
    if Path(target).suffix in TARGETS:
        return TARGETS[Path(target).suffix]
    if target not in catalog() and _of_project(target) is not None:
        return PROJECT
    return CATALOGUE


def _of_project(name: str) -> Target | None:
    """The target of that name in the project that holds here; None if there is none."""
    try:
        path = find_project(Path.cwd())
    except MemsimError:
        return None  # no project here
    return next((target for target in read_project(path).targets if target.name == name), None)


def _refuse_other_options(ctx: click.Context, what: str, allowed: tuple[str, ...]) -> None:
    """An option that would change nothing is a mistake of the user's."""
    for parameter in ctx.command.params:
        name = parameter.name or ""
        given = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and name in ALL and name not in allowed:
            raise click.UsageError(f"{parameter.opts[0]} makes no sense with {what}", ctx)


def _trace_of_file(
    target: str,
    report: Report,
    kernel: str | None,
    grid: tuple[int, ...] | None,
    block: tuple[int, ...] | None,
    arg: tuple[str, ...],
    shared_bytes: int,
    blocks: int | None,
    max_steps: int | None,
    define: tuple[str, ...] = (),
    include: tuple[str, ...] = (),
    code: str | None = None,
    compiler: str | None = None,
) -> Trace:
    if grid is None or block is None:
        raise click.UsageError(f"{target} needs --grid and --block")
    module = api.load(target, compiler_options(define, include), code=code, compiler=compiler)
    entry = module[kernel or only_kernel(target, module.kernels)]
    arguments = read_arguments(arg, dict(zip(entry.argument_names, entry.parameters, strict=True)))
    return api.trace(entry, grid, block, arguments, shared_bytes, blocks, report, max_steps=max_steps)


def compiler_options(define: Sequence[str], include: Sequence[str]) -> tuple[str, ...]:
    """`-D` and `-I` as the compiler takes them."""
    return *(f"-D{macro}" for macro in define), *(f"-I{folder}" for folder in include)


def _trace_from_catalogue(
    target: str, report: Report, size: str | None, blocks: int | None, max_steps: int | None, code: str | None
) -> Trace:
    return catalog()[target].trace(size=size, blocks=blocks, progress=report, max_steps=max_steps, code=code)


def _trace_of_project(
    name: str, report: Report, blocks: int | None, max_steps: int | None, code: str | None
) -> Trace:
    target = _of_project(name)
    assert isinstance(target, (CatalogueTarget, FileTarget))
    chosen = replace(
        target,
        blocks=blocks or target.blocks,
        max_steps=max_steps or target.max_steps,
        code=code or target.code,
    )
    return chosen.load().trace(report)


def _saved_trace(target: str, report: Report) -> Trace:
    return Trace.load(target)


TRACE = ".npz"

# TARGET's suffix -> what it is, what makes a trace of it, and the options that make sense with it.
LAUNCH = ("kernel", "grid", "block", "arg", "shared_bytes", "blocks", "max_steps")
CUDA = ("a CUDA file", _trace_of_file, (*LAUNCH, "code", "compiler", "define", "include"))
TARGETS: dict[str, tuple[str, Callable[..., Trace], tuple[str, ...]]] = {
    **dict.fromkeys(api.SOURCE_SUFFIXES, CUDA),
    ".ptx": ("a PTX file", _trace_of_file, (*LAUNCH, "code")),
    **dict.fromkeys(api.BINARY_SUFFIXES, ("a file of machine code", _trace_of_file, LAUNCH)),
    TRACE: ("a saved trace", _saved_trace, ()),
}
CATALOGUE = ("a catalogue kernel", _trace_from_catalogue, ("size", "blocks", "max_steps", "code"))
PROJECT = ("a target of a project", _trace_of_project, ("blocks", "max_steps", "code"))
ALL = {"size", "define", "include", "code", "compiler", *LAUNCH}
