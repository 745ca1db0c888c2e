"""Rows of a shared array further apart, where functions are given its places and strides as numbers.

Of `f(a, &s[row * 8 + column], 66, &s[column * 66 + row], 8);` no rule knows what `f` accesses. But rows that
are 68 apart, wherever the array's statements have 66, are others' banks: it is tried what a number more does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memsim.analysis import Analysis
from memsim.job import Job
from memsim.source.text import without_comments
from memsim.source.values import body_of
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.prove import is_the_same, source_text
from memsim.suggest.threads import Remapped, replay_edit

ADDED = (1, 2, 4)  # elements: a bank, two, or a vector more
LEAST = 8  # shorter rows are parts of others
#: A number that multiplies, or is multiplied, or is a whole argument.
_STRIDE = re.compile(r"(?<=[*,])\s*(?P<factor>\d+)(?=\s*[*+,)\]-])|(?<=[\[(+])\s*(?P<first>\d+)(?=\s*\*)")


def restrided_rows(job: Job, before: Analysis, arrays: list[str]) -> tuple[Remapped, ...]:
    """For each of the arrays the edit that needs fewest wavefronts, if it helps and has the same results."""
    found = list[Remapped]()
    for array in arrays:
        name = f"rows of {array} further apart"
        tried = (replay_edit(name, job, before, one) for one in _edits(job, before, array))
        helping = sorted(
            (one for one in tried if one is not None and one.helps), key=lambda one: one.wavefronts
        )
        found += [one for one in helping if is_the_same(job, one.job)][:1]
    return tuple(found)


def _edits(job: Job, before: Analysis, array: str) -> Iterator[Edit]:
    """The kernel with each number larger, in all statements that name the array."""
    text = before.trace.sources.get(job.kernel.file) or source_text(job)
    code = without_comments(text)
    start, end = body_of(code, before.trace.kernel)
    statements = re.finditer(rf"[^;{{}}]*?\b{array}\b[^;{{}}]*", code[start:end])
    numbers: dict[str, list[tuple[int, int]]] = {}
    given = False
    for statement in statements:
        given |= re.search(rf"[(,]\s*&\s*{array}\b", statement[0]) is not None
        place = start + statement.start()
        for stride in _STRIDE.finditer(statement[0]):
            first, last = stride.span(stride.lastgroup or 0)
            numbers.setdefault(statement[0][first:last], []).append((place + first, place + last))
    for number, places in numbers.items() if given else ():
        for added in ADDED if int(number) >= LEAST else ():
            new = tuple(Replacement(*span, f"{int(number) + added}") for span in places)
            yield Edit(job.kernel.file, text, new, declared=start)
