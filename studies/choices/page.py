"""Tables of docs/time-accuracy.md: what the estimate of time would pick, beside what was fastest on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from memsim.views.plain import table
from studies.choices.choice import (
    CONFIGURATIONS,
    FIRST,
    FOURTH,
    H100,
    H200,
    SECOND,
    SINCE,
    SINCE_H200,
    THIRD,
    TILES,
    UNSEEN,
    Choice,
    ChoiceRecording,
    load_estimates,
    load_recordings,
)

COLD, WARM = "cold", "warm"
#: Estimates, when they were made, and the GPU whose times they are compared with.
SHOWN = {
    FIRST: ("before", H100),
    SINCE: ("since", H100),
    SINCE_H200: ("since", H200),
    UNSEEN: ("before, unseen sizes", H200),
    SECOND: ("before, again unseen sizes", H200),
    THIRD: ("before, unseen sizes of 30 November", H200),
    FOURTH: ("before, unseen sizes of a fourth seed", H200),
}
#: By how much what is picked may take longer than the fastest.
MARGINS = {TILES: 0.03, CONFIGURATIONS: 0.05}


@dataclass(frozen=True, slots=True)
class Decision:
    """What was picked for a problem. cost, typical: how much longer that takes than the fastest choice, and
    how much longer the median one, as shares. missing: choices that were not both estimated and measured.
    """

    problem: str
    picked: str
    fastest: str
    cost: float
    typical: float
    missing: int


def decisions(
    estimates: Mapping[Choice, int], times: Mapping[Choice, float], kind: str
) -> Iterator[Decision]:
    """One for each problem of a kind. estimates: cycles. times: milliseconds. A choice is the same only if
    its code is.
    """
    problems: dict[str, list[Choice]] = {}
    for one in dict.fromkeys((*estimates, *times)):
        if one.kind == kind:
            problems.setdefault(one.problem, []).append(one)
    for problem, choices in problems.items():
        known = [one for one in choices if one in estimates and one in times]
        if not known:
            continue
        fastest, picked = min(known, key=times.__getitem__), min(known, key=estimates.__getitem__)
        typical = median(times[one] for one in known)
        least, missing = times[fastest], len(choices) - len(known)
        cost, typical = times[picked] / least - 1, typical / least - 1
        yield Decision(problem, picked.choice, fastest.choice, cost, typical, missing)


def all_decisions(path: Path) -> Iterator[tuple[str, str, str, list[Decision]]]:
    """(GPU, kind, state of L2, decisions) of all recordings of its GPU, by the estimates of a file."""
    made, gpu = load_estimates(path).choices, SHOWN[path][1]
    for recording in load_recordings():
        if recording.device.gpu != gpu:
            continue
        for kind in dict.fromkeys(one.choice.kind for one in recording.choices):
            for l2 in (COLD, WARM):
                times = _times(recording, l2)
                estimates = {one.choice: cycles for one in made if (cycles := getattr(one, l2)) is not None}
                found = list(decisions(estimates, times, kind))
                if found:
                    yield gpu, kind, l2, found


def _times(recording: ChoiceRecording, l2: str) -> dict[Choice, float]:
    """The median of each choice."""
    times = {one.choice: getattr(one, f"{l2}_ms") for one in recording.choices}
    return {choice: median(ms) for choice, ms in times.items() if ms}


def summary() -> str:
    """How often what is picked is near the fastest."""
    rows = []
    for path, (when, _) in SHOWN.items():
        for gpu, kind, l2, found in all_decisions(path):
            margin = MARGINS[kind]
            good = sum(one.cost <= margin for one in found)
            costs = [f"{100 * cost:.1f} %" for cost in _worst_and_median(one.cost for one in found)]
            typical = f"{100 * median(one.typical for one in found):.0f} %"
            told = f"{good} of {len(found)} within {100 * margin:.0f} %"
            missing = str(sum(one.missing for one in found))
            rows.append([kind, l2, gpu, when, told, *costs, typical, missing])
    head = ["what", "L2", "GPU", "estimated", "picked is", "cost, median", "worst", "of a median choice",
            "not compared"]  # fmt: skip
    return table(head, rows, "llllrrrrr") + "\n"


def _worst_and_median(costs: Iterable[float]) -> tuple[float, float]:
    found = list(costs)
    return median(found), max(found)


def each_decision() -> str:
    """A row for each problem."""
    since = {(gpu, l2, one.problem): one for gpu, _, l2, found in all_decisions(SINCE) for one in found}
    rows = []
    for gpu, _, l2, found in all_decisions(FIRST):
        for one in found:
            now = since.get((gpu, l2, one.problem))
            later = ["", ""] if now is None else [now.picked, _percent(now.cost)]
            cells = [one.picked, _percent(one.cost), *later, one.fastest, f"{100 * one.typical:+.0f} %"]
            rows.append([one.problem, l2, *cells])
    head = ["problem", "L2", "picked before", "cost", "picked since", "cost", "fastest", "of a median choice"]
    return table(head, rows, "lllrlrlr") + "\n"


def _percent(share: float) -> str:
    return f"{100 * share:+.1f} %"


PARTS: dict[str, Callable[[], str]] = {
    "choices by estimated time": summary,
    "each choice by estimated time": each_decision,
}
