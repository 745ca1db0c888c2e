"""What was once guessed or dropped is counted as the chip counts it, or is said not to be known.

Each kernel stands beside one that is like it and stays known. Figures of the chip: an H200's counters.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memsim
from memsim.analysis import Analysis
from memsim.compile.cuda_source import compile_cubin
from memsim.errors import MemsimError
from memsim.isa.op import PREDICATE, SLOTS, slots_of
from memsim.isa.readers import Binder
from memsim.kernel import Kernel
from memsim.sass.decode import meaning_of_text
from memsim.sass.disassemble import disassemble
from memsim.sass.machine_code import read_module
from memsim.simt.steps import with_decided
from memsim.simt.waits import whole_clusters
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import from_bools, to_bools
from tests.ptx_front.loading import load_ptx
from tests.simt.cuda import machine_kernel

HERE = Path(__file__).parent / "kernels"
Array = memsim.ArrayArg

LDS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
LDS_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
LD_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
LD_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
ST_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"
ST_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
NOT_CERTAIN = "some counts are uncertain"


@pytest.fixture(scope="module")
def module() -> Any:
    return memsim.load(HERE / "guessed.cu")


@pytest.fixture(scope="module", params=["sass", "ptx"])
def ways(request: pytest.FixtureRequest) -> Any:
    """As machine code, if there is an assembler, and as its instructions are lowered one by one."""
    try:
        return (memsim.load if request.param == "sass" else load_ptx)(HERE / "ways.ptx")
    except MemsimError as error:
        pytest.skip(error.message)


def analyze(module: Any, name: str, grid: int, block: int, *args: Any, **more: Any) -> Analysis:
    return memsim.analyze(module[name], grid, block, list(args), **more)


def unknown(analysis: Analysis) -> list[str]:
    """The accesses that could not be analyzed; the first line has their number."""
    found = [f"{site.space} {site.op}" for site in analysis.sites if site.unresolved]
    said = f"{len(found)} access{'es' * (len(found) > 1)} could not be analyzed"
    assert (said in analysis.verdict) == bool(found)
    return found


# --- what the compiler did is in the machine code -----------------------------------------------


@pytest.mark.slow
def test_reads_that_the_compiler_merged(module: Any) -> None:
    analysis = analyze(module, "merged", 2, 128, Array((2048,)), Array((256,)))
    assert (analysis.totals[LDS], analysis.totals[LDS_CONFLICTS]) == (128, 64)


def test_a_matrix_that_nobody_uses(module: Any) -> None:
    analysis = analyze(module, "dead", 1, 128, Array((1024,)), Array((128,)))
    assert analysis.totals[LDS] == 16


def test_a_loop_of_a_length_of_its_own_for_each_lane(module: Any) -> None:
    count = np.arange(32, dtype=np.int32)
    start = (np.cumsum(count) - count).astype(np.int32)
    analysis = analyze(module, "rows", 1, 256, start, count, Array((512,)), Array((256,)))
    executed = sum(site.requests or 0 for site in analysis.sites if site.op == "load")
    assert analysis.totals[LD_REQUESTS] == executed
    rounds = [-(-int(n) // 8) for n in count]
    assert executed >= 16 + sum(max(rounds[row : row + 4]) for row in range(0, 32, 4))


def test_fragments_of_matrices_are_loads(module: Any) -> None:
    analysis = analyze(module, "matrix", 1, 32, Array((32,), "float64"), Array((32,), "float64"))
    assert (analysis.totals[LD_REQUESTS], analysis.totals[ST_REQUESTS]) == (1, 1)


# --- what depends on the order of warps, or on a last bit ---------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("compacted", (Array((512,), "int32"), np.zeros(1, np.int32), Array((512,)))),
        ("compacted_in_block", (Array((1024,)), Array((256,), "int32"))),
    ],
)
def test_counts_that_are_not_certain(module: Any, name: str, arguments: tuple[Any, ...]) -> None:
    analysis = analyze(module, name, 1, 256, *arguments)
    assert NOT_CERTAIN in analysis.verdict


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("counted", (Array((512,), "int32"), np.zeros(1, np.int32), Array((512,)))),
        ("exact", (Array((512,), "int32"),)),
        ("approximate", (Array((512,), "int32"), Array((1 << 20,), "int32"))),
    ],
)
def test_counts_that_are_certain(module: Any, name: str, arguments: tuple[Any, ...]) -> None:
    analysis = analyze(module, name, 1, 256, *arguments)
    assert NOT_CERTAIN not in analysis.verdict
    assert not unknown(analysis)


# --- what is not executed makes unknown what it writes ------------------------------------------


@pytest.mark.parametrize("name", ["bulk", "bulk_counted"])
def test_a_bulk_copy_is_executed(module: Any, name: str) -> None:
    index = np.arange(32, dtype=np.int32)
    analysis = analyze(module, name, 1, 32, Array((256,)), index)
    assert unknown(analysis) == []
    assert analysis.totals[ST_SECTORS] == 32
    assert any(note.startswith("mbarrier operations") for note in analysis.trace.notes)


def test_a_bulk_copy_leaves_its_source_known(module: Any) -> None:
    index = np.arange(32, dtype=np.int32)
    analysis = analyze(module, "bulk_out", 1, 32, Array((256,)), index, Array((32,), "int32"))
    assert unknown(analysis) == []
    assert analysis.totals[ST_SECTORS] == 32


def test_what_is_discarded_is_not_known(module: Any) -> None:
    index = Array((32,), "int32")
    analysis = analyze(module, "discards", 1, 32, index, Array((256,)))
    assert "global discard" in unknown(analysis)
    assert "global store" in unknown(analysis)
    assert not unknown(analyze(module, "prefetches", 1, 32, index, Array((256,))))


def test_an_opcode_that_nobody_knows_may_do_anything() -> None:
    code = compile_cubin(HERE / "guessed.cu").cubin
    listing = disassemble(code)
    arguments = [np.zeros(32, np.int32), np.zeros(32, np.float32)]
    for text, strange in ((listing, False), (listing.replace("CCTL.E.PF2", "FROB.E"), True)):
        found = read_module(code, text).kernels["prefetches"]
        analysis = memsim.analyze(Kernel("prefetches", found), 1, 32, arguments)
        assert ("FROB.E" in "".join(analysis.trace.uncertain)) == (NOT_CERTAIN in analysis.verdict) == strange
        rows = ["shared load", "global load", "shared store", "global store"]
        assert unknown(analysis)[:4] == (rows if strange else [])
        assert (analysis.totals[ST_SECTORS] is None) == strange


def test_surfaces_have_rows(ways: Any) -> None:
    assert unknown(analyze(ways, "surface", 1, 64, 5)) == ["global surface_store"]


def test_loads_from_several_chips_have_rows(ways: Any) -> None:
    analysis = analyze(ways, "everywhere", 1, 32, Array((32,)))
    assert unknown(analysis) == ["global load"]
    assert analysis.totals[LD_REQUESTS] is None and analysis.totals[ST_REQUESTS] == 1


@pytest.mark.slow
def test_matrix_operands_in_shared_memory_have_rows(tmp_path: Path) -> None:
    source = tmp_path / "wgmma.cu"
    source.write_text(
        """extern "C" __global__ void k(float *out) {
            __shared__ __align__(128) unsigned s[2048];
            #ifdef WRITTEN
            for (int i = threadIdx.x; i < 2048; i += 128) s[i] = 0x40003c00;  // 1 and 2 in turn
            __syncthreads();
            #endif
            float d[4] = {};
            asm volatile("wgmma.fence.sync.aligned;");
            asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %4, 1,1,1,0,0;"
                : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                : "l"((unsigned long long)__cvta_generic_to_shared(s) >> 4));
            asm volatile("wgmma.commit_group.sync.aligned;");
            asm volatile("wgmma.wait_group.sync.aligned 0;");
            out[threadIdx.x] = d[0];
        }"""
    )
    kernel = memsim.load(source, arch="sm_90a")
    analysis = analyze(kernel, "k", 1, 128, Array((128,)))
    assert [(site.requests, site.wavefronts) for site in analysis.sites if site.op == "wgmma"] == [(1, 18)]
    with pytest.raises(MemsimError, match="never written: HGMMA"):
        memsim.run(kernel["k"], 1, 128, [np.zeros(128, np.float32)])
    written, out = memsim.load(source, ["-DWRITTEN"], arch="sm_90a"), np.zeros(128, np.float32)
    memsim.run(written["k"], 1, 128, [out])
    assert out.tolist() == [8 * (1 * 1 + 2 * 2)] * 128


# --- memory that nobody wrote ---------------------------------------------------------------------


@pytest.mark.slow
def test_shared_memory_that_nobody_wrote_is_not_known(module: Any) -> None:
    analysis = analyze(module, "never_written", 1, 64, Array((64,)), Array((64,)))
    assert unknown(analysis) == ["global store"]
    assert "shared memory that was never written" in (analysis.sites[-1].unresolved or "")
    with pytest.raises(MemsimError, match="never written"):
        memsim.run(module["never_written"], 1, 64, [np.zeros(64, np.float32), np.zeros(64, np.float32)])


def test_shared_memory_that_was_written_is_known(module: Any) -> None:
    index = np.arange(64, dtype=np.int32)[::-1].copy()
    assert not unknown(analyze(module, "written", 1, 64, Array((64,)), index))
    out = np.zeros(64, np.float32)
    memsim.run(module["written"], 1, 64, [out, index])
    assert out.all()


def test_an_atomic_goes_on_where_some_words_are_not_known(module: Any) -> None:
    analysis = analyze(module, "partly_known", 1, 64, Array((128,), "int32"), Array((64,), "int32"))
    assert not [site for site in analysis.sites if site.unresolved and site.space == "global"]


@pytest.mark.parametrize(
    ("text", "lanes", "value"),
    [
        ("ISETP.GT.U32.OR P4, PT, R21, R4, !P1", [True, False, True], True),
        ("ISETP.GT.U32.AND P4, PT, R21, R4, P1", [True, False, True], False),
        ("FSETP.GT.OR P4, PT, R21, R4, !P1", [True, False, True], True),
    ],
)
def test_what_a_predicate_decides_needs_no_value(text: str, lanes: list[bool], value: bool) -> None:
    meaning = meaning_of_text(text)
    compute, reads = meaning.bind(Binder({})), meaning.reads
    registers: list[Any] = [None] * SLOTS
    registers[4] = 3
    registers[PREDICATE + 1] = from_bools(np.array([[False, True, False]]))
    with pytest.raises(Poisoned):
        compute(registers)
    lost = Poison("R21", None)
    for wanted, known in (([True, False, True], True), ([True, True, True], lanes)):
        found, where = with_decided(
            compute, registers, slots_of(reads), lost, False, lambda m=wanted: from_bools(np.array([m]))
        )
        assert found == (value, value)
        assert np.array_equal(np.ravel(to_bools(where)), np.ravel(known))


def test_a_predicate_does_not_decide_an_exclusive_or() -> None:
    meaning = meaning_of_text("ISETP.GT.U32.XOR P4, PT, R21, R4, P1")
    compute, reads = meaning.bind(Binder({})), meaning.reads
    lost = Poison("R21", None)
    registers: list[Any] = [None] * PREDICATE + [None, True]
    assert with_decided(compute, registers, slots_of(reads), lost, False, lambda: True) == (lost, False)


def test_a_store_that_no_lane_makes_leaves_memory_known(module: Any) -> None:
    index = np.zeros(32, np.int32)
    assert not unknown(analyze(module, "stores_nowhere", 1, 32, index, Array((2,)), 0))


# --- copies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["copies_to_places_of_others", "copies_to_its_own_places"])
def test_addresses_of_lanes_that_are_off_do_not_count(module: Any, kernel: str) -> None:
    """On an H200 they have no effect on requests, sectors and lines (traces/nvidia-h200/requests.npz)."""
    analysis = analyze(module, kernel, 1, 32, Array((128,)), Array((128,)))
    assert NOT_CERTAIN not in analysis.verdict
    assert analysis.totals[LD_SECTORS] == 8


# --- other chips ----------------------------------------------------------------------------------


def test_ptx_of_another_chip_says_so() -> None:
    text = (HERE / "ways.ptx").read_text()
    said = "made for sm_103a, counted by the rules of sm_90"
    for target, expected in (("sm_90", False), ("sm_90a", False), ("sm_103a", True)):
        module = load_ptx(text.replace("sm_90", target))
        verdict = analyze(module, "guarded", 1, 64, Array((1024,)), 3).verdict
        assert (said in verdict) == expected


def test_a_cluster_is_not_divided() -> None:
    assert whole_clusters(5, (8, 4, 1), (1, 1, 1)) == 5
    assert whole_clusters(5, (8, 4, 1), (2, 1, 1)) == 6
    assert whole_clusters(5, (8, 4, 1), (2, 2, 1)) == 16
    assert whole_clusters(5, (2, 2, 4), (1, 1, 2)) == 8


SAYS = """\
#include <cstdio>
extern "C" __global__ void k(float *o, const int *at, int loud) {
    const int i = at[threadIdx.x];
    if (loud > 0) printf("%d", i);
    o[i] = 1.0f;
}
"""


@pytest.mark.slow
def test_a_function_of_the_driver_is_named() -> None:
    """What printf writes, and where, is in no file: it is neither dropped nor an end, nor an access of the
    kernel.
    """
    kernel = machine_kernel(SAYS)

    def analyzed(loud: int) -> Analysis:
        return memsim.analyze(kernel, 1, 32, [Array((64,)), np.arange(32, dtype=np.int32), loud])

    silent, loud = analyzed(0), analyzed(1)
    assert unknown(silent) == unknown(loud) == []
    assert (silent.totals[ST_REQUESTS], loud.totals[ST_REQUESTS]) == (1, None)
    assert loud.undecided[ST_REQUESTS].least == 1 and "printf call is not counted" in loud.verdict


@pytest.mark.slow
def test_an_assertion_that_fails_ends_the_kernel() -> None:
    """Code that stands behind it belongs to other lanes."""
    kernel = machine_kernel(
        '#include <cassert>\nextern "C" __global__ void k(float *o, int n) {\n    assert(n > 3);\n'
        "    o[threadIdx.x] = 1;\n}\n"
    )
    assert not unknown(memsim.analyze(kernel, 1, 32, [Array((32,)), 4]))
    with pytest.raises(MemsimError, match="assertion failed in thread") as caught:
        memsim.analyze(kernel, 1, 32, [Array((32,)), 3])
    assert caught.value.line == 3


# --- control ------------------------------------------------------------------------------------


def test_lanes_without_a_way_of_their_own_fall_through(ways: Any) -> None:
    analysis = analyze(ways, "guarded", 1, 64, Array((1024,)), 3)
    assert analysis.totals[ST_REQUESTS] == 8


def test_an_index_out_of_range_is_an_error(ways: Any) -> None:
    with pytest.raises(MemsimError, match=r"BRX R2|trap executed by thread") as caught:
        analyze(ways, "guarded", 1, 64, Array((1024,)), 4)
    assert caught.value.file and caught.value.exit_code == 2


UNIFORM = """\
.version 8.1
.target sm_90
.address_size 64
.visible .entry k(.param .u64 to)
{
    .reg .b32 %way;
    .reg .b64 %at;
T:  .branchtargets A, B;
    ld.param.u64 %at, [to];
    mov.u32 %way, WAY;
    brx.idx %way, T;
A:  st.global.u32 [%at], 1;
    ret;
B:  st.global.u32 [%at+4], 1;
    st.global.u32 [%at+8], 1;
    ret;
}
"""


def test_an_index_that_is_the_same_in_all_threads() -> None:
    """It was once a traceback where the target did not exist."""

    def stores(way: int) -> list[int | None]:
        kernel = load_ptx(UNIFORM.replace("WAY", str(way)))["k"]
        return [site.requests for site in memsim.analyze(kernel, 1, 32, [Array((32,))]).sites]

    assert (stores(0), stores(1)) == ([1], [1, 1])
    with pytest.raises(MemsimError, match="trap executed by thread") as caught:
        stores(7)
    assert caught.value.line == 11


WIDE = """\
.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 written, .param .u64 to)
{
    .shared .align 16 .b8 s[512];
    .reg .b128 %q;
    .reg .b32 %i, %place, %index;
    .reg .b64 %from, %written, %to, %at;
    ld.param.u64 %written, [written];
    ld.param.u64 %to, [to];
    mov.u32 %i, %tid.x;
    mul.wide.u32 %at, %i, 16;
    add.s64 %from, %written, %at;
    mov.u32 %place, s;
    mad.lo.u32 %place, %i, 16, %place;
    mov.b128 %q, {%at, %at};
    STORE
    cp.async.ca.shared.global [%place], [%from], 16;
    cp.async.wait_all;
    bar.sync 0;
    ld.shared.u32 %index, [%place];
    and.b32 %index, %index, 31;
    mul.wide.u32 %at, %index, 32;
    add.s64 %at, %to, %at;
    st.global.u32 [%at], 1;
    ret;
}
"""


@pytest.mark.parametrize("code", ["sass", "ptx"])
def test_an_index_that_a_wide_store_and_a_copy_brought(code: str) -> None:
    """What a kernel reads of its own stores is not certain, for a trace does not execute them; nor is what it
    copies and does not wait for.
    """

    def analyzed(store: str, wait: str = "cp.async.wait_all;") -> Analysis:
        text = WIDE.replace("STORE", store).replace("cp.async.wait_all;", wait)
        try:
            kernel = (memsim.load if code == "sass" else load_ptx)(text)["k"]
        except MemsimError as error:
            pytest.skip(error.message)
        return memsim.analyze(kernel, 1, 32, [np.arange(128, dtype=np.int32) // 4, Array((256,))])

    alone, stored = analyzed(""), analyzed("st.global.b128 [%from], %q;")
    assert (alone.totals[ST_REQUESTS], alone.totals[ST_SECTORS]) == (1, 32)
    assert NOT_CERTAIN not in alone.verdict
    assert stored.totals[ST_REQUESTS] is None and stored.undecided[ST_REQUESTS].estimate == 2
    assert NOT_CERTAIN in stored.verdict
    committed = "cp.async.commit_group; cp.async.wait_group "
    assert NOT_CERTAIN not in analyzed("", f"{committed} 0;").verdict
    for late in ("", "cp.async.commit_group;", f"{committed} 1;"):
        assert NOT_CERTAIN in analyzed("", late).verdict


@pytest.mark.parametrize("threads", [64, 128])
def test_a_barrier_that_waits_for_threads_that_have_left(module: Any, threads: int) -> None:
    with pytest.raises(MemsimError, match="32 of 64 threads wait") as caught:
        analyze(module, "waits_for_nobody", 1, threads, Array((128,)))
    assert caught.value.line
    assert analyze(module, "waits_for_two_warps", 1, threads, Array((128,))).totals[ST_REQUESTS] == 2


# --- outside of arrays ----------------------------------------------------------------------------


def test_a_load_outside_of_every_array_can_be_allowed(module: Any) -> None:
    arguments = [np.ones(64, np.float32), np.zeros(64, np.float32)]
    with pytest.raises(MemsimError, match="out-of-bounds") as caught:
        memsim.analyze(module["too_far"], 1, 64, arguments)
    assert "allow" in (caught.value.hint or "")
    analysis = memsim.analyze(module["too_far"], 1, 64, arguments, allow_out_of_bounds=True)
    assert analysis.totals[LD_REQUESTS] == 2
    assert analysis.totals[LD_SECTORS] == 5 + 5
    assert analysis.trace.notes == ("reads outside of every array (1 requests)",)


def test_what_is_read_outside_is_not_known(module: Any) -> None:
    arguments = [np.arange(64, dtype=np.int32), np.zeros(64, np.float32)]
    analysis = memsim.analyze(module["index_too_far"], 1, 64, arguments, allow_out_of_bounds=True)
    assert unknown(analysis) == ["global store"]
    assert not unknown(memsim.analyze(module["index_too_far"], 1, 32, arguments, allow_out_of_bounds=True))


def test_a_store_outside_is_an_error_in_any_case(module: Any) -> None:
    arguments = [np.ones(65, np.float32), np.zeros(32, np.float32)]
    with pytest.raises(MemsimError, match="out-of-bounds STG"):
        memsim.analyze(module["too_far"], 1, 64, arguments, allow_out_of_bounds=True)


def test_the_word_around_the_last_two_bytes_belongs_to_an_array(module: Any) -> None:
    sums = np.zeros(3, np.int16)
    assert not unknown(analyze(module, "adds_halves", 1, 32, sums, Array((32,))))
    with pytest.raises(MemsimError, match="out-of-bounds"):
        analyze(module, "adds_halves", 1, 32, np.zeros(2, np.int16), Array((32,)))
