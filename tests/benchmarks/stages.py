"""What each stage of an analysis costs, for saved launches of large kernels.

`python -m tests.benchmarks.stages FOLDER...` writes docs/stages.json, from which docs/performance.md has its
table. Processor time of a process each, the least of three; nothing is taken from a cache.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs" / "stages.json"
ROUNDS = 3


def stages(folder: str) -> dict[str, Any]:
    """What a launch is, and the seconds of each stage, in the order of `memsim analyze`."""
    began = time.process_time()
    from memsim.analysis import analyze_trace
    from memsim.api.running import prepared_launch, trace_job
    from memsim.names.demangle import plain_name
    from memsim.targets.target import read_job
    from memsim.time.quick_estimate import estimate
    from memsim.views.analyze.terminal import render

    seconds: dict[str, float] = {}

    def timed(stage: str, work: Callable[[], Any]) -> Any:
        nonlocal began
        done = work()
        now = time.process_time()
        seconds[stage], began = now - began, now
        return done

    job = timed("import, read, decode", lambda: read_job(folder, {}))
    timed("find what decides addresses", lambda: prepared_launch(job, everything=False))
    trace = timed("execute and record", lambda: trace_job(job))
    analysis = timed("count", lambda: analyze_trace(trace, job.arch))
    timed("estimate cycles", lambda: estimate(job, trace))
    timed("write the report", lambda: render(analysis))
    return {
        "kernel": plain_name(job.loaded.title),
        "instructions": len(job.loaded.executable.program.ops),
        "blocks": job.launch.blocks,
        "requests": sum(site.requests or 0 for site in analysis.sites),
        "seconds": seconds,
    }


def main(folders: list[str]) -> None:
    found = []
    for folder in folders:
        command = [sys.executable, "-m", __spec__.name, "--one", folder]
        rounds = [
            json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
            for _ in range(ROUNDS)
        ]
        found.append(min(rounds, key=lambda one: sum(one["seconds"].values())))
        print(found[-1]["kernel"], f"{sum(found[-1]['seconds'].values()):.2f} s", flush=True)
    RECORD.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(stages(sys.argv[2])))
    else:
        main(sys.argv[1:])
