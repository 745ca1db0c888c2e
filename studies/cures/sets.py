"""The sets of launches, by the name that `tools/public_cures.py` is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from memsim.job import Job
from studies.cures import development, fifth, fourth, held_out, third

SETS = {
    "development": development.LAUNCHES,
    "held-out": held_out.LAUNCHES,
    "third": third.LAUNCHES,
    "fourth": fourth.LAUNCHES,
    "fifth": fifth.LAUNCHES,
}


def launches(name: str, trees: Path) -> Iterator[tuple[str, str, Callable[[], Job], Callable[[], Job]]]:
    """Of each launch of a set its project, its name, and what makes its job of two sets of data."""
    for one in SETS[name]:
        yield one.source.project, one.name, partial(one.job, trees, 1), partial(one.job, trees, 2)
