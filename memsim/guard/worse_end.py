"""Rows at the worse end of what is known of them: what a budget judges."""

from __future__ import annotations

from collections.abc import Mapping

from memsim.analysis import Range, SiteCounts

UPPER = ("<=", "<")
LOWER = (">=", ">")


def at_worse_end(site: SiteCounts, relation: str) -> SiteCounts:
    """The row with the most of each count if a budget limits it from above, with the fewest if from below.

    Unresolved if nothing limits a count, or if the budget asks for one number. It keeps its ranges.
    """
    if not site.ranges:
        return site
    ends = {name: _end(limits, relation) for name, limits in site.ranges.items()}
    if None in ends.values():
        return site.with_counts(ends, site.unresolved or _why(site.ranges), site.ranges)
    return site.with_counts(_complete(site, ends), None, site.ranges)


def opposite(relation: str) -> str:
    """The relation for the other side of a comparison."""
    return {"<=": ">=", "<": ">", ">=": "<=", ">": "<"}.get(relation, relation)


def _end(limits: Range, relation: str) -> int | None:
    if limits.least == limits.most:
        return limits.least
    return limits.most if relation in UPPER else limits.least if relation in LOWER else None


def _why(ranges: Mapping[str, Range]) -> str:
    name, limits = next(iter(ranges.items()))
    return f"{name.replace('_', ' ')}: {limits}: {limits.why}"


def _complete(site: SiteCounts, ends: Mapping[str, int | None]) -> dict[str, int | None]:
    """Other counts that follow: wavefronts of a copy rise with its conflicts."""
    found = dict(ends)
    more = (found.get("conflicts") or 0) - (site.conflicts or 0)
    if "wavefronts" not in found and site.wavefronts is not None:
        found["wavefronts"] = site.wavefronts + more
    return found
