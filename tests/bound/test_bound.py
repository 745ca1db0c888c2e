"""Lower bounds of launches: what bounds them, what a cure could win, and when there is no answer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import memsim
from memsim import api
from memsim.analysis import analyze_trace
from memsim.bound import L1_DATA, bound_of, executed_forms
from memsim.cli import cli
from memsim.data import data_folder
from memsim.errors import MemsimError
from memsim.kernels import catalog
from memsim.trace.trace import Trace
from memsim.validate.rates.recording import newest_rates


def analysis_of(name: str) -> memsim.Analysis:
    return analyze_trace(catalog()[name].trace())


@pytest.mark.parametrize("name", ["kernel_v3", "kernel_v4", "transpose_naive", "opt_6_double_buffer"])
def test_executions_are_those_that_were_recorded(name: str) -> None:
    """The recording has opcodes as memsim counted them then; the counters beside them are the chip's."""
    recorded = next(x for x in newest_rates(data_folder("traces")).launches if x.name == name)
    analysis = analysis_of(name)
    assert analysis.trace.origin is not None and analysis.trace.origin.digest == recorded.digest
    assert {
        form: times for form, times in executed_forms(analysis.trace).items() if times
    } == recorded.executed


def test_conflicts_that_bound_a_kernel_can_be_won_back() -> None:
    found = bound_of(analysis_of("transpose_naive"))
    assert found.units[0].name == L1_DATA
    assert found.conflicts == 1_015_808
    assert 0.5 < found.gain < 1
    assert "% lower" in found.verdict


def test_conflicts_that_do_not_bound_it_cannot() -> None:
    found = bound_of(analysis_of("kernel_v4_colmajor"))
    assert found.units[0].name != L1_DATA
    assert found.conflicts == 262_144
    assert found.gain == 0
    assert "does not lower the bound" in found.verdict


def test_each_figure_is_the_work_of_one_unit() -> None:
    analysis = analysis_of("kernel_v4")
    found = {unit.metric: unit for unit in bound_of(analysis).units}
    fma = found["sm__inst_executed_pipe_fma.sum"]
    blocks = analysis.trace.launch.blocks  # fewer than multiprocessors
    assert fma.count is not None
    assert fma.cycles >= fma.count / (4 * blocks)


SOURCE = """
extern "C" __global__ void {name}(float *data, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = data[i];
    for (int k = 0; k < n; k++) x = x * 1.5f + 2.0f;
    data[i] = x;
}}
"""


def test_a_loop_is_counted_as_often_as_it_runs(tmp_path: Path) -> None:
    file = tmp_path / "poly.cu"
    file.write_text(SOURCE.format(name="poly"))
    module = api.load(file)
    data = memsim.ArrayArg((256,))
    few, many = (
        executed_forms(api.trace(module["poly"], 2, 128, [data, rounds]))["FFMA"] for rounds in (64, 128)
    )
    assert many - few == 64 * 2 * 4  # 4 warps in each of 2 blocks


def test_ptx_has_no_bounds(tmp_path: Path) -> None:
    analysis = analyze_trace(catalog()["transpose_padded"].trace(code="ptx"))
    with pytest.raises(MemsimError, match="bounds in cycles need machine code"):
        bound_of(analysis)


def test_a_part_of_the_blocks_has_none() -> None:
    analysis = analyze_trace(catalog()["transpose_padded"].trace(blocks=3))
    with pytest.raises(MemsimError, match="need all blocks, not 3 of"):
        bound_of(analysis)


def test_a_saved_trace_has_the_same(tmp_path: Path) -> None:
    analysis = analysis_of("transpose_padded")
    analysis.trace.save(tmp_path / "t.npz")
    again = analyze_trace(Trace.load(tmp_path / "t.npz"))
    assert np.array_equal(again.trace.executed, analysis.trace.executed)
    assert bound_of(again) == bound_of(analysis)


def test_the_command_says_it_in_its_first_line() -> None:
    done = CliRunner().invoke(cli, ["bound", "transpose_naive"])
    assert done.exit_code == 0
    first = done.output.splitlines()[0]
    assert first.startswith("transpose_naive: at least ")
    assert "bound by the L1 data stage" in first


def test_its_json_has_the_same() -> None:
    done = CliRunner().invoke(cli, ["bound", "transpose_naive", "--json"])
    record = json.loads(done.output)
    found = bound_of(analysis_of("transpose_naive"))
    assert record["cycles"] == found.cycles
    assert [unit["name"] for unit in record["units"]] == [unit.name for unit in found.units]


def test_probe_rates_compares_with_the_recording() -> None:
    done = CliRunner().invoke(cli, ["probe", "--rates"])
    assert done.exit_code == 0
    assert "the bounds hold for 83 of 83 launches" in done.output


def test_probe_rates_without_a_recording_says_how_to_make_one(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["probe", "--rates", "--traces", str(tmp_path)])
    assert isinstance(done.exception, MemsimError)
    assert done.exception.hint == "memsim probe --rates --live --record makes one"
