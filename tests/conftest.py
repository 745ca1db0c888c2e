"""Some tests run only when they are asked for: `-m gpu`, which need one, and `-m slow`, which take long."""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

# The same examples every time, and no limit of time; `HYPOTHESIS_PROFILE=random`, which runs every night, has
# others each time, and more of them.
settings.register_profile(
    "same", deadline=None, derandomize=True, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("random", settings.get_profile("same"), derandomize=False, max_examples=400)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture(autouse=True)
def no_kept_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test changes in memsim's code is in no key: verbs keep no traces unless a test is about that."""
    monkeypatch.setattr("memsim.cli.launch_options.open_cache", lambda no_cache: None)


@pytest.fixture(autouse=True)
def no_known_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are as wide as in a pipe, whatever the terminal of whoever runs the tests says."""
    monkeypatch.delenv("COLUMNS", raising=False)
    os.unsetenv(
        "COLUMNS"
    )  # readline, which pytest imports, sets it where only processes that are started see it


def mark_others_slow(items: list[pytest.Item]) -> None:
    """Of a test marked `some(n)`, n cases spread evenly run each time; mark the others slow."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("some") and not item.get_closest_marker("slow"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for alike in cases.values():
        (count,) = alike[0].get_closest_marker("some").args
        kept = {place * len(alike) // count for place in range(count)}
        for place in {*range(len(alike))} - kept:
            alike[place].add_marker("slow")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what has such a mark unless `-m` names it, or the command line the test itself."""
    mark_others_slow(items)
    marks = [mark for mark in ("gpu", "slow") if mark not in config.option.markexpr]
    named = [argument for argument in config.args if "::" in argument]
    if named and "gpu" in marks:
        marks = ["gpu"]
    left_out = [item for item in items if any(map(item.get_closest_marker, marks))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not any(map(item.get_closest_marker, marks))]


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: the garbage collector leaves it out."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000)  # at 50,000 it takes twice the memory and 2 % less time
