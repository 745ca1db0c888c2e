"""Are the counts of `memsim exec --analyze` those of a GPU that runs the same programs?

    python tools/exec_beside_ncu.py count PROGRAMS COUNTS.json
    python tools/exec_beside_ncu.py measure PROGRAMS COUNTS.json BOTH.json

PROGRAMS is a folder `SUITE/NAME` of what `tools/exec_suites.py --keep PROGRAMS` built; each runs with the
arguments that docs/exec_programs.json has, in its folder. `count` needs no GPU, `measure` one with ncu and
CuPy. Of each kernel the first launch is counted. docs/exec.md shows docs/validation/exec_beside_ncu.json.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from argparse import REMAINDER, ArgumentParser
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from memsim.validate.device import this_device  # noqa: E402
from memsim.validate.predict import WAVEFRONTS  # noqa: E402
from memsim.validate.profiler import find_profiler, read_code_report  # noqa: E402

#: Of a program, here and on the GPU.
SECONDS = 120
#: The first launch of each kernel, by its mangled name.
FIRST = ("--kernel-name-base", "mangled", "--kernel-id", "::regex:.*:1")
Record = dict[str, Any]


def main() -> None:
    """Counts or measures."""
    reader = ArgumentParser(description=__doc__)
    steps = reader.add_subparsers(dest="step", required=True)
    for step, files in {
        "count": ("programs", "counts"),
        "count-one": ("program", "counts"),
        "measure": ("programs", "counts", "both"),
    }.items():
        taken = steps.add_parser(step)
        for file in files:
            taken.add_argument(file, type=Path)
        if step == "count-one":
            taken.add_argument("arguments", nargs=REMAINDER)  # which may have dashes
    given = reader.parse_args()
    if given.step == "count":
        _write(given.counts, list(counted_programs(given.programs)))
    elif given.step == "count-one":
        _write(given.counts, counted(given.program, given.arguments))
    else:
        found: list[Record] = []
        gpu, tool = this_device().gpu, f"ncu {find_profiler().version}"
        for one in _read(given.counts):
            found.append({**one, "launches": measured(given.programs, one)})
            _write(given.both, {"gpu": gpu, "tool": tool, "programs": found})  # time on a GPU is short


def counted_programs(folder: Path) -> Iterator[Record]:
    """Those of a folder that end, with the counts of their launches."""
    for one in _read(ROOT / "docs" / "exec_programs.json"):
        program = _file(folder, one)
        if not program.exists():
            continue
        arguments = one["arguments"].split()
        with tempfile.TemporaryDirectory() as scratch:
            result = Path(scratch, "counts.json")
            command = [sys.executable, __file__, "count-one", str(program.resolve()), str(result), *arguments]
            with suppress(subprocess.TimeoutExpired):
                subprocess.run(
                    command, cwd=program.parent, stdout=subprocess.DEVNULL, timeout=SECONDS, check=False
                )
            launches = _read(result) if result.exists() else []
        print(one["name"], len(launches), flush=True)
        if launches:
            yield {
                "suite": one["suite"],
                "name": one["name"],
                "arguments": one["arguments"],
                "launches": launches,
            }


def counted(program: Path, arguments: list[str]) -> list[Record]:
    """The first launch of each kernel with what memsim counts; a count that it leaves open is not there."""
    from memsim.arch import SM_90
    from memsim.driver.execute_launches import Launches
    from memsim.driver.run_program import run_program

    launches = Launches(SM_90, lambda line: print(line, file=sys.stderr), analyze=True)
    code = run_program([str(program), *arguments], launches)
    found: dict[str, Record] = {}
    for (_, kernel, shape), kind in launches.kinds.items():
        found_out = kind.analysis
        totals = {} if found_out is None else {**found_out.totals, WAVEFRONTS: found_out.wavefronts}
        counts = {name: value for name, value in totals.items() if value is not None}
        found.setdefault(
            kernel, {"kernel": kernel, "grid": shape.grid, "block": shape.block, "counts": counts}
        )
    return list(found.values()) if code == 0 else []


def measured(folder: Path, one: Record) -> list[Record]:
    """The launches of a program, and what a GPU counts of them."""
    names = sorted({name for launch in one["launches"] for name in launch["counts"]})
    program = _file(folder, one)
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch, "report.ncu-rep")
        options = ("--clock-control", "none", "--metrics", ",".join(names), "--export", str(report))
        command = [
            str(find_profiler().path),
            *options,
            *FIRST,
            str(program.resolve()),
            *one["arguments"].split(),
        ]
        program.chmod(0o755)  # what copied it here may have lost that
        try:
            done = subprocess.run(
                command, cwd=program.parent, capture_output=True, text=True, errors="replace", timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            print(one["name"], "takes too long under ncu", flush=True)
            return []
        if not report.exists():
            print(one["name"], (done.stdout + done.stderr)[-300:], flush=True)
            return []
        profiles = read_code_report(report, *names)
    print(one["name"], len(profiles), "launches, exit code", done.returncode, flush=True)
    on_gpu = {(one.kernel, one.grid, one.block): one.counters for one in profiles}
    for launch in one["launches"]:
        counters = on_gpu.get((launch["kernel"], tuple(launch["grid"]), tuple(launch["block"])), {})
        launch["measured"] = {name: counters[name].value for name in names if name in counters}
    return list(one["launches"])


def _file(folder: Path, one: Record) -> Path:
    """What `tools/exec_suites.py --keep` calls a program."""
    return Path(folder, one["suite"], one["name"].replace("/", "."))


def _read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def _write(path: Path, found: Any) -> None:
    path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
