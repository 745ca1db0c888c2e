"""The tables of docs/validation.md about launches whose predictions were written before they were measured.

Three sets of them, in docs/validation: what was found, that is the projects and their commits, and each
launch's outcome by a program that shares nothing with memsim, and by `memsim validate --live`. The projects'
files are not kept.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from memsim.views.plain import table

FOLDER = Path(__file__).parent / "validation"
# In the order in which they were measured. No project is in two of them.
SETS = ("predicted_first", "predicted_second", "predicted_third")
# What a launch's row says, as these files have it.
OUTCOMES = {
    "equal": "equal in every counter",
    "arbitration": "equal but for proven arbitration",
    "not modelled": "equal as far as modelled, or within the limits",
    "doubted": "equal, but said beforehand not to be certain",
    "open": "said beforehand not to be certain, and not known",
    "order": "differs, and said beforehand not to be certain",
    "refused": "not executed: memsim says why",
    "wrong": "wrong, and given as certain",
    "not measured": "not measured",
}
Made = dict[str, Any]


def summary(name: str) -> str:
    """How many of which outcome, by each of the two programs; and the commits of the projects."""
    made, found = _read(name), launches(name)
    counts = [Counter(launch[how] for launch in found) for how in ("apart", "live")]
    rows = [
        (says, *(f"{count[outcome]:,}" for count in counts))
        for outcome, says in OUTCOMES.items()
        if outcome == "wrong" or any(count[outcome] for count in counts)
    ]
    commits = ", ".join(
        f"{name} `{commit[:10]}`" for name, commit in sorted(made["projects"].items(), key=_fold)
    )
    lines = [
        f"**{len(found):,} launches of {len(made['projects'])} projects** on one {made['gpu']} (driver "
        f"{made['driver']}, Nsight Compute {made['ncu']}), {made['date']}; predicted by memsim at "
        f"`{made['memsim'][:10]}`:",
        "",
        table(("", "by a program apart from memsim", "by `validate --live`"), rows, "lrr"),
        "",
        f"Compiled by {made['compiler']}. Commits: {commits}.",
    ]
    if "predictions" in made:
        said = f"SHA-256 of the file of predictions, fixed before measuring: `{made['predictions']}`."
        lines += ["", said]
    return "\n".join(lines) + "\n"


def launches_table(name: str) -> str:
    """For each project the launches that are equal in everything, and a row for each of the others."""
    by_project: dict[str, list[Made]] = {}
    for launch in launches(name):
        by_project.setdefault(launch["project"], []).append(launch)
    rows = []
    for project, members in sorted(by_project.items(), key=_fold):
        equal = [_cell(f"`{launch['kernel']}`") for launch in members if launch["apart"] == "equal"]
        whole = f"{len(equal)} of {len(members)} equal"
        rows.append([f"**{project}**" + (f": {', '.join(equal)}" if equal else ""), whole, "", ""])
        for launch in members:
            if launch["apart"] != "equal":
                said = f"`{launch['kernel']}`", launch["apart"], "<br>".join(launch["differs"]), launch["why"]
                rows.append([*map(_cell, said)])
    return table(("launch", "outcome", "what differs", "why"), rows, "llll") + "\n"


def launches(name: str) -> list[Made]:
    """The launches of a set, with their outcome by the program apart from memsim (`apart`) and by `live`."""
    found: list[Made] = _read(name)["launches"]
    return found


def _read(name: str) -> Made:
    found: Made = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return found


def _fold(pair: tuple[str, Any]) -> str:
    return pair[0].lower()


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


PARTS: dict[str, Callable[[], str]] = {
    f"{name.replace('_', ' ')}: {part}": partial(make, name)
    for name in SETS
    for part, make in (("summary", summary), ("launches", launches_table))
}
