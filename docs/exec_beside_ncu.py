"""The counts of `memsim exec` beside those of a GPU that ran the same programs, as a table for docs/exec.md.

`tools/exec_beside_ncu.py` makes docs/validation/exec_beside_ncu.json, on an H100; what ran on an H200 was
profiled by ncu in the same way.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from docs.exec_programs import SEEDED_BY_TIME
from memsim.validate import predict
from memsim.validate.profiles import CONFLICTS, WAVEFRONTS
from memsim.views.plain import table

RESULTS = sorted((Path(__file__).parent / "validation").glob("exec_beside_ncu*.json"))
#: Wavefronts of shared memory as ncu adds them up by instruction, without those that other warps cause.
ALONE = predict.WAVEFRONTS
EQUAL, ARBITRATION, DIFFERENT, NOT_MEASURED = "equal", "arbitration", "different", "not measured"
Launch = dict[str, Any]


def launches() -> Iterator[tuple[str, str, Launch]]:
    """(suite, program, launch): a kernel's first one, with `counts` of memsim and what was `measured`."""
    for file in RESULTS:
        for program in json.loads(file.read_text("utf-8"))["programs"]:
            which = program["suite"], program["name"]
            for launch in program["launches"] if which not in SEEDED_BY_TIME else ():
                yield *which, launch


def differences(launch: Launch) -> dict[str, int]:
    """By how much the chip's count is larger, of counts that differ."""
    counted, measured = launch["counts"], launch["measured"]
    both = counted.keys() & measured.keys()
    return {name: measured[name] - counted[name] for name in sorted(both) if measured[name] != counted[name]}


def verdict(launch: Launch) -> str:
    """How a launch compares. It is arbitration if the chip counts as many more wavefronts of shared memory as
    conflicts, and its sum over instructions, which has no arbitration in it, is as predicted.
    """
    if not launch["measured"]:
        return NOT_MEASURED
    found = differences(launch)
    if not found:
        return EQUAL
    alone = launch["counts"].get(ALONE)
    of_kind = [name.removeprefix(WAVEFRONTS) for name in found if name.startswith(WAVEFRONTS)]
    more = {WAVEFRONTS + kind: found[WAVEFRONTS + kind] for kind in of_kind}
    explained = more | {CONFLICTS + kind: found[WAVEFRONTS + kind] for kind in of_kind}
    is_whole = alone is not None and alone == launch["measured"].get(ALONE)
    return ARBITRATION if is_whole and found == explained and min(more.values()) > 0 else DIFFERENT


def beside_ncu() -> str:
    """A row for each suite."""
    rows = []
    found = list(launches())
    for suite in dict.fromkeys(one[0] for one in found):
        of_suite = [(program, launch) for name, program, launch in found if name == suite]
        verdicts = Counter(verdict(launch) for _, launch in of_suite)
        measured = [launch for _, launch in of_suite if launch["measured"]]
        figures = sum(len(launch["counts"].keys() & launch["measured"].keys()) for launch in measured)
        names = {program for program, launch in of_suite if launch["measured"]}
        left_open = sum(len(launch["measured"].keys() - launch["counts"].keys()) for launch in measured)
        numbers = (len(names), len(measured), verdicts[EQUAL], verdicts[ARBITRATION], verdicts[DIFFERENT])
        rows.append([suite, *map(str, numbers), f"{figures:,}", f"{left_open:,}"])
    heads = ["project", "programs", "launches", EQUAL, ARBITRATION, DIFFERENT, "counts", "left open"]
    return table(heads, rows, "lrrrrrrr") + "\n"


PARTS: dict[str, Callable[[], str]] = {"exec beside ncu": beside_ncu}
