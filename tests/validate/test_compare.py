"""Predictions beside real recordings: what is equal, what is arbitration, and that a fault is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from memsim.errors import MemsimError
from memsim.kernels import catalog
from memsim.validate import replay as replaying
from memsim.validate.compare_lines import DIFFERENT, EXACT, LINE_METRICS, NOISE, UNMODELLED, compare
from memsim.validate.live import ARBITRATION
from memsim.validate.profiles import SOURCE_METRICS, Counted
from memsim.validate.recording import Recording
from memsim.validate.replay import replay
from tests.validate.conftest import recorded

STORES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"


def verdicts(recording: Recording) -> dict[str, str]:
    """Verdicts on the counters of the launch."""
    return {figure.metric: figure.verdict for figure in replay(recording).totals}


def with_counter(recording: Recording, metric: str, change: Callable[[float], float], run: int) -> Recording:
    """A copy with one counter of one run of the profiler changed."""
    profile = recording.profiles[run]
    counted = profile.counters[metric]
    counters = {**profile.counters, metric: Counted(change(counted.value), counted.unit)}
    profiles = list(recording.profiles)
    profiles[run] = replace(profile, counters=counters)
    return replace(recording, profiles=tuple(profiles))


def with_count(recording: Recording, sass: str, metric: str, by: int) -> Recording:
    """A copy with one figure of the first executed instruction of an opcode changed."""
    profile = recording.profiles[0]
    index = next(
        i
        for i, row in enumerate(profile.rows)
        if f" {sass} " in f" {row.sass} " and row.count("inst_executed")
    )
    counts = list(profile.rows[index].counts)
    column = SOURCE_METRICS.index(metric)
    counts[column] = (counts[column] or 0) + by
    rows = list(profile.rows)
    rows[index] = replace(rows[index], counts=tuple(counts))
    profiles = (replace(profile, rows=tuple(rows)), *recording.profiles[1:])
    return replace(recording, profiles=profiles)


def test_kernel_v4_is_as_predicted() -> None:
    comparison = replay(recorded("kernel_v4"))
    assert not comparison.differences
    assert {figure.verdict for line in comparison.lines for figure in line.figures} == {EXACT}
    assert len(comparison.lines) == 12 and len(list(comparison.figures)) == 54
    by_metric = {figure.metric: figure for figure in comparison.totals}
    assert by_metric[STORES].verdict == by_metric[CONFLICTS].verdict == NOISE
    assert by_metric[STORES].predicted == 524_288
    assert by_metric[STORES].arbitration == by_metric[CONFLICTS].measured > 0
    assert {f.verdict for m, f in by_metric.items() if m not in (STORES, CONFLICTS)} == {EXACT}


def test_a_wrong_counter_is_a_difference() -> None:
    wrong = with_counter(recorded("kernel_v4"), SECTORS, lambda value: value + 1, run=0)
    comparison = replay(wrong)
    assert comparison.differences == (SECTORS,)
    assert [f.verdict for f in comparison.totals if f.metric == SECTORS] == [DIFFERENT]


@pytest.mark.parametrize(
    "metric", [metric for metric in LINE_METRICS if "sectors" not in metric and "tag" not in metric]
)
def test_a_wrong_figure_of_a_line_is_a_difference(metric: str) -> None:
    wrong = with_count(recorded("kernel_v4"), "LDS.128", metric, by=-32)
    comparison = replay(wrong)
    assert comparison.differences[0] == "kernels/kernel_v4.cu:53 shared load" and not comparison.passed


def test_an_access_that_nobody_predicted_is_a_difference() -> None:
    recording = recorded("kernel_v4")
    profile = recording.profiles[0]
    stray = replace(
        profile.rows[-1],
        file="kernels/kernel_v4.cu",
        line=1,
        sass="LDS R0, [R1]",
        counts=(8, 256, 8, 8, 0, 0, 0),
    )
    wrong = replace(
        recording, profiles=(replace(profile, rows=(*profile.rows, stray)), *recording.profiles[1:])
    )
    assert "kernels/kernel_v4.cu:1 shared load" in replay(wrong).differences


def store_run(recording: Recording) -> int:
    """Which run of the profiler has the stores' counters of one pass."""
    return next(i for i, p in enumerate(recording.profiles) if i and STORES in p.counters)


@pytest.mark.parametrize(
    ("metric", "change"),
    [
        (STORES, lambda value: value + 1),  # wavefronts and conflicts disagree
        (CONFLICTS, lambda value: value - 1),
        (ARBITRATION, lambda value: 0),  # nothing contended
    ],
)
def test_a_surplus_without_proof_is_a_difference(metric: str, change: Callable[[float], float]) -> None:
    recording = recorded("kernel_v4")
    assert verdicts(recording)[STORES] == NOISE
    wrong = with_counter(recording, metric, change, store_run(recording))
    assert verdicts(wrong)[STORES] == DIFFERENT


def test_counters_of_different_passes_prove_nothing() -> None:
    recording = recorded("kernel_v4")
    run = store_run(recording)
    profiles = list(recording.profiles)
    profiles[run] = replace(profiles[run], passes=2)
    assert verdicts(replace(recording, profiles=tuple(profiles)))[STORES] == DIFFERENT


def test_a_deficit_is_never_arbitration() -> None:
    recording = recorded("kernel_v5")
    assert verdicts(recording)[STORES] == EXACT
    run = store_run(recording)
    for metric in (STORES, CONFLICTS):
        recording = with_counter(recording, metric, lambda value: value - 5, run)
    assert verdicts(recording)[STORES] == DIFFERENT


def test_arbitration_is_not_claimed_while_a_line_is_unexplained() -> None:
    wrong = with_count(recorded("kernel_v4"), "STS.128", "memory_l1_wavefronts_shared", by=4)
    assert verdicts(wrong)[STORES] == DIFFERENT


def test_lanes_switched_off_in_place_of_a_branch_are_no_difference() -> None:
    """At the edges ptxas makes predicates of branches: more instructions run, which ask for nothing."""
    recording = recorded("kernel_v4", ragged=True)
    assert replay(recording).passed
    assert not any(figure.metric == "inst_executed" for figure in replay(recording).figures)
    for metric in ("memory_l1_tag_requests_global", "thread_inst_executed_true"):
        wrong = replay(with_count(recording, "STG.E", metric, by=1))
        assert not wrong.passed and "global store" in wrong.differences[0]


def test_lines_of_inlined_functions_are_compared_together() -> None:
    comparison = replay(recorded("guide_v11"))
    together = [line for line in comparison.lines if len(line.places) > 1]
    assert [line.where for line in together] == [
        "kernels/guide_v11.cu:49+68 global load",
        "kernels/guide_v11.cu:53+82 shared store",
    ]
    assert not comparison.differences
    spec = catalog()["guide_v11"].pick()
    analysis = spec.analyze()
    alone = compare(recorded("guide_v11"), analysis, {})  # as if nothing were inlined
    assert {line.where for line in alone.lines if line.differs} == {
        f"kernels/guide_v11.cu:{line} {access}"
        for line, access in (
            (49, "global load"),
            (68, "global load"),
            (53, "shared store"),
            (82, "shared store"),
        )
    }


@pytest.mark.slow
def test_what_has_no_rule_is_not_modelled_and_fillers_are_named() -> None:
    comparison = replay(recorded("sgemm_128x256x8"))
    copies = [line for line in comparison.lines if "cp.async" in line.where]
    assert {f.verdict for line in copies for f in line.figures} == {EXACT}
    unmodelled = [figure.metric for figure in comparison.totals if figure.verdict == UNMODELLED]
    assert unmodelled == ["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum"]
    assert any("never execute (@!PT)" in note for note in comparison.notes)


def test_another_launch_is_refused() -> None:
    recording = recorded("kernel_v4")
    spec = catalog()["kernel_v4"].pick()
    for analysis, says in (
        (spec.analyze("512,512,512"), "another launch"),
        (spec.analyze(blocks=4), "4 of 64 blocks"),
    ):
        with pytest.raises(MemsimError, match=says):
            compare(recording, analysis, {})
    device = replace(recording.device, compute_capability="8.0")
    with pytest.raises(MemsimError, match="the recording of sm_80"):
        compare(replace(recording, device=device), spec.analyze(), {})


def test_a_kernel_that_has_changed_is_refused() -> None:
    recording = recorded("kernel_v4")
    assert replay(recording)
    with pytest.raises(MemsimError, match="kernel_v4 has changed since it was recorded") as caught:
        replay(replace(recording, ptx="0" * 64))
    assert "--live --record" in str(caught.value)


def test_calls_come_from_the_ptx() -> None:
    calls = replaying.calls_of(catalog()["guide_v11"].pick().kernel("ptx").code.function)
    file = "kernels/guide_v11.cu"
    assert calls[file, 53] == {(file, 62), (file, 82)}
    assert (file, 62) not in calls
