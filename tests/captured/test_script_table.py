"""The table of a script: launches that are alike together, worst lines, and ranks that are estimates."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from memsim.captured.launched import Launched
from memsim.captured.saved_launch import write_launch
from memsim.captured.script_table import ScriptLaunches, headline, to_dict, write
from memsim.targets.target import read_job
from memsim.time.quick_estimate import estimate


def launched(kernel: str, size: str, note: str = "") -> Launched:
    return replace(Launched.of(read_job(kernel, {"size": size})), note=note)


@pytest.fixture
def launches(tmp_path: Path) -> ScriptLaunches:
    """Two configurations of a kernel, the second of which is launched twice, and a kernel alone."""
    found = ScriptLaunches()
    large, small = (
        launched("transpose_naive", "512,512", "TILE=2"),
        launched("transpose_naive", "64,64", "TILE=1"),
    )
    for number, one in enumerate((large, small, small, launched("transpose_padded", "64,64"))):
        found.add(one, write_launch(one, tmp_path / str(number)))
    assert list(found.analyze())[-1] == 1
    return found


def test_launches_that_are_alike_are_a_row_and_configurations_rank(launches: ScriptLaunches) -> None:
    large, small, padded = launches.kinds.values()
    assert (large.times, small.times, padded.times) == (1, 2, 1)
    assert (large.rank, small.rank, padded.rank) == (2, 1, 0)  # one alone has no rank
    analysis = small.analysis
    assert analysis is not None and small.worst is not None and small.worst.line == 22
    told = estimate(launched("transpose_naive", "64,64").job(), analysis.trace)
    assert told is not None and small.about == told.cycles is not None
    assert padded.worst is None


def test_the_table_says_waste_and_that_ranks_are_estimates(launches: ScriptLaunches) -> None:
    kinds, stream = [*launches.kinds.values()], StringIO()
    write(kinds, stream)
    answer, _, heading, first, second, third, *rest = stream.getvalue().splitlines()
    assert answer == headline(kinds)
    assert answer == "4 launches of 3 kinds; the worst line is transpose_naive.cu:22 in transpose_naive"
    assert heading.split()[:2] == ["kernel", "configuration"] and heading.split()[-1] == "rank"
    assert "TILE=1" in first and first.endswith(" 1") and "94 %" in first
    assert "TILE=2" in second and second.endswith(" 2")
    assert third.startswith("transpose_padded") and " 0 %" in third
    assert "median error" in " ".join(rest)
    document = to_dict(kinds, answer)
    assert [kind["rank"] for kind in document["kinds"]] == [1, 2, None]
    assert document["kinds"][0]["estimate_error"] > 0


def test_what_cannot_be_counted_is_named_and_ranks_nothing(tmp_path: Path) -> None:
    found = ScriptLaunches()
    for number, note in enumerate(("TILE=1", "TILE=2")):
        one = launched("transpose_naive", "64,64", note)
        found.add(one, write_launch(one, tmp_path / str(number)))
    (tmp_path / "1" / "launch.json").write_text("{}")
    list(found.analyze())
    good, bad = found.kinds.values()
    assert good.analysis is not None and bad.why_not and (good.rank, bad.rank) == (0, 0)
    stream = StringIO()
    write([good, bad], stream)
    assert "not counted: " in stream.getvalue() and "median error" not in stream.getvalue()
    assert headline([]) == "the script launched no kernel that could be captured"
