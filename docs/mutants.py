"""How many faults planted by `tools/mutants.py` the tests of a room find: a table of docs/architecture.md."""

from __future__ import annotations

import json
from pathlib import Path

from memsim.views.plain import table

RESULTS = Path(__file__).with_name("mutants.json")


def mutant_table() -> str:
    """For each room: how many places could be changed, how many were drawn and changed, what was found."""
    rooms = json.loads(RESULTS.read_text("utf-8"))
    rows = []
    for room, found in rooms.items():
        drawn, missed = found["drawn"], len(found["survived"])
        share = f"{100 * (drawn - missed) / drawn:.0f} %"
        same, seed = str(len(found.get("equivalent", ()))), str(found["seed"])
        rows.append(
            (f"`{room}/`", f"{found['places']:,}", seed, str(drawn), str(drawn - missed), share, same)
        )
    heads = ("room", "places", "seed", "changed", "found", "share", "of the others, the same program")
    return table(heads, rows, "lrrrrrr") + "\n"


PARTS = {"planted faults": mutant_table}
