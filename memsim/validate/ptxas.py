"""What ptxas makes of the PTX, found by comparing predictions with the instructions that ran.

In: the PTX's accesses on some source lines, and the SASS rows of the same lines. Out: a `Change` that says
what was done and predicts every figure anew. It is claimed only if the new prediction equals every measured
figure. What is known:

merged      loads or stores side by side became one wider instruction
predicated  a branch became a predicate: instructions run with every lane off, and touch nothing

Left out on purpose: guesses. What has no proof stays a difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from memsim.arch import Arch
from memsim.validate.predict import EXECUTED, Access, Figures, Predicted, Requests, predict
from memsim.validate.report import SassRow
from memsim.validate.sass import is_guarded, width_of

PERIOD = 128  # a trace keeps addresses modulo this
WIDEST = 16


@dataclass(frozen=True, slots=True)
class Change:
    """What ptxas did, in a word and in a sentence, and the prediction for what it made."""

    kind: str
    what: str
    predicted: Predicted


def find_change(
    accesses: Sequence[Access], rows: Sequence[SassRow], measured: Figures, arch: Arch
) -> Change | None:
    """The change that explains every measured figure of these lines; None if there is none."""
    if not accesses:
        return None
    return _predicated(accesses, rows, measured, arch) or _merged(accesses, rows, measured, arch)


def agrees(figures: Figures, measured: Figures) -> bool:
    """Whether every figure is as measured. One that is not there is predicted to be 0; None is unknown."""
    return all(figures.get(name, 0) in (None, value) for name, value in measured.items())


def _predicated(
    accesses: Sequence[Access], rows: Sequence[SassRow], measured: Figures, arch: Arch
) -> Change | None:
    predicted = predict(accesses, arch)
    surplus = (measured[EXECUTED] or 0) - (predicted.figures.get(EXECUTED) or 0)
    guarded = sum(row.count(EXECUTED) or 0 for row in rows if is_guarded(row.sass))
    predicted.figures[EXECUTED] = measured[EXECUTED]
    if not 0 < surplus <= guarded or not agrees(predicted.figures, measured):
        return None
    what = f"predicates in place of branches: {surplus:,} instructions ran with every lane off"
    return Change("predicated", what, predicted)


def _merged(
    accesses: Sequence[Access], rows: Sequence[SassRow], measured: Figures, arch: Arch
) -> Change | None:
    """Tries every width that ran, for each array by itself."""
    ran = {width_of(row.sass) for row in rows if row.count(EXECUTED)}
    by_array: dict[str, list[Access]] = {}
    for access in accesses:
        by_array.setdefault(access.site.array, []).append(access)
    choices = [_ways_to_merge(of_array, ran) for of_array in by_array.values()]
    for choice in product(*choices):
        merged = [access for of_array in choice for access in of_array]
        predicted = predict(merged, arch)
        if len(merged) < len(accesses) and agrees(predicted.figures, measured):
            return Change("merged", _sentence(accesses, merged), predicted)
    return None


def _ways_to_merge(accesses: list[Access], widths: Iterable[int]) -> list[list[Access]]:
    """The accesses to one array as they are, and merged to each of `widths` that is wider."""
    ways = [accesses]
    narrow = {access.width for access in accesses}
    for width in sorted(widths):
        if len(narrow) == 1 and max(narrow) < width <= WIDEST:
            ways.append(list(merge(accesses, width)))
    return ways


def merge(accesses: Sequence[Access], width: int) -> Iterator[Access]:
    """Accesses of one width to one array, with each run of neighbours as one of `width` bytes a lane.

    Neighbours ask, in every request, for the next bytes of the same lanes; a run starts where every lane is
    aligned to `width`. What belongs to no whole run stays as it is.
    """
    narrow = accesses[0].width
    left = [(access, _patterns(access)) for access in accesses]
    while left:
        first, _ = left.pop(0)
        run = []
        for step in range(narrow, width, narrow) if _is_aligned(first, width) else ():
            wanted = _patterns(first, step)
            run += [pair for pair in left if pair[1] == wanted and pair not in run][:1]
        if (len(run) + 1) * narrow == width:
            left = [pair for pair in left if pair not in run]
            yield replace(first, width=width)
        else:
            yield first


def _is_aligned(access: Access, width: int) -> bool:
    requests = access.requests
    return len(requests.times) > 0 and not (requests.addresses % width * requests.active).any()


def _patterns(access: Access, step: int = 0) -> Mapping[bytes, int]:
    """Which requests were made how often, `step` bytes further on, as a trace tells them apart."""
    requests: Requests = access.requests
    counts: Counter[bytes] = Counter()
    addresses = requests.addresses + step
    first = addresses[np.arange(len(addresses)), requests.active.argmax(axis=1)]
    moved = (addresses - (first // PERIOD * PERIOD)[:, None]) * requests.active
    for row, active, times in zip(moved, requests.active, requests.times, strict=True):
        counts[row.tobytes() + active.tobytes()] += int(times)
    return counts


def _sentence(before: Sequence[Access], after: Sequence[Access]) -> str:
    wide = [access for access in after if access.width > before[0].width]
    groups = sorted({(access.width, access.site.array) for access in wide})
    made = ", ".join(f"{width} B of {array or 'memory'}" for width, array in groups)
    op = wide[0].site.op
    return f"{len(before)} {op}s of {before[0].width} B became {len(after)}, those now {made}"
