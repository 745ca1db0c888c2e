"""Which pipes instructions take: against the counters of a GPU, and forms that are not known."""

from __future__ import annotations

import pytest

from lab.experiments import RATES
from lab.rates.judge_rates import RateRecording, judge_rates
from memsim.data import data_folder
from memsim.model.pipes import EXECUTED, pipe_use

ALU, FMA = "sm__inst_executed_pipe_alu.sum", "sm__inst_executed_pipe_fma.sum"
TENSOR = "sm__inst_executed_pipe_tensor.sum"


TRACES = data_folder("traces")
GPUS = sorted({path.parents[1].name for path in TRACES.glob("*/rates/*.json")})


@pytest.fixture(scope="module", params=GPUS)
def recording(request: pytest.FixtureRequest) -> RateRecording:
    return RATES.newest(TRACES, request.param)


def test_every_counter_is_as_recorded_and_every_bound_holds(recording: RateRecording) -> None:
    found = judge_rates(recording)
    assert len(found) == 117 and not recording.failed
    assert {rated.launch.name: rated.different for rated in found if rated.different} == {}
    assert [rated.launch.name for rated in found if not rated.holds] == []


def test_a_loop_is_bound_by_the_unit_that_it_is_made_for(recording: RateRecording) -> None:
    loops = [rated for rated in judge_rates(recording) if rated.own]
    assert {rated.by for rated in loops} == {
        *("instruction issue", "ALU pipe", "FMA pipe", "FP64 pipe", "XU pipe", "tensor pipe"),
        *("L1 data stage", "L1 tag stage", "uniform pipe"),
    }
    # The smallest products of a warpgroup ask as much of the L1 data stage, which also fills their tiles.
    both = "loop_gmma_m64n64k16_f32_f16_f16"
    assert {rated.launch.name for rated in loops if rated.by != rated.launch.unit} == {both}
    assert all(rated.bound - rated.own <= 1024 for rated in loops)


@pytest.mark.parametrize(
    ("loop", "form", "cycles"),
    [("loop_imad", "IMAD", 1), ("loop_popc", "POPC", 4), ("loop_dfma", "DFMA", 1), ("loop_shf", "SHF", 1)],
)
def test_a_wrong_rate_is_noticed(
    recording: RateRecording, loop: str, form: str, cycles: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half the cycles, and the loop is bound by something else or far above its bound."""
    from memsim.model import pipes

    if form == "IMAD":
        monkeypatch.setattr(pipes, "PIPE_OF", {**pipes.PIPE_OF, "IMAD": "alu"})
    else:
        pipe = pipes.PIPE_OF[form]
        monkeypatch.setitem(pipes.CYCLES, pipe, cycles)
    rated = next(rated for rated in judge_rates(recording) if rated.launch.name == loop)
    assert not rated.holds


def test_an_opcode_that_is_not_known_takes_every_pipe_from_what_is_certain() -> None:
    use = pipe_use({"FFMA": 8, "QUUX.WIDE": 2})
    assert use.counters[ALU] is None
    assert use.counters[FMA] is None
    assert use.counters[EXECUTED] == 10
    assert use.unknown == ("QUUX",)


def test_its_good_twin_is_certain() -> None:
    use = pipe_use({"FFMA": 8, "IMAD.WIDE.U32": 2, "HFMA2.MMA": 1})
    assert (use.counters[ALU], use.counters[FMA], use.counters[TENSOR]) == (0, 10, 1)
    assert use.unknown == ()
    assert use.cycles["fma"] == 12  # the wide products take 4 each of one half, the others 2 of either


def test_wide_products_bound_one_half_of_the_pipe() -> None:
    assert pipe_use({"IMAD.WIDE": 10, "FFMA": 4}).cycles["fma"] == 40
    assert pipe_use({"IMAD": 10}).cycles["fma"] == 20


def test_where_lanes_meet_not_all_instructions_are_counted_for_certain() -> None:
    parted = pipe_use({"FFMA": 4, "BSSY": 1, "BSYNC": 2})
    assert parted.counters[EXECUTED] is None
    assert parted.counters[FMA] == 4
    assert parted.cycles["issue"] == 4


def test_an_instruction_of_the_tensor_pipe_whose_cycles_are_not_known_is_named() -> None:
    use = pipe_use({"HGMMA.SP.64x128x32.F32": 3, "HMMA.16816.F32": 2})
    assert use.unknown == ("HGMMA.SP.64x128x32.F32",)
    assert use.counters[TENSOR] == 5
    assert use.cycles["tensor"] == 12


def test_a_product_of_a_warpgroup_takes_half_a_cycle_for_each_column() -> None:
    use = pipe_use({"HGMMA.64x128x16.F32": 3, "QGMMA.64x64x32.F32.E4M3.E4M3": 1, "IGMMA.64x8x32.S8.S8": 1})
    assert use.unknown == ()
    assert use.cycles["tensor"] == 3 * 64 + 32 + 4
    assert use.counters[TENSOR] == 5
