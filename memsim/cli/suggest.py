"""`memsim suggest`: a change of the layout that removes bank conflicts, proven by replay."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from memsim import api
from memsim.analysis import Analysis, analyze_trace
from memsim.cli.progress import progress_bar
from memsim.cli.target import job_of, target_options
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.kernels import Spec
from memsim.report import suggestions as text
from memsim.suggest.edit import Edit
from memsim.suggest.prove import Proof, differing_results, source_of
from memsim.suggest.roles import Exchange
from memsim.suggest.suggestions import suggest as find
from memsim.trace.source import TraceSource


@click.command()
@target_options
@click.option("--array", "arrays", multiple=True, metavar="NAME", help="Only this shared array; repeatable.")
@click.option(
    "--take",
    multiple=True,
    type=click.IntRange(1),
    metavar="N",
    help="Prove (and apply) the proposal with this number; repeatable. Default: the best of each array.",
)
@click.option("--run", is_flag=True, help="Run the kernel before and after the change, and compare results.")
@click.option("--apply", is_flag=True, help="Write the change to the .cu file, if results stay the same.")
@click.option("--json", "as_json", is_flag=True, help="Print the same records as JSON.")
@click.pass_context
def suggest(
    ctx: click.Context,
    /,
    target: str,
    arrays: tuple[str, ...],
    take: tuple[int, ...],
    run: bool,
    apply: bool,
    as_json: bool,
    **launch: Any,
) -> None:
    """Finds a change of the layout that removes bank conflicts, and proves it by replay.

    Paddings and XOR swizzles of each shared array are counted on the requests that the kernel makes, all
    stores and loads of the array together. The best is made an edit of the source; the edited source is
    compiled and replayed, and what it counts is shown beside the forecast. The file stays as it is, unless
    --apply is given: then both versions run on the same arguments, and the change is written if every array
    comes out the same, bit for bit.

    TARGET and its options are those of `memsim analyze`.

    \b
    Examples:
      memsim suggest kernel_v4_colmajor
      memsim suggest transpose_naive --take 2
      memsim suggest my.cu --grid 8 --block 256 --arg 'f32[4096]' --array tile --apply
    """
    given = job_of(ctx, target)
    job = None if isinstance(given.kernel, TraceSource) else given  # of a trace there is nothing to compile
    if apply:
        _refuse_to_apply(target, job)
    found = find(_analysis(target, given), job, arrays, take)
    click.echo(json.dumps(found.to_dict(), indent=2) if as_json else text.render(found))
    if not (run or apply):
        return
    if found.taken is None or job is None:
        raise MemsimError("there is no proven change to run", hint=found.unproven or None, exit_code=1)
    _run(found.taken, job, as_json)
    if apply:
        _refuse_another_launch(found.taken, job)
        path = job.kernel.folder / job.kernel.file
        _write(path, found.taken.edit)
        click.echo("", err=as_json)
        click.echo(found.taken.edit.diff, nl=False, err=as_json)
        click.echo(f"Written: {path}", err=as_json)


def _refuse_another_launch(taken: Proof | Exchange, job: Job) -> None:
    """A file that needs another launch than it has would be broken by the change.

    Raises:
        MemsimError: the change needs another block.
    """
    if taken.job.launch != job.launch:
        x, y, z = taken.job.launch.block
        raise MemsimError(
            f"the changed kernel needs another launch: a block of {x} x {y} x {z} and "
            f"{taken.job.launch.shared_bytes:,} B of dynamic shared memory",
            hint="change the kernel and its launch together, by hand",
        )


def _run(taken: Proof | Exchange, job: Job, as_json: bool) -> None:
    """Say that results are the same.

    Raises:
        MemsimError: they are not.
    """
    with progress_bar("running both") as report:
        differ = differing_results(job, taken.job, report)
    if differ:
        raise MemsimError(
            f"the changed kernel computes something else: {', '.join(differ)} came out different",
            file=job.kernel.file,
            hint="some access of the array is not spelled out by its indices; change it by hand",
            exit_code=1,
        )
    said = "Run before and after on the same arguments: every array comes out the same, bit for bit."
    click.echo(said, err=as_json)


def _write(path: Path, edit: Edit) -> None:
    """The edited text into the file, at once or not at all.

    Raises:
        MemsimError: the file has changed meanwhile, or cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        if path.read_text(encoding="utf-8") != edit.text:
            raise MemsimError("the file has changed meanwhile", file=str(path), hint="run it again")
        temporary.write_text(edit.new, encoding="utf-8")
        temporary.chmod(path.stat().st_mode)
        temporary.replace(path)
    except OSError as error:
        raise MemsimError(f"cannot write it: {error.strerror}", file=str(path)) from None
    finally:
        temporary.unlink(missing_ok=True)


def _refuse_to_apply(target: str, job: Job | None) -> None:
    """What --apply cannot change.

    Raises:
        MemsimError: TARGET is no source of the user's.
    """
    if job is not None and isinstance(job.kernel, Spec):
        raise MemsimError(
            f"{target} ships with memsim, and --apply changes your own source",
            hint="without --apply the change is shown, and proven",
        )
    if job is None or source_of(job) is None:
        raise MemsimError(f"--apply changes a CUDA source, and {target} is none")


def _analysis(target: str, job: Job) -> Analysis:
    """The launch as it is, with requests apart that another layout may tell apart."""
    with progress_bar(target) as report:
        return analyze_trace(api.trace_job(job, report, apart=True), job.arch)
