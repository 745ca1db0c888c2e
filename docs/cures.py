"""The tables of docs/cures.md: what `memsim suggest` writes for public kernels, and what a GPU says.

`tools/public_cures.py` recorded docs/validation/cures_development.jsonl and those beside it, a line for each
launch; docs/validation/cures_gpu.json and those beside it have the times of pairs of kernels, before and
after a change.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from memsim.suggest.other_values import REFUSED, SAME
from memsim.suggest.proposals import LEAST_SAVED
from memsim.suggest.ranking import Verdict
from memsim.suggest.suggestions import SECTOR_UNITS
from memsim.views.plain import table

FOLDER = Path(__file__).parent / "validation"
HALVES = {
    "development": "cures_development.jsonl",
    "held out": "cures_held_out.jsonl",
    "held out, opened": "cures_opened.jsonl",
    "third set": "cures_third.jsonl",
    "fourth set, first contact": "cures_fourth_first.jsonl",
    "fourth set": "cures_fourth.jsonl",
    "fifth set, first contact": "cures_fifth_first.jsonl",
    "fifth set": "cures_fifth.jsonl",
}
#: What is shown for a kernel without a whole cure, the most telling first, and what that means.
CAUSES = {
    "layout": "another layout is known, and no rule writes it",
    "fields": "records: a structure of arrays is shown, to be made by hand",
    "wider": "wider accesses are shown, to be made by hand",
    "staging": "staging in shared memory is shown, to be done by hand",
    "lanes": "another order of lanes is shown, and no rule writes it",
}
#: Of a pair, what is estimated with what was learnt from it.
SINCE, SINCE_WARM = "estimated since", "estimated since, with a warm L2"
WRITTEN = "an edit is written that removes a part"
NOTHING = "nothing is shown"
ASKED = "whole, if the caller keeps the data so"
BEHIND = "whole, but a quicker cure in part comes first"
WHOLE = ("whole", BEHIND, ASKED)
Line = dict[str, Any]


def recorded(half: str) -> list[Line]:
    """All launches of a half, with waste or without."""
    return [json.loads(line) for line in (FOLDER / HALVES[half]).read_text("utf-8").splitlines()]


def with_waste(half: str) -> list[Line]:
    """Those that have waste. What is cured whole if the caller keeps data in another layout is `ASKED`; where
    not what comes first is whole, but other written changes are, `BEHIND`.
    """
    lines = [line for line in recorded(half) if "waste" in line]
    return [line | {"cure": _cure(line)} for line in lines]


def _cure(line: Line) -> str:
    if line.get("whole behind the first"):
        return BEHIND
    asks = any("asks of the caller" in step for step in line["steps"])
    return ASKED if asks and line["cure"] == "whole" else line["cure"]


def summary() -> str:
    """A row for each quantity, a column for each half."""
    halves = {half: with_waste(half) for half in HALVES}
    rows = [
        (what, *(count(lines) for lines in halves.values()))
        for what, count in (
            ("kernels with waste", lambda lines: f"{len(lines)}"),
            ("projects", lambda lines: f"{len({line['project'] for line in lines})}"),
            ("measured, on which commit", _commits),
            ("**cured, the whole of it**", lambda lines: _of(lines, "whole")),
            (BEHIND, _behind),
            (ASKED, lambda lines: _of(lines, ASKED)),
            ("cured in part, a quarter or more of it", lambda lines: _of(lines, "part")),
            ("less, or nothing", lambda lines: _of(lines, "none")),
            ("not cured whole, and `suggest` says that it is not worth an edit", _not_worth),
            ("whole, of those with bank conflicts alone", lambda lines: _of_kind(lines, ["shared"])),
            ("whole, of those with needless sectors alone", lambda lines: _of_kind(lines, ["global"])),
            ("edits that were written; their results differ; by rounding alone", _edits),
            ("values of constants and sizes tried; results differ unguarded", _values),
            ("CPU of `suggest`: median, most", _cpu),
        )
    ]
    return f"{table(('', *HALVES), rows, 'l' + 'r' * len(HALVES))}\n"


def _commits(lines: Sequence[Line]) -> str:
    counts = Counter(line["commit"] for line in lines).most_common()
    return ", ".join(f"{count} on {commit}" for commit, count in counts)


def _of(lines: Sequence[Line], cure: str) -> str:
    return f"{sum(line['cure'] == cure for line in lines)}"


def _behind(lines: Sequence[Line]) -> str:
    if not any("whole behind the first" in line for line in lines):
        return "not tried"
    verdicts = [line["whole behind the first"]["verdict"] for line in lines if line["cure"] == BEHIND]
    slower = sum(each == Verdict.SLOWER.value for each in verdicts)
    return f"{len(verdicts)}, {slower} of them estimated slower than without" if verdicts else "0"


def _of_kind(lines: Sequence[Line], kinds: list[str]) -> str:
    own = [line for line in lines if list(line["waste"]) == kinds]
    return f"{sum(line['cure'] == 'whole' for line in own)} of {len(own)}"


def _not_worth(lines: Sequence[Line]) -> str:
    """Of those that are not cured whole: where what is ranked first does not pay, or where nothing is written
    and only sectors are wasted that do not make the lower bound.
    """
    told = [line for line in lines if line["cure"] not in WHOLE]
    free = [
        line for line in told if list(line["waste"]) == ["global"] and line["bound by"] not in SECTOR_UNITS
    ]
    return f"{sum(line.get('needs no edit', not line['steps'] and line in free) for line in told)}"


def _edits(lines: Sequence[Line]) -> str:
    steps = [step for line in lines for step in line["steps"]]
    differ, rounded = (sum(bool(step.get(key)) for step in steps) for key in ("differ", "differ by rounding"))
    return f"{len(steps)}; {differ}; {rounded}"


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
    return f"{table(('not cured whole', *HALVES), kept, 'l' + 'r' * len(HALVES))}\n"


def _cause(line: Line) -> str:
    if line["cure"] in WHOLE:
        return ""
    if line["cure"] == "part":
        return WRITTEN
    return next((told for name, told in CAUSES.items() if name in line.get("shown", ())), NOTHING)


def kernels(half: str) -> str:
    """A row for each kernel with waste of a half."""
    rows = []
    for line in with_waste(half):
        name = line["launch"].split("|")[2]
        ways = [line, line["whole behind the first"]] if line["cure"] == BEHIND else [line]
        waste = ", ".join(
            f"{_unit(kind)} {now[0]:,} -> " + " or ".join(f"{way['left'][kind][0]:,}" for way in ways)
            for kind, now in line["waste"].items()
        )
        steps = " or ".join(map(_steps, ways))
        rows.append((line["project"], f"`{name}`", waste, line["cure"], steps, line["commit"]))
    heads = ("project", "kernel", "waste, and what is left", "cure", "edits", "commit")
    return f"{table(heads, rows, 'llllll')}\n"


def _steps(way: Line) -> str:
    return "; ".join(dict.fromkeys(step["name"] for step in way["steps"])) or "-"


def _unit(kind: str) -> str:
    return {"shared": "conflicts", "global": "needless sectors"}[kind]


def on_a_gpu(name: str) -> str:
    """A row for each pair that was timed, those first of which memsim had said that the change pays.

    Of one that was measured to learn from it, what is estimated since.
    """
    measured = json.loads((FOLDER / name).read_text("utf-8"))
    pairs = [pair for pair in measured["pairs"] if "cold" in pair]
    pays, not_worth = ([pair for pair in pairs if pair["pays"] is which] for which in (True, False))
    rows = [
        (
            f"`{pair['kernel']}`",
            pair["of"],
            pair["change"] if pair["pays"] else f"{pair['change']} (not worth an edit)",
            "-" if None in pair["estimated"] else _change(second * 1e6 for second in pair["estimated"]),
            _change(pair["cold"]),
            _change(pair["warm"]),
            "yes" if pair["same"] else "**no**",
            *(_change(second * 1e6 for second in pair[one]) for one in (SINCE, SINCE_WARM) if one in pair),
        )
        for pair in (*pays, *not_worth)
    ]
    since = [pair for pair in pairs if SINCE in pair]
    headings = ["kernel", "of", "change", "estimated, us", "cold L2, us", "warm L2, us", "same results"]
    headings += [SINCE, SINCE_WARM] if since else []
    said = [
        f"On {measured['gpu']}, of {len(pays)} changes that come first and are said to pay {_faster(pays)}.",
        f"Of {len(not_worth)} that are said not to be worth an edit, {_faster(not_worth)}.",
        f"Results differ in {sum(not pair['same'] for pair in pairs)} of {len(pairs)}.",
    ]
    if since:
        kept = [
            pair
            for pair in since
            if pair["pays"] and _saves(*pair[SINCE]) and pair[SINCE_WARM][1] <= pair[SINCE_WARM][0]
        ]
        said.append(
            f"As it is estimated since, with both, {len(kept)} are proposed; of these {_faster(kept)}."
        )
    return f"{' '.join(said)}\n\n{table(headings, rows, 'lllrrrr' + 'rr' * bool(since))}\n"


def _saves(before: float, after: float) -> bool:
    """Whether it is enough that code which is harder to read is proposed."""
    return (before - after) * LEAST_SAVED >= before


def _change(times: Iterable[float]) -> str:
    """`9.1 -> 5.9, 1.54x`."""
    before, after = times
    return f"{before:,.1f} -> {after:,.1f}, {before / after:.2f}x"


def _faster(pairs: Sequence[Line]) -> str:
    cold, warm = (sum(pair[name][1] < pair[name][0] for pair in pairs) for name in ("cold", "warm"))
    return f"{cold} are faster with a cold L2 cache, {warm} with a warm one"


PARTS: dict[str, Callable[[], str]] = {
    "cures": summary,
    "causes": causes,
    "cures of development": lambda: kernels("development"),
    "cures of held out, opened": lambda: kernels("held out, opened"),
    "cures of third set": lambda: kernels("third set"),
    "cures of fourth set": lambda: kernels("fourth set"),
    "cures of fifth set": lambda: kernels("fifth set"),
    "cures on a GPU": lambda: on_a_gpu("cures_gpu.json"),
    "public cures on a GPU": lambda: on_a_gpu("cures_gpu_public.json"),
    "halves on a GPU": lambda: on_a_gpu("cures_gpu_halves.json"),
    "copies on a GPU": lambda: on_a_gpu("cures_gpu_copies.json"),
}
