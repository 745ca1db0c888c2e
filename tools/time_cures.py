"""Are the cures that `memsim suggest` ranks first faster on a GPU?

    python tools/time_cures.py prepare LAUNCHES.py FOLDER
    nvcc -O2 -o time_pairs tools/time_pairs.cu -ldl && ./time_pairs FOLDER > TIMES.jsonl
    python tools/time_cures.py join FOLDER TIMES.jsonl OUT.json

LAUNCHES.py defines `launches()`, which yields for each launch whose it is, its name and its `Job`. `prepare`
needs no GPU: it writes both kernels, their arguments, and what memsim estimates of them, before anything is
measured. The second line needs a GPU and the CUDA toolkit, and nothing of memsim. `tools/public_cures.py
--pairs FOLDER` prepares the launches of studies/cures.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import signal
import sys
from pathlib import Path
from typing import Any

SECONDS = 200  # for the preparation of a launch
Record = dict[str, Any]


def main() -> None:
    """Prepares launches, or joins what was estimated and measured."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    steps = reader.add_subparsers(dest="step", required=True)
    preparing, joining = steps.add_parser("prepare"), steps.add_parser("join")
    preparing.add_argument("launches", type=Path)
    preparing.add_argument("folder", type=Path)
    preparing.add_argument("--only", default="", help="launches whose name contains this")
    joining.add_argument("folder", type=Path)
    joining.add_argument("times", type=Path)
    joining.add_argument("out", type=Path)
    asked = reader.parse_args()
    if asked.step == "join":
        asked.out.write_text(json.dumps(joined(asked.folder, asked.times), indent=1) + "\n", "utf-8")
        return
    asked.folder.mkdir(parents=True, exist_ok=True)
    for of, name, job in runpy.run_path(str(asked.launches))["launches"]():
        stem = "".join(letter if letter.isalnum() else "_" for letter in f"{of} {name}")
        if asked.only in name and not (asked.folder / f"{stem}.json").exists():
            _in_a_process(of, name, job, asked.folder, stem)


def _in_a_process(of: str, name: str, job: Any, folder: Path, stem: str) -> None:
    """Prepares a pair in a process of its own: its memory goes with it, and an endless one ends."""
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        try:
            found = prepared(job, folder, stem)
        except Exception as error:  # a launch that cannot be prepared leaves the others
            found = {"failed": f"{type(error).__name__}: {error}"}
        (folder / f"{stem}.json").write_text(json.dumps({"of": of, "kernel": name} | found), "utf-8")
        print(name, {key: found.get(key) for key in ("failed", "change", "pays", "estimated")}, flush=True)
        os._exit(0)
    os.waitpid(child, 0)


def prepared(job: Any, folder: Path, stem: str) -> Record:
    """What memsim says of a launch and of the change that is ranked first, which are written."""
    from memsim.suggest.prove import replay_job
    from memsim.suggest.suggestions import suggest
    from memsim.views.suggest.terminal import name_of
    from studies.cures.pairs import write_pair

    analysis = replay_job(job)
    found = suggest(analysis, job)
    taken = found.taken
    if taken is None:
        return {"none": found.unproven}
    write_pair(folder, stem, (job, taken.job))
    times = [None if one.estimate is None else one.estimate.seconds for one in (analysis, taken.analysis)]
    return {
        "change": name_of(taken),
        "pays": found.pays,
        "estimated": times,
        "bound": [analysis.bound.cycles, taken.analysis.bound.cycles],
    }


def joined(folder: Path, times: Path) -> Record:
    """What was estimated of each pair beside what was measured."""
    first, *lines = map(json.loads, times.read_text("utf-8").splitlines())
    measured = {line.pop("pair"): line for line in lines}
    pairs = [json.loads(path.read_text("utf-8")) | measured[path.stem] for path in _files(folder, measured)]
    return first | {"pairs": pairs}


def _files(folder: Path, measured: Record) -> list[Path]:
    return [path for path in sorted(folder.glob("*.json")) if path.stem in measured]


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    main()
