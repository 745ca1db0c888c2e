"""Rows by statement: what a baseline knows an access by.

An analysis has a row for each source line. A statement may have several lines, and a formatter may break it,
or join two: its accesses are the same, so rows of one statement and one kind of access are one row here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import PurePath
from typing import Any

from memsim.analysis import Analysis, SiteCounts
from memsim.counts import Range, sums_of_counts, total
from memsim.source.statements import SourceStatement, statement_at

_COMMENT = re.compile(r"//.*|/\*.*?(?:\*/|$)")
_OTHER_LANGUAGES = (".py",)


def rows_by_statement(analysis: Analysis) -> tuple[SiteCounts, ...]:
    """The rows of an analysis; those of one statement and one kind of access are one row.

    Its place is that of the worst of them, its source the statement. A row of a statement in one line is that
    of the analysis.
    """
    sources = analysis.trace.sources
    statements = [_statement(sources.get(site.file, ""), site) for site in analysis.sites]

    def key(number: int) -> Hashable:
        statement = statements[number]
        site = analysis.sites[number]
        return number if statement is None else (site.file, statement.first, _kind(site))

    rows = []
    for members in _grouped(range(len(analysis.sites)), key):
        statement = statements[members[0]]
        row = combine_rows([analysis.sites[number] for number in members])
        rows.append(row if statement is None else replace(row, source=statement.text))
    return tuple(rows)


def regroup_rows(
    before: Sequence[SiteCounts], now: Sequence[SiteCounts]
) -> tuple[tuple[SiteCounts, ...], tuple[SiteCounts, ...]]:
    """Both sides, with rows of one side combined that together are one row of the other.

    So a line of several statements, `if (c) a[i] = 0;`, is the same as these statements in a line each.
    """
    return _as_other(before, now), _as_other(now, before)


def combine_rows(rows: Sequence[SiteCounts]) -> SiteCounts:
    """The sum of rows of one kind, in the place of the worst; unresolved if one of them is."""
    worst = max(rows, key=lambda row: row.badness)
    if len(rows) == 1:
        return worst
    unresolved = next((row.unresolved for row in rows if row.unresolved is not None), None)
    counts: dict[str, Any] = sums_of_counts(rows)
    if unresolved is not None:
        counts = {**dict.fromkeys(counts), "instructions": counts["instructions"]}
    limits = {name: total(row.count(name) for row in rows) for row in rows for name in row.ranges}
    ranges = {name: count for name, count in limits.items() if isinstance(count, Range)}
    return replace(worst, unresolved=unresolved, ranges=ranges, **counts)


@lru_cache(maxsize=4096)
def squeeze_code(code: str) -> str:
    """Code without comments, blanks, and the braces around it: what no formatter changes."""
    return re.sub(r"\s", "", _COMMENT.sub("", code)).strip("{};")


def is_within(code: str, whole: str) -> bool:
    """Whether a row's code is the other's, or a part of it."""
    return bool(squeeze_code(code)) and squeeze_code(code) in squeeze_code(whole)


def _as_other(rows: Sequence[SiteCounts], others: Sequence[SiteCounts]) -> tuple[SiteCounts, ...]:
    """The rows, with those combined whose code is within that of one row of the others."""
    there = {(squeeze_code(row.statement), _kind(row)) for row in rows}
    same = there & {(squeeze_code(other.statement), _kind(other)) for other in others}
    wholes = [other for other in others if (squeeze_code(other.statement), _kind(other)) not in same]

    def key(number: int) -> Hashable:
        row = rows[number]
        if (squeeze_code(row.statement), _kind(row)) in same:
            return number
        around = (
            id(one) for one in wholes if _kind(one) == _kind(row) and is_within(row.statement, one.statement)
        )
        return next(around, number)

    groups = _grouped(range(len(rows)), key)
    return tuple(combine_rows([rows[number] for number in members]) for members in groups)


def _statement(text: str, site: SiteCounts) -> SourceStatement | None:
    """The statement of a row if it has several lines."""
    if not text or PurePath(site.file).suffix in _OTHER_LANGUAGES:
        return None
    found = statement_at(text, site.line)
    return None if found is None or found.first == found.last else found


def _kind(site: SiteCounts) -> tuple[str, str, int, str]:
    return site.op, site.space, site.width, site.array


def _grouped(numbers: Iterable[int], key: Callable[[int], Hashable]) -> Iterable[list[int]]:
    """Numbers with an equal key together, in the order of the first of each."""
    groups: dict[Hashable, list[int]] = {}
    for number in numbers:
        groups.setdefault(key(number), []).append(number)
    return groups.values()
