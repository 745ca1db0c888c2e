"""The tables of docs/cures.md: what `memsim suggest` writes for public kernels, and what a GPU says.

`tools/public_cures.py` recorded docs/validation/cures_development.jsonl and cures_held_out.jsonl, a line for
each launch; docs/validation/cures_gpu.json has the times of pairs of kernels, before and after a change.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from memsim.suggest.other_values import REFUSED, SAME
from memsim.views.plain import table
from memsim.views.suggest.headline import SECTOR_UNITS

FOLDER = Path(__file__).parent / "validation"
HALVES = {"development": "cures_development.jsonl", "held out": "cures_held_out.jsonl"}
#: What is shown for a kernel without a whole cure, the most telling first, and what that means.
CAUSES = {
    "layout": "another layout is known, and no rule writes it",
    "fields": "records: a structure of arrays is shown, to be made by hand",
    "wider": "wider accesses are shown, to be made by hand",
    "staging": "staging in shared memory is shown, to be done by hand",
    "lanes": "another order of lanes is shown, and no rule writes it",
}
WRITTEN = "an edit is written that removes a part"
NOTHING = "nothing is shown"
Line = dict[str, Any]


def recorded(half: str) -> list[Line]:
    """All launches of a half, with waste or without."""
    return [json.loads(line) for line in (FOLDER / HALVES[half]).read_text("utf-8").splitlines()]


def with_waste(half: str) -> list[Line]:
    """Those that have waste."""
    return [line for line in recorded(half) if "waste" in line]


def summary() -> str:
    """A row for each quantity, a column for each half."""
    halves = {half: with_waste(half) for half in HALVES}
    rows = [
        (what, *(count(lines) for lines in halves.values()))
        for what, count in (
            ("kernels with waste", lambda lines: f"{len(lines)}"),
            ("projects", lambda lines: f"{len({line['project'] for line in lines})}"),
            ("**cured, the whole of it**", lambda lines: _of(lines, "whole")),
            ("cured in part, a quarter or more of it", lambda lines: _of(lines, "part")),
            ("less, or nothing", lambda lines: _of(lines, "none")),
            ("whole, of those with bank conflicts alone", lambda lines: _of_kind(lines, ["shared"])),
            ("whole, of those with needless sectors alone", lambda lines: _of_kind(lines, ["global"])),
            ("needless sectors that do not make the lower bound", _free),
            ("edits that were written; their results differ", _edits),
            ("values of constants and sizes tried; results differ unguarded", _values),
            ("CPU of `suggest`: median, most", _cpu),
        )
    ]
    return f"{table(('', *HALVES), rows, 'lrr')}\n"


def _of(lines: Sequence[Line], cure: str) -> str:
    return f"{sum(line['cure'] == cure for line in lines)}"


def _of_kind(lines: Sequence[Line], kinds: list[str]) -> str:
    own = [line for line in lines if list(line["waste"]) == kinds]
    return f"{sum(line['cure'] == 'whole' for line in own)} of {len(own)}"


def _free(lines: Sequence[Line]) -> str:
    own = [line for line in lines if list(line["waste"]) == ["global"]]
    return f"{sum(line['bound by'] not in SECTOR_UNITS for line in own)} of {len(own)}"


def _edits(lines: Sequence[Line]) -> str:
    steps = [step for line in lines for step in line["steps"]]
    return f"{len(steps)}; {sum(bool(step['differ']) for step in steps)}"


def _values(lines: Sequence[Line]) -> str:
    steps = [step for line in lines for step in line["steps"]]
    outcomes = [outcome for step in steps for _, _, outcome in step.get("values", ())]
    judged = [outcome for outcome in outcomes if outcome]
    loose = [
        outcome
        for step in steps
        for _, _, outcome in step.get("values", ())
        if outcome not in (SAME, REFUSED, "") and not step.get("guarded")
    ]
    return f"{len(judged)}; {len(loose)}"


def _cpu(lines: Sequence[Line]) -> str:
    seconds = [line["cpu"][0] for line in lines]
    return f"{median(seconds):.1f} s, {max(seconds):.1f} s"


def causes() -> str:
    """Why kernels were not cured whole, by what is shown for them."""
    found = {half: Counter(map(_cause, with_waste(half))) for half in HALVES}
    order = [WRITTEN, *CAUSES.values(), NOTHING]
    rows = [(cause, *(str(found[half][cause]) for half in HALVES)) for cause in order]
    kept = [row for row in rows if any(number != "0" for number in row[1:])]
    return f"{table(('not cured whole', *HALVES), kept, 'lrr')}\n"


def _cause(line: Line) -> str:
    if line["cure"] == "whole":
        return ""
    if line["cure"] == "part":
        return WRITTEN
    return next((told for name, told in CAUSES.items() if name in line.get("shown", ())), NOTHING)


def kernels(half: str) -> str:
    """A row for each kernel with waste of a half."""
    rows = []
    for line in with_waste(half):
        name = line["launch"].split("|")[2]
        waste = ", ".join(
            f"{_unit(kind)} {now[0]:,} -> {line['left'][kind][0]:,}" for kind, now in line["waste"].items()
        )
        steps = "; ".join(dict.fromkeys(step["name"] for step in line["steps"])) or "-"
        rows.append((line["project"], f"`{name}`", waste, line["cure"], steps))
    return f"{table(('project', 'kernel', 'waste, and what is left', 'cure', 'edits'), rows, 'lllll')}\n"


def _unit(kind: str) -> str:
    return {"shared": "conflicts", "global": "needless sectors"}[kind]


def on_a_gpu() -> str:
    """A row for each pair that was timed: before and after, in turn."""
    path = FOLDER / "cures_gpu.json"
    if not path.exists():
        return "Not measured yet.\n"
    measured = json.loads(path.read_text("utf-8"))
    pairs = measured["pairs"]
    lower = [pair for pair in pairs if pair["bound"][1] < pair["bound"][0]]
    faster = sum(pair["ratio"] > 1 for pair in lower)
    rows = [
        (
            f"`{pair['kernel']}`",
            pair["of"],
            pair["change"],
            f"{pair['us'][0]:,.1f} -> {pair['us'][1]:,.1f}",
            f"{pair['ratio']:.2f}",
            f"{pair['bound'][0] / pair['bound'][1]:.2f}",
            "yes" if pair["same"] else "**no**",
        )
        for pair in pairs
    ]
    headings = ("kernel", "of", "change", "microseconds", "times faster", "by the bound", "same results")
    said = f"On {measured['gpu']}, {faster} of {len(lower)} changes that lower the bound are faster."
    return f"{said}\n\n{table(headings, rows, 'lllrrrr')}\n"


PARTS: dict[str, Callable[[], str]] = {
    "cures": summary,
    "causes": causes,
    "cures of development": lambda: kernels("development"),
    "cures of held out": lambda: kernels("held out"),
    "cures on a GPU": on_a_gpu,
}
