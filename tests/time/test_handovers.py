"""What warps hand over to each other in time: at mbarriers, at a cluster's barrier, and by copies in bulk."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from lab.time.run_time import timed_lines
from memsim.api.running import job_of
from memsim.data import data_folder
from memsim.time.handovers import BlockHandovers, Handover
from memsim.time.hardware_units import NEVER
from memsim.time.latencies import Latencies
from memsim.time.multiprocessor import Multiprocessor
from memsim.time.predict_time import PreparedTime
from memsim.time.repeated_states import run_to_end
from tests.simt.cuda import HOPPER, machine_kernel
from tests.time.conftest import PLAIN, cycles_for, processor, program

AT_MBARRIER: dict[str, object] = {
    "pipe": "memory", "wavefronts": 8, "hands_over": True, "why": "long_scoreboard", "stall": 2,
}  # fmt: skip
CHECK = {**AT_MBARRIER, "result": 0, "latency": 33}
USE: dict[str, object] = {"waits": (0,)}
LATE: dict[str, object] = {"stall": 15}


def ran(
    code: Sequence[dict[str, object]],
    streams: Sequence[Sequence[int]],
    handovers: Sequence[Mapping[int, Handover]],
    expected: Sequence[int],
) -> Multiprocessor:
    """One block, after its last cycle, whose warps hand this over."""
    made = processor(program(*code), streams, handovers=[BlockHandovers(handovers, expected)])
    assert run_to_end(made, False, NEVER)
    return made


# --- warps at mbarriers -----------------------------------------------------------------------


def test_who_waits_goes_on_when_the_last_one_has_arrived() -> None:
    streams = [[1, 2], [3] * 10 + [0], [3] * 20 + [0]]
    arrivals: list[Mapping[int, Handover]] = [{10: Handover(fills=(0,))}, {20: Handover(fills=(0,))}]
    made = ran([AT_MBARRIER, CHECK, USE, LATE], streams, [{0: Handover(awaits=0)}, *arrivals], [2])
    arrived = 20 * 15 + PLAIN.arrives
    assert made.cycles == arrived + PLAIN.handed_over + 1
    assert cycles_for(made, "long_scoreboard") == arrived + PLAIN.handed_over - 2


def test_a_phase_that_is_over_costs_no_more_than_to_look() -> None:
    over = ran(
        [AT_MBARRIER, CHECK, USE, LATE],
        [[0, *[3] * 9, 1, 2]],
        [{0: Handover(fills=(0,)), 10: Handover(awaits=0)}],
        [1],
    )
    free = ran([AT_MBARRIER, CHECK, USE, LATE], [[0, *[3] * 9, 1, 2]], [{}], [])
    assert over.cycles == free.cycles


def test_a_phase_that_nobody_ends_is_an_error() -> None:
    with pytest.raises(Exception, match="wait for each other"):
        ran([AT_MBARRIER, CHECK, USE], [[1, 2]], [{0: Handover(awaits=0)}], [1])


def test_a_warp_goes_on_until_it_needs_what_it_waits_for() -> None:
    streams = [[1, 3, 3, 2], [3, 3, 3, 3, 0]]
    made = ran(
        [AT_MBARRIER, CHECK, USE, LATE], streams, [{0: Handover(awaits=0)}, {4: Handover(fills=(0,))}], [1]
    )
    assert made.cycles == 4 * 15 + PLAIN.arrives + PLAIN.handed_over + 1
    assert cycles_for(made, "long_scoreboard") == made.cycles - 1 - (2 + 15 + 15)


# --- copies in bulk ---------------------------------------------------------------------------


def test_a_copy_ends_a_phase_when_its_data_have_come() -> None:
    copy: dict[str, object] = {
        "pipe": "memory", "hands_over": True, "bulk": 8 * 20, "sectors": 8 * 64, "copied": 8 * 64, "stall": 2,
    }  # fmt: skip
    streams = [[0, 0], [1, 2]]
    copies = {0: Handover(fills=(0,)), 1: Handover(fills=(0,))}
    made = ran([copy, CHECK, USE], streams, [copies, {0: Handover(awaits=0)}], [2])
    from_l2 = 2 * 64  # a cycle each, which is longer than the engine takes
    assert made.cycles == 4 + from_l2 + 200 + PLAIN.bulk_latency + PLAIN.handed_over + 1


def test_who_does_not_copy_costs_nothing() -> None:
    copy: dict[str, object] = {"pipe": "memory", "hands_over": True, "bulk": 8 * 20, "sectors": 8 * 64}
    made = ran([copy], [[0, 0]], [{}], [])
    assert [stage.served for stage in made.memory.stages] == [0] * 6


# --- launches ---------------------------------------------------------------------------------

RING = """
__global__ void k(float *o, int steps) {
    __shared__ alignas(128) float s[2][128];
    __shared__ alignas(8) u64 full[2], empty[2];
    int t = threadIdx.x;
    if (t == 0) for (int i = 0; i < 2; i++) { init(at(full + i)); init(at(empty + i)); }
    __syncthreads();
    if (t == 0)
        for (int i = 0; i < steps; i++) {
            wait_for(at(empty + i % 2), (i / 2 & 1) ^ 1);
            expect(at(full + i % 2), 512);
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                         " [%0], [%1], 512, [%2];"
                         :: "r"(at(s[i % 2])), "l"(o + 128 * i), "r"(at(full + i % 2)) : "memory");
        }
    if (t == 32)
        for (int i = 0; i < steps; i++) {
            wait_for(at(full + i % 2), i / 2 & 1);
            asm volatile("{.reg .b64 s; mbarrier.arrive.shared.b64 s, [%0];}"
                         :: "r"(at(empty + i % 2)) : "memory");
        }
}
"""
WAIT = """
__device__ void wait_for(u32 b, u32 parity) {
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra W; }"
                 :: "r"(b), "r"(parity) : "memory"); }
"""


def prepared(text: str, *args: Any, grid: int = 1, block: int = 64, cluster: Any = None) -> PreparedTime:
    kernel = machine_kernel(HOPPER + WAIT + text)
    return PreparedTime(job_of(kernel, grid, block, [np.zeros(1 << 14, np.float32), *args], cluster=cluster))


def test_copies_and_arrivals_are_followed_from_phase_to_phase() -> None:
    steps = 6
    made = prepared(RING, steps)
    assert made.handovers is not None
    (block,) = made.handovers.handovers(made.touches)
    copier, user = ([one for _, one in sorted(warp.items())] for warp in block.of_warps)
    # Each phase of a full place has two contributions: an arrival that expects bytes, and the copy of these.
    assert sorted(block.expected) == [1] * steps + [2] * steps
    filled = [phase for one in copier for phase in one.fills]
    awaited = [one.awaits for one in user if one.awaits >= 0]
    assert awaited == list(dict.fromkeys(filled)) and len(awaited) == steps
    # The copier waits for what the user has given back, but for the first two places.
    given_back = [phase for one in user for phase in one.fills]
    assert [one.awaits for one in copier if one.awaits >= 0] == given_back[: steps - 2]
    time = made.predict("warm")
    assert not time.lacks and time.stalls["long_scoreboard"] > 0


def test_more_rounds_take_longer_by_what_a_round_takes() -> None:
    few, more = (prepared(RING, steps).predict("warm").cycles for steps in (8, 16))
    assert 8 * 150 < more - few < 8 * 450  # two copies are under way, each of which takes about 400 cycles


CLUSTER = """
__global__ void k(float *o) {
    float x = o[0];
    if (threadIdx.x < 32)
        for (int i = 0; i < 400; i++) x = x * x + 1;
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    o[threadIdx.x] = x;
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}
"""


def test_warps_wait_for_the_slowest_of_their_block_at_a_clusters_barrier() -> None:
    made = prepared(CLUSTER, grid=4, cluster=2)
    assert made.handovers is not None and not made.handovers.awaits_others
    time = made.predict("warm")
    assert not time.lacks
    waits = {one.text.split()[0]: one.stalls.get("barrier", 0) for one in time.instructions if one.executed}
    assert max(waits.values()) > 1000  # the second warp, for the first one's loop


GROUPS = """
__global__ void k(float *o) {
    float x = o[0];
    if (threadIdx.x >= 64)
        for (int i = 0; i < 400; i++) x = x * x + 1;
    asm volatile("bar.sync %0, 64;" :: "r"(1 + threadIdx.x / 64) : "memory");
    o[threadIdx.x] = x;
}
"""


def test_a_group_of_warps_does_not_wait_for_another_ones_barrier() -> None:
    time = prepared(GROUPS, block=128).predict("warm")
    assert time.cycles > 1000  # the loop of the second group
    assert time.stalls.get("barrier", 0) < 200


SENT = """
__global__ void k(float *o) {
    __shared__ alignas(128) float s[128];
    __shared__ alignas(8) u64 b;
    if (threadIdx.x == 0) { init(at(&b)); expect(at(&b), 512); }
    meet();
    if (threadIdx.x == 0 && rank() == {sender})
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                     " [%0], [%1], 512, [%2], %3;"
                     :: "r"(at(s)), "l"(o), "r"(at(&b)), "h"((short)3) : "memory");
    wait(at(&b));
    o[1024 * blockIdx.x + threadIdx.x] = s[threadIdx.x];
}
"""


@pytest.mark.parametrize("sender", [0, 1])
def test_what_another_block_sends_is_taken_to_be_there(sender: int) -> None:
    made = prepared(SENT.replace("{sender}", str(sender)), grid=2, cluster=2)
    assert made.handovers is not None
    assert len(made.recorder.chosen) == 1 and made.recorder.chosen[0] == 0
    (block,) = made.handovers.handovers(made.touches)
    copies = [one for warp in block.of_warps for one in warp.values() if one.fills]
    assert made.predict("warm").cycles > 500
    assert all(warp >= 0 for warp, _ in made.handovers.copied)  # and none of the block that is not followed
    assert made.copied * made.times_followed == 16  # sectors, of which L2 is asked once for a cluster
    assert sum(one.fills == (0,) for one in copies) >= 1


# --- constants --------------------------------------------------------------------------------

MEASURED: dict[str, Any] = json.loads(
    (data_folder("traces").parent / "docs" / "validation" / "bulk_copies.json").read_text("utf-8")
)
LINES = list(timed_lines("\n".join(MEASURED["lines"])))
RINGS: dict[str, object] = {"grid": 1, "where": "l2"}


def of_a_step(what: str, **how: object) -> float:
    """Cycles, by the first number of the line with these parameters."""
    wanted = {name: str(value) for name, value in how.items()}
    (line,) = (one for one in LINES if one.what == what and wanted.items() <= one.how.items())
    return line.values[0] / int(line.how["steps"])


@pytest.mark.parametrize("width", [16, 32, 64])
def test_the_engine_takes_a_cycle_for_a_row_of_a_box(width: int) -> None:
    taken = of_a_step("ring", width=width, rows=256, plain=0, stages=8, **RINGS)
    assert taken == pytest.approx(256 + Latencies().bulk_copy, abs=0.5)


def test_one_multiprocessor_gets_so_many_lines_in_bulk() -> None:
    many, one = (of_a_step("ring", width=128, rows=rows, plain=1, stages=1, **RINGS) for rows in (128, 1))
    assert (many - one) / 127 == pytest.approx(Latencies().bulk_line / 100, abs=0.05)


def test_rows_of_32_bytes_cost_l2_as_much_as_those_of_64() -> None:
    rings = {**RINGS, "grid": 132, "rows": 256, "stages": 8}
    wide, narrow = (of_a_step("ring", width=width, plain=0, **rings) for width in (64, 32))
    assert wide / narrow == pytest.approx(1, abs=0.1)
    wide, narrow = (of_a_step("ring", width=width, plain=1, **rings) for width in (64, 32))
    assert wide / narrow == pytest.approx(2, abs=0.1)  # of bytes that lie side by side half as many


def test_two_warps_that_hand_over_to_each_other_take_so_long() -> None:
    between = 16  # a branch that is not taken, the end of its region, and the next arrival
    set_to = Latencies()
    assert of_a_step("hand_over", pairs=1) / 2 == pytest.approx(
        set_to.arrives + set_to.handed_over + between, abs=2
    )
