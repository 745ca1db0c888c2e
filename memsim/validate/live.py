"""Measures launches of machine code with Nsight Compute on this machine's GPU, or finds them in reports; and
measures a suggested change, the original and the changed kernel.

The cubin that was analyzed is run as it is. The profiler runs the launches several times: the first run
collects the metrics of all instructions and all counters, in several passes over each kernel. Then, for each
kind of shared access in a kernel, one run collects the counters that must come from the same pass, because
arbitration differs between passes.

In a report, a launch is found by name and shape, and checked by its instructions. Reports do not contain
arguments, so these cannot be compared.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import msgspec

from memsim.analysis import Analysis
from memsim.argument_types import ArrayArg, Texture
from memsim.arguments import describe
from memsim.document import JsonObject, plain
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.kernels import Spec
from memsim.model.counters import COUNTERS
from memsim.names.demangle import demangle, plain_name
from memsim.sass.machine_code import MachineKernel, read_module
from memsim.suggest.suggestions_document import VerifiedCounter, VerifiedPart
from memsim.validate.by_instruction import ComparedKernel, headline, is_as_predicted
from memsim.validate.code_recording import CodeLaunchRecord, CodeOrigin, CodeRecording, ResultCheck
from memsim.validate.compare_instructions import CodeComparison, MetricComparison, compare_code
from memsim.validate.device import Device, check_chip, now, this_device
from memsim.validate.profiler import (
    LaunchCounter,
    Profiler,
    Progress,
    find_profiler,
    read_code_report,
    run_under_ncu,
)
from memsim.validate.profiles import CONFLICTS, ONE_PASS, WAVEFRONTS, CodeProfile
from memsim.validate.run_cubin import PLAN, Step, pack
from memsim.views.screen import Column, Row, lines_of_table

PROGRAM = "memsim.validate.run_cubin"

_GLOBAL = "pipe_lsu_mem_global_op"
EVERYTHING = (
    *dict.fromkeys(metric for metrics in ONE_PASS.values() for metric in metrics),
    f"{CONFLICTS}_op_ldgsts.sum",  # with arbitration it takes two passes, which proves nothing
    *(f"l1tex__t_requests_{_GLOBAL}_{op}.sum" for op in ("ld", "st", "atom", "red")),
    *(f"l1tex__t_sectors_{_GLOBAL}_{op}.sum" for op in ("ld", "st", "atom", "red")),
    f"l1tex__t_set_accesses_{_GLOBAL}_ld.sum",
    # Not modelled; recorded for future rules.
    f"{WAVEFRONTS}.sum",
    *(f"l1tex__t_output_wavefronts_{_GLOBAL}_{op}.sum" for op in ("ld", "st")),
    f"l1tex__t_sectors_{_GLOBAL}_ld_lookup_hit.sum",
    "idc__requests.sum",
    "smsp__inst_executed_op_ldc.sum",
    "smsp__inst_executed.sum",
    "gpu__time_duration.sum",
)
#: Counters of wgmma, of copies by TMA, of distributed shared memory, and in clusters of generic accesses.
OF_HOPPER = tuple(counter.metric for counter in COUNTERS if counter.seldom)
ASYNCHRONOUS = frozenset(("async_store", "async_reduction"))
SECTION = ("--section", "SourceCounters")
SHOWN_BYTES = 32  # of a struct given as bytes


def recorded_name(job: Job) -> str:
    """The kernel's name in the catalogue, or its own, made valid as a file name."""
    if isinstance(job.kernel, Spec):
        return job.kernel.name
    return re.sub(r"\W+", "_", plain_name(demangle(job.loaded.name)))


def opcodes(machine: MachineKernel) -> dict[int, str]:
    """The opcode of each instruction, without modifiers, by address."""
    return {op.address: op.form.opcode for op in machine.program.ops}


def command_line() -> str:
    """The ncu command that collects what memsim compares."""
    return f"ncu {' '.join(SECTION)} --metrics {','.join(EVERYTHING)}"


def measure(jobs: Sequence[Job], progress: Progress = None) -> list[CodeRecording]:
    """Run and measure jobs; recordings in the same order, whether their results are right or wrong.

    Raises:
        MemsimError: CuPy, driver, GPU, ncu, its reader or permission missing; a kernel that fails.
    """
    machines = [job.loaded.machine for job in jobs]
    device, profiler = this_device(), find_profiler()
    check_chip(device)
    counter = LaunchCounter(len(jobs) * (1 + len(ONE_PASS)), progress)

    needs_hopper = any(one.image.cluster is not None for one in machines) or any(
        op.is_product or op.is_bulk or not ASYNCHRONOUS.isdisjoint(op.accesses)
        for one in machines
        for op in one.program.ops
    )
    metrics = (*EVERYTHING, *OF_HOPPER) if needs_hopper else EVERYTHING
    results, first = run_jobs(profiler, jobs, (*SECTION, *_asked(metrics)), counter)
    profiles = [[_aligned(*pair)] for pair in zip(machines, first, strict=True)]
    for accesses, metrics in ONE_PASS.items():
        users = [i for i, found in enumerate(first) if found.accesses & set(accesses)]
        if users:
            _, more = run_jobs(profiler, [jobs[i] for i in users], _asked(metrics), counter)
            for i, found in zip(users, more, strict=True):
                profiles[i].append(found)

    date = now()
    return [
        _recording(job, device, profiler, date, result, measured)
        for job, result, measured in zip(jobs, results, profiles, strict=True)
    ]


def _aligned(machine: MachineKernel, found: CodeProfile) -> CodeProfile:
    profile = found.starting_at(opcodes(machine))
    if profile is None:
        raise MemsimError(f"ncu shows other instructions for {machine.name} than the cubin that ran has")
    return profile


def run_jobs(
    profiler: Profiler,
    jobs: Sequence[Job],
    what: Sequence[str],
    counter: LaunchCounter,
    also: Sequence[str] = (),
) -> tuple[list[JsonObject | None], list[CodeProfile]]:
    """One run of the profiler over `jobs`: the program's output for each, and ncu's measurements.

    what: options that say what is collected. also: counters that are read, too.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        steps = [asdict(step_of(job, number, folder)) for number, job in enumerate(jobs)]
        (folder / PLAN).write_text(json.dumps(steps), "utf-8")
        kernels = [job.loaded.name for job in jobs]
        return run_under_ncu(profiler, PROGRAM, folder, kernels, what, counter, also)


def step_of(job: Job, number: int, folder: Path) -> Step:
    """The job in the form of the program's input; its cubin is in `folder`."""
    cubin = f"{number}.cubin"
    (folder / cubin).write_bytes(job.loaded.machine.module.content)
    shape = job.launch
    return Step(
        cubin=cubin,
        kernel=job.loaded.name,
        grid=shape.grid,
        block=shape.block,
        shared_bytes=shape.shared_bytes,
        args=tuple(pack(job.values, folder / str(number))),
        cluster=_chosen_cluster(job),
        catalogue=job.kernel.name if isinstance(job.kernel, Spec) else "",
        size=tuple(job.size.values()),
    )


def _chosen_cluster(job: Job) -> tuple[int, ...] | None:
    """The blocks of a cluster where the launch chooses them; None if the code does, or there are none."""
    machine = job.loaded.machine
    cluster = job.launch.cluster or machine.image.cluster
    stated = read_module(machine.module.content).kernels[machine.name].image.cluster
    return None if cluster == stated else cluster


def _recording(
    job: Job,
    device: Device,
    profiler: Profiler,
    date: str,
    result: JsonObject | None,
    profiles: Sequence[CodeProfile],
) -> CodeRecording:
    origin, shape = job.loaded.origin, job.launch
    return CodeRecording(
        name=recorded_name(job),
        size=dict(job.size) or None,
        device=device,
        ncu=profiler.version,
        date=date,
        code=CodeOrigin(origin.compiler, origin.arch, origin.digest),
        launch=CodeLaunchRecord(
            kernel=job.loaded.name,
            grid=shape.grid,
            block=shape.block,
            shared_bytes=shape.shared_bytes,
            arguments=tuple(map(in_words, job.values)),
        ),
        result=None if result is None else ResultCheck(**result),
        profiles=tuple(profiles),
    )


def _asked(metrics: Sequence[str]) -> tuple[str, str]:
    return "--metrics", ",".join(metrics)


def in_words(value: object) -> str:
    """An argument in a line: `f32[1024,1024]`, `random, seed 1` if that matters, `1024`, `0x0300...`."""
    if isinstance(value, Texture):
        return f"texture over {in_words(value.array)}"
    if isinstance(value, (bytes, bytearray)):
        return f"{len(value)} bytes 0x{value[:SHOWN_BYTES].hex()}" + "..." * (len(value) > SHOWN_BYTES)
    if isinstance(value, ArrayArg) and value.seed and value.fill == "random":
        return f"{describe(replace(value, seed=0))} seed {value.seed}"
    return describe(value)


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
    machine, shape = job.loaded.machine, job.launch
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


#: Measured, and not predicted: clocks are as they are.
TIME = "gpu__time_duration.sum"
COUNTED = ("before: predicted", "measured", "after: predicted", "measured")
COLUMNS = (Column("ncu metric"), *(Column(name, right=True) for name in COUNTED))


@dataclass(frozen=True, slots=True)
class Verified:
    """What a GPU counts before and after a change.

    recordings, comparisons: of the original kernel and of the changed one.
    """

    recordings: tuple[CodeRecording, CodeRecording]
    comparisons: tuple[CodeComparison, CodeComparison]


def verify(job: Job, before: Analysis, changed: Job, after: Analysis, progress: Progress = None) -> Verified:
    """Run both under Nsight Compute and compare.

    Raises:
        MemsimError: as in `memsim.validate.live.measure`; or the prediction is not for the whole grid.
    """
    if before.trace.blocks_replayed < before.trace.launch.blocks:
        raise MemsimError("the GPU runs all blocks, but not all were replayed", hint="omit --blocks")
    one, other = measure([job, changed], progress)
    return Verified((one, other), (compare_code(one.profiles, before), compare_code(other.profiles, after)))


def render(found: Verified) -> str:
    """The table, and under it whether every instruction and counter came out as predicted."""
    device = found.recordings[0].device
    lines = [f"Measured on {device.gpu}, Nsight Compute {found.recordings[0].ncu}:", ""]
    lines += [*lines_of_table(COLUMNS, [Row(row) for row in _rows(found)]), ""]
    for label, comparison in zip(("as it is", "changed"), found.comparisons, strict=True):
        lines.append(headline(ComparedKernel(label, device.gpu), comparison))
    return "\n".join(lines)


def holds(found: Verified) -> bool:
    """Whether both came out as predicted."""
    return all(map(is_as_predicted, found.comparisons))


def to_dict(found: Verified) -> JsonObject:
    """The same for programs."""
    recording = found.recordings[0]
    part = VerifiedPart(
        gpu=recording.device.gpu,
        ncu=recording.ncu,
        as_predicted=holds(found),
        counters=tuple(_counters(found)),
    )
    return plain(part)


def _rows(found: Verified) -> Iterator[tuple[str, ...]]:
    for name, *counts in map(msgspec.structs.astuple, _counters(found)):
        if any(counts):
            yield name, *("-" if count is None else f"{count:,}" for count in counts)


def _counters(found: Verified) -> Iterator[VerifiedCounter]:
    before, after = ({figure.metric: figure for figure in one.totals} for one in found.comparisons)
    nothing = MetricComparison("", None, None)
    for metric in dict.fromkeys([*before, *after]):
        one, other = before.get(metric, nothing), after.get(metric, nothing)
        yield VerifiedCounter(metric, one.predicted, one.measured, other.predicted, other.measured)
    times = [
        next((p.counters[TIME].value for p in recording.profiles if TIME in p.counters), None)
        for recording in found.recordings
    ]
    if any(time is not None for time in times):
        yield VerifiedCounter(f"{TIME} (ns)", None, times[0], None, times[1])
