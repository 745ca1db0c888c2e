"""Measures launches of machine code on this machine's GPU with Nsight Compute.

The cubin that was analyzed is run as it is. The profiler runs the launches several times: the first run
collects the metrics of all instructions and all counters, in several passes over each kernel. Then, for each
kind of shared access in a kernel, one run collects the counters that must come from the same pass, because
arbitration differs between passes.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from memsim.errors import MemsimError
from memsim.job import Job
from memsim.kernels import Spec
from memsim.model.counters import COUNTERS
from memsim.names.demangle import demangle
from memsim.names.kernel_names import plain_name
from memsim.sass.machine_code import MachineKernel, read_module
from memsim.validate.code_recording import CodeLaunchRecord, CodeOrigin, CodeRecording, ResultCheck
from memsim.validate.device import Device, check_chip, this_device
from memsim.validate.launch_args import in_words, pack
from memsim.validate.profiler import LaunchCounter, Profiler, Progress, find_profiler, run_under_ncu
from memsim.validate.profiles import CONFLICTS, ONE_PASS, WAVEFRONTS, CodeProfile
from memsim.validate.recording_files import now
from memsim.validate.run_cubin import PLAN, Step

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
#: Counters of wgmma, of copies by TMA, and of distributed shared memory, and the opcodes that need them; in a
#: cluster generic accesses do, too.
OF_HOPPER = tuple(counter.metric for counter in COUNTERS if counter.seldom)
ON_HOPPER = frozenset("HGMMA QGMMA IGMMA UTMALDG UTMASTG UTMAREDG UBLKCP UBLKRED STAS REDAS".split())
SECTION = ("--section", "SourceCounters")


def recorded_name(job: Job) -> str:
    """The kernel's name in the catalogue, or its own, made valid as a file name."""
    if isinstance(job.kernel, Spec):
        return job.kernel.name
    return re.sub(r"\W+", "_", plain_name(demangle(job.loaded.name)))


def machine_of(job: Job) -> MachineKernel:
    """The kernel's machine code."""
    return job.loaded.machine


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
    machines = [machine_of(job) for job in jobs]
    device, profiler = this_device(), find_profiler()
    check_chip(device)
    counter = LaunchCounter(len(jobs) * (1 + len(ONE_PASS)), progress)

    metrics = (*EVERYTHING, *OF_HOPPER) if any(map(_needs_hopper, machines)) else EVERYTHING
    results, first = _run(profiler, jobs, (*SECTION, *_asked(metrics)), counter)
    profiles = [[_aligned(*pair)] for pair in zip(machines, first, strict=True)]
    for accesses, metrics in ONE_PASS.items():
        users = [i for i, found in enumerate(first) if found.accesses & set(accesses)]
        if users:
            _, more = _run(profiler, [jobs[i] for i in users], _asked(metrics), counter)
            for i, found in zip(users, more, strict=True):
                profiles[i].append(found)

    date = now()
    return [
        _recording(job, device, profiler, date, result, measured)
        for job, result, measured in zip(jobs, results, profiles, strict=True)
    ]


class NotMeasured(MemsimError):
    """The profiler or the program ended with the launch of that number, counted from 0."""

    def __init__(self, error: MemsimError, number: int) -> None:
        super().__init__(error.message, hint=error.hint)
        self.number = number


def count(
    jobs: Sequence[Job], metrics: Sequence[str], progress: Progress = None
) -> tuple[Device, str, list[CodeProfile]]:
    """Run jobs and collect `metrics` of each; also returns the GPU and the version of ncu.

    Raises:
        NotMeasured: after some of the launches, or before the first.
        MemsimError: otherwise as `measure`.
    """
    device, profiler = this_device(), find_profiler()
    counter = LaunchCounter(len(jobs), progress)
    try:
        _, found = _run(profiler, jobs, _asked(metrics), counter, metrics)
    except MemsimError as error:
        if counter.done < len(jobs):
            raise NotMeasured(error, counter.done) from error
        raise
    return device, profiler.version, found


def _needs_hopper(machine: MachineKernel) -> bool:
    return machine.image.cluster is not None or not ON_HOPPER.isdisjoint(opcodes(machine).values())


def _aligned(machine: MachineKernel, found: CodeProfile) -> CodeProfile:
    profile = found.starting_at(opcodes(machine))
    if profile is None:
        raise MemsimError(f"ncu shows other instructions for {machine.name} than the cubin that ran has")
    return profile


def _run(
    profiler: Profiler,
    jobs: Sequence[Job],
    what: Sequence[str],
    counter: LaunchCounter,
    also: Sequence[str] = (),
) -> tuple[list[dict[str, Any] | None], list[CodeProfile]]:
    """One run of the profiler over `jobs`: the program's output for each, and ncu's measurements."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        steps = [asdict(_step(job, number, folder)) for number, job in enumerate(jobs)]
        (folder / PLAN).write_text(json.dumps(steps), "utf-8")
        kernels = [job.loaded.name for job in jobs]
        return run_under_ncu(profiler, PROGRAM, folder, kernels, what, counter, also)


def _step(job: Job, number: int, folder: Path) -> Step:
    """The job in the form of the program's input; its cubin is in `folder`."""
    cubin = f"{number}.cubin"
    (folder / cubin).write_bytes(machine_of(job).module.code)
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
    machine = machine_of(job)
    cluster = job.launch.cluster or machine.image.cluster
    stated = read_module(machine.module.code).kernels[machine.name].image.cluster
    return None if cluster == stated else cluster


def _recording(
    job: Job,
    device: Device,
    profiler: Profiler,
    date: str,
    result: dict[str, Any] | None,
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
