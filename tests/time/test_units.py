"""Each unit alone, against schedules that were reckoned by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from memsim.data import data_folder
from memsim.time.code_caches import CodeMemory, ConstantCache
from memsim.time.hardware_units import Way
from memsim.time.multiprocessor import ABLATIONS
from memsim.time.timed_instructions import BARRIER_OF_GROUP
from tests.time.conftest import PLAIN, PLAINLY, cycles_for, processor, program, ran

FFMA = {"pipe": "fma", "busy": 2}
ALU = {"pipe": "alu", "busy": 2}
EXIT: dict[str, object] = {}


def test_a_stall_count_holds_back_the_warp_and_no_other() -> None:
    code = program({"stall": 5}, EXIT)
    alone = ran(code, [[0, 1]])
    assert alone.cycles == 6
    assert cycles_for(alone, "wait") == 4
    assert ran(code, [[0, 1]] * 4).cycles == 6  # one on each scheduler
    assert ran(code, [[0, 1]] * 8).cycles == 7  # two: one waits a cycle for the other's issue


def test_a_scheduler_issues_one_instruction_a_cycle() -> None:
    stream = list(range(10))
    code = program(*[EXIT] * 10)
    assert ran(code, [stream]).cycles == 10
    assert ran(code, [stream] * 4).cycles == 10
    shared = ran(code, [stream] * 8)
    assert shared.cycles == 20
    assert cycles_for(shared, "selected") == 80
    assert cycles_for(shared, "not_selected") == 4 * 10


def test_the_alu_takes_an_instruction_in_two_cycles_and_the_fma_pipe_in_one() -> None:
    alu = ran(program(*[ALU] * 8), [list(range(8))])
    assert alu.cycles == 15
    assert cycles_for(alu, "math_pipe_throttle") == 7
    assert ran(program(*[FFMA] * 8), [list(range(8))]).cycles == 8
    heavy = {"pipe": "fma heavy", "busy": 2}
    assert ran(program(*[heavy] * 8), [list(range(8))]).cycles == 15


def test_a_counter_holds_back_until_the_result_is_there() -> None:
    load = {"pipe": "memory", "wavefronts": 8, "latency": 20, "result": 0}
    made = ran(program(load, {"waits": (0,)}), [[0, 1]])
    assert made.cycles == 4 + 1 + 20 + 1  # to the pipe, one wavefront, the latency, the issue
    assert cycles_for(made, "short_scoreboard") == 24
    assert ran(program(load, EXIT), [[0, 1]]).cycles == 2


def test_operands_are_read_before_the_result_comes() -> None:
    load = {"pipe": "memory", "wavefronts": 8, "latency": 20, "result": 0, "operands": 1}
    read = ran(program(load, {"waits": (1,)}), [[0, 1]])
    assert read.cycles == 4 + 6 + 1
    assert cycles_for(read, "short_scoreboard") == cycles_for(read, "long_scoreboard") + 9
    of_l1 = ran(program({**load, "why": "long_scoreboard"}, {"waits": (1,)}), [[0, 1]])
    assert cycles_for(of_l1, "long_scoreboard") == cycles_for(of_l1, "short_scoreboard") + 9


def test_a_wavefront_takes_a_cycle_of_the_one_memory_pipe() -> None:
    load = {"pipe": "memory", "wavefronts": 8 * 32, "latency": 0, "result": 0}
    made = ran(program(load, {"waits": (0,)}), [[0, 1]] * 4)
    assert made.cycles == 4 + 4 * 32 + 1
    assert [stage.served for stage in made.memory.stages] == [4 * 32 * 8, 0, 0, 0, 0, 0]


def test_a_full_queue_holds_back_and_one_without_end_does_not() -> None:
    store = {"pipe": "memory", "wavefronts": 8 * 32}
    code, stream = program(*[store] * 6), [list(range(6))]
    held = ran(code, stream)
    assert cycles_for(held, "mio_throttle") > 32
    assert ran(code, stream, off=PLAINLY | {"memory queue"}).cycles == 6


def test_a_global_load_misses_or_hits() -> None:
    load = {"pipe": "memory", "is_global": True, "wavefronts": 8, "tags": 8, "latency": 30, "result": 0}
    miss = {**load, "sectors": 8 * 4, "why": "long_scoreboard"}
    near = ran(program(load, {"waits": (0,)}), [[0, 1]])
    far = ran(program(miss, {"waits": (0,)}), [[0, 1]])
    assert near.cycles == 4 + 1 + 30 + 1
    assert far.cycles == 4 + 1 + 4 + 200 + 1
    assert cycles_for(far, "long_scoreboard") == far.cycles - 2


def test_lines_are_asked_for_one_after_the_other() -> None:
    load = {"pipe": "memory", "is_global": True, "wavefronts": 8, "tags": 8, "sectors": 8 * 4, "result": 0}
    way = Way(far=(600,), near=(200,), read_cost=0.25, bulk_cost=1.0)

    def takes(**more: int) -> int:
        return ran(program({**load, "late": 0, **more}, {"waits": (0,)}), [[0, 1]], way=way).cycles

    assert takes() == takes(lines=8) == 4 + 1 + 1 + 200 + 1
    assert takes(lines=8 * 18) == 4 + 1 + 18 + 200 + 1
    assert takes(late=150) == takes() + 600


def test_loads_of_one_row_of_dram_take_as_long() -> None:
    """A request of another row takes the next one of the latencies."""
    load = {"pipe": "memory", "is_global": True, "wavefronts": 8, "tags": 8, "sectors": 8, "result": 0}
    way = Way(far=(200, 600), near=(200, 600), read_cost=1.0, bulk_cost=1.0)
    code = program({**load, "moves": 1}, {**load, "moves": 0}, {"waits": (0,)})
    other, same = (ran(code, [[one, 2]], way=way).cycles for one in (0, 1))
    assert other - same == 400
    assert ran(code, [[0, 2, 1, 2]], way=way).cycles == 2 * other


def test_an_atomic_waits_for_its_turns_and_a_load_does_not() -> None:
    load = {"pipe": "memory", "is_global": True, "wavefronts": 8, "tags": 8, "sectors": 8}
    atomic = {**load, "turns": 8 * 50}
    one = ran(program({**atomic, "result": 0}, {"waits": (0,)}), [[0, 1]]).cycles
    assert ran(program(atomic, {**atomic, "result": 0}, {"waits": (0,)}), [[0, 1, 2]]).cycles == one + 50
    assert ran(program(atomic, {**load, "result": 0}, {"waits": (0,)}), [[0, 1, 2]]).cycles < one
    assert ran(program({**atomic, "writes": True}), [[0]]).cycles == 4 + 1 + 50  # it is drained then


def test_the_tag_stage_holds_back_the_data_stage() -> None:
    """Lanes 132 bytes apart are in 33 lines and in no common bank."""
    load = {"pipe": "memory", "is_global": True, "wavefronts": 8, "tags": 8 * 9, "latency": 30}
    shared = {"pipe": "memory", "wavefronts": 8, "latency": 10, "result": 0}
    code = program(load, shared, {"waits": (0,)})
    made = ran(code, [[*[0] * 20, 1, 2]], set_to=replace(PLAIN, tag_backlog=16))
    alone = ran(code, [[*[0] * 20, 1, 2]], off=PLAINLY | {"tag stage"})
    assert made.cycles > 20 * 9 - 16 > 60 > alone.cycles


def test_a_load_waits_for_sectors_that_another_one_brings() -> None:
    load = {"pipe": "memory", "is_global": True, "wavefronts": 8, "tags": 8, "latency": 30}
    brings = {**load, "sectors": 8, "followed": True}
    follows = {**load, "follows": (0, 0), "result": 0}
    code = program(brings, follows, {"waits": (0,)}, {**follows, "follows": (0, -1)}, {"stall": 15})
    assert ran(code, [[0, 1, 2]]).cycles == 4 + 1 + 1 + 200 + 1
    assert ran(code, [[1, 2]]).cycles == 4 + 1 + 30 + 1  # nobody asked before
    assert ran(code, [[0], [1, 2]]).cycles == 4 + 1 + 1 + 200 + 1  # another warp did
    late = ran(code, [[0, *[4] * 20, 1, 2]])
    assert late.cycles == 1 + 20 * 15 + 4 + 1 + 30 + 1  # it has come


def test_stores_are_drained_before_the_launch_ends() -> None:
    store = {"pipe": "memory", "is_global": True, "writes": True, "wavefronts": 8, "sectors": 8 * 50}
    assert ran(program(store, EXIT), [[0, 1]]).cycles == 4 + 50


#: Even and odd registers that instructions of a loop read, and the cycles of a loop, as measured on an H100
#: and an H200 (lab/time/register_banks.py).
@pytest.mark.parametrize(
    ("reads", "cycles"),
    [
        (((2, 0), (0, 2)), 2),
        (((3, 0), (0, 3)), 3),
        (((3, 0), (0, 0)), 3),
        (((3, 0), (0, 0), (0, 0)), 3),
        (((3, 0), (3, 0), *[(0, 0)] * 4), 8),
        (((3, 0), (3, 0), (3, 0), *[(0, 0)] * 6), 13),
        (((2, 1), (1, 2)), 3),
        (((2, 0), (0, 0)), 2),
        (((2, 0), (2, 0), (0, 0), (0, 0)), 5),
        ((*[(2, 0)] * 4, *[(0, 0)] * 4), 11),
    ],
)
def test_banks_are_read_once_a_cycle(reads: tuple[tuple[int, int], ...], cycles: int) -> None:
    code = program(*[{**FFMA, "even": even, "odd": odd} for even, odd in reads])
    stream = list(range(len(reads)))
    less, more = ran(code, [stream * 20]), ran(code, [stream * 60])
    assert more.cycles - less.cycles == 40 * cycles
    late = cycles_for(more, "dispatch_stall") - cycles_for(less, "dispatch_stall")
    assert late == 40 * (cycles - len(reads))
    assert ran(code, [stream * 60], off=PLAINLY | {"register banks"}).cycles == 60 * len(reads)


def _with_one_load() -> list[tuple[str, float]]:
    """Recorded loops of 16 instructions, the last of them a load or none, and how much longer than without
    conflicts they take: cycles of 128 instructions.
    """
    recorded = json.loads(data_folder("docs/validation/register_reads.json").read_text("utf-8"))["loops"]
    cycles = {one["pattern"]: one["cycles"][0] for one in recorded}
    least = cycles[" ".join(["Fzzz"] * 16)]
    return [
        (pattern, taken - least)
        for pattern, taken in cycles.items()
        if pattern.count(" ") == 15 and pattern.count("L") <= 1 and not {*"S*"} & {*pattern}
    ]


@pytest.mark.parametrize(("pattern", "longer"), _with_one_load())
def test_loads_read_their_addresses_as_on_a_chip(pattern: str, longer: float) -> None:
    """Where the loop of 128 ends, up to three cycles are free that this one has not."""
    made = []
    for text in pattern.split():
        even, odd = (len({*text[1:]} & {*bank}) for bank in ("efg", "opq"))
        plain = FFMA if text[0] == "F" else {"pipe": "memory", "wavefronts": 8}
        made.append({**plain, "even": even, "odd": odd})
    code, set_to = program(*made), replace(PLAIN, queue=4, shared_queue=8)
    less, more = (ran(code, [[*range(16)] * times], set_to=set_to) for times in (20, 60))
    assert round(abs((more.cycles - less.cycles) / 40 * 8 - 128 - longer), 1) <= 3


def test_warps_wait_at_a_barrier_for_the_slowest() -> None:
    code = program({"stall": 1}, {"stall": 50}, {"barrier": 0}, EXIT)
    made = ran(code, [[0, 2, 3], [1, 2, 3]])
    assert made.cycles == 50 + 10 + 1
    assert cycles_for(made, "barrier") == 2 * 10 - 2 + 49
    alone = ran(code, [[0, 2, 3], [1, 3]])  # who has ended is not waited for
    assert alone.cycles == 50 + 10 + 1


def test_a_barrier_with_a_count_waits_for_so_many_and_an_arrival_does_not_wait() -> None:
    producer = {"barrier": 1, "arrives": True, "expected": 2}
    consumer = {"barrier": 1, "expected": 2}
    code = program(producer, {"stall": 15}, consumer, EXIT)
    made = ran(code, [[1, 0, 3], [2, 3], [1, 1, 1, 1, 3]])
    assert made.waits[3][0] == 3
    assert made.cycles == 60 + 1
    assert cycles_for(made, "barrier") == 15 + 10 - 1


def test_a_barrier_whose_number_a_register_has_is_one_for_each_group_of_warps() -> None:
    code = program({"stall": 15}, {"barrier": BARRIER_OF_GROUP, "expected": 2}, EXIT)
    made = ran(code, [[1, 2], [1, 2], [0, 0, 1, 2], [0, 0, 0, 1, 2]])
    assert cycles_for(made, "barrier") == 10 - 1 + 10 - 1 + (15 + 10 - 1) + 10 - 1


def test_arrivals_at_a_barrier_are_counted_one_after_the_other() -> None:
    code = program({"barrier": 0}, EXIT)
    slow = replace(PLAIN, arrival=2)
    assert ran(code, [[0, 1]] * 8, set_to=slow).cycles == 8 * 2 + 10 + 1 + 1
    assert ran(code, [[0, 1]] * 8, set_to=slow, off=PLAINLY | {"barrier unit"}).cycles == 1 + 10 + 1 + 1


def test_products_of_a_warpgroup_are_waited_for_by_groups() -> None:
    product = {"pipe": "tensor", "busy": 32, "is_product": True, "latency": 60, "closes": True}
    first = ran(program(product, product, {"products": 1}, EXIT), [list(range(4))])
    both = ran(program(product, product, {"products": 0}, EXIT), [list(range(4))])
    assert first.cycles == 32 + 60 + 1 + 1
    assert both.cycles == 32 + 32 + 60 + 1 + 1
    assert cycles_for(both, "barrier") == 32 + 32 + 60 - 2


def test_a_fence_takes_its_time() -> None:
    made = ran(program({"fences": 200}, EXIT), [[0, 1]])
    assert made.cycles == 1 + 200 + 1
    assert cycles_for(made, "membar") == 200


def test_copies_are_waited_for_by_groups() -> None:
    copy = {"pipe": "memory", "is_global": True, "is_copy": True, "sectors": 8, "why": "long_scoreboard"}
    close: dict[str, object] = {"closes": True}
    late = {**copy, "sectors": 8 * 100}
    first = ran(program(copy, close, late, close, {"copies": 1}), [list(range(5))])
    both = ran(program(copy, close, late, close, {"copies": 0}), [list(range(5))])
    assert first.cycles == 4 + 1 + 200 + 1
    assert both.cycles == 2 + 4 + 100 + 200 + 1


def test_a_copy_writes_to_shared_memory_when_its_data_are_there() -> None:
    copy = {
        "pipe": "memory",
        "is_global": True,
        "is_copy": True,
        "wavefronts": 8,
        "sectors": 8,
        "copied": 8 * 16,
    }
    shared = {"pipe": "memory", "wavefronts": 8, "latency": 10, "result": 0}
    code = program(copy, shared, {"waits": (0,)}, {"stall": 15}, {"closes": True}, {"copies": 0})
    before = ran(code, [[0, *[3] * 13, 1, 2]])
    behind = ran(code, [[0, *[3] * 14, 1, 2]])
    assert before.cycles == 1 + 13 * 15 + 4 + 1 + 10 + 1  # it enters at 200, and the data come at 205
    assert behind.cycles == 205 + 16 + 1 + 10 + 1  # it enters at 215
    assert ran(code, [[0, 4, 5]]).cycles == 205 + 16 + 1


def test_blocks_start_as_others_end() -> None:
    code = program({"stall": 15}, EXIT)
    one = ran(code, [[0, 1]], blocks=1).cycles
    assert ran(code, [[0, 1]], blocks=3, resident=3).cycles == one
    between = ran(code, [[0, 1]], blocks=3, resident=1)
    assert between.cycles == 3 * one  # in between it is not active
    assert between.end == 3 * one + 2 * (100 - 1)
    assert ran(code, [[0, 1]], blocks=3, resident=2).issued == 6


def test_the_last_warp_goes_on_first_unless_that_is_switched_off() -> None:
    code = program(*[EXIT] * 4)
    greedy, fair = (processor(code, [range(4)] * 8, off=off) for off in (PLAINLY, PLAINLY | {"greedy"}))
    orders = []
    for made in (greedy, fair):
        order = []
        while made.running:
            warp = made.step()
            if warp is not None and warp.number % 4 == 0:
                order.append(warp.number)
        orders.append(order)
    assert orders[0] == [4] * 4 + [0] * 4  # the youngest, to its end
    assert sorted(orders[1]) == sorted(orders[0])


def test_code_that_was_fetched_ahead_is_there() -> None:
    """And what a scheduler's cache holds of a loop is not fetched again."""
    code = program(*[EXIT] * 512)
    fits, exceeds = list(range(320)), list(range(512))
    jump, line = PLAIN.code_jump, PLAIN.code_line
    assert line < 8 == ran(code, [exceeds], off=frozenset()).schedulers[0].code.LINE  # type: ignore[union-attr]
    assert ran(code, [fits], off=frozenset()).cycles == jump + 320
    assert ran(code, [fits * 3], off=frozenset()).cycles == jump + 3 * 320
    again = ran(code, [exceeds * 3], off=frozenset())
    assert again.cycles == 3 * (jump + 512)
    assert cycles_for(again, "no_instruction") == again.cycles - 3 * 512


def test_code_that_a_jump_leads_to_comes_late_the_first_time() -> None:
    memory = CodeMemory(each=10, far=10, skipped=30, moved=500)
    assert [memory.fetch(line, 0) for line in (0, 1)] == [10, 20]
    assert memory.fetch(5, 100) == 100 + 10 + 30
    assert memory.fetch(6, 200) == 200 + 10
    assert memory.fetch(CodeMemory.REGION + 5, 300) == 300 + 10 + 500
    assert memory.fetch(CodeMemory.REGION + 9, 400) == 400 + 10 + 30
    assert memory.fetch(5, 500) == 500


def test_constants_come_in_lines_and_blocks() -> None:
    cache = ConstantCache(line=70, block=500)
    assert cache.fetch(8, 0) == 500
    assert cache.fetch(16, 100) == 500  # it is on its way
    assert [cache.fetch(place, 1000) for place in (8, 64, 192, 256)] == [1000, 1070, 1070, 1500]
    assert cache.fetch(3 << 16, 2000) == 2500  # of another bank


def test_a_constant_holds_back_who_waits_for_it_or_the_instruction_that_reads_it() -> None:
    load = {"pipe": "special", "latency": 20, "result": 0, "constant": 0}
    plain = ran(program({**load, "constant": -1}, {"waits": (0,)}), [[0, 1]])
    late = ran(program(load, {"waits": (0,)}), [[0, 1]], constant_block=300)
    assert late.cycles == plain.cycles + 300
    operand = ran(program({**FFMA, "constant": 0}, EXIT), [[0, 1]], constant_block=300)
    assert (operand.cycles, cycles_for(operand, "imc_miss")) == (302, 300)


def test_the_first_fetch_of_a_texture_waits_longer() -> None:
    fetch = {"pipe": "memory", "wavefronts": 8, "latency": 100, "fetches": True, "result": 0}
    code = program(fetch, {"waits": (0,)})
    once = ran(code, [[0, 1]], first_fetch=1000).cycles
    assert once == 4 + 1000 + 100 + 1
    assert ran(code, [[0, 1, 0, 1]], first_fetch=1000).cycles == once + 4 + 1 + 100 + 1


def test_a_call_of_what_has_no_code_takes_its_time() -> None:
    call = {"branches": True, "holds": 500}
    assert ran(program(call, EXIT, EXIT), [[0, 1]]).cycles == 1 + 500 + 1
    assert ran(program(call, EXIT, EXIT), [[0, 2]]).cycles == 2  # it went elsewhere


def test_lanes_that_meet_hold_their_warp_and_no_other() -> None:
    code = program({"holds": 9, "stall": 5}, EXIT)
    assert ran(code, [[0, 1]]).cycles == 5 + 9 + 1
    assert ran(code, [[0, 0, 1]]).cycles == 2 * (5 + 9) + 1  # the parts of a warp, one after the other
    assert ran(code, [[0, 1]] * 4).cycles == 5 + 9 + 1  # one in each scheduler


def test_what_warps_waited_for_adds_up_to_their_time() -> None:
    rng = np.random.default_rng(3)
    kinds = [
        {"stall": 4},
        {**FFMA, "odd": 3},
        {**ALU, "stall": 2},
        {"pipe": "memory", "wavefronts": 40, "latency": 20, "result": 0, "operands": 1},
        {"waits": (0, 1)},
        {"barrier": 0},
        {"stall": 1},
    ]
    body = [*rng.integers(0, 5, 200).tolist(), 5, 1, 6, *rng.integers(0, 5, 50).tolist()]
    made = processor(program(*kinds), [body] * 6, blocks=5, resident=2, off=frozenset())
    started, lived = {number: number // 6 * 9 for number in range(12)}, 0  # the second block 6 * 6 / 4 later
    while made.running:
        blocks = [block.started for block in made.resident]
        warp = made.step()
        if warp is not None and warp.at in (0, len(body)):
            lived += made.now + 1 - started[warp.number]
        for block, before in zip(made.resident, blocks):
            if block.started > before:
                started.update((each.number, made.now + PLAIN.next_block) for each in block.warps)
    assert sum(map(sum, made.waits)) == lived
    assert made.issued == cycles_for(made, "selected") == 5 * 6 * len(body)


@pytest.mark.parametrize(
    ("resident", "later", "takes_more"),
    [(2, 0, True), (2, 200, True), (2, 800, False), (3, 0, True), (3, 200, False)],
)
def test_a_multiprocessor_whose_blocks_end_together_may_take_one_more(
    resident: int, later: int, takes_more: bool
) -> None:
    """Of two blocks of 1600 cycles the second ends soon enough after the first, of three it does not."""
    code = program({**ALU, "stall": 4})
    how: dict[str, object] = {"blocks": resident + 1, "resident": resident}
    how["set_to"] = replace(PLAIN, next_start=later)
    made = ran(code, [[0] * 400], spare=True, **how)
    assert made.launched.blocks == resident + 1 + takes_more and made.issued == made.launched.blocks * 400
    assert ran(code, [[0] * 400], **how).issued == (resident + 1) * 400


def test_there_is_a_sentence_for_each_unit_that_can_be_switched_off() -> None:
    assert all(ABLATIONS.values())
    assert set(ABLATIONS) >= PLAINLY


@pytest.mark.parametrize("off", sorted(ABLATIONS))
def test_a_run_is_the_same_each_time(off: str) -> None:
    code = program({**ALU, "stall": 2}, {"pipe": "memory", "wavefronts": 80, "result": 0}, {"waits": (0,)})
    runs = [ran(code, [[0, 1, 2] * 9] * 7, blocks=4, resident=2, off=frozenset({off})) for _ in range(2)]
    assert runs[0].cycles == runs[1].cycles
    assert runs[0].waits == runs[1].waits
