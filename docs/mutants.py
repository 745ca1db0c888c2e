"""How many faults planted by `tools/mutants.py` the tests of a room find: a table of docs/architecture.md."""

from __future__ import annotations

import json
from pathlib import Path

from memsim.views.plain import table

RESULTS = Path(__file__).with_name("mutants.json")


def mutant_table() -> str:
    """For each room: how many places could be changed, how many were, how many of these were found, and the
    share of that among those that are another program.
    """
    rooms = json.loads(RESULTS.read_text("utf-8"))
    rows = []
    for room, found in rooms.items():
        drawn, same = found["drawn"], len(found["equivalent"])
        caught = drawn - len(found["survived"])
        numbers = (found["places"], found["seed"], drawn, caught, same)
        rows.append(
            (f"`{room}/`", *(f"{number:,}" for number in numbers), f"{100 * caught / (drawn - same):.0f} %")
        )
    heads = ("room", "places", "seed", "changed", "found", "the same program", "share of the others")
    return table(heads, rows, "lrrrrrr") + "\n"


PARTS = {"planted faults": mutant_table}
