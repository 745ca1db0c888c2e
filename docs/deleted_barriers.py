"""Each barrier, fence and wait of the catalogue deleted in turn from the machine code: is it missed?

`python -m docs.deleted_barriers` tries all, which takes some minutes, and writes docs/deleted_barriers.json:
the table of docs/sanitize.md is made of that.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from memsim.api.running import trace_job
from memsim.api.sanitizing import sanitize_job
from memsim.errors import MemsimError
from memsim.isa.program import Op
from memsim.job import Job
from memsim.kernels import catalog
from memsim.sanitizer.hazards import RACE
from memsim.targets.target import read_job
from tests.sanitize.deleted import job_without, ordering

FILE = Path(__file__).with_suffix(".json")
NAMES = {
    "BAR": "`__syncthreads()` (`BAR.SYNC`)",
    "LDGDEPBAR": "`cp.async.commit_group` (`LDGDEPBAR`)",
    "DEPBAR": "`cp.async.wait_group` (`DEPBAR.LE SB0`)",
    "WARPSYNC": "reconvergence (`WARPSYNC.ALL`)",
}
FOUND, NOT_RUN, NOT_NEEDED = "found", "not executed", "nothing it orders"


def page() -> str:
    """The table."""
    rows = json.loads(FILE.read_text("utf-8"))
    counts = Counter((row["opcode"], row["verdict"]) for row in rows)
    lines = [
        "| deleted | of all | found | not executed in this launch | it orders nothing |",
        "|---|---:|---:|---:|---:|",
    ]
    for opcode, name in NAMES.items():
        each = [counts[opcode, verdict] for verdict in (FOUND, NOT_RUN, NOT_NEEDED)]
        lines.append(f"| {name} | {sum(each)} | {' | '.join(map(str, each))} |")
    return "\n".join(lines) + "\n"


def tried(job: Job) -> list[dict[str, Any]]:
    """What becomes of each of a kernel's barriers."""
    counts = trace_job(job).executed
    executed = {op.address: int(counts[op.index]) for op in job.loaded.executable.program.ops}
    return [
        {"opcode": op.form.opcode, "address": op.address, "verdict": _verdict(job, op, executed)}
        for op in ordering(job.loaded, tuple(NAMES))
        if op.form.opcode != "DEPBAR" or "SB0" in op.text
    ]


def _verdict(job: Job, op: Op, executed: dict[int, int]) -> str:
    try:
        if sanitize_job(job_without(job, op.address), tools=(RACE,)).errors:
            return FOUND
    except MemsimError as error:
        return str(error)
    return NOT_NEEDED if executed[op.address] else NOT_RUN


def main() -> None:
    """Try all."""
    found = []
    for name in catalog():
        rows = tried(read_job(name, {}))
        print(name, Counter(row["verdict"] for row in rows), flush=True)
        found += [{"kernel": name, **row} for row in rows]
    FILE.write_text("[\n" + ",\n".join(map(json.dumps, found)) + "\n]\n", "utf-8")


PARTS = {"deleted barriers": page}

if __name__ == "__main__":
    main()
