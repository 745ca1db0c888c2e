"""A plugin of pytest for `tools/mutants.py`: tests record which lines they run, or chosen tests run in order.

`pytest -p tools.mutant_tests --record-lines FOLDER --room memsim/model tests/model` writes `lines` there, a
file of coverage with a context for each test, and `seconds.json`. With `--chosen-tests FILE` the tests named
in FILE run, in that order.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, settings


class _Recorder:
    """Lines of a room that each test runs, and its seconds."""

    def __init__(self, folder: Path, room: str) -> None:
        from coverage import Coverage

        self._folder = folder
        self._seconds: dict[str, float] = {}
        self._coverage = Coverage(data_file=str(folder / "lines"), include=[f"{room}/*"], config_file=False)
        self._coverage.start()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        begun = time.perf_counter()
        yield
        self._seconds[item.nodeid] = time.perf_counter() - begun

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        (self._folder / "seconds.json").write_text(json.dumps(self._seconds))


class _Chosen:
    """The tests named in a file, in its order."""

    def __init__(self, file: Path) -> None:
        self._place = {name: place for place, name in enumerate(file.read_text().splitlines())}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._place), key=lambda item: self._place[item.nodeid]
        )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-lines", type=Path)
    parser.addoption("--room")
    parser.addoption("--chosen-tests", type=Path)


def pytest_configure(config: pytest.Config) -> None:
    if config.option.record_lines:
        config.pluginmanager.register(_Recorder(config.option.record_lines, config.option.room))
    if config.option.chosen_tests:
        config.pluginmanager.register(_Chosen(config.option.chosen_tests))


def pytest_sessionstart() -> None:
    """Hypothesis looks for no smaller example of a failure: that there is one says all."""
    settings.register_profile(
        "mutants", settings.get_profile("same"), phases=(Phase.explicit, Phase.generate)
    )
    settings.load_profile("mutants")
