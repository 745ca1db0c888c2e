"""Predictions beside recordings by machine instruction: all equal; and a planted fault is found and named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import pytest

from memsim.analysis import Analysis, Range
from memsim.errors import MemsimError
from memsim.kernels import catalog
from memsim.validate.code_recording import replay
from memsim.validate.compare_instructions import (
    ARBITRATION,
    DIFFERENT,
    DIFFERS,
    EQUAL,
    EXACT,
    NOISE,
    PARTLY,
    UNCERTAIN,
    UNMODELLED,
    WITHIN,
    CodeComparison,
    InstructionRow,
    compare_code,
    counter_figures,
)
from memsim.validate.profiles import CONTENDED, SOURCE_METRICS, CodeProfile, Counted
from tests.validate.conftest import recorded
from tests.validate.profiles import profiled

STORES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
# What an L1 cache that misses adds to a copy of scattered data; docs/model.md.
BY_HITS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum"


@cache
def analysis(kernel: str) -> Analysis:
    return catalog()[kernel].analyze()


def with_counter(
    profiles: Sequence[CodeProfile], metric: str, change: Callable[[float], float], run: int
) -> list[CodeProfile]:
    """A copy with one counter of one run of the profiler changed."""
    counted = profiles[run].counters[metric]
    changed = {**profiles[run].counters, metric: Counted(change(counted.value), counted.unit)}
    return [*profiles[:run], replace(profiles[run], counters=changed), *profiles[run + 1 :]]


def with_figure(
    profiles: Sequence[CodeProfile], opcode: str, metric: str, by: int
) -> tuple[list[CodeProfile], int]:
    """A copy with one figure of the first instruction of an opcode changed, and its address."""
    first = profiles[0]
    row = next(i for i, text in enumerate(first.sass) if f" {opcode} " in f" {text} ")
    column = list(first.figures[metric])
    column[row] = (column[row] or 0) + by
    changed = replace(first, figures={**first.figures, metric: tuple(column)})
    return [changed, *profiles[1:]], first.addresses[row]


def verdicts(comparison: CodeComparison) -> dict[str, str]:
    """Verdicts on the counters of the launch."""
    return {figure.metric: figure.verdict for figure in comparison.totals}


@pytest.mark.slow
def test_the_verdict_says_what_was_proven() -> None:
    good = compare_code(recorded("kernel_v4").profiles, analysis("kernel_v4"))
    assert good.verdict == ARBITRATION
    assert verdicts(good)[STORES] == verdicts(good)[CONFLICTS] == NOISE
    assert compare_code(recorded("kernel_v1").profiles, analysis("kernel_v1")).verdict == EQUAL
    mixed = compare_code(recorded("sgemm_128x256x8").profiles, analysis("sgemm_128x256x8"))
    assert mixed.verdict == PARTLY and verdicts(mixed)[BY_HITS] == UNMODELLED


@pytest.mark.parametrize(
    ("limits", "verdict"),
    [
        (Range("planted", 514_344, 514_344), WITHIN),
        (Range("planted", 514_344), WITHIN),
        (Range("planted", 0, 514_343), DIFFERENT),
        (Range("planted", 514_345), DIFFERENT),
        (Range("planted"), UNMODELLED),
    ],
)
def test_a_counter_lies_within_its_limits(limits: Range, verdict: str) -> None:
    profiles = recorded("sgemm_128x256x8").profiles
    (figure,) = counter_figures(profiles, {BY_HITS: None}, True, {BY_HITS: limits})
    assert figure.measured == 514_344
    assert figure.verdict == verdict


@pytest.mark.parametrize(
    ("opcode", "metric"),
    [
        ("LDS.128", "inst_executed"),
        ("LDS.128", "thread_inst_executed_true"),
        ("STS.128", "memory_l1_wavefronts_shared"),
        ("STS.128", "memory_l1_wavefronts_shared_ideal"),
        ("LDG.E.128", "memory_l2_theoretical_sectors_global"),
        ("LDG.E.128", "memory_l2_theoretical_sectors_global_ideal"),
        ("LDG.E.128", "memory_l1_tag_requests_global"),
    ],
)
def test_a_wrong_figure_is_named_with_its_instruction(opcode: str, metric: str) -> None:
    good = recorded("kernel_v4").profiles
    assert compare_code(good, analysis("kernel_v4")).verdict == ARBITRATION
    wrong, address = with_figure(good, opcode, metric, by=1)
    comparison = compare_code(wrong, analysis("kernel_v4"))
    assert comparison.verdict == DIFFERS
    where = next(iter(comparison.differences))
    assert where.startswith(f"{address:#06x} {opcode} ") and metric in comparison.differences[where]
    (row,) = (row for row in comparison.rows if row.differs)
    assert (row.address, [f.metric for f in row.figures if f.verdict == DIFFERENT]) == (address, [metric])


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("opcode", "by", "verdict"),
    [
        ("@!P3 LDGSTS.E", 0, EXACT),
        ("@!P3 LDGSTS.E", 1, DIFFERENT),
        ("@!P3 LDGSTS.E", -1, DIFFERENT),
        ("@!P2 LDGSTS.E", 0, EXACT),
        ("@!P2 LDGSTS.E", 1, UNMODELLED),
        ("@!P2 LDGSTS.E", -1, UNMODELLED),
    ],
)
def test_of_a_copy_guarded_by_p2_the_profiler_shows_something_else(
    opcode: str, by: int, verdict: str
) -> None:
    kernel, metric = "tile_128x128x8_any", "memory_l1_wavefronts_shared"
    profiles, address = with_figure(recorded(kernel).profiles, opcode, metric, by)
    comparison = compare_code(profiles, analysis(kernel))
    (row,) = (row for row in comparison.rows if row.address == address)
    (figure,) = (figure for figure in row.figures if figure.metric == metric)
    assert figure.verdict == verdict and row.differs == (verdict == DIFFERENT)


def test_a_wrong_prediction_is_named_with_its_instruction() -> None:
    right = analysis("kernel_v4")
    trace = right.trace
    count = trace.count.copy()
    count[0] += 1
    wrong = replace(right, trace=replace(trace, count=count))
    comparison = compare_code(recorded("kernel_v4").profiles, wrong)
    site = trace.sites[trace.site[0]]
    assert comparison.verdict == DIFFERS
    assert f"{site.address:#06x} {site.instruction}" in comparison.differences


def test_an_access_that_nobody_predicted_is_a_difference() -> None:
    first, *others = recorded("kernel_v4").profiles
    row = next(i for i, text in enumerate(first.sass) if text.startswith("FFMA"))
    sass = [*first.sass]
    sass[row] = "LDS R0, [R1]"
    comparison = compare_code([replace(first, sass=tuple(sass)), *others], analysis("kernel_v4"))
    assert comparison.verdict == DIFFERS
    assert f"{first.addresses[row]:#06x} LDS R0, [R1]" in comparison.differences


def test_an_instruction_that_did_not_run_is_a_difference() -> None:
    first, *others = recorded("kernel_v4").profiles
    row = next(i for i, text in enumerate(first.sass) if text.startswith("LDS.128"))
    kept = [i for i in range(len(first.sass)) if i != row]
    without = replace(
        first,
        addresses=tuple(first.addresses[i] for i in kept),
        sass=tuple(first.sass[i] for i in kept),
        figures={name: tuple(column[i] for i in kept) for name, column in first.figures.items()},
    )
    comparison = compare_code([without, *others], analysis("kernel_v4"))
    assert [row.address for row in comparison.rows if row.differs] == [first.addresses[row]]


def test_a_wrong_counter_is_named() -> None:
    wrong = with_counter(recorded("kernel_v4").profiles, SECTORS, lambda value: value + 1, run=0)
    comparison = compare_code(wrong, analysis("kernel_v4"))
    assert comparison.verdict == DIFFERS and list(comparison.differences) == [SECTORS]
    assert comparison.differences[SECTORS] == f"{SECTORS} 2,097,153, not 2,097,152"


@pytest.mark.parametrize(
    ("metric", "change"),
    [
        (STORES, lambda value: value + 1),  # wavefronts and conflicts disagree
        (CONFLICTS, lambda value: value - 1),
        (CONTENDED, lambda value: 0),  # nothing contended
    ],
)
def test_a_surplus_without_proof_is_a_difference(metric: str, change: Callable[[float], float]) -> None:
    good = recorded("kernel_v4").profiles
    run = next(i for i, p in enumerate(good) if i and STORES in p.counters)
    assert good[run].passes == 1
    wrong = with_counter(good, metric, change, run)
    assert verdicts(compare_code(wrong, analysis("kernel_v4")))[STORES] == DIFFERENT


def test_counters_of_different_passes_prove_nothing() -> None:
    profiles = [replace(profile, passes=2) for profile in recorded("kernel_v4").profiles]
    assert verdicts(compare_code(profiles, analysis("kernel_v4")))[STORES] == DIFFERENT


def test_arbitration_is_not_claimed_while_an_instruction_differs_or_is_not_known() -> None:
    good = recorded("kernel_v4").profiles
    wrong, _ = with_figure(good, "STS.128", "memory_l1_wavefronts_shared", by=4)
    assert verdicts(compare_code(wrong, analysis("kernel_v4")))[STORES] == DIFFERENT
    unknown = [replace(profile, figures={}, sass=(), addresses=()) for profile in good]
    assert verdicts(compare_code(unknown, analysis("kernel_v4")))[STORES] == DIFFERENT


def test_what_was_not_collected_is_not_compared() -> None:
    good = profiled(catalog()["kernel_v4"].job((64, 64, 16)))
    small = catalog()["kernel_v4"].analyze((64, 64, 16))
    whole = compare_code([good], small)
    assert whole.verdict == EQUAL and len(whole.totals) == 19
    less = replace(
        good,
        counters={SECTORS: good.counters[SECTORS]},
        figures={name: good.figures[name] for name in SOURCE_METRICS[:2]},
    )
    comparison = compare_code([less], small)
    assert comparison.verdict == EQUAL
    assert [figure.metric for figure in comparison.totals] == [SECTORS]
    assert {figure.metric for row in comparison.rows for figure in row.figures} == set(SOURCE_METRICS[:2])


def test_what_is_not_certain_is_said_where_something_differs() -> None:
    wrong = with_counter(recorded("kernel_v4").profiles, SECTORS, lambda value: value + 1, run=0)
    right = analysis("kernel_v4")
    note = "the result of an atomic decides the address at k.cu:7"
    ordered = replace(right, trace=replace(right.trace, uncertain=(note,)))
    assert (compare_code(wrong, ordered).verdict, compare_code(wrong, ordered).uncertain) == (UNCERTAIN, note)
    assert compare_code(recorded("kernel_v4").profiles, ordered).verdict == ARBITRATION


def test_a_part_of_the_grid_is_refused() -> None:
    profiles = recorded("kernel_v4").profiles
    spec = catalog()["kernel_v4"]
    with pytest.raises(MemsimError, match="4 of 64 blocks were replayed"):
        compare_code(profiles, spec.analyze(blocks=4))


def test_a_kernel_that_has_changed_is_refused() -> None:
    recording = recorded("kernel_v4")
    assert replay(recording)
    for changed in (
        replace(recording, code=replace(recording.code, digest="0" * 64)),
        replace(recording, launch=replace(recording.launch, grid=(1, 1, 1))),
    ):
        with pytest.raises(MemsimError, match="kernel_v4 has changed since it was recorded") as caught:
            replay(changed)
        assert "--live --record" in str(caught.value)


def test_a_row_is_called_by_its_address() -> None:
    assert InstructionRow(0xD50, "LDS R0, [R1]", ()).where == "0x0d50 LDS R0, [R1]"
