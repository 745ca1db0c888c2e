"""Runs the probe on this machine's GPU: its recording, and the program that makes its launches.

The profiler runs once for instructions on shared memory and once for those on global memory, because fewer
counters need fewer passes.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from lab.experiment import ByCounters
from lab.probe.instructions import (
    ACTIVE_BIT,
    EMPTY,
    ENTRY,
    INSTRUCTIONS,
    ProbedInstruction,
    program,
)
from lab.probe.patterns import make_patterns, side_by_side
from memsim.errors import MemsimError
from memsim.validate.device import Device, load_cupy, now, this_device
from memsim.validate.profiler import LaunchCounter, Profiler, Progress, answer, find_profiler, run_under_ncu
from memsim.validate.profiles import SOURCE_METRICS, CodeProfile, access_of

PROGRAM = "lab.probe.run_probe"
PATTERNS = 256  # per launch
LAUNCHES = 2  # per instruction
SEED = 0
MEMORY_BYTES = 1 << 20
ALIGNMENT = 1024

WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared"
GLOBAL = "pipe_lsu_mem_global_op"
SHARED_METRICS = (
    *(f"{WAVEFRONTS}_op_{op}.sum" for op in ("ld", "st", "atom")),
    *(f"{CONFLICTS}_op_{op}.sum" for op in ("ld", "st", "atom", "ldgsts")),
    f"{WAVEFRONTS}.sum",
    f"{WAVEFRONTS}_op_misc.sum",
)
GLOBAL_METRICS = (
    *(f"l1tex__t_requests_{GLOBAL}_{op}.sum" for op in ("ld", "st", "atom", "red")),
    *(f"l1tex__t_sectors_{GLOBAL}_{op}.sum" for op in ("ld", "st", "atom", "red")),
    *(f"l1tex__t_set_accesses_{GLOBAL}_{op}.sum" for op in ("ld", "st", "atom", "red")),
    *(f"l1tex__t_output_wavefronts_{GLOBAL}_{op}.sum" for op in ("ld", "st")),
)
METRICS = (*SHARED_METRICS, *GLOBAL_METRICS)


@dataclass(frozen=True, slots=True, eq=False)
class Probed:
    """One instruction: launches of several patterns each.

    addresses: uint32 [launches, patterns, 32], bytes from an aligned base. active: bool, the same shape.
    origins: uint32, the same shape: the global addresses of a copy, else 0. figures: int32 [launches,
    patterns, figures], ncu's values for each pattern, in the order of
    `SOURCE_METRICS`; -1 if there is none. counters: int64 [launches, counters], of
    each launch; -1 if not collected.
    """

    addresses: np.ndarray
    active: np.ndarray
    origins: np.ndarray
    figures: np.ndarray
    counters: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class ProbeRecording(ByCounters):
    """A run of the probe. `metrics` names the columns of `counters`; `probed` is by instruction."""

    seed: int
    metrics: tuple[str, ...]
    probed: dict[str, Probed]

    def notes(self, found: Sequence[Any]) -> Iterator[str]:
        """How it was made."""
        yield f"{self.made}, seed {self.seed}: one warp, one instruction for each pattern."


def earlier_probe(head: dict[str, Any], arrays: dict[str, Any], name: str) -> ProbeRecording:
    """The recording in a file of schema 1."""
    names = [field.name for field in fields(Probed)]
    return ProbeRecording(
        device=Device(**head["device"]),
        ncu=head["ncu"],
        date=head["date"],
        seed=head["seed"],
        metrics=tuple(map(str, arrays["metrics"])),
        probed={
            name: Probed(*(arrays[f"{name}_{array}"] for array in names)) for name in head["instructions"]
        },
    )


Tables = tuple[np.ndarray, np.ndarray, np.ndarray]  # addresses, active lanes, addresses in global memory


def run_probe(progress: Progress = None) -> ProbeRecording:
    """Measure every instruction that the chip has.

    Raises:
        MemsimError: CuPy, driver, GPU, ncu, its reader or permission missing.
    """
    device, profiler = this_device(), find_profiler()
    rng = np.random.default_rng(SEED)
    there = [i for i in INSTRUCTIONS.values() if float(device.compute_capability) * 10 >= i.since]
    shared = [EMPTY, *(i for i in there if i.space == "shared")]
    copies = [i for i in there if i.copies]
    reach = [EMPTY, *(i for i in there if i.space == "global"), *copies]
    tables = {i.name: _tables(i, rng) for i in (EMPTY, *there)}

    counter = LaunchCounter(LAUNCHES * (len(shared) + len(reach)), progress)
    date = now()
    measured: dict[str, list[list[CodeProfile]]] = {}
    for instructions, metrics in ((shared, SHARED_METRICS), (reach, GLOBAL_METRICS)):
        for name, profiles in _run(device, profiler, instructions, metrics, tables, counter).items():
            measured.setdefault(name, []).append(profiles)
    probed = {name: _probed(tables[name], runs) for name, runs in measured.items()}
    return ProbeRecording(device, profiler.version, date, SEED, METRICS, probed)


def _tables(instruction: ProbedInstruction, rng: np.random.Generator) -> Tables:
    """Addresses, active lanes and global addresses of all launches."""
    count, width = LAUNCHES * PATTERNS, instruction.width
    every = instruction.matrices > 0
    addresses, active = make_patterns(count, width, rng, instruction.lanes, every)
    origins = np.zeros_like(addresses)
    if instruction.copies:
        origins = (
            make_patterns(count, width, rng)[0] if instruction.scattered else side_by_side(count, width, rng)
        )
    shape = LAUNCHES, PATTERNS, 32
    rows = addresses.reshape(shape).astype(np.uint32)
    return rows, active.reshape(shape), origins.reshape(shape).astype(np.uint32)


def _run(
    device: Device,
    profiler: Profiler,
    instructions: Sequence[ProbedInstruction],
    metrics: Sequence[str],
    tables: dict[str, Tables],
    counter: LaunchCounter,
) -> dict[str, list[CodeProfile]]:
    """One run of the profiler; returns the launches of each instruction."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        arrays = {}
        for instruction in instructions:
            code = program(instruction, PATTERNS, device.compute_capability)
            (folder / f"{instruction.name}.ptx").write_text(code, "utf-8")
            addresses, active, origins = tables[instruction.name]
            arrays[f"{instruction.name}_table"] = addresses | active.astype(np.uint32) << ACTIVE_BIT
            arrays[f"{instruction.name}_origins"] = origins
        np.savez(folder / "tables.npz", **arrays)
        (folder / "names.json").write_text(json.dumps([i.name for i in instructions]), "utf-8")
        what = ("--section", "SourceCounters", "--metrics", ",".join(metrics))
        kernels = [ENTRY] * LAUNCHES * len(instructions)
        _, profiles = run_under_ncu(profiler, PROGRAM, folder, kernels, what, counter, lines=True)
    return {
        instruction.name: profiles[LAUNCHES * i : LAUNCHES * (i + 1)]
        for i, instruction in enumerate(instructions)
    }


def _probed(tables: Tables, runs: list[list[CodeProfile]]) -> Probed:
    """`runs`: the launches of one instruction in each run of the profiler that includes it."""
    figures = np.full((LAUNCHES, PATTERNS, len(SOURCE_METRICS)), -1, np.int32)
    counters = np.full((LAUNCHES, len(METRICS)), -1, np.int64)
    for profiles in runs:
        for launch, measured in enumerate(profiles):
            figures[launch] = _figures(measured)
            for column, metric in enumerate(METRICS):
                if metric in measured.counters:
                    counters[launch, column] = measured.counters[metric].value
    return Probed(*tables, figures, counters)


def never_runs(sass: str) -> bool:
    """`@!PT LDS RZ, [RZ]`, which ptxas inserts between other instructions; PT is always true."""
    return sass.startswith("@!PT ")


def _figures(measured: CodeProfile) -> np.ndarray:
    """ncu's values for each pattern; -1 if there are none, or several instructions for one pattern."""
    figures = np.full((PATTERNS, len(SOURCE_METRICS)), -1, np.int32)
    seen = set()
    for row, (line, sass) in enumerate(zip(measured.lines, measured.sass, strict=True)):
        counts = [measured.figure(metric, row) for metric in SOURCE_METRICS]
        accesses = access_of(sass) is not None and not never_runs(sass)
        if not accesses or not 1 <= line <= PATTERNS or all(count is None for count in counts[2:]):
            continue
        once = line not in seen
        seen.add(line)
        figures[line - 1] = [-1 if count is None else count for count in counts] if once else -1
    return figures


# --- the program under the profiler ---------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Runs the launches of the folder `arguments[0]`, in the order of `names.json`; 0 if every one succeeds.

    `tables.npz` has `NAME_table` and `NAME_origins`, uint32 [launches, patterns, 32], beside `NAME.ptx`.
    """
    folder = Path(arguments[0])
    return answer(folder, lambda: _launch_all(folder))


def _launch_all(folder: Path) -> None:
    cupy = load_cupy()
    with np.load(folder / "tables.npz") as tables:
        memory = cupy.zeros(MEMORY_BYTES + ALIGNMENT, np.uint8)
        for name in json.loads((folder / "names.json").read_text("utf-8")):
            _launch(cupy, folder / f"{name}.ptx", tables[f"{name}_table"], tables[f"{name}_origins"], memory)


def _launch(cupy: Any, ptx: Path, table: np.ndarray, origins: np.ndarray, memory: Any) -> None:
    from cupyx.profiler import profile  # type: ignore[import-not-found,unused-ignore]

    result = cupy.zeros(32, np.uint32)
    start = np.uint64(-(-memory.data.ptr // ALIGNMENT) * ALIGNMENT)
    try:
        function = cupy.RawModule(path=str(ptx)).get_function(ENTRY)
        tables = [(cupy.asarray(rows), cupy.asarray(far)) for rows, far in zip(table, origins, strict=True)]
        for rows, far in tables:
            cupy.cuda.Device().synchronize()
            with profile():
                function((1,), (32,), (rows, far, start, result))
    except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError) as error:
        raise MemsimError(f"the probe of {ptx.stem} does not run on this GPU: {error}") from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
