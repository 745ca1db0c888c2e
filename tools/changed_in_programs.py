"""Are accesses found that are changed in the kernels of public programs?

    python tools/changed_in_programs.py SUITE FOLDER

FOLDER has a folder of launches for each program of SUITE, as `memsim exec --record` writes them. Of the first
launch of each kernel that `memsim sanitize` judges in a few seconds, accesses are changed one by one. Names,
counts and what became of each are added to docs/changed_in_programs.json. No GPU is needed.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from public_cures import in_a_process  # noqa: E402

from docs.changed_accesses import FILE, tried  # noqa: E402
from memsim.api.sanitizing import sanitize_job  # noqa: E402
from memsim.captured.saved_launch import read_launch  # noqa: E402
from memsim.targets.target import launched_job  # noqa: E402

#: Seconds that the whole launch is judged in at most, and those of all its changes.
MOST_SECONDS, MOST_OF_ALL = 3.0, 120


def judged(path: Path, seed: int) -> dict[str, Any]:
    """What becomes of each changed access of a launch."""
    job = launched_job(read_launch(path), {})
    told: dict[str, Any] = {"kernel": job.loaded.name}
    began = time.process_time()
    sanitize_job(job)
    if time.process_time() - began > MOST_SECONDS:
        return {**told, "failed": "takes too long"}
    changed = tried(job, seed)
    return {**told, **({"failed": "has too many accesses"} if changed is None else {"changed": changed})}


def main() -> None:
    """Add the launches of each program that are not there."""
    reader = ArgumentParser(description=__doc__)
    reader.add_argument("suite")
    reader.add_argument("folder", type=Path)
    reader.add_argument("--seed", type=int, default=29)
    asked = reader.parse_args()
    for program in sorted(one for one in asked.folder.iterdir() if one.is_dir()):
        known = json.loads(FILE.read_text("utf-8")) if FILE.exists() else []
        if any((one["suite"], one["program"]) == (asked.suite, program.name) for one in known):
            continue
        found, seen = [], set[str]()
        for path in sorted(program.rglob("launch.json")):
            kernel = path.parent.name.lstrip("0123456789_")
            if kernel not in seen:
                seen.add(kernel)
                told = in_a_process(partial(judged, path, asked.seed), MOST_OF_ALL)
                found.append({"suite": asked.suite, "program": program.name, **told})
        counts = Counter(row.get("reason", row["verdict"]) for one in found for row in one.get("changed", ()))
        print(program.name, len(found), dict(counts), flush=True)
        FILE.write_text("[\n" + ",\n".join(map(json.dumps, known + found)) + "\n]\n", "utf-8")


if __name__ == "__main__":
    main()
