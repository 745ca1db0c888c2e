"""`memsim suggest`: changes that remove bank conflicts and needless sectors, proven by replay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from memsim.cli.launch_options import analysis_of, job_of, repeat, target_options
from memsim.cli.options import JSON
from memsim.cli.output import echo_json, progress_bar, say, say_all, say_code
from memsim.errors import MemsimError
from memsim.estimated_time import time_change
from memsim.files import write_text
from memsim.job import Job
from memsim.kernels import Spec
from memsim.suggest import landing
from memsim.suggest.edit import Edit
from memsim.suggest.other_values import OtherValue, at_other_values, edit_with_assertions, knobs_of_edit
from memsim.suggest.prove import Proof, differing_results, edit_job, has_source, rounding_between
from memsim.suggest.suggestions import Suggestions
from memsim.suggest.suggestions import suggest as find
from memsim.suggest.threads import Remapped
from memsim.validate.live import holds, render, to_dict
from memsim.validate.live import verify as measure_both
from memsim.views.suggest import terminal

IDENTICAL = "bit-for-bit identical"


@click.command()
@target_options
@click.option(
    "--array", "arrays", multiple=True, metavar="NAME", help="Consider only this shared array. Repeatable."
)
@click.option(
    "--take",
    multiple=True,
    type=click.IntRange(1),
    metavar="N",
    help="Prove (and apply) the proposal with this number. Repeatable. Default: the best one for each array.",
)
@click.option(
    "--first",
    is_flag=True,
    help="Compile the layouts that are forecast best, and other changes only if these are not worth an edit.",
)
@click.option(
    "--run",
    is_flag=True,
    help="Run the kernel before and after the change, at other sizes too, and compare the results.",
)
@click.option(
    "--verify", is_flag=True, help="Measure both versions on this machine's GPU with Nsight Compute."
)
@click.option("--apply", is_flag=True, help="Write the change to the .cu file if the results stay the same.")
@click.option(
    "--patch",
    "patch_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the change as a patch for git apply; as suggestions for a GitHub review if FILE is .md.",
)
@click.option(
    "--branch", metavar="NAME", help="Commit the change to a new branch; your files stay as they are."
)
@JSON
@click.pass_context
def suggest(
    ctx: click.Context,
    /,
    target: str,
    arrays: tuple[str, ...],
    take: tuple[int, ...],
    first: bool,
    run: bool,
    verify: bool,
    apply: bool,
    patch_file: Path | None,
    branch: str | None,
    as_json: bool,
    **_: object,
) -> None:
    """Proposes layout changes that remove bank conflicts, and proves them by replay.

    Tries paddings and XOR swizzles of each shared array on the requests the kernel makes, all stores
    and loads of the array together. The best of each become source edits, which are compiled and
    replayed, and their counts are shown next to the forecast. Your file is not changed unless you give
    --apply: then both versions run on the same arguments, at other values of the constants that the edit
    touches too, and the edit is written only if every array is bit-for-bit identical. A change that is
    estimated slower, or not worth an edit, is written only with --take. Also considers
    remapping threads, wider global accesses, staging through shared memory, and structures of arrays.

    TARGET and its options are the same as for `memsim analyze`.

    \b
    Examples:
      memsim suggest kernel_v4_colmajor
      memsim suggest transpose_naive --take 2
      memsim suggest my.cu --grid 8 --block 256 --arg 'f32[4096]' --array tile --apply
      memsim suggest my.cu --patch cure.patch && git apply cure.patch
    """
    job = job_of(ctx, target)
    lands = apply or patch_file is not None or branch is not None
    if lands:
        _refuse_to_apply(target, job)
    found = find(analysis_of(ctx, target, job, with_time=True, apart=True), job, arrays, take, first)
    measured = None
    if verify and found.taken is not None:
        with progress_bar("measuring") as report:
            measured = measure_both(job, found.analysis, found.taken.job, found.taken.analysis, report)
    if as_json:
        echo_json(found.to_dict() | ({} if measured is None else {"verified": to_dict(measured)}))
    else:
        say_all(terminal.render(found))
        if measured is not None:
            say_all("\n" + render(measured))
    if not (run or verify or lands):
        repeat(ctx, job)
        return
    if found.taken is None:
        raise MemsimError(
            "there is no proven change to apply or run", hint=found.unproven or None, exit_code=1
        )
    if measured is not None and not holds(measured):
        raise MemsimError("the GPU's counters differ from the prediction", exit_code=1)
    if lands and not take:
        _refuse_what_gains_nothing(found)
    if lands:
        _refuse_callers_by_name(found.taken)
    if run or lands:
        edit, tried, results = _run(found.taken, job, as_json)
    if not lands:
        return
    if results != IDENTICAL and not take:
        raise _not_written(f"results are {results}", f"{terminal.take_words(found)} writes it all the same")
    _refuse_another_launch(found.taken, job)
    name = terminal.name_of(found.taken)
    message = landing.commit_message(found.analysis, found.taken, tried, name, results)
    say(err=as_json)
    path = landing.path_of(job, edit)
    if patch_file is not None:
        write = landing.review if patch_file.suffix == ".md" else landing.patch
        write_text(patch_file, write(path, edit, message), "the patch")
        say(f"Written: {patch_file}", err=as_json)
    if branch is not None:
        commit = landing.branch(path, edit, branch, message)
        say(f"Committed: {commit[:10]} on {branch}", err=as_json)
    if apply:
        landing.apply(path, edit)
        say_code(edit.diff.removesuffix("\n"), err=as_json)
        say(f"Written: {path}", err=as_json)


def _not_written(why: str, hint: str) -> MemsimError:
    return MemsimError(f"nothing is written: {why}", hint=hint, exit_code=1)


def _refuse_what_gains_nothing(found: Suggestions) -> None:
    """A change that is not worth an edit, or asks something of the caller, needs its number to be written."""
    gain, taken = found.verdict, found.taken
    numbers = terminal.take_words(found)
    if taken is not None and taken.asks:
        raise _not_written(
            f"the caller would have to keep {'; '.join(each.told for each in taken.asks)}",
            f"{numbers} writes it; calls of the kernel do not compile until they are changed, too",
        )
    if gain is not None and not found.pays:
        change = time_change(*found.times)
        why = f"the best change is {gain.value}{f' ({change})' if change else ''}"
        raise _not_written(why, f"{numbers} writes it all the same")


def _refuse_callers_by_name(taken: Proof | Remapped) -> None:
    """Who calls a kernel with another parameter is told by a compiler or linker, but not of `extern "C"`."""
    if taken.asks and not taken.job.loaded.name.startswith("_Z"):
        raise _not_written(
            f'{taken.job.loaded.title} is extern "C", and who calls it by that name would still give its '
            "arrays as they were",
            "change the kernel and its callers together, by hand",
        )


def _refuse_another_launch(taken: Proof | Remapped, job: Job) -> None:
    """A file that needs another launch than it has would be broken by the change."""
    if taken.job.launch != job.launch and not taken.edit.brings_launch:
        raise MemsimError(
            f"the changed kernel needs a launch with {taken.job.launch.shared_bytes:,} B of dynamic shared "
            "memory",
            hint="change the kernel and its launch together, by hand",
        )


def _run(taken: Proof | Remapped, job: Job, as_json: bool) -> tuple[Edit, list[OtherValue], str]:
    """Say that results are the same, here and at other values of what the edit touches.

    Where they are so but for how they are rounded, all that follows is compared without that difference.
    Returns the edit, with an assertion for each constant that has values for which it is wrong, what was
    tried, and in which sense the results are the same.
    """
    with progress_bar("running both") as report:
        differ = differing_results(job, taken.job, report, taken.asks)
    rounded = (
        rounding_between(job, taken.job, differ, taken.asks, reorders=taken.reorders) if differ else None
    )
    results = IDENTICAL if rounded is None else rounded.told
    if rounded is not None:
        job, taken = rounded.before, replace(taken, job=rounded.after)
    elif differ:
        raise MemsimError(
            f"the changed kernel computes something else: {', '.join(differ)} came out different",
            file=job.kernel.file,
            hint="some accesses do not index the array directly, so the edit missed them",
            exit_code=1,
        )
    where = ", in the layout that the caller has to keep" if taken.asks else ""
    say(f"Ran both versions on the same arguments: every array is {results}{where}.", err=as_json)
    tried = []
    for each in at_other_values(job, taken):
        outcome = each.outcome or "not judged, as it does not run as it was"
        say(f"{each.name} = {each.value}: {outcome}", err=as_json)
        tried.append(each)
    names = knobs_of_edit(job, taken.edit)
    safe = edit_with_assertions(taken.edit, tried, names)
    if safe is None:
        now = ", ".join(f"{each.name} = {each.value}" for each in names if not each.is_constant)
        raise MemsimError(
            f"the change is right only for {now}, which the compiler does not know",
            file=job.kernel.file,
            hint="--take another proposal, or make the change by hand where no other value can occur",
            exit_code=1,
        )
    for condition in safe.conditions[len(taken.edit.conditions) :]:
        say(f"The change asserts what it is for: {condition}", err=as_json)
    if safe is not taken.edit and differing_results(job, edit_job(job, safe, taken.job), asks=taken.asks):
        raise MemsimError("the change with its assertions computes something else", exit_code=1)
    return safe, tried, results


def _refuse_to_apply(target: str, job: Job) -> None:
    if isinstance(job.kernel, Spec):
        raise MemsimError(
            f"{target} ships with memsim; only your own source is edited",
            hint="without --apply, --patch and --branch you see the change and its proof",
        )
    if not has_source(job):
        raise MemsimError(f"CUDA source is edited, and {target} is not CUDA source")
