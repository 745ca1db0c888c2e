"""How many planted faults the tests of a room find: `python tools/mutants.py model guard --draw 60`.

A mutant is the source with one operator, number, comparison or decorator changed, by the operators of
cosmic-ray (`pip install cosmic-ray coverage`). It is planted in a copy of the last commit, one at a time, and
the tests of that room alone are run, first those that were seen to run the changed line: what is kept from
one test to the next, or made when a module is imported, is run by others too. A mutant that no test fails on
has survived; one that makes them take far longer than without it has been found. Places are drawn by a seed,
and one change at each, so that an operator that can be replaced in twelve ways does not count twelve times.

Left out of the draw, as they change nothing that a right program shows:
- annotations and protocols, which nothing evaluates;
- `frozen` and `slots` of dataclasses, and `@cache`: they guard and speed up, and change no result;
- what a `raise` says.

Nor are exceptions of other modules drawn, such as `zlib.error`, which cosmic-ray cannot replace.

Writes `docs/mutants.json`, from which docs/architecture.md says the shares, and prints what survived. Where a
survivor is the same program, somebody may write its place and the reason under `equivalent` there; such are
told apart, and are no part of the share. Reasons are kept as long as the place survives.
`--again` runs only what survived last, with the same draw, `--results FILE` keeps results elsewhere.
"""

from __future__ import annotations

import ast
import json
import os
import random
import subprocess
import sys
import time
from argparse import ArgumentParser
from difflib import unified_diff
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "mutants.json"
SECONDS = 40.0  # beyond twice what the tests take without a fault

# The tests of each room. Those of guard/ that run whole verbs are left out: a fault that they alone find
# counts as survived. Instructions that need a launch to run at all (copies by TMA, mbarriers, textures, and
# stores to other blocks) are tested by small kernels of simt/, and so are spilled registers; where the texels
# of a fetch lie, with what fetches cost.
KERNELS = (
    "bulk_copies clusters copies_in_flight mbarriers partial_copies reductions spilled_halves spills textures"
    " texture_kernels"
)
GUARD = "align baseline budget check cycles given judge rows_together select"
TESTS = {
    "model": "tests/model",
    "trace": "tests/trace",
    "isa": " ".join(
        [
            "tests/isa tests/simt/ops tests/model/test_texture_rules.py",
            *(f"tests/simt/test_{name}.py" for name in KERNELS.split()),
        ]
    ),
    "state": "tests/state tests/simt/ops/test_parts.py tests/simt/test_mbarriers.py",
    "order": "tests/order",
    "guard": " ".join(f"tests/guard/test_{name}.py" for name in GUARD.split()),
}

#: A file, row and column.
Place = tuple[str, int, int]


class Change(NamedTuple):
    """The `occurrence`-th change that an operator of cosmic-ray makes in a file."""

    file: str
    row: int
    column: int
    operator: str
    occurrence: int


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


@cache
def _left_out(file: Path) -> tuple[ast.AST, ...]:
    """The parts of a module that show nothing if they are changed: see the top of this file."""
    found: list[ast.AST | None] = []
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.FunctionDef):
            found.append(node.returns)
            found += [one for one in node.decorator_list if isinstance(one, ast.Name) and one.id == "cache"]
        elif isinstance(node, ast.arg | ast.AnnAssign):
            found.append(node.annotation)
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            found += [*node.exc.args, *(keyword.value for keyword in node.exc.keywords)]
        elif isinstance(node, ast.ExceptHandler) and node.type is not None:
            found += [one for one in ast.walk(node.type) if isinstance(one, ast.Attribute)]
        elif isinstance(node, ast.ClassDef) and any(
            getattr(base, "id", "") == "Protocol" for base in node.bases
        ):
            found.append(node)
        elif isinstance(node, ast.keyword) and node.arg in ("frozen", "slots"):
            found.append(node.value)
    return tuple(one for one in found if one is not None)


def _may_be_seen(file: Path, row: int, column: int) -> bool:
    """Whether a place is not in what is left out. A decorator's place is its `@`."""
    return not any(
        (one.lineno, one.col_offset - isinstance(one, ast.Name)) <= (row, column)
        and (row, column) <= (one.end_lineno, one.end_col_offset)
        for one in _left_out(file)
    )


def _changes(tree: Path, room: str) -> dict[Place, list[Change]]:
    """All changes of a room, by their place."""
    from cosmic_ray.ast import ast_nodes, get_ast_from_path
    from cosmic_ray.plugins import get_operator, operator_names

    operators = [(name, get_operator(name)) for name in sorted(operator_names())]
    plain = [(name, operator()) for name, operator in operators if not operator.arguments()]
    found: dict[Place, list[Change]] = {}
    for path in sorted((tree / "memsim" / room).rglob("*.py")):
        nodes, file = list(ast_nodes(get_ast_from_path(path))), str(path.relative_to(tree))
        for name, operator in plain:
            starts = [start for node in nodes for start, _ in operator.mutation_positions(node)]
            for occurrence, (row, column) in enumerate(starts):
                if _may_be_seen(path, row, column):
                    change = Change(file, row, column, name, occurrence)
                    found.setdefault((file, row, column), []).append(change)
    return dict(sorted(found.items()))


def _statement(file: Path, row: int) -> range:
    """The rows of the innermost statement around one, without those inside it."""
    rows = range(row, row + 1)
    for node in ast.walk(_tree(file)):  # outer ones first
        if isinstance(node, ast.stmt) and node.lineno <= row <= (node.end_lineno or row):
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if body else node.end_lineno or row
            if row <= end:
                rows = range(node.lineno, max(end, node.lineno) + 1)
    return rows


class Room:
    """A copy of the last commit, and which tests of one of its rooms run which lines of it."""

    def __init__(self, folder: Path, name: str) -> None:
        from coverage import CoverageData

        self.tree, self._folder, self._name = folder / "tree", folder, name
        self.tree.mkdir()
        packed = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, check=True)
        subprocess.run(["tar", "-x", "-C", self.tree], input=packed.stdout, check=True)
        # Tests that fail without a fault would find every fault.
        recorded = ["--record-lines", str(folder), "--room", str(self.tree / "memsim" / name)]
        failed = self._pytest([*recorded, *TESTS[name].split()], None)
        if failed:
            sys.exit(f"The tests of {name} fail, or take too long, without a fault:\n{failed}")
        self._seconds: dict[str, float] = json.loads((folder / "seconds.json").read_text())
        self._lines = CoverageData(str(folder / "lines"))
        self._lines.read()

    def _pytest(self, arguments: list[str], limit: float | None) -> str:
        """What pytest says of tests that fail or take too long; nothing if they pass."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            "-p",
            "tools.mutant_tests",
        ]
        environment = {**os.environ, "PYTHONPATH": str(self.tree), "OPENBLAS_NUM_THREADS": "1"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what is not changed is compiled once
        try:
            done = subprocess.run(
                [*command, *arguments],
                cwd=self.tree,
                env=environment,
                timeout=limit,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        except subprocess.TimeoutExpired:
            return "takes too long"
        if done.returncode == 5:
            raise RuntimeError(f"no test was run:\n{done.stdout}")
        return done.stdout if done.returncode else ""

    def _tests(self, change: Change) -> list[str]:
        """The room's tests, first those that run the line, the fastest first."""
        path = self.tree / change.file
        tests = self._lines.contexts_by_lineno(str(path))
        run_it = {test for row in _statement(path, change.row) for test in tests.get(row, ())}
        return sorted(self._seconds, key=lambda test: (test not in run_it, self._seconds[test]))

    def survives(self, change: Change) -> str | None:
        """The changed lines, if no test fails on them."""
        from cosmic_ray.mutating import mutate_code
        from cosmic_ray.plugins import get_operator

        path, tests = self.tree / change.file, self._tests(change)
        source = path.read_text()
        changed = mutate_code(source, get_operator(change.operator)(), change.occurrence)
        chosen = self._folder / "chosen"
        chosen.write_text("\n".join(tests))
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()  # it is told from the source by its second and size alone
        path.write_text(changed)
        try:
            limit = SECONDS + 2 * sum(self._seconds.values())
            files = sorted({test.partition("::")[0] for test in tests})
            if self._pytest(["--chosen-tests", str(chosen), *files], limit):
                return None
        finally:
            path.write_text(source)
            for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
                compiled.unlink()
        return _difference(source, changed)


def _difference(before: str, after: str) -> str:
    lines = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0))[2:]
    return "\n".join(line for line in lines if not line.startswith("@@"))


def judge(room: str, draw: int, seed: int, only: set[str] | None = None) -> dict[str, Any]:
    """Plant the drawn faults of one room; their number, and those that survived. `only`: at these lines."""
    survived = {}
    with TemporaryDirectory() as folder:
        copy = Room(Path(folder), room)
        places = _changes(copy.tree, room)
        chance = random.Random(seed)
        drawn = [chance.choice(places[place]) for place in chance.sample([*places], min(draw, len(places)))]
        for number, change in enumerate(drawn, 1):
            place = f"{change.file}:{change.row}:{change.column}"
            if only is not None and place not in only:
                continue
            begun = time.perf_counter()
            lived = copy.survives(change)
            if lived is not None:
                survived[place] = lived
            how = "found" if lived is None else "survived"
            print(f"{number} {place} {how}, {time.perf_counter() - begun:.1f} s", flush=True)
            if lived:
                print(lived, flush=True)
    return {"places": len(places), "drawn": len(drawn), "seed": seed, "survived": survived}


def main() -> None:
    """Judge the rooms that are named, all without a name, and write what was found."""
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rooms", nargs="*", choices=[*TESTS, []], default=list(TESTS))
    parser.add_argument("--draw", type=int, default=60, help="mutants of a room")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="only what survived last")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    for room in options.rooms:
        known = json.loads(options.results.read_text()) if options.results.exists() else {}
        only = set(known[room]["survived"]) if options.again else None
        found = judge(room, options.draw, options.seed, only)
        known = json.loads(options.results.read_text()) if options.results.exists() else {}
        reasons = known.get(room, {}).get("equivalent", {})
        found["equivalent"] = {place: why for place, why in reasons.items() if place in found["survived"]}
        options.results.write_text(json.dumps({**known, room: found}, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
