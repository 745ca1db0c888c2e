"""Are the cycles that `memsim time` estimates those of a GPU, for launches that public programs make?

    python tools/time_beside_ncu.py record PROGRAMS LAUNCHES
    python tools/time_beside_ncu.py measure PROGRAMS
    python tools/time_beside_ncu.py estimate LAUNCHES

PROGRAMS is a folder `SUITE/NAME` of what `tools/exec_suites.py --keep PROGRAMS` built; each runs with the
arguments that docs/exec_programs.json has. `record` writes the first launch of each kernel that a program
makes to LAUNCHES, by `memsim exec`, and needs no GPU; `measure` profiles it on one with ncu, with a cold L2
(docs/validation/program_cycles.json). `estimate` estimates those that are recorded (program_estimates.json
beside it). docs/time-accuracy.md has the table of both.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from exec_beside_ncu import FIRST  # noqa: E402
from exec_suites import Program, record  # noqa: E402
from public_cures import in_a_process  # noqa: E402

from docs.time_errors import (  # noqa: E402
    ACTIVE,
    CHOSEN_ON,
    DRAM_READ,
    ELAPSED,
    L1_HITS,
    L2_HITS,
    L2_SECTORS,
    PROGRAM_CYCLES,
    PROGRAM_ESTIMATES,
    program_launch,
)
from memsim.captured.saved_launch import read_launch  # noqa: E402
from memsim.targets.target import launched_job  # noqa: E402
from memsim.time.behind_l1 import COLD  # noqa: E402
from memsim.time.predict_time import PreparedTime  # noqa: E402
from memsim.validate.device import this_device  # noqa: E402
from memsim.validate.profiler import find_profiler, read_code_report  # noqa: E402

#: What is measured; ncu empties the caches before each of its passes.
METRICS = (ACTIVE, ELAPSED, L1_HITS, L2_HITS, L2_SECTORS, DRAM_READ)
#: Seconds of a program under ncu, and processor time of one that is recorded, and of an estimate.
LONGEST, RECORDED, ESTIMATED = 15, 60, 180
LOCK = Lock()
Record = dict[str, Any]


def main() -> None:
    """Records, measures or estimates."""
    reader = ArgumentParser(description=__doc__)
    steps = reader.add_subparsers(dest="step", required=True)
    for step, paths in {
        "record": ("programs", "launches"),
        "measure": ("programs",),
        "estimate": ("launches",),
    }.items():
        taken = steps.add_parser(step)
        for path in paths:
            taken.add_argument(path, type=Path)
        taken.add_argument("--only", default="", help="programs of this name")
    given = reader.parse_args()
    {"record": record_all, "measure": measure_all, "estimate": estimate_all}[given.step](given)


def built(folder: Path, only: str) -> Iterator[tuple[Program, Path]]:
    """The programs that are there."""
    for one in json.loads((ROOT / "docs" / "exec_programs.json").read_text("utf-8")):
        made = folder.resolve() / one["suite"] / one["name"].replace("/", ".")
        if made.exists() and only in one["name"]:
            made.chmod(0o755)  # what copied it here may have lost that
            yield (
                Program(one["suite"], one["name"], made.parent, arguments=tuple(one["arguments"].split())),
                made,
            )


def record_all(given: Any) -> None:
    """Writes each program's launches to a folder of its own, as many programs at once as there are cores."""
    with ProcessPoolExecutor() as pool:
        for name in pool.map(partial(_record, given.launches), built(given.programs, given.only)):
            print(name, flush=True)


def _record(launches: Path, one: tuple[Program, Path]) -> str:
    program, made = one
    if (launches / program.suite / program.name).exists():
        return f"{program.name}: recorded before"
    with tempfile.TemporaryDirectory() as scratch:
        record(program, made, Path(scratch), RECORDED)
        seen = set()
        for path in sorted(Path(scratch).rglob("launch.json")):
            kernel = json.loads(path.read_text("utf-8"))["kernel"]
            if kernel not in seen:
                seen.add(kernel)
                shutil.copytree(path.parent, launches / program.suite / program.name / path.parent.name)
    return f"{program.name}: {len(seen)} launches"


def measure_all(given: Any) -> None:
    """Profiles the first launch of each kernel of each program."""
    about = {"gpu": this_device().gpu, "tool": f"ncu {find_profiler().version}"}
    for program, made in built(given.programs, given.only):
        launches = measured(program, made)
        print(program.name, len(launches), flush=True)
        _add(PROGRAM_CYCLES, about, launches)  # time on a GPU is short


def measured(program: Program, made: Path) -> list[Record]:
    """The launches of a program with its counters."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch, "report.ncu-rep")
        options = ("--clock-control", "none", "--metrics", ",".join(METRICS), "--export", str(report), *FIRST)
        command = [str(find_profiler().path), *options, str(made), *program.arguments]
        null = subprocess.DEVNULL
        with subprocess.Popen(
            command, cwd=program.folder, stdout=null, stderr=null, start_new_session=True
        ) as process:
            try:
                process.wait(LONGEST)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # the program, too
        if not report.exists():
            return []
        return [
            {
                "suite": program.suite,
                "program": program.name,
                "kernel": one.kernel,
                "grid": one.grid,
                "block": one.block,
                "measured": {name: one.counters[name].value for name in METRICS if name in one.counters},
            }
            for one in read_code_report(report, *METRICS)
        ]


def estimate_all(given: Any) -> None:
    """Estimates the launches that are measured and recorded."""
    asked = [
        (launch, path)
        for launch in _read(PROGRAM_CYCLES)["launches"]
        if given.only in launch["program"] and (path := _recorded(given.launches, launch))
    ]

    def told(one: tuple[Record, Path]) -> None:
        launch, path = one
        estimated = in_a_process(partial(_estimated, path), ESTIMATED)
        what = {name: value for name, value in launch.items() if name != "measured"}
        _add(PROGRAM_ESTIMATES, {}, [{**what, "estimated": estimated}])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        deque(pool.map(told, asked), 0)


def _read(path: Path) -> Record:
    known: Record = json.loads(path.read_text("utf-8")) if path.exists() else {"launches": []}
    return known


def _add(path: Path, about: Record, launches: list[Record]) -> None:
    """Adds launches to a file, in place of the same ones from before."""
    with LOCK:
        known = _read(path)
        every = {program_launch(one): one for one in (*known.pop("launches"), *launches)}
        head = json.dumps(known | about).removesuffix("}") + ", " * bool(known | about)
        lines = ",\n".join(json.dumps(every[key]) for key in sorted(every))
        path.write_text(f'{head}"launches": [\n{lines}\n]}}\n', "utf-8")


def _recorded(launches: Path, launch: Record) -> Path | None:
    """Where a launch is recorded."""
    for path in (launches / launch["suite"] / launch["program"]).rglob("launch.json"):
        said = json.loads(path.read_text("utf-8"))
        if said["kernel"] == launch["kernel"] and all(
            [*said[name], 1, 1][:3] == list(launch[name]) for name in ("grid", "block")
        ):
            return path
    return None


def _estimated(path: Path) -> Record:
    """What is measured of a launch, with a cold L2."""
    cold = PreparedTime(launched_job(read_launch(path), {})).on(CHOSEN_ON).predict(COLD)
    return {
        COLD: {
            ACTIVE: cold.cycles,
            ELAPSED: cold.elapsed,
            L1_HITS: 100 * cold.hit_rates["l1"],
            L2_HITS: 100 * cold.hit_rates["l2"],
            L2_SECTORS: cold.l2_sectors,
            DRAM_READ: cold.dram_bytes,
        }
    }


if __name__ == "__main__":
    main()
