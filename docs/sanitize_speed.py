"""How long `memsim sanitize` takes beside `memsim analyze`: a table of docs/sanitize.md.

`python -m docs.sanitize_speed` judges and counts each launch of the catalogue, and of the kernels that only
Hopper runs, in turn, and keeps the processor time of the best of three rounds in a file beside this one;
`python -m docs.sanitize_speed FOLDER` adds the recorded launches in a folder under its name.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from docs.deleted_barriers import hopper_jobs
from memsim.analysis.analysis import Analysis, analyze_trace
from memsim.api.running import trace_job
from memsim.api.sanitizing import sanitize_job
from memsim.captured.saved_launch import read_launch
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.kernels import catalog
from memsim.targets.target import launched_job, read_job
from memsim.views.plain import table

FILE = Path(__file__).with_suffix(".json")
ROUNDS = 3
#: What `sanitize` may take, as a multiple of `analyze`.
AIM = 2


def page() -> str:
    """Both times of each group of launches, and which take longer than they should."""
    every = json.loads(FILE.read_text("utf-8"))
    heads = ("launches", "count", "analyze, s", "sanitize, s", "ratio of sums", "median ratio", "above 2")
    rows, above = [], list[str]()
    for group, found in every.items():
        sums = [sum(one[at] for one in found.values()) for at in (0, 1)]
        ratios = {name: judged / counted for name, (counted, judged) in found.items()}
        long = [name for name in found if ratios[name] > AIM]
        above += [f"`{name}` ({ratios[name]:.1f}, {found[name][1]:.2f} s)" for name in long]
        numbers = sums[1] / sums[0], statistics.median(ratios.values())
        counts = str(len(found)), *(f"{one:.1f}" for one in sums), *(f"{one:.2f}" for one in numbers)
        rows.append((group, *counts, str(len(long))))
    said = f"Above twice: {', '.join(above)}.\n" if above else ""
    return f"{table(heads, rows, 'lrrrrrr')}\n\n{said}"


def analyze(job: Job) -> Analysis:
    """What `memsim analyze` does once a launch is known."""
    return analyze_trace(trace_job(job), job.arch)


def seconds(act: Callable[[Job], Any], job: Job) -> float:
    """Processor time."""
    before = time.process_time()
    act(job)
    return time.process_time() - before


def measured(jobs: Iterable[tuple[str, Job]]) -> Iterator[tuple[str, tuple[float, float]]]:
    """Of each launch the best times of both, taken in turn."""
    for name, job in jobs:
        try:
            rounds = [(seconds(analyze, job), seconds(sanitize_job, job)) for _ in range(ROUNDS)]
        except MemsimError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        counted, judged = (min(times) for times in zip(*rounds))
        print(f"{name}: {judged / counted:.2f} ({counted:.3f} s, {judged:.3f} s)", flush=True)
        yield name, (round(counted, 4), round(judged, 4))


def recorded(folder: Path) -> Iterator[tuple[str, Job]]:
    """The launches in a folder."""
    for path in sorted(folder.rglob("launch.json")):
        name = path.parent.relative_to(folder).as_posix()
        try:
            yield name, launched_job(read_launch(path), {})
        except MemsimError as error:
            print(f"{name}: {error}", file=sys.stderr)


def main(*folders: str) -> None:
    """Measure all, or what is in folders."""
    every = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    if folders:
        for folder in map(Path, folders):
            every[folder.name] = dict(measured(recorded(folder)))
    else:
        every["the catalogue"] = dict(measured((name, read_job(name, {})) for name in catalog()))
        with TemporaryDirectory() as folder:
            every["kernels that only Hopper runs"] = dict(measured(hopper_jobs(Path(folder))))
    FILE.write_text(json.dumps(every, indent=1) + "\n", "utf-8")


PARTS = {"speed of sanitize": page}

if __name__ == "__main__":
    main(*sys.argv[1:])
