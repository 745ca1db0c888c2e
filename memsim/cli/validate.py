"""`memsim validate`: predictions beside hardware counters: live, recorded, or in a report of the user's; and
`memsim probe --export`: the program of one file that measures a GPU which nobody measured.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click

from memsim.analysis import analyze_trace
from memsim.api.running import trace_job
from memsim.cli.launch_options import LAUNCH, job_of, launch_option, launch_said, spell
from memsim.cli.options import JSON, file_option, folder_of_recordings, recording_options, with_options
from memsim.cli.output import echo_json, progress_bar, say, say_all, say_written
from memsim.errors import MemsimError
from memsim.files import write_text
from memsim.job import Job
from memsim.kernels import Spec, catalog
from memsim.targets.target import PYTHON, SAVED, kind_of, read_job
from memsim.validate import by_instruction
from memsim.validate.by_instruction import ComparedKernel
from memsim.validate.code_recording import (
    RECORD_ALL,
    CodeRecording,
    new_code_path,
    newest_code,
    newest_code_of_each,
    replay,
    size_of,
)
from memsim.validate.compare_instructions import CodeComparison, compare_code
from memsim.validate.device import program_text
from memsim.validate.live import measure, profiles_in, recorded_name
from memsim.validate.profiles import CodeProfile

FAILED, MISSING = 1, 2
REFUSED = {"blocks": "a GPU always runs all blocks", "max_steps": "recorded launches ran to their end"}


@dataclass
class Found:
    """What was compared; `stale`: what has changed since it was recorded."""

    compared: list[tuple[ComparedKernel, CodeComparison]] = field(default_factory=list)
    stale: list[MemsimError] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether everything is as predicted."""
        return all(by_instruction.is_as_predicted(comparison) for _, comparison in self.compared)


@click.command()
@click.argument("target", required=False)
@click.option("--all", "everything", is_flag=True, help="Validate every kernel of the catalogue.")
@click.option(
    "--instructions", "whole", is_flag=True, help="Show every instruction, including those that agree."
)
@file_option(
    *("--ncu-rep", "reports"),
    multiple=True,
    help="Compare with this Nsight Compute report. Repeatable, to add counters another report lacks.",
)
@with_options(*(launch_option(name) for name in LAUNCH if name != "arch"))
@recording_options
@click.pass_context
def validate(
    ctx: click.Context,
    /,
    target: str | None,
    everything: bool,
    whole: bool,
    reports: tuple[Path, ...],
    live: bool,
    record: bool,
    gpu: str | None,
    as_json: bool,
    traces: Path | None,
    size: str | None,
    **launch: object,
) -> None:
    """Compares memsim's predictions for TARGET with a GPU's counters.

    TARGET is a kernel from `memsim list`, or a .cu, .ptx or binary file; a file also needs --grid,
    --block and one --arg per kernel parameter. Without --live, a catalogue kernel is compared with its
    newest recording, which needs no GPU. '--size ragged' selects a size that no tile divides.

    --live runs the analyzed machine code on the same data under Nsight Compute; it needs a GPU, CuPy and
    ncu. It compares every memory instruction, matched by its address in the code, and the counters of
    the launch. --ncu-rep compares with an existing report; reading it needs ncu_report (pip install
    ncu-report).

    Exit code 1 if there is an unexplained difference.

    \b
    Examples:
      memsim validate kernel_v4
      memsim validate kernel_v4 --live --size 512,512,256
      memsim validate scale.cu --grid 8 --block 128 --arg 'f32[1024]' --arg 2.0 --live
      memsim validate scale.cubin --grid 8 --block 128 --arg 'f32[1024]' --arg 2.0 --ncu-rep run.ncu-rep
      memsim validate --all --live --record
    """
    if everything == (target is not None):
        raise click.UsageError("name one kernel or file, or give --all", ctx)
    folder = folder_of_recordings(ctx, live, record, gpu, traces)
    if reports and (live or gpu or everything):
        raise click.UsageError("--ncu-rep takes one target and replaces --live and recordings", ctx)
    measures = live or bool(reports)
    for key, why in REFUSED.items():
        if key in launch_said(ctx):
            raise click.UsageError(f"{spell(ctx, key)} does not apply here: {why}", ctx)
    if target is not None and kind_of(target) in (SAVED, PYTHON):
        raise click.UsageError(f"{kind_of(target).what} cannot be run", ctx)
    jobs = [_job(ctx, name, size) for name in ([target] if target else catalog())]
    if not measures and not isinstance(jobs[0].kernel, Spec):
        raise click.UsageError(
            f"there are no recordings of files: give --live or --ncu-rep with {target}", ctx
        )

    if measures:
        found = _measured(jobs, reports, folder if record else None)
    elif target is not None:
        spec, size_asked = jobs[0].kernel, tuple(jobs[0].size.values())
        assert isinstance(spec, Spec)  # as was just checked
        recording = newest_code(folder, spec, size_asked, gpu)
        found = Found([(_subject(recording), replay(recording))])
    else:
        found = _recorded(folder, size, gpu)
    _show(found, as_json, everything, whole)
    if found.stale:
        ctx.exit(MISSING)
    ctx.exit(0 if found.passed else FAILED)


def _job(ctx: click.Context, target: str, size: str | None) -> Job:
    """What to run or to look for; of a kernel of the catalogue at the size that it is validated at."""
    if target not in catalog():
        return job_of(ctx, target)
    extents = size_of(catalog()[target], size)
    return read_job(target, {**launch_said(ctx), "size": extents}, spell=partial(spell, ctx))


def _measured(jobs: Sequence[Job], reports: Sequence[Path], folder: Path | None) -> Found:
    """Measures now, or reads reports; keeps recordings in `folder`, if there is one."""
    recordings = None if reports else _measure(jobs, folder)
    found = Found()
    for number, job in enumerate(jobs):
        with progress_bar(recorded_name(job)) as report:
            trace = trace_job(job, report)
        if recordings is None:
            profiles: Sequence[CodeProfile] = profiles_in(reports, job)
            title = f"{recorded_name(job)} {','.join(map(str, job.size.values()))}".rstrip()
            subject = ComparedKernel(title, f"the GPU of {' and '.join(path.name for path in reports)}")
        else:
            profiles = recordings[number].profiles
            subject = _subject(recordings[number])
        found.compared.append((subject, compare_code(profiles, analyze_trace(trace, job.arch))))
    return found


def _measure(jobs: Sequence[Job], folder: Path | None) -> list[CodeRecording]:
    """Measures now; keeps recordings in `folder`, if there is one."""
    with progress_bar("measuring") as report:
        recordings = measure(jobs, report)
    wrong = [one.name for one in recordings if one.result is not None and not one.result.right]
    if wrong:
        raise MemsimError(
            f"the kernel computed a wrong result on this GPU: {', '.join(wrong)}",
            hint="nothing was recorded",
            exit_code=FAILED,
        )
    for job, recording in zip(jobs, recordings, strict=True):
        if folder is not None:
            default = tuple(job.kernel.family.sizes.values()) if isinstance(job.kernel, Spec) else ()
            path = new_code_path(folder, recording, default)
            recording.save(path)
            say(f"recorded: {path}", err=True)
    return recordings


def _recorded(folder: Path, size: str | None, gpu: str | None) -> Found:
    """The newest recording of everything."""
    recordings = [
        recording
        for recording in newest_code_of_each(folder, gpu)
        if size is None or recording.extents == size_of(catalog()[recording.name], size)
    ]
    if not recordings:
        raise MemsimError(f"no kernel is recorded at {size}", hint=f"{RECORD_ALL} --size {size} records all")
    found = Found()
    for recording in recordings:
        try:
            found.compared.append((_subject(recording), replay(recording)))
        except MemsimError as error:
            found.stale.append(error)
    return found


def _subject(recording: CodeRecording) -> ComparedKernel:
    device, result = recording.device, recording.result
    made = f", made by {recording.code.compiler}" if recording.code.compiler else ""
    notes = [
        f"Recorded {recording.date} on {device.gpu} (driver {device.driver}, CUDA {device.cuda}, "
        f"Nsight Compute {recording.ncu}): machine code of {recording.code.arch}{made}, "
        f"SHA-256 {recording.code.digest[:12]}."
    ]
    if result is not None:
        notes.append(f"Result: right; largest error {result.largest_error:.3g} against {result.reference}.")
    return ComparedKernel(recording.title, device.gpu, tuple(notes))


def _show(found: Found, as_json: bool, everything: bool, whole: bool) -> None:
    """One comparison in full; of everything, a line for each and the sums."""
    for error in found.stale:
        say_all(f"error: {error}", err=True)
    if as_json:
        records = [by_instruction.to_dict(*pair) for pair in found.compared]
        echo_json(records if everything else records[0])
    elif not everything:
        for subject, comparison in found.compared:
            by_instruction.write(subject, comparison, sys.stdout, whole)
    elif found.compared:
        for subject, comparison in found.compared:
            say(by_instruction.headline(subject, comparison))
        say(by_instruction.summary([comparison for _, comparison in found.compared]))


@click.command()
@file_option(
    "--export",
    required=True,
    help="Write a Python program that measures by cycles, and needs only NVIDIA's driver.",
)
@JSON
def probe(export: Path, as_json: bool) -> None:
    """Writes a program that measures what the model's rules are about, on any GPU.

    The program is one file, and needs Python and NVIDIA's driver, not even memsim. It repeats an
    instruction in all warps and reads the clock, so it needs no profiler. What it writes is compared with
    the rules by `python -m lab clock RECORDING`, in memsim's repository; please contribute it.
    """
    write_text(export, program_text(), "the program")
    say_written(f"written: {export}; on the GPU's machine: python3 {export.name}", [export], as_json=as_json)
