"""How many planted faults the tests of a room find: `python tools/mutants.py model guard --draw 50`.

A mutant is the source with one operator, number, comparison or decorator changed. cosmic-ray
(`pip install cosmic-ray`) plants them in a copy of the last commit, one at a time, and runs the tests of that
room alone; a mutant that no test fails on has survived. Places are drawn by a seed, and one change at each,
so that an operator that can be replaced in twelve ways does not count twelve times. Annotations are left
out: nothing evaluates them.

Writes `docs/mutants.json`, from which docs/architecture.md says the shares, and prints what survived. Where a
survivor changes nothing that can be observed, somebody may write its place and the reason under `equivalent`
there; they are kept as long as it survives, and it counts as survived.
"""

from __future__ import annotations

import ast
import json
import os
import random
import sqlite3
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "mutants.json"
SECONDS = 120  # the tests of a room; a mutant that takes longer has been found

# The tests of each room. Those of guard/ that run a whole `memsim check` are left out: a fault that they
# alone find counts as survived.
COMMANDS = ("against", "baseline_command", "cache", "check_command", "formatter", "project", "signals")
TESTS = {
    "model": "tests/model",
    "trace": "tests/trace",
    "isa": "tests/isa",
    "state": "tests/state tests/simt/ops/test_parts.py tests/simt/test_mbarriers.py",
    "order": "tests/order",
    "guard": "tests/guard " + " ".join(f"--ignore=tests/guard/test_{name}.py" for name in COMMANDS),
}

CONFIG = """
[cosmic-ray]
module-path = "memsim/{room}"
timeout = {seconds}
excluded-modules = []
test-command = "{python} -m pytest -q -x -p no:cacheprovider -m 'not slow' {tests}"
[cosmic-ray.distributor]
name = "local"
"""

Place = tuple[str, int, int]


@cache
def _annotations(file: Path) -> tuple[ast.expr, ...]:
    """What annotates arguments, results and names of a module."""
    found: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef):
            found.append(node.returns)
        elif isinstance(node, ast.arg | ast.AnnAssign):
            found.append(node.annotation)
    return tuple(one for one in found if one is not None)


def _is_evaluated(tree: Path, place: Place) -> bool:
    file, row, column = place
    at = row, column
    return not any(
        (one.lineno, one.col_offset) <= at <= (one.end_lineno or row, one.end_col_offset or column)
        for one in _annotations(tree / file)
    )


def _keep_drawn(session: Path, tree: Path, draw: int, seed: int) -> int:
    """Leave one mutation at each of the drawn places in the session; the number of all places."""
    with sqlite3.connect(session) as database:
        by_place: dict[Place, list[str]] = {}
        for *place, job in database.execute(
            "SELECT module_path, start_pos_row, start_pos_col, job_id FROM mutation_specs"
            " ORDER BY module_path, start_pos_row, start_pos_col, operator_name, occurrence, operator_args"
        ):
            by_place.setdefault((place[0], place[1], place[2]), []).append(job)
        places = [place for place in by_place if _is_evaluated(tree, place)]
        chance = random.Random(seed)
        kept = {chance.choice(by_place[place]) for place in chance.sample(places, min(draw, len(places)))}
        others = [(job,) for jobs in by_place.values() for job in jobs if job not in kept]
        for table in ("mutation_specs", "work_items"):
            database.executemany(f"DELETE FROM {table} WHERE job_id = ?", others)
    return len(places)


def _survivors(session: Path) -> Iterator[tuple[str, str]]:
    """Place, and the changed lines, of each mutant that no test failed on."""
    with sqlite3.connect(session) as database:
        for file, row, diff in database.execute(
            "SELECT module_path, start_pos_row, diff FROM mutation_specs JOIN work_results USING (job_id)"
            " WHERE test_outcome = 'SURVIVED' ORDER BY module_path, start_pos_row"
        ):
            lines = diff.splitlines()[2:]  # without the names of the files
            yield f"{file}:{row}", "\n".join(line for line in lines if line[:1] in ("+", "-"))


def judge(room: str, draw: int, seed: int) -> dict[str, Any]:
    """Plant the faults of one room; their number, and those that survived."""
    with TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        session, config = Path(folder, "session.sqlite"), Path(folder, "config.toml")
        tree.mkdir()
        packed = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, check=True)
        subprocess.run(["tar", "-x", "-C", tree], input=packed.stdout, check=True)
        config.write_text(CONFIG.format(room=room, tests=TESTS[room], seconds=SECONDS, python=sys.executable))
        environment = {**os.environ, "PYTHONPATH": str(tree)}

        def cosmic_ray(verb: str) -> None:
            subprocess.run(["cosmic-ray", verb, config, session], cwd=tree, env=environment, check=True)

        # Tests that fail without a fault would find every fault.
        subprocess.run(["cosmic-ray", "baseline", config], cwd=tree, env=environment, check=True)
        cosmic_ray("init")
        places = _keep_drawn(session, tree, draw, seed)
        cosmic_ray("exec")
        survived = dict(_survivors(session))
    for place, change in survived.items():
        print(f"{place}\n{change}", flush=True)
    return {"places": places, "drawn": min(draw, places), "seed": seed, "survived": survived}


def main() -> None:
    """Judge the rooms that are named, all without a name, and write what was found."""
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rooms", nargs="*", choices=[*TESTS, []], default=list(TESTS))
    parser.add_argument("--draw", type=int, default=50, help="mutants of a room")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for room in options.rooms:
        found = judge(room, options.draw, options.seed)
        known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        reasons = known.get(room, {}).get("equivalent", {})
        found["equivalent"] = {place: why for place, why in reasons.items() if place in found["survived"]}
        RESULTS.write_text(json.dumps({**known, room: found}, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
