"""Loops of chosen instructions (`lab/time/patterns.py`): what an H200 took, and what is estimated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache

from lab.time.patterns import FORMS, asked
from memsim.counts import SiteCounts
from memsim.data import data_folder
from memsim.sass.decode import decode
from memsim.sass.listing import read_listing
from memsim.time.latencies import Latencies
from memsim.time.timed_instructions import timed_instructions
from tests.time.conftest import PLAINLY, ran

#: Instructions of a loop, and the numbers of warps for which it was timed.
SLOTS, WARPS = 128, (1, 4, 8, 16)
#: Kind, bytes a lane and wavefronts of each access, if no guard is false.
_ACCESSES = {"LDS": ("load", 4, 1), "LDSW": ("load", 16, 1), "STS": ("store", 4, 1), "STSW": ("store", 16, 4)}


@cache
def recorded(name: str) -> Mapping[str, tuple[float, ...]]:
    """Cycles of an iteration by pattern, for each of `WARPS`."""
    loops = json.loads((data_folder("docs/validation") / f"{name}.json").read_text("utf-8"))["loops"]
    return {one["pattern"]: tuple(one["cycles"][0]) for one in loops}


def own(pattern: str) -> int:
    """Cycles of its stall counts."""
    return sum(asked(text).control.stall for text in pattern.split())


def measured(name: str, pattern: str, plain: str, warps: int) -> float:
    """Cycles of a repetition of a pattern without those of the loop around it. plain: a pattern of which a
    warp alone is known to take its stall counts.
    """
    loops = recorded(name)

    def around(which: str, warps: int) -> tuple[int, float]:
        times = SLOTS // len(which.split())
        return times, loops[which][WARPS.index(warps)] - (SLOTS - times * len(which.split()))

    (most, bare), (times, taken) = around(plain, 1), around(pattern, warps)
    return (taken - (bare - most * own(plain))) / times


def estimated(pattern: str, warps: int, set_to: Latencies | None = None) -> float:
    """Cycles of a repetition of a pattern."""
    taken = []
    for times in (4, 12):
        ones = [asked(text) for text in [*pattern.split() * times, "_EXIT5"]]
        lines = (f"        /*{16 * number:04x}*/ {FORMS[one.name][0]} ;" for number, one in enumerate(ones))
        text = "\n".join(['\t.section\t.text.k,"ax",@progbits', *lines, ".L_x_1:", ""])
        ops = decode(read_listing(text)["k"]).ops
        costs = {
            op.address: [_cost(one.name)] for op, one in zip(ops, ones) if one.name.strip("_") in _ACCESSES
        }
        made, _ = timed_instructions(ops, [one.control for one in ones], costs, set_to or Latencies())
        after = ran(made, [list(range(len(made)))] * warps, set_to=set_to or Latencies(), off=PLAINLY)
        taken.append(after.cycles)
    return (taken[1] - taken[0]) / 8


def _cost(name: str) -> SiteCounts:
    op, width, wavefronts = _ACCESSES[name.strip("_")]
    asks = not name.startswith("_")
    found = {"instructions": 1, "requests": int(asks), "wavefronts": wavefronts * asks}
    return SiteCounts("k.cu", 1, 0, "", op, "shared", width, "", **found)
