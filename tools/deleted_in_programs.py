"""Are barriers missed that are deleted from the kernels of public programs?

    python tools/deleted_in_programs.py SUITE CHECKOUT

SUITE and CHECKOUT are those of tools/exec_suites.py. Each program with a barrier is built and runs by
`memsim exec --record`; of each launch that this writes, and that `memsim sanitize` judges in a few seconds,
barriers and waits are deleted one by one. Names, counts and what became of each are added to
docs/deleted_in_programs.json, from which docs/sanitize.md has its table. No GPU is needed.
"""

from __future__ import annotations

import json
import random
import re
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from exec_suites import Program, build, programs, record  # noqa: E402
from public_cures import in_a_process  # noqa: E402

from docs.deleted_barriers import PROGRAMS, PROGRAMS_FILE, tried  # noqa: E402
from memsim.api.sanitizing import sanitize_job  # noqa: E402
from memsim.captured.saved_launch import read_launch  # noqa: E402
from memsim.sanitizer.hazards import INIT, RACE, SYNC  # noqa: E402
from memsim.targets.target import launched_job  # noqa: E402
from tests.sanitize.deleted import ordering  # noqa: E402

ORDERS = re.compile(r"__sync|\bsync\(|barrier|__threadfence|__pipeline")
#: Launches of a program, instructions of a launch, and seconds that the whole launch is judged in at most.
MOST_LAUNCHES, MOST_DELETED, MOST_SECONDS = 40, 8, 4.0
TOOLS = (RACE, SYNC, INIT)


def recorded(program: Program, scratch: Path) -> Iterator[Path]:
    """The launches of a program that was built and run."""
    made, cause = build(program, scratch, 200)
    if made is None:
        print(f"{program.name}: {cause}", flush=True)
        return
    folder = scratch / "launches"
    record(program, made, folder, 25)
    yield from sorted(folder.rglob("launch.json"))


def judged(path: Path) -> dict[str, Any]:
    """What becomes of each deleted instruction of a launch."""
    job = launched_job(read_launch(path), {})
    deleted = [*ordering(job.loaded, tuple(PROGRAMS))]
    told: dict[str, Any] = {"kernel": job.loaded.name, "orders": len(deleted)}
    if not deleted:
        return told
    began = time.process_time()
    whole = sanitize_job(job, tools=TOOLS)
    if time.process_time() - began > MOST_SECONDS:
        return {**told, "failed": "takes too long"}
    told |= {"errors": len(whole.errors), "unjudged": len(whole.unjudged)}
    if whole.errors:
        kinds = Counter((one.tool, one.doubt or one.kind, one.array) for one in whole.errors)
        told["findings"] = [": ".join(filter(None, kind)) for kind in kinds]
    return {**told, "deleted": tried(job, PROGRAMS, TOOLS, MOST_DELETED)}


def known() -> list[dict[str, Any]]:
    """What was tried so far."""
    return json.loads(PROGRAMS_FILE.read_text("utf-8")) if PROGRAMS_FILE.exists() else []


def main() -> None:
    """Add the launches of each program of a suite that are not there."""
    reader = ArgumentParser(description=__doc__)
    reader.add_argument("suite")
    reader.add_argument("checkout", type=Path)
    reader.add_argument("--seed", type=int, default=29)
    asked = reader.parse_args()
    drawn = programs(asked.suite, asked.checkout.resolve())
    random.Random(asked.seed).shuffle(drawn)
    for program in drawn:
        texts = (one.read_text(errors="replace") for one in program.folder.glob("*.[chm]*"))
        is_known = any((one["suite"], one["program"]) == (asked.suite, program.name) for one in known())
        if is_known or not any(ORDERS.search(text) for text in texts):
            continue
        found, launches = [], Counter[str]()
        with tempfile.TemporaryDirectory() as scratch:
            for path in recorded(program, Path(scratch)):
                kernel = path.parent.name.rstrip("0123456789_")
                launches[kernel] += 1
                if launches[kernel] <= 2 and len(found) < MOST_LAUNCHES:
                    told = in_a_process(partial(judged, path), 200)
                    if told.get("orders", 1):
                        found.append({"suite": asked.suite, "program": program.name, **told})
        verdicts = Counter(row["verdict"] for one in found for row in one.get("deleted", ()))
        print(program.name, len(found), dict(verdicts), flush=True)
        every = known() + (found or [{"suite": asked.suite, "program": program.name, "kernel": None}])
        PROGRAMS_FILE.write_text("[\n" + ",\n".join(map(json.dumps, every)) + "\n]\n", "utf-8")


if __name__ == "__main__":
    main()
