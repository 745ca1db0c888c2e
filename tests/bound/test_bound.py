"""Lower bounds of launches: what bounds them, what a cure could win, and when there is no answer."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from math import ceil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import memsim
from lab.experiments import RATES
from memsim.analysis import analyze_trace
from memsim.api import loading, running
from memsim.arch import SM_90, get_arch
from memsim.bound import DRAM, DRAM_BY_SHEET, L1_DATA, bound_of, percent
from memsim.cli import cli
from memsim.data import data_folder
from memsim.kernels import catalog
from memsim.least_work import executed_forms
from memsim.shown import ShownAnalysis
from memsim.trace.trace import Trace
from memsim.validate.code_recording import load_code_recording
from memsim.views import bound_text
from tests.simt.cuda import kernels_of, machine_kernel


def analysis_of(name: str) -> memsim.Analysis:
    return catalog()[name].analyze()


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["kernel_v3", "kernel_v4", "transpose_naive", "opt_6_double_buffer"])
def test_executions_are_those_that_were_recorded(name: str) -> None:
    """The recording has opcodes as memsim counted them then; the counters beside them are the chip's."""
    recorded = next(x for x in RATES.newest(data_folder("traces")).launches if x.name == name)
    analysis = analysis_of(name)
    assert analysis.trace.origin is not None and analysis.trace.origin.digest == recorded.digest
    assert {
        form: times for form, times in executed_forms(analysis.trace).items() if times
    } == recorded.executed


@pytest.mark.parametrize(("text", "form"), [("@!P0 LDG.E R4", "LDG.E"), ("@P0", ""), ("", "")])
def test_a_listing_of_a_saved_trace_may_lack_an_opcode(text: str, form: str) -> None:
    trace = catalog()["transpose_naive"].trace((64, 64))
    (place, _, file, line), *rest = trace.listing
    first, *_ = trace.executed.tolist()
    found = executed_forms(replace(trace, listing=((place, text, file, line), *rest)))
    assert found[form] >= first > 0


def test_conflicts_that_bound_a_kernel_can_be_won_back() -> None:
    found = analysis_of("transpose_naive").bound
    assert found.units[0].name == L1_DATA
    assert found.conflicts == 1_015_808
    assert 0.5 < found.gain < 1
    assert "% lower" in found.verdict


def test_conflicts_that_do_not_bound_it_cannot() -> None:
    found = analysis_of("kernel_v4_colmajor").bound
    assert found.units[0].name != L1_DATA
    assert found.conflicts == 262_144
    assert found.gain == 0
    assert "would not lower the bound" in found.verdict


def test_each_figure_is_the_work_of_one_unit() -> None:
    analysis = analysis_of("kernel_v4")
    found = {unit.metric: unit for unit in analysis.bound.units}
    fma = found["sm__inst_executed_pipe_fma.sum"]
    blocks = analysis.trace.launch.blocks  # fewer than multiprocessors
    assert fma.count is not None
    assert fma.cycles >= fma.count / (4 * blocks)


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["transpose_padded", "sgemm_128x256x8"])
def test_a_count_under_a_counter_s_name_is_the_counter_s(name: str) -> None:
    """Shared memory's wavefronts include some of no instruction, and tags are looked up for copies, too."""
    (path,) = data_folder("traces").glob(f"nvidia-h200/code/{name}.json")
    counters = load_code_recording(path).profiles[0].counters
    units = {unit.metric: unit for unit in analysis_of(name).bound.units}
    compared = {metric: unit.count for metric, unit in units.items() if unit.count is not None}
    assert units["l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"].count is None
    assert compared["memory_l1_tag_requests_global"]
    assert {metric: compared[metric] for metric in compared if metric in counters} == {
        metric: counters[metric].value for metric in compared if metric in counters
    }


SOURCE = """
extern "C" __global__ void {name}(float *data, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = data[i];
    for (int k = 0; k < n; k++) x = x * 1.5f + 2.0f;
    data[i] = x;
}}
"""


TRAFFIC = """
extern "C" __global__ void {name}(int *data) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {body}
}}
"""


@pytest.mark.some(4)
@pytest.mark.parametrize(
    ("body", "read", "written"),
    [
        ("data[i] = 1;", 0, 1),
        ("data[i] += 1;", 1, 1),
        ("atomicAdd(data + i, 1);", 0, 1),  # reads in the L2 cache itself
        ("if (data[i + (1 << 20)] == 0 && data[i] == 8) data[i] = 1;", 2, 0),
    ],
)
@pytest.mark.parametrize("blocks", [1, 4096])
def test_sectors_go_to_the_l2_cache_at_least_once(body: str, read: int, written: int, blocks: int) -> None:
    """One multiprocessor has its own rate, all of them another."""
    kernel = machine_kernel(TRAFFIC.format(name="traffic", body=body), "traffic")
    found = memsim.analyze(kernel, blocks, 256, [memsim.ArrayArg((2 << 20,), "int32", "zeros")]).bound
    rates = SM_90.memory
    assert rates is not None
    reads, writes = (
        (rates.l2_read_of_one, rates.l2_written_of_one) if blocks == 1 else (rates.l2_read, rates.l2_written)
    )
    sectors = blocks * 256 * 4 // 32
    assert found.cycles_of("l2") == ceil(max(read * sectors / reads, written * sectors / writes))


def test_rates_of_memory_that_were_not_measured_are_marked() -> None:
    for chip, name in (("sm_90", DRAM), ("sm_80", DRAM_BY_SHEET)):
        job = replace(catalog()["transpose_naive"].job(), arch=get_arch(chip))
        found = analyze_trace(running.trace_job(job)).bound
        units = {unit.key: unit.name for unit in found.units}
        assert units["dram"] == name
        assert ("l2" in units) is (chip == "sm_90")


def test_what_dram_of_a_slower_product_takes_is_said() -> None:
    assert SM_90.memory is not None
    slower = replace(SM_90.memory, product="NVIDIA H20", dram=SM_90.memory.dram / 2)
    job = replace(catalog()["transpose_naive"].job(), arch=replace(SM_90, boards=(slower, SM_90.memory)))
    found = analyze_trace(running.trace_job(job), job.arch)
    written = io.StringIO()
    bound_text.write(found, written)
    cycles = ceil(4 * 2**20 / (slower.dram / SM_90.sheet.clock))
    assert f"DRAM moves at most 4,600 GB/s ({SM_90.memory.product}, measured)" in written.getvalue()
    assert f"On an NVIDIA H20 it moves 2,300 GB/s: at least {cycles:,} cycles." in written.getvalue()
    assert found.bound.cycles_of("dram") == ceil(cycles / 2)


def test_a_loop_is_counted_as_often_as_it_runs() -> None:
    module = kernels_of(SOURCE.format(name="poly"))
    data = memsim.ArrayArg((256,))
    few, many = (
        executed_forms(running.trace(module["poly"], 2, 128, [data, rounds]))["FFMA"] for rounds in (64, 128)
    )
    assert many - few == 64 * 2 * 4  # 4 warps in each of 2 blocks


def test_without_counts_of_instructions_only_accesses_are_counted() -> None:
    trace = catalog()["transpose_naive"].trace()
    found = analyze_trace(replace(trace, listing=(), executed=trace.executed[:0], resources=None)).bound
    machine = analysis_of("transpose_naive").bound
    assert {unit.key for unit in found.units} == {"l1_data", "shared", "l1_tags", "l2", "dram"}
    assert found.cycles == machine.cycles_of("l1_data")
    assert found.occupancy is None
    assert found.verdict.startswith("an estimate: at least")
    assert found.lacks == ("instruction counts are unknown, so only memory accesses are counted",)


def test_a_part_of_the_blocks_stands_for_all() -> None:
    found = analyze_trace(catalog()["transpose_naive"].trace(blocks=32)).bound
    whole = analysis_of("transpose_naive").bound
    assert found.cycles == whole.cycles  # its blocks are all alike
    assert found.lacks == ("32 of 1,024 blocks were replayed; the others are assumed to do the same",)
    assert not found.whole_blocks
    assert whole.lacks == ()


def test_a_trace_of_index_math_has_what_is_known_of_it() -> None:
    tile = memsim.SharedArray("tile", (32, 32), "f32")

    def read(t: memsim.Thread) -> None:
        tile[t.x, t.y].load()

    found = memsim.analyze(read, block=(32, 32)).bound
    assert (found.cycles, found.conflicts) == (32 * 32, 31 * 32)
    assert not found.has_instructions
    assert "Bound:" not in str(memsim.analyze(read, block=(32, 32)))


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["kernel_v4_colmajor", "transpose_naive"])
def test_analyze_says_it_in_its_third_line(name: str) -> None:
    assert str(analysis_of(name)).splitlines()[2] == f"Bound: {analysis_of(name).bound.verdict}"


ALIKE = """
extern "C" __global__ void alike(float *data, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {guard}data[i] = data[i] * 2.0f;
}}
"""


@pytest.mark.some(1)
@pytest.mark.parametrize(("guard", "alike"), [("", True), ("if (blockIdx.x) ", False), ("if (i < n) ", True)])
def test_blocks_that_all_execute_the_same_are_whole(tmp_path: Path, guard: str, alike: bool) -> None:
    """133 blocks on 132 multiprocessors: one of them has two."""
    file = tmp_path / "alike.cu"
    file.write_text(ALIKE.format(guard=guard))
    count = 133
    args = [memsim.ArrayArg((count * 128,)), count * 128]
    found = memsim.analyze(loading.load(file)["alike"], count, 128, args).bound
    assert found.whole_blocks is alike
    issued = sum(executed_forms(running.trace(loading.load(file)["alike"], count, 128, args)).values())
    if alike:
        assert found.cycles_of("issue") == 2 * issued // count // 4
    assert found.waves is not None
    assert found.waves.most == 2


def test_a_saved_trace_has_the_same(tmp_path: Path) -> None:
    analysis = analysis_of("transpose_padded")
    analysis.trace.save(tmp_path / "t.npz")
    again = analyze_trace(Trace.load(tmp_path / "t.npz"))
    assert np.array_equal(again.trace.executed, analysis.trace.executed)
    assert again.bound == analysis.bound


def test_the_command_says_it_in_its_first_line() -> None:
    done = CliRunner().invoke(cli, ["bound", "transpose_naive"])
    assert done.exit_code == 0
    first = done.output.splitlines()[0]
    assert first.startswith("transpose_naive: at least ")
    assert "bound by L1 data stage" in first


@pytest.mark.slow
def test_its_table_fits_the_terminal() -> None:
    """Where the names of ncu's metrics have no room they are left out, and nothing is cut."""
    for width, named in ((80, False), (120, True)):
        lines = CliRunner().invoke(cli, ["bound", "transpose_naive"], env={"COLUMNS": str(width)}).output
        table = lines.split("\n\n")[1].splitlines()
        assert max(map(len, table)) <= width
        assert ("lts__t_sectors_srcunit_tex.sum" in lines) is named
        assert table[1].split()[-2:] == ["100", "%"]


def test_its_json_has_the_same() -> None:
    done = CliRunner().invoke(cli, ["bound", "transpose_naive", "--json"])
    record = json.loads(done.output)
    found = analysis_of("transpose_naive").bound
    assert record["cycles"] == found.cycles
    assert [unit["name"] for unit in record["units"]] == [unit.name for unit in found.units]


def test_its_json_has_the_next_cliff_and_the_room_before_it() -> None:
    record = analysis_of("kernel_v4").bound.to_dict()
    assert record["resident_blocks"] == 2
    assert record["next_cliffs"] == [{"registers": 80, "shared_bytes": 8192, "resident_blocks": 3}]
    assert record["room"] == {"registers": 128, "shared_bytes": 115_712}
    assert analysis_of("transpose_naive").bound.to_dict()["next_cliffs"] == []  # its warps decide


@pytest.mark.parametrize(
    ("blocks", "threads", "said"), [(1, 1, "1 block of 1 thread"), (2, 64, "2 blocks of 64")]
)
def test_one_block_is_said_as_one(blocks: int, threads: int, said: str) -> None:
    kernel = machine_kernel(TRAFFIC.format(name="traffic", body="data[i] = 1;"), "traffic")
    written = io.StringIO()
    bound_text.write(memsim.analyze(kernel, blocks, threads, [memsim.ArrayArg((128,), "int32")]), written)
    assert f"for {said}" in written.getvalue()


@pytest.mark.slow
def test_the_page_says_it_below_its_first_line() -> None:
    from memsim.views.report import report_page

    page = report_page(analysis_of("transpose_naive"))
    assert '<p id="bound">Bound: at least ' in page
    assert '<details id="units">' in page
    assert "<code>smsp__inst_executed.sum</code>" in page and "Resident: 2 blocks of 32 warps" in page
    assert f"bank conflicts the bound is {percent(analysis_of('transpose_naive').bound.gain)} lower" in page


def test_a_share_that_is_not_all_is_never_100_percent() -> None:
    assert [percent(share) for share in (0.994, 0.995, 0.997, 1 - 1e-9)] == ["99 %", *["over 99 %"] * 3]
    assert [percent(share) for share in (1, 1.004, 1.5, 0)] == ["100 %", "100 %", "150 %", "0 %"]


def test_suggestions_say_whether_a_cure_can_gain_anything() -> None:
    job = catalog()["kernel_v4_colmajor"].job((128, 128, 16))
    analysis = ShownAnalysis.of(analyze_trace(running.trace_job(job, apart=True)))
    found = analysis.suggest("s_a")
    assert found.advice[0].proposals
    second = str(found).splitlines()[1]
    assert second == f"Bound: {analysis.bound.verdict}"
    assert second.endswith("bank conflicts would not lower the bound")
    assert found.to_dict()["bound"]["gain_without_conflicts"] == 0


def test_the_first_line_begins_with_what_is_not_counted() -> None:
    whole = catalog()["transpose_naive"].trace((64, 64))
    textured = analyze_trace(replace(whole, uncounted={"texture request": 128})).bound
    certain = analyze_trace(whole).bound
    told = "128 texture requests are not counted"
    assert textured.verdict == f"{told}; an estimate: {certain.verdict}"
    assert textured.lacks == (f"{told}, so the true bound is higher",) and certain.lacks == ()
    assert textured.cycles == certain.cycles


def test_a_bound_of_uncertain_counts_is_an_estimate() -> None:
    whole = catalog()["transpose_naive"].trace((64, 64))
    certain, doubted = (
        analyze_trace(replace(whole, uncertain=why)).bound for why in ((), ("an order decides the address",))
    )
    assert certain.lacks == () and certain.verdict.startswith("at least ")
    assert doubted.verdict == f"an estimate: {certain.verdict}"
    assert doubted.lacks == ("some counts are uncertain, and taken as they were executed",)


def test_the_first_line_names_accesses_and_units_without_a_count() -> None:
    whole = catalog()["transpose_naive"].trace((64, 64))
    site = replace(whole.sites[0], unresolved="its address is unknown")
    told = "1 access could not be analyzed"
    unknown = analyze_trace(replace(whole, sites=(site, *whole.sites[1:]))).bound
    assert unknown.verdict.startswith(f"{told}; an estimate: at least ")
    assert unknown.lacks == (f"{told}, so the true bound is higher",)
    of_textures = replace(analyze_trace(whole).sites[0], space="texture")
    fetched = bound_of(whole, [of_textures], {})
    assert fetched.verdict.startswith("the work of texture units is not included; an estimate: ")
