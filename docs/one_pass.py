"""Tables of docs/time-accuracy.md: cycles with L2 in four states, measured in one pass
(`lab/time/l2_states.py`), beside the estimates.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import geometric_mean, mean, median

from memsim.time.behind_l1 import COLD, WARM
from memsim.time.latencies import Latencies
from memsim.views.plain import table
from studies.choices.choice import SINCE_H200, load_estimates

ACTIVE = "sm__cycles_active.max"
VALIDATION = Path(__file__).parent / "validation"
#: State of L2 -> counter -> its values.
States = Mapping[str, Mapping[str, Sequence[float]]]


@cache
def measured(which: str) -> Mapping[str, States]:
    """By launch. which: "" for the catalogue and small launches, "_triton" for Triton's kernels."""
    text = (VALIDATION / f"l2_states{which}.json").read_text("utf-8")
    found: Mapping[str, States] = json.loads(text)["launches"]
    return found


def in_one_pass(name: str, l2: str, metric: str) -> float:
    """The median of a launch's values on an H200, with L2 cold or warm."""
    return median(measured("")[name][l2][metric])


def triton_cycles() -> dict[str, dict[str, int]]:
    """Active cycles as estimated for an H200, by "kernel: configuration" and state of L2."""
    launch = Latencies().launch
    return {
        f"{one.choice.problem}: {one.choice.choice}": {COLD: one.cold - launch, WARM: one.warm - launch}
        for one in load_estimates(SINCE_H200).choices
        if one.cold is not None and one.warm is not None
    }


def triton_table() -> str:
    """A row for each kernel in Triton, of all its configurations."""
    estimated, launches = triton_cycles(), measured("_triton")
    kernels: dict[str, list[str]] = {}
    for name in launches:
        kernels.setdefault(name.split(": ")[0], []).append(name)
    rows = [_row(kernel, names, launches, estimated) for kernel, names in kernels.items()]
    rows.append(_row("all", [*launches], launches, estimated))
    head = ["kernel", "configurations", *(f"{state}, of cold" for state in ("read", "written", WARM))]
    head += [f"mean error, {l2}" for l2 in (COLD, WARM)]
    return table(head, rows, "l" + "r" * 6) + "\n"


def _row(
    kernel: str,
    names: Sequence[str],
    launches: Mapping[str, States],
    estimated: Mapping[str, Mapping[str, int]],
) -> list[str]:
    def cycles(name: str, state: str) -> float:
        return median(launches[name][state][ACTIVE])

    shares = [
        f"{median(cycles(one, state) / cycles(one, COLD) for one in names):.2f}"
        for state in ("read", "written", WARM)
    ]
    errors = [
        f"{100 * mean(abs(estimated[one][l2] / cycles(one, l2) - 1) for one in names):.1f} %"
        for l2 in (COLD, WARM)
    ]
    return [kernel, str(len(names)), *shares, *errors]


def large_table() -> str:
    """A row for each large launch: what it took in the median, the least and the most, and the estimate."""
    estimated = json.loads((VALIDATION / "large_estimates.json").read_text("utf-8"))
    rows, errors = [], dict[str, list[float]]({COLD: [], WARM: []})
    for name, states in measured("_large").items():
        cells = []
        for l2 in errors:
            cycles = states[l2][ACTIVE]
            errors[l2].append(estimated[name][l2] / median(cycles) - 1)
            spread = max(cycles) / min(cycles) - 1
            cells += [f"{median(cycles):,.0f}", f"{100 * spread:.1f} %", f"{100 * errors[l2][-1]:+.1f} %"]
        kernel, size = name.split()
        extrapolated = "" if estimated[name]["is_whole"] else "extrapolated"
        rows.append([f"`{kernel}`", size, *cells, extrapolated])
    told = "; ".join(
        f"{l2} {100 * mean(map(abs, of_state)):.1f} % off in the mean, {100 * max(map(abs, of_state)):.1f} % "
        "at worst"
        for l2, of_state in errors.items()
    )
    of_state = [what for l2 in errors for what in (l2, "apart", "error")]
    head = ["kernel", "size", *of_state, ""]
    return f"Of {len(rows)} launches: {told}.\n\n{table(head, rows, 'lr' + 'r' * 6 + 'l')}\n"


def _two_ways(runs: list[float], between: float) -> tuple[list[float], list[float]]:
    """Those of sorted runs that were shorter, and longer: parted at their widest gap, if that is of 4 % or
    more, else all are of the way that is nearer. between: what both ways would take, in the middle.
    """
    gaps = [later / earlier for earlier, later in pairwise(runs)]
    if max(gaps) >= 1.04:
        at = gaps.index(max(gaps)) + 1
        return runs[:at], runs[at:]
    return (runs, []) if median(runs) < between else ([], runs)


def both_ways_table() -> str:
    """A row for each large launch of which chance decides: its runs in all states of L2, those that took
    longer and those that took shorter, beside the estimates of both ways.
    """
    estimated = json.loads((VALIDATION / "large_estimates.json").read_text("utf-8"))
    rows = []
    for name, states in measured("_large").items():
        if estimated[name]["otherwise"] is None:
            continue
        runs = sorted(cycles for state in states.values() for cycles in state[ACTIVE])
        estimates = sorted((estimated[name][COLD], estimated[name]["otherwise"]))
        cells = []
        for those, estimate in zip(_two_ways(runs, geometric_mean(estimates)), estimates):
            off = f"{100 * (estimate / median(those) - 1):+.1f} %" if those else ""
            cells += [str(len(those)), f"{median(those):,.0f}" if those else "", f"{estimate:,}", off]
        kernel, size = name.split()
        rows.append([f"`{kernel}`", size, *cells])
    of_way = ["cycles", "estimate", "error"]
    head = ["kernel", "size", "shorter runs", *of_way, "longer runs", *of_way]
    return table(head, rows, "lr" + "r" * 8) + "\n"


PARTS: dict[str, Callable[[], str]] = {
    "states of L2": triton_table,
    "large launches": large_table,
    "both ways": both_ways_table,
}
