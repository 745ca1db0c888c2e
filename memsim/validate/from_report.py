"""Finds a launch in the user's ncu reports: by name and shape, and checked by its instructions.

Reports do not contain arguments, so these cannot be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memsim.errors import MemsimError
from memsim.job import Job
from memsim.names.demangle import demangle
from memsim.validate.live import command_line, machine_of, opcodes
from memsim.validate.profiler import read_code_report
from memsim.validate.profiles import CodeProfile


def profiles_in(paths: Sequence[Path], job: Job) -> list[CodeProfile]:
    """The profiles of the launch in the reports; the first has metrics of instructions, if any has.

    Of several matching launches the first in each report is used.

    Raises:
        MemsimError: a report cannot be read, has no such launch, or is of other code.
    """
    profiles = [_profile_in(path, job) for path in paths]
    profiles.sort(key=lambda profile: not profile.figures)
    if not any(profile.counters or profile.figures for profile in profiles):
        raise MemsimError(
            "the reports have no metric that memsim predicts",
            file=str(paths[0]),
            hint=f"{command_line()} measures it",
        )
    return profiles


def _profile_in(path: Path, job: Job) -> CodeProfile:
    found = read_code_report(path)
    machine, shape = machine_of(job), job.launch
    named = [profile for profile in found if profile.kernel == machine.name]
    if not named:
        there = ", ".join(dict.fromkeys(demangle(profile.kernel) for profile in found))
        raise MemsimError(
            f"there is no launch of {demangle(machine.name)} in the report",
            file=str(path),
            hint=f"it has {there}" if there else "it has no launches",
        )
    fitting = [
        profile
        for profile in named
        if profile.grid in (None, shape.grid) and profile.block in (None, shape.block)
    ]
    if not fitting:
        there = ", ".join(dict.fromkeys(f"--grid {_by(p.grid)} --block {_by(p.block)}" for p in named))
        raise MemsimError(
            f"no launch of {demangle(machine.name)} in the report has grid {_by(shape.grid)} and block "
            f"{_by(shape.block)}",
            file=str(path),
            hint=f"it has {there}",
        )
    first = fitting[0]
    if not first.figures:
        return first
    aligned = first.starting_at(opcodes(machine))
    if aligned is None:
        raise MemsimError(
            f"{demangle(machine.name)} has other machine code in the report",
            file=str(path),
            hint="pass the cubin or executable that ran; another compiler generates other code",
        )
    return aligned


def _by(shape: Sequence[int] | None) -> str:
    return ",".join(map(str, shape or ()))
