"""Which warp issues what in which cycle, as text and as a trace."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest

from memsim.targets.target import catalogue_job
from memsim.time.predict_time import PreparedTime
from memsim.views.time_text import WAITING, events, letters_of, row_of, write_pipeline
from tests.cli.conftest import Run
from tests.cli.conftest import memsim as memsim


@pytest.fixture(scope="module")
def launch() -> PreparedTime:
    return PreparedTime(catalogue_job("transpose_naive", {"size": "256,256"}))


def test_all_issues_are_kept_if_all_cycles_are_watched(launch: PreparedTime) -> None:
    plain, found = launch.predict(), launch.predict(watched=range(20_000))
    assert plain.issues == ()
    assert len(found.issues) == found.issued == plain.issued
    assert (found.cycles, found.stalls) == (plain.cycles, plain.stalls)
    assert len({(one.cycle, one.scheduler) for one in found.issues}) == found.issued  # one a cycle of each
    executed = [sum(one.op == number for one in found.issues) for number in range(len(found.instructions))]
    assert executed == [one.executed for one in found.instructions]


def test_what_is_watched_later_is_what_a_longer_watch_has_there(launch: PreparedTime) -> None:
    whole = launch.predict(watched=range(20_000)).issues
    first, end = whole[len(whole) // 4].cycle, whole[len(whole) // 2].cycle
    part = launch.predict(watched=range(first, end)).issues
    assert [one for one in part if one.cycle < end] == [one for one in whole if first <= one.cycle < end]
    assert len(part) > len(whole) // 5
    assert all(one.since < end for one in part)


def test_a_row_has_a_letter_for_each_cycle(launch: PreparedTime) -> None:
    found = launch.predict(watched=range(20_000))
    letters = letters_of(found)
    mine = [one for one in found.issues if one.warp == 0]
    row = row_of(mine, range(mine[0].cycle, mine[-1].cycle + 1), letters)
    assert " " not in row
    assert sum(letter.isupper() for letter in row) == len(mine)
    slow = max(mine[1:], key=lambda one: one.cycle - one.since)
    assert WAITING[slow.why] * (slow.cycle - slow.since - 1) in row


def test_the_picture_and_the_trace_agree(launch: PreparedTime) -> None:
    cycles = range(600, 1_300)
    found = launch.predict(watched=cycles)
    stream = StringIO()
    write_pipeline(found, cycles, stream)
    rows = [line[10:] for line in stream.getvalue().splitlines() if line.startswith("warp")]
    made = [one for one in events(found) if one.get("cat") == "issue" and one["pid"] == 0]
    assert sum(map(str.isupper, "".join(rows))) == sum(one["ts"] < 1_300 for one in made) > 50


def test_the_verb_draws_and_writes(memsim: Run, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    told = memsim(f"time transpose_naive --size 256,256 --cycles 600:900 --trace {path}").fine()
    assert told[0].startswith("cycles 600 to ")
    assert any(line.startswith("Waiting for: ") for line in told)
    made = json.loads(path.read_text())["traceEvents"]
    assert {one["ph"] for one in made} == {"M", "X"}
    assert all(one["dur"] > 0 for one in made if one["ph"] == "X")


@pytest.mark.parametrize("cycles", ["10", "20:10", "0:90000", "a:b"])
def test_cycles_that_are_none_are_refused(memsim: Run, cycles: str) -> None:
    memsim(f"time transpose_naive --cycles {cycles}").refused("is not FROM:TO")
