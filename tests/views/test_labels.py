"""Words that several views share."""

from __future__ import annotations

from dataclasses import replace

from memsim.analysis import analyze_trace
from memsim.views.analyze.costs import limits_of_totals
from memsim.views.labels import at_all_places
from tests.traces import Request, make_trace, site


def test_reasons_that_differ_in_lines_are_one_sentence() -> None:
    loop, order = "a loop waits at b.cu:{}", "what is stored at {} and loaded at {} decides"
    reasons = [loop.format(3), order.format("x:1", "y:2"), loop.format(5), order.format("z:7", "y:2")]
    assert list(at_all_places([*reasons, "the clock", loop.format(5)])) == [
        "a loop waits at b.cu:3 and 5",
        "what is stored at x:1 and z:7 and loaded at y:2 decides",
        "the clock",
    ]
    assert list(at_all_places(map(loop.format, range(1, 8)))) == [
        "a loop waits at b.cu:1, 2, 3, 4 and 3 other lines"
    ]


def test_what_is_said_of_the_launch_is_not_said_again_of_a_total() -> None:
    """It has a reason of its own beside it."""
    copy = site(op="cp_async"), [Request(range(0, 128, 4), partner=range(0, 4096, 128))]
    (alone,) = limits_of_totals(analyze_trace(make_trace(copy)))
    waits = analyze_trace(replace(make_trace(copy), uncertain=("a loop waits", "another")))
    assert any("; a loop waits; another" in limits.why for limits in waits.undecided.values())
    (told,) = limits_of_totals(waits)
    assert told == alone.replace(" (31 as counted here)", "") and "lanes of a cp.async" in told
