"""The whole catalogue beside everything that was recorded: equal where equality is promised."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memsim.analysis import analyze_trace
from memsim.api.running import trace_job
from memsim.kernels import Spec, catalog
from memsim.validate.code_recording import RAGGED, code_paths, load_code_recording, replay, size_of
from memsim.validate.compare_instructions import NOISE, UNMODELLED
from studies.kernel_ptx import ptx_of
from tests.few import KERNELS, few
from tests.ptx_front.loading import load_ptx
from tests.validate.conftest import TRACES, recorded

PATHS = code_paths(TRACES)
KEPT = {path.stem for path in PATHS if path.name.split(".")[0] in KERNELS}
SPECS = list(catalog().values())
# Of a tile for parts of a sum, ptxas moves loads.
WITHOUT_PARTS = [spec for spec in SPECS if spec.family.name != "sgemm_parts"]
SIZES = pytest.mark.parametrize("size", [None, RAGGED], ids=["default", "ragged"])
# What an L1 cache that misses adds to a copy of scattered data; docs/model.md.
BY_HITS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum"
# What the Source page shows of copies: it loses some of guarded ones, and for some `.cg` there is no rule.
OF_COPIES = {
    "memory_l1_wavefronts_shared",
    "memory_l1_wavefronts_shared_ideal",
    "memory_l2_theoretical_sectors_global",
    "memory_l2_theoretical_sectors_global_ideal",
}


@pytest.mark.some(26)
@SIZES
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_every_kernel_is_recorded_as_it_ships(spec: Spec, size: str | None) -> None:
    recording = recorded(spec.name, size)
    assert recording.code.digest == spec.kernel().origin.digest
    assert recording.result is not None and recording.result.right


@pytest.mark.some(1)
@pytest.mark.parametrize("path", few(PATHS, KEPT, name=lambda path: path.stem))
def test_every_instruction_and_every_counter_is_equal(path: Path) -> None:
    comparison = replay(load_code_recording(path))
    assert not comparison.differences
    has_copies = path.name.startswith(("sgemm_128x256x8", "tile_"))
    open_totals = {figure.metric for figure in comparison.totals if figure.verdict == UNMODELLED}
    assert open_totals <= ({BY_HITS, *OF_COPIES} if has_copies else set())
    for row in comparison.rows:
        open_figures = {figure.metric for figure in row.figures if figure.verdict == UNMODELLED}
        assert open_figures <= (OF_COPIES if "LDGSTS" in row.sass and has_copies else set())
    proven = {figure.metric for figure in comparison.figures if figure.verdict == NOISE}
    assert proven <= {figure.metric for figure in comparison.totals}
    assert len(comparison.rows) >= 2 and len(comparison.totals) == 15


@pytest.mark.some(1)
@SIZES
@pytest.mark.parametrize("spec", few(WITHOUT_PARTS, ("kernel_v4",), name=lambda spec: spec.name))
def test_lowered_ptx_is_counted_like_machine_code(spec: Spec, size: str | None) -> None:
    extents = size_of(spec, size)
    lowered = load_ptx(ptx_of(spec))[spec.entry]
    estimate = analyze_trace(trace_job(replace(spec.job(extents), kernel=lowered))).totals
    totals = spec.analyze(extents).totals
    assert {metric: estimate[metric] for metric in totals if estimate[metric] is not None} == {
        metric: count for metric, count in totals.items() if estimate[metric] is not None
    }
    assert sum(count is not None for count in estimate.values()) >= 10


def test_ragged_sizes_fit_no_tile_where_the_kernel_allows() -> None:
    for spec in SPECS:
        size = dict(zip(spec.family.sizes, size_of(spec, RAGGED), strict=True))
        for name, divisor in spec.requires:
            assert size[name] % divisor == 0
        free = set(size) - {name for name, _ in spec.requires}
        assert all(size[name] % 2 for name in free)
