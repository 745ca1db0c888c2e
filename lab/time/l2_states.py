"""What launches take with L2 in four states, cycles and bytes of DRAM in one pass each under Nsight Compute:
`python -m lab.time.l2_states FOLDER [triton|large]` writes `l2_states.json`, `l2_states_triton.json` or
`l2_states_large.json` there.

A profiler that needs several passes restores memory between them, which leaves some of L2 cold, and counts
hits and sectors of different passes. Of one pass nothing is restored. Lookups of L2 take four. States: cold,
flushed by ncu; read, after a kernel that reads as much as L2 has several times; written, after one that
writes as much, as Triton's `do_bench` does; warm, after the same launch.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from lab.time.large_launches import large_jobs
from memsim.job import Job
from memsim.kernels import catalog
from memsim.sass.machine_code import read_module
from memsim.validate.device import load_cupy, now, this_device
from memsim.validate.live import step_of
from memsim.validate.profiler import answer, find_profiler, profile, read_code_report
from memsim.validate.run_cubin import PLAN, Step, prepare, unpack

#: Counters that are collected together; how many passes that took is recorded.
GROUPS = {
    "cycles": ("sm__cycles_active.max", "sm__cycles_elapsed.max"),
    "l2": tuple(f"lts__t_sectors_srcunit_tex{one}.sum" for one in ("", "_lookup_hit", "_lookup_miss")),
    "all l2": tuple(f"lts__t_sectors{one}.sum" for one in ("", "_lookup_hit", "_lookup_miss")),
    "dram": ("dram__bytes_read.sum", "dram__bytes_write.sum"),
}
STATES = ("cold", "warm", "read", "written")
#: Launches in each state, of which a warm one follows others.
TIMES = 5
#: Bytes that a kernel reads or writes to fill L2.
FILLING = 256 << 20
SMALL = {  # of launches.cu: name -> (kernel, blocks, threads, arguments after its arrays)
    **{f"add_{n}": ("add", n, 256, ()) for n in (132, 1056, 4096)},
    **{f"add4_{n}": ("add4", n, 256, ()) for n in (132, 1056)},
    **{f"dependent_132_{n}": ("dependent", 132, 256, (n, 132 * 256)) for n in (8, 32)},
    **{f"row_each_{n}": ("row_each", 64, 128, (n,)) for n in (16, 64, 256)},
    **{f"sum_{n}": ("sum", n, 256, (1 << 22,)) for n in (132, 1056)},
}  # fmt: skip
PROGRAM = "lab.time.l2_states"


def planned(cupy: Any, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """The kernels of the plan: name, what launches it."""
    for name, record in json.loads((folder / PLAN).read_text("utf-8")).items():
        step = Step(**record)
        path, spec = folder / step.cubin, catalog()[step.catalogue]
        kernel = read_module(path.read_bytes(), file=step.cubin).kernels[step.kernel]
        args = dict(zip(spec.arguments, unpack(step.args, path.with_suffix("")), strict=True))
        yield name, prepare(cupy, path, kernel, step, args, spec).run


def catalogue(cupy: Any, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """The catalogue at its own sizes, and launches of launches.cu."""
    yield from planned(cupy, folder)
    module = cupy.RawModule(code=(Path(__file__).parent / "launches.cu").read_text("utf-8"))
    for name, (function, blocks, threads, more) in SMALL.items():
        arrays = [cupy.zeros(16 << 20, "u1") for _ in range(3 if function.startswith("add") else 2)]
        given = (*arrays, *map(cupy.int32, more))
        yield name, partial(module.get_function(function), (blocks,), (threads,), given)


def of_triton(cupy: Any, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """All configurations of the kernels in Triton."""
    import torch  # type: ignore[import-not-found,unused-ignore]

    from studies.choices.triton_kernels import KERNELS

    for kernel in KERNELS:
        arrays = []
        for shape, dtype in kernel.arrays:
            kind = getattr(torch, dtype)
            made = torch.randn(shape, device="cuda") if kind.is_floating_point else None
            arrays.append(torch.zeros(shape, device="cuda", dtype=kind) if made is None else made.to(kind))
        for one in kernel.configurations:
            kernel.launch(arrays, one)
            yield f"{kernel.name}: {one}", partial(kernel.launch, arrays, one)


LAUNCHES: Mapping[str, Callable[[Any, Path], Iterator[tuple[str, Callable[[], object]]]]] = {
    "catalogue": catalogue,
    "triton": of_triton,
    "large": planned,
}
#: What is planned before it is launched.
JOBS: Mapping[str, Callable[[], Iterable[tuple[str, Job]]]] = {
    "catalogue": lambda: ((name, catalog()[name].job()) for name in sorted(catalog())),
    "large": large_jobs,
}


def launch_all(folder: Path, state: str, which: str) -> list[str]:
    """Launches all in a state, measured; their names, one for each launch."""
    from cupyx.profiler import profile as measured  # type: ignore[import-not-found,unused-ignore]

    cupy = load_cupy()
    filling = cupy.zeros(FILLING // 4, "f4")
    filling.sum()
    names = []
    for name, run in LAUNCHES[which](cupy, folder):
        run()
        for _ in range(TIMES):
            if state == "read":
                filling.sum()
            elif state == "written":
                filling.fill(0)
            elif state == "warm":
                run()
            cupy.cuda.runtime.deviceSynchronize()
            with measured():
                run()
                cupy.cuda.runtime.deviceSynchronize()
            names.append(name)
    return names


def measure(folder: Path, which: str) -> dict[str, Any]:
    """All states and groups: name -> state -> counter -> one value for each launch."""
    profiler, found = find_profiler(), dict[str, Any]()
    passes: set[int] = set()
    for state in STATES:
        for group, metrics in GROUPS.items():
            if "l2" in group and (which != "catalogue" or state in ("read", "written")):
                continue
            report = folder / "report.ncu-rep"
            flush = "all" if state == "cold" else "none"
            what = ("--cache-control", flush, "--metrics", ",".join(metrics))
            command = [sys.executable, "-m", PROGRAM, str(folder), which, state]
            printed = profile(profiler, report, what, command)
            told = json.loads((folder / "answer.json").read_text("utf-8"))
            if "error" in told:
                raise SystemExit(f"{told}: {printed[-500:]}")
            profiles = read_code_report(report, *metrics)
            print(which, state, group, len(profiles), {one.passes for one in profiles}, flush=True)
            for name, one in zip(told["answer"], profiles, strict=True):
                passes.add(one.passes)
                kept = found.setdefault(name, {}).setdefault(state, {})
                for metric in metrics:
                    kept.setdefault(metric, []).append(one.counters[metric].value)
    return {"ncu": profiler.version, "passes": sorted(passes), "launches": found}


def main(arguments: list[str]) -> int:
    """In a process of its own under ncu: launches. Else: measures, and writes a file."""
    folder, which = Path(arguments[0]), "".join(arguments[1:2]) or "catalogue"
    if arguments[2:]:
        return answer(folder, lambda: launch_all(folder, arguments[2], which))
    with tempfile.TemporaryDirectory() as scratch:
        if which in JOBS:
            jobs = enumerate(JOBS[which]())
            steps = {name: asdict(step_of(job, number, Path(scratch))) for number, (name, job) in jobs}
            (Path(scratch) / PLAN).write_text(json.dumps(steps), "utf-8")
        record = {"device": asdict(this_device()), "date": now(), **measure(Path(scratch), which)}
    name = "l2_states.json" if which == "catalogue" else f"l2_states_{which}.json"
    (folder / name).write_text(as_text(record), "utf-8")
    return 0


def as_text(record: dict[str, Any]) -> str:
    """A recording with a line for each launch in each state."""
    about, launches = dict(record), []
    for name, states in about.pop("launches").items():
        lines = ",\n".join(f"  {json.dumps(state)}: {json.dumps(found)}" for state, found in states.items())
        launches.append(f"{json.dumps(name)}: {{\n{lines}}}")
    return f'{json.dumps(about)[:-1]}, "launches": {{\n' + ",\n".join(launches) + "\n}}\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
