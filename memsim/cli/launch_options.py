"""The TARGET that most verbs take, and the options that say how it is launched.

A TARGET is a kernel of the catalogue, a target of a project, a file with code, or a saved trace. An option
that would change nothing is refused.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from memsim.analysis import Analysis, analyze_trace
from memsim.api import loading
from memsim.arch import ARCHS
from memsim.cli.answered import may_be_given_again
from memsim.cli.options import NO_CACHE, UNTRUSTED, Option, allow_named, open_cache, path_here, with_options
from memsim.cli.output import echo_json, progress_bar, say, say_all
from memsim.errors import MemsimError
from memsim.files import file_exists
from memsim.job import Job
from memsim.kernels import catalog
from memsim.targets.cache import is_all_read, notes_of, trace_of, with_estimated_time
from memsim.targets.offers import Said
from memsim.targets.target import (
    BINARY,
    PTX,
    TARGET,
    check_keys,
    file_of,
    kind_of,
    may_be_named,
    read_job,
    split_target,
    vary,
)
from memsim.trace.trace import Trace

if TYPE_CHECKING:
    from memsim.source.expressions import Number


def integers(text: str) -> tuple[int, ...]:
    """`8`, `8,8` or `8x8`."""
    try:
        return tuple(int(item) for item in text.replace("x", ",").split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a list of integers such as 8,8") from None


def named_value(text: str) -> tuple[str, Number]:
    """`M=1024` or `alpha=0.5`."""
    from memsim.source.expressions import evaluate

    name, equals, value = text.partition("=")
    number = evaluate(value, {})
    if not equals or not name.isidentifier() or number is None:
        raise click.BadParameter(f"{text!r} is not a name and its value, such as M=1024")
    return name, number


def chip_name(text: str) -> str:
    """`sm_90`, or `sm_90|sm_80` for a sweep; `native`, as nvcc has it, is the GPU of this machine."""
    names = text.split("|")
    if "native" not in names:
        return text
    from memsim.validate.device import native_arch

    return "|".join(native_arch() if name == "native" else name for name in names)


def _takes(metavar: str, help: str, kind: object = None, **more: object) -> dict[str, object]:
    """What click needs to know of an option with a value."""
    return {"type": kind, "metavar": metavar, "help": help, **more}


_EXTENTS, _MANY = "X[,Y[,Z]]", {"multiple": True}
#: What says how a TARGET is launched: the parameters, and what click needs to know of each.
LAUNCH: dict[str, dict[str, Any]] = {
    "size": _takes("M,N,K", "Problem size of a catalogue kernel."),
    "kernel": _takes("NAME", "Kernel to analyze, if the file has several."),
    "grid": _takes(_EXTENTS, "Grid size in blocks.", integers),
    "block": _takes(_EXTENTS, "Block size in threads.", integers),
    "arg": _takes("VALUE", "A kernel argument; repeat it for each parameter, in order.", **_MANY),
    "let": _takes(
        "NAME=VALUE",
        "Value of a name that the launch in a CUDA file uses, such as --let M=1024. Repeatable.",
        named_value,
        **_MANY,
    ),
    "define": _takes(
        "NAME[=VALUE]",
        "Define a macro for the compiler, or set a parameter of a Python function. Repeatable.",
        **_MANY,
    ),
    "include": _takes("DIR", "Add a folder of headers. Repeatable.", callback=allow_named, **_MANY),
    "compiler": _takes(
        "[nvrtc|nvcc]",
        "Compiler for a CUDA file. Default: NVRTC, then nvcc.",
        click.Choice(("nvrtc", "nvcc")),
    ),
    "shared_bytes": _takes("N", "Dynamic shared memory per block in bytes.", click.IntRange(0), default=0),
    "cluster": _takes(
        _EXTENTS, "Blocks of a cluster, if the launch chooses it. Default: as compiled.", integers
    ),
    "blocks": _takes("N", "Replay only this many blocks of the grid.", click.IntRange(1)),
    "max_steps": _takes("N", "Give up on a launch after this many instructions.", click.IntRange(1)),
    "allow_out_of_bounds": {
        "is_flag": True,
        "help": "Count loads outside every array instead of failing; their values are unknown.",
    },
    "arch": _takes(
        "CHIP",
        f"Architecture to compile for, whose rules apply: {', '.join(ARCHS)}, or native, the "
        "GPU here; sm_90a: with Hopper's own instructions. Default: the one the code was compiled for; sm_90 "
        "for source code, sm_90a if it needs that.",
        chip_name,
    ),
}
LETTERS = {"define": "-D", "include": "-I"}
#: What `read_job` calls what these options say.
KEYS = {**{name: name for name in LAUNCH}, "arg": "args", "define": "options", "include": "options"}


def launch_option(name: str, *, as_text: bool = False) -> Option:
    """The option for a parameter of a launch. as_text: unread, as the text may stand for several values."""
    how = LAUNCH[name]
    if as_text:
        how = {what: value for what, value in how.items() if what != "default"}
        if how.get("type") is not chip_name:
            how.pop("type", None)
    return click.option(LETTERS.get(name, f"--{name.replace('_', '-')}"), name, **how)


#: The options that say how TARGET is launched, and `--no-cache`; and these with the argument TARGET itself.
options_of_target = with_options(*map(launch_option, LAUNCH), NO_CACHE, UNTRUSTED)
target_options = with_options(click.argument("target", callback=allow_named), options_of_target)


def launch_said(ctx: click.Context) -> dict[str, Any]:
    """What the user says of a launch, as `read_job` takes it; what is only a default is not said."""
    found: dict[str, Any] = {}
    for name in _given(ctx):
        key, value = KEYS[name], ctx.params[name]
        if key == "let":
            value = dict(value)
        if key == "options":
            value = [*found.get(key, ()), *(f"-{'D' if name == 'define' else 'I'}{text}" for text in value)]
        found[key] = value
    return found


def texts_said(ctx: click.Context) -> dict[str, Any]:
    """As `launch_said`, of options that are read as texts; those that may be repeated come last."""
    said = launch_said(ctx)
    return {key: said[key] for key in sorted(said, key=("args", "options").__contains__)}


def spell(ctx: click.Context, key: str) -> str:
    """How the user writes, or wrote, a key of `launch_said`."""
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
    project = _of_project(target) if may_be_named(target) and target not in catalog() else None
    kind, given = TARGET if project else kind_of(target), launch_said(ctx)
    if beside:
        given = {key: value for key, value in given.items() if key in kind.keys}
    if project is None:
        job = read_job(target, given, where="--arg", spell=partial(spell, ctx), verb=ctx.info_name or "")
        if is_source(target) and "args" not in given and job.args:
            shape = (("--grid", job.launch.grid), ("--block", job.launch.block))
            words = [f"{option} {','.join(map(str, extents))}" for option, extents in shape]
            words += [f"--shared-bytes {job.launch.shared_bytes}"] if job.launch.shared_bytes else []
            words += [f"--arg {shlex.quote(str(argument))}" for argument in job.args]
            say(f"note: launch taken from the source: {' '.join(words)}", err=True)
        return job
    check_keys(kind, given, partial(spell, ctx))
    return vary(project, given)


def each_launch(ctx: click.Context, target: str) -> list[tuple[str, Job | MemsimError]]:
    """The launches that a CUDA file makes, in the source's words, or why one cannot be read; none where the
    command line says more of the launch than its kernel and values of names, or TARGET is something else.

    Raises:
        MemsimError: as `read_job`.
    """
    given = launch_said(ctx)
    if not is_source(target) or {"grid", "block", "args", "shared_bytes", "cluster"} & given.keys():
        return []
    target, kernel = split_target(target)
    given = given if kernel is None else {"kernel": kernel, **given}
    from memsim.compile.cuda_source import read_launching_text
    from memsim.targets.completed import complete_launches
    from memsim.targets.offers import describe_offer

    text, spelt = read_launching_text(Path(target), given.get("options", ())), partial(spell, ctx)
    found: list[tuple[str, Job | MemsimError]] = []
    for offer, said in complete_launches(target, text, given, spelt, ctx.info_name or ""):
        job = said if isinstance(said, MemsimError) else read_job(target, said, where="--arg", spell=spelt)
        found.append((describe_offer(offer), job))
    return found


def analyze_target(
    ctx: click.Context, target: str, *, beside: bool = False, with_time: bool = False
) -> Analysis:
    """The analysis of TARGET; `beside` as in `job_of`, `with_time` as in `analysis_of`.

    Raises:
        MemsimError: as `job_of` and `analysis_of`.
    """
    return analysis_of(ctx, target, job_of(ctx, target, beside=beside), with_time=with_time)


def analysis_of(
    ctx: click.Context, target: str, job: Job, *, with_time: bool = False, apart: bool = False
) -> Analysis:
    """The analysis of TARGET, whose job this is. with_time: with the line that estimates its time. apart:
    requests are apart that another layout may tell apart.

    Raises:
        MemsimError: whatever goes wrong in the kernel.
    """
    analysis = analyze_trace(trace_of_target(ctx, target, job, apart=apart), job.arch)
    if not with_time:
        return analysis
    return with_estimated_time(analysis, job, open_cache(ctx.params.get("no_cache", False)), "quick")


def trace_of_target(ctx: click.Context, target: str, job: Job, *, apart: bool = False) -> Trace:
    """The trace of TARGET, whose job this is: the one kept, or a new one; `apart` as in `analysis_of`.

    Raises:
        MemsimError: whatever goes wrong in the kernel.
    """
    cache = open_cache(ctx.params.get("no_cache", False))
    with progress_bar(target) as report:
        trace = trace_of(job, cache, report, apart=apart, make=_tracer(ctx.params.get("jobs")))
    for note in notes_of(job, cache):
        say(f"note: {note}", err=True)
    return trace


def repeat(ctx: click.Context, job: Job) -> None:
    """The answer about a job may be given again, if memsim itself reads all that decides it."""
    if is_all_read(job, open_cache(ctx.params.get("no_cache", False))):
        may_be_given_again()


def _tracer(jobs: int | None) -> Callable[..., Trace] | None:
    """What makes a trace in so many processes; None: this one."""
    if jobs in (None, 1):
        return None
    from memsim.api.launch_parts import trace_shared

    return partial(trace_shared, parts=jobs, jobs=jobs, tell=say_undivided)


def say_undivided(why: str) -> None:
    """Says that one process counts a launch, although several were asked for."""
    say(f"note: one process counts all blocks: {why}", err=True)


def asks_what_there_is(ctx: click.Context, target: str) -> bool:
    """Whether TARGET is CUDA source, PTX or machine code, nothing is said of a launch, and it does not itself
    state the one that can be meant.
    """
    given = launch_said(ctx)
    if split_target(target)[1] or not has_kernels(target) or given.keys() - {"options", "compiler", "arch"}:
        return False
    return not is_source(target) or not _states_its_launch(target, given)


def _states_its_launch(target: str, given: Said) -> bool:
    """Whether a CUDA source has one kernel and one launch of it, of which all is known."""
    from memsim.compile.cuda_source import read_launching_text
    from memsim.targets.completed import complete_launch

    try:
        text = read_launching_text(Path(target), given.get("options", ()))
        return "grid" in complete_launch(target, text, given)
    except MemsimError:
        return False


def is_source(target: str) -> bool:
    """Whether TARGET is a file of CUDA source that there is, or a kernel in one."""
    file = Path(file_of(target))
    return file.suffix in loading.SOURCE_SUFFIXES and file_exists(file)


def has_kernels(target: str) -> bool:
    """Whether TARGET is a file that there is, of source, PTX or machine code, and no target of a project."""
    if kind_of(target) not in (PTX, BINARY):
        return is_source(target)
    return file_exists(Path(target)) and not (may_be_named(target) and _of_project(target))


def echo_offers(target: str, options: Sequence[str] = (), *, as_json: bool = False) -> None:
    """Prints the kernels of a source, of PTX, or of machine code, each with a command line.

    options: for the compiler, which the command lines repeat.

    Raises:
        MemsimError: it has none, or the compiler refuses what cannot be read as one.
    """
    from memsim.targets import offers

    if kind_of(target) in (PTX, BINARY):
        found = offers.listed_code(target)
    else:
        from memsim.compile.cuda_source import read_launching_text

        text = read_launching_text(Path(target), options)
        found = offers.listed_kernels(target, text, options)
        if not found and re.search("__global__|<<<", text):  # a macro defines them, or the code is wrong
            found = offers.listed_code(target, options)
    if not found:
        hint = "a kernel is a __global__ function, in the file or in a header that -I leads to"
        raise MemsimError("no kernel was found in it", file=target, hint=hint)
    if as_json:
        echo_json(offers.KernelsDocument(kernels=tuple(found)))
    else:
        say_all("\n".join(line for one in found for line in one.lines))


def _of_project(name: str) -> Job | None:
    """The target of that name in the project that holds here; None if there is none."""
    from memsim.targets.project import read_project

    path = path_here()
    if path is None:
        return None
    project = read_project(path)
    program = next((one for one in project.programs if one.name == name), None)
    if program is not None:
        hint = f"memsim exec --analyze -- {program}; with --record FOLDER every verb takes its launches"
        raise MemsimError(f"{name} is a program", hint=hint)
    return next((job for job in project.targets if job.name == name), None)
