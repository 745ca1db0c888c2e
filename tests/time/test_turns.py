"""Which warp a scheduler takes, beside clocks that warps of an H200 read."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from memsim.data import data_folder
from memsim.time.latencies import Latencies
from memsim.time.timed_instructions import PARTS
from tests.time.conftest import PLAINLY, program, ran

ONE_CLOCK, FFMA = {"stall": 1}, {"pipe": "fma", "busy": 2}
DEPENDENT, LAST_OF_CHAIN = FFMA | {"stall": 4}, FFMA | {"stall": 1}
LOAD = {"pipe": "memory", "wavefronts": PARTS, "sends": 2, "returned": 1, "result": 0} | {
    "latency": Latencies().shared
}
WAITS = FFMA | {"stall": 4, "waits": (0,)}
#: What a piece has, as the compiler schedules it: a clock is read, then come the products.
PIECES = {
    ("pieces", 16, 8): [ONE_CLOCK, *[FFMA] * 8],
    ("pieces", 1, 4): [{"stall": 3}, *[DEPENDENT] * 3, LAST_OF_CHAIN],
    ("loads", 16, 16): [ONE_CLOCK, LOAD, *[FFMA] * 15, WAITS, FFMA],
}
#: By what was measured and its warps in all: when each warp of the first scheduler began each piece.
BEGAN: dict[tuple[str, int, int, int], list[list[int]]] = {}
for _row in json.loads((data_folder("docs/validation") / "turns.json").read_text("utf-8"))["warps"]:
    _key = _row["kind"], _row["chain"], _row["n"], _row["warps"]
    BEGAN.setdefault(_key, []).append(_row["began"][0])


def began(
    code: list[dict[str, object]], times: int, warps: int, resident: int = 1, blocks: int = 1
) -> list[list[int]]:
    """When each warp of the first scheduler, blocks one after the other, issued the first instruction of each
    of its pieces.
    """
    made = ran(
        program(*code), [[*range(len(code))] * times] * warps, blocks, resident, PLAINLY, Latencies(),
        watched=range(1 << 40),
    )  # fmt: skip
    found: dict[int, list[int]] = {}
    for one in made.issues:
        if one.op == 0 and one.scheduler == 0:
            found.setdefault(one.warp, []).append(one.cycle)
    return [found[warp] for warp in sorted(found)]


def paces(warps: list[list[int]]) -> list[float]:
    """Cycles of a piece of each warp."""
    return [(times[-1] - times[1]) / (len(times) - 2) for times in warps]


@pytest.mark.parametrize("warps", [8, 16, 32])
@pytest.mark.parametrize("kind", PIECES, ids=str)
def test_warps_of_a_block_take_turns_as_on_the_chip(kind: tuple[str, int, int], warps: int) -> None:
    """Each gets on as fast as the others, where it waits within a piece, and else goes on to its end."""
    measured = paces(BEGAN[(*kind, warps)])
    found = paces(began(PIECES[kind], 16, warps))
    assert found == pytest.approx(measured, rel=0.2)  # those of older numbers are a little slower on the chip
    assert sum(found) == pytest.approx(sum(measured), rel=0.06)


@pytest.mark.parametrize("warps", [8, 16, 32])
def test_a_warp_that_need_not_wait_goes_on_to_its_end(warps: int) -> None:
    kind = ("pieces", 16, 8)
    for every in (BEGAN[(*kind, warps)], began(PIECES[kind], 16, warps)):
        spans = sorted((times[1], times[-1]) for times in every)
        assert all(end < start for (_, end), (start, _) in pairwise(spans))


def test_the_oldest_block_goes_on_first() -> None:
    """Where the memory pipe is what takes longest, a block has made little of its way when the one before it
    ends, which was there before it.
    """
    code = [ONE_CLOCK, {"barrier": 0}, *[LOAD, LOAD, WAITS] * 32]
    first, second, *_ = (times[:32] for times in began(code, 32, 32, resident=2, blocks=4)[::8])
    measured = BEGAN["blocks", 1, 32, 32]
    for older, younger in ((first, second), *pairwise(measured)):
        assert older[0] < younger[0] < older[-1]
        assert sum(time < older[-1] for time in younger) <= 10
