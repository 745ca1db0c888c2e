"""Proposals compiled and replayed: the replay decides, whatever was forecast."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsim.api import kernel_file, running
from memsim.argument_types import ArrayArg, Pointers
from memsim.compile.libraries import Library
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.kernels import catalog
from memsim.launch import Launch
from memsim.suggest import prove, suggest
from memsim.suggest.count import count
from memsim.suggest.maps import Padding, XorSwizzle
from memsim.suggest.prove import differing_results, edit_job, rounding_between, with_text
from memsim.trace.trace import Trace
from memsim.views.suggest.terminal import render
from tests.simt.cuda import machine_kernel
from tests.suggest.kernels import BLOCK_TRANSPOSE, JOINED_LOADS, Case, analyzed, launched, transpose


@pytest.mark.slow
def test_where_the_compiler_joins_other_loads_the_replay_counts(tmp_path: Path) -> None:
    """Four loads side by side are one of 16 bytes until XORed columns hide that they are neighbours."""
    job = JOINED_LOADS.job(tmp_path)
    found = suggest(analyzed(job), job)
    assert found.proof is not None
    (swizzle,) = found.tried
    assert isinstance(swizzle.proposals[0].change, XorSwizzle)
    assert not swizzle.holds
    assert swizzle.counted["tile"] > swizzle.forecast["tile"]
    assert isinstance(found.proof.proposals[0].change, Padding)
    assert found.proof.holds
    text = render(found)
    proven = "288 -> 64 wavefronts, compiled and replayed;"
    worse = f"288 -> {swizzle.counted['tile']} wavefronts, compiled and replayed (forecast: "
    found_at = [text.index(each) for each in ("1. tile, padding", proven, "2. tile, swizzle", worse)]
    assert found_at == sorted(found_at)
    assert "Proven by replay: proposal 1 in k.cu" in text
    counted = [each["replayed"] for each in found.to_dict()["arrays"][0]["proposals"]]
    assert counted == [64, swizzle.counted["tile"]]


def test_arrays_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """Each in a function of its own; a column of both is in one bank."""
    text = """
__device__ float turned(float value, int t) {
    __shared__ float tile[32][32];
    tile[t % 32][t / 32] = value;
    __syncthreads();
    return tile[t / 32][t % 32];
}
extern "C" __global__ void k(const float *in, float *out) {
    __shared__ float tile[32][32];
    int t = threadIdx.x;
    tile[t % 32][t / 32] = in[t];
    __syncthreads();
    out[t] = turned(tile[t / 32][t % 32], t);
}
"""
    arrays = ((1024, "float32"), (1024, "float32"))
    job = Case(text, (1024,), arrays).job(tmp_path)
    found = suggest(analyzed(job), job)
    assert found.proof is not None
    assert found.proof.before == {"tile": 1056, "tile#2": 1056}
    assert found.proof.counted == found.proof.forecast == {"tile": 64, "tile#2": 64}
    assert found.proof.edit.new.count("float tile[32][32 + 1];") == 2
    assert differing_results(job, found.proof.job) == ()
    (other,) = suggest(analyzed(job), job, arrays=("tile#2",)).advice
    assert other.tile.first == 4096


@pytest.mark.slow
def test_what_was_not_replayed_is_called_a_forecast(tmp_path: Path) -> None:
    job = transpose("float tile[32][32]").job(tmp_path)
    text = render(suggest(analyzed(job), job))
    assert text.startswith(
        "k: 992 of 1,056 shared wavefronts are bank conflicts; another layout of tile saves "
    )
    assert text.count("64 wavefronts, compiled and replayed") == 2
    unproven = render(suggest(analyzed(job)))
    assert "another layout of tile would save all of them, by forecast\n" in unproven
    assert "compiled and replayed" not in unproven


@pytest.mark.slow
def test_a_change_that_does_not_compile_says_why(tmp_path: Path) -> None:
    """Rows of 33 are not what a function takes that is given the array."""
    case = transpose("float tile[32][32]")
    reads = "__device__ float at(float t[32][32], int y, int x) { return t[y][x]; }\n"
    text = reads + case.text.replace("tile[x][y]", "at(tile, x, y)")
    job = replace(case, text=text).job(tmp_path)
    found = suggest(analyzed(job), job)
    assert found.proposals and found.proof is None
    assert found.unproven.startswith("the changed k.cu: does not compile: ")


@pytest.mark.slow
def test_the_chosen_proposal_is_proven(tmp_path: Path) -> None:
    job = transpose("float tile[32][32]").job(tmp_path)
    found = suggest(analyzed(job), job, take=[2])
    assert found.proof is not None
    assert found.proof.edit.lines[0].new.strip() == "tile[y][x ^ y] = in[y * 32 + x];"
    with pytest.raises(MemsimError, match="there is no proposal 3"):
        suggest(analyzed(job), job, take=[3])


@pytest.mark.slow
def test_of_what_saves_as_much_that_which_is_as_forecast_is_proven() -> None:
    """The loads of s_b are joined only as they are: s_a alone is as forecast, and saves as much."""
    spec = catalog()["opt_4_tile2d"]
    job = spec.job((128, 128, 16))
    found = suggest(analyzed(job), job)
    assert found.proof is not None
    assert found.proof.holds
    assert list(found.proof.counted) == ["s_a"]
    assert [(list(proof.counted), proof.holds) for proof in found.tried] == [
        (["s_a", "s_b"], False),
        (["s_a"], True),
        (["s_a", "s_b"], False),
    ]
    cycles = [proof.analysis.bound.cycles for proof in (found.proof, *found.tried)]
    assert cycles == sorted(cycles)
    conflicts = sum(entry.conflicts for entry in found.advice)
    saved = found.proof.saved
    assert 0 < saved < conflicts
    lines = render(found).splitlines()
    assert lines[0].endswith(
        f"; {conflicts:,} of 4,224 shared wavefronts are bank conflicts; "
        f"another layout of s_a saves {saved:,} of them"
    )
    headings = [
        line[:3] for line in lines if line[:2].rstrip(".").isdecimal() or line.startswith(("s_", "C,"))
    ]
    assert headings == ["6. ", "s_a", "3. ", "1. ", "2. ", "s_b", "4. ", "5. "]
    assert found.remapped[0].analysis.bound.cycles < found.proof.analysis.bound.cycles
    assert sum(line.startswith("   Disproved by replay: 2,112 -> ") for line in lines) == 2
    chosen = render(suggest(analyzed(job), job, take=[4]))  # which saves nothing: the others are a forecast
    assert "another layout of s_a and s_b would save all of them, by forecast\n" in chosen


POINTER = Case(
    """
extern "C" __global__ void k(const float *in, float *out) {
    __shared__ float tile[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    float *flat = &tile[0][0];
    flat[y * 32 + x] = in[y * 32 + x];
    __syncthreads();
    out[y * 32 + x] = tile[x][y];
}
""",
    (32, 32),
    ((1024, "float32"), (1024, "float32")),
)


@pytest.mark.slow
def test_a_change_that_misses_an_access_is_found_by_running_it(tmp_path: Path) -> None:
    """The pointer goes on in rows of 32: counts are as forecast, and the results are not."""
    job = POINTER.job(tmp_path)
    found = suggest(analyzed(job), job)
    assert found.proof is None and found.tried == ()
    assert "results differ, as line 5 passes on an address" in render(found)
    edits = [one.edit for one in found.advice[0].proposals if one.edit is not None]
    assert {edit.unseen for edit in edits} == {(5,)}
    for edit in edits:
        try:
            assert differing_results(job, edit_job(job, edit, job)) == ("out",)
        except MemsimError as error:  # what is read was never written
            assert "the changed kernel fails: the result is unknown" in str(error)
    assert differing_results(job, job) == ()


@pytest.mark.slow
def test_all_arrays_at_once(tmp_path: Path) -> None:
    case = Case(
        """
constexpr int PAD = 0;
extern "C" __global__ void k(const float *in, float *out) {
    __shared__ float one[32][32 + PAD];
    __shared__ float two[32][32 + PAD];
    int x = threadIdx.x, y = threadIdx.y;
    one[y][x] = in[y * 32 + x];
    two[x][y] = in[y * 32 + x];
    __syncthreads();
    out[y * 32 + x] = one[x][y] + two[y][x];
}
""",
        (32, 32),
        ((1024, "float32"), (1024, "float32")),
    )
    job = case.job(tmp_path)
    found = suggest(analyzed(job), job)
    assert found.proof is not None
    assert found.proof.counted == {"one": 64, "two": 64}
    paddings = [each for each in found.proposals if isinstance(each.change, Padding)]
    together = prove(job, paddings)  # one constant for both
    assert [line.new for line in together.edit.lines] == ["constexpr int PAD = 1;"]
    assert together.holds
    only = suggest(analyzed(job), job, arrays=["two"])
    assert [entry.tile.name for entry in only.advice] == ["two"]
    with pytest.raises(MemsimError, match="no shared array 'tow'"):
        suggest(analyzed(job), job, arrays=["tow"])


@pytest.mark.slow
def test_templates_macros_and_dynamic_arrays(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text("""
extern __shared__ float whole[];
template <typename T, int N> __global__ void k(const T *in, T *out) {
    __shared__ T tile[N][32 + MORE];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = in[y * 32 + x];
    whole[y * 32 + x] = in[x];
    __syncthreads();
    out[y * 32 + x] = tile[x][y] + whole[x * 32 + y];
}
template __global__ void k<float, 32>(const float *, float *);
""")
    options = ("-DMORE=0",)
    arrays = [ArrayArg((1024,)), ArrayArg((1024,))]
    source = kernel_file.KernelFile(tmp_path, "k.cu", options=options)
    job = Job(source, Launch((1, 1, 1), (32, 32, 1), 4096), arrays)
    found = suggest(analyzed(job), job)
    assert [entry.tile.name for entry in found.advice] == ["tile", "whole"]
    paddings = [n for n, each in enumerate(found.proposals, 1) if isinstance(each.change, Padding)]
    for taken in (found, suggest(analyzed(job), job, take=paddings)):
        assert taken.proof is not None
        assert taken.proof.holds
        assert taken.proof.counted == {"tile": 64, "whole": 64}
        assert differing_results(job, taken.proof.job) == ()
    assert taken.proof is not None
    assert taken.proof.job.launch.shared_bytes == 4096 + 128
    assert "Launch it with 128 B more dynamic shared memory." in render(found)
    # Another instance may have more rows, so that only the bits of the 32 are taken.
    edits = [each.edit.new for each in found.proposals if each.edit is not None]
    assert any("tile[y][x ^ (y & 31)]" in new for new in edits)
    assert any('static_assert((32 + MORE) % 32 == 0, "of this layout");' in new for new in edits)


@pytest.mark.slow
def test_an_array_that_is_filled_16_bytes_at_a_time_is_padded_for_both(tmp_path: Path) -> None:
    text = BLOCK_TRANSPOSE.text.replace("tile[32][32]", "tile[32 * 32]")
    text = text.replace("*(float4 *)&tile[t / 8][t % 8 * 4]", "((float4 *)tile)[t]")
    text = text.replace("tile[t % 32][t / 32 + i * 8]", "tile[t % 32 * 32 + t / 32 + i * 8]")
    job = replace(BLOCK_TRANSPOSE, text=text).job(tmp_path)
    found = suggest(analyzed(job), job)
    assert found.proof is not None
    assert found.proof.holds and found.proof.saved > 0
    assert "((float4 *)tile)[t + t / 8]" in found.proof.edit.new
    for proof in (found.proof, *found.tried):
        assert differing_results(job, proof.job) == ()
    careless = found.proof.edit.new.replace("((float4 *)tile)[t + t / 8]", "((float4 *)tile)[t + t / 32 * 4]")
    with pytest.raises(MemsimError, match="read of shared memory that was never written"):
        differing_results(job, with_text(job, "k.cu", careless))


@pytest.mark.slow
def test_without_a_compiler_the_proposals_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = transpose("float tile[32][32]").job(tmp_path)
    analysis = analyzed(job)
    monkeypatch.setattr(Library, "candidates", lambda library: iter(()))
    found = suggest(analysis, job)
    assert len(found.proposals) == 2
    assert found.proof is None
    assert "Not proven by replay: NVRTC, NVIDIA's compiler library, is not installed." in render(found)


@pytest.mark.slow
def test_an_edit_that_does_not_compile_is_passed_over(tmp_path: Path) -> None:
    """A check of the tile's size in the source: the padding breaks it, the swizzle does not."""
    text = transpose("float tile[32][32]").text.replace(
        "int x", 'static_assert(sizeof(tile) == 4096, "");\n    int x'
    )
    job = replace(transpose("float tile[32][32]"), text=text).job(tmp_path)
    found = suggest(analyzed(job), job)
    assert found.proof is not None
    assert isinstance(found.proof.proposals[0].change, XorSwizzle)
    with pytest.raises(MemsimError, match="static assertion failed"):
        suggest(analyzed(job), job, take=[1])


@pytest.mark.slow
def test_what_cannot_be_counted_is_not_taken_for_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = transpose("float tile[32][32]").job(tmp_path)
    analysis = analyzed(job)
    whole = running.trace_job

    def without_names(job: Job, *more: Any, **how: Any) -> Trace:
        trace = whole(job, *more, **how)
        arrays = tuple(("shared memory", *rest) for _, *rest in trace.arrays if rest[0] == "shared")
        sites = tuple(replace(site, array="shared memory") for site in trace.sites)
        return replace(trace, arrays=arrays, sites=sites)

    monkeypatch.setattr(running, "trace_job", without_names)
    found = suggest(analysis, job)
    assert found.proof is None
    assert "Not proven by replay" in render(found)
    with pytest.raises(MemsimError, match="in the edited kernel tile cannot be distinguished"):
        suggest(analysis, job, take=[1])

    def unresolved(job: Job, *more: Any, **how: Any) -> Trace:
        trace = whole(job, *more, **how)
        return replace(trace, sites=tuple(replace(site, unresolved="no") for site in trace.sites))

    monkeypatch.setattr(running, "trace_job", unresolved)
    with pytest.raises(MemsimError, match="in the edited kernel not every access can be counted"):
        suggest(analysis, job, take=[1])


@pytest.mark.slow
def test_a_header_s_array_is_edited_in_the_header(tmp_path: Path) -> None:
    whole = transpose("float tile[32][32]").text
    (tmp_path / "tile.cuh").write_text(whole)
    case = Case('#include "tile.cuh"\n', (32, 32), ((1024, "float32"), (1024, "float32")))
    job = case.job(tmp_path)
    found = suggest(analyzed(job), job)
    assert found.proof is not None
    assert found.proof.edit.file == "tile.cuh"
    assert found.proof.edit.new == whole.replace("[32][32]", "[32][32 + 1]")
    assert found.proof.counted == {"tile": 64}
    assert differing_results(job, found.proof.job) == ()
    (tmp_path / "outer.cuh").write_text('#include "tile.cuh"\n')
    (tmp_path / "k.cu").write_text('#include "outer.cuh"\n')
    found = suggest(analyzed(job), job)
    assert found.proof is None
    assert "the array is declared in tile.cuh, which k.cu includes by another file" in render(found)


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
@pytest.mark.parametrize("option", ["", "b"])
def test_of_headers_of_one_name_that_which_has_the_array_is_edited(
    order: tuple[str, str], option: str, tmp_path: Path
) -> None:
    whole = transpose("float tile[32][32]").text
    for folder, text in (("a", "__device__ int one() { return 1; }\n"), ("b", whole)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "util.cuh").write_text(text)
    names = (f"{'' if folder == option else f'{folder}/'}util.cuh" for folder in order)
    case = replace(transpose("float t"), text="".join(f'#include "{name}"\n' for name in names))
    found = suggest(analyzed(job := case.job(tmp_path, options=(f"-I{option}",) if option else ())), job)
    assert found.proof is not None
    assert found.proof.edit.file == "b/util.cuh"
    assert found.proof.counted == {"tile": 64}


def test_the_room_on_a_multiprocessor_is_told(tmp_path: Path) -> None:
    """7 blocks of 31 KiB and 1 KiB each fill it; 1 byte more, and there are 6."""
    case = transpose("float tile[248][32]")
    job = case.job(tmp_path)
    found = suggest(analyzed(job), take=[])
    padding = next(each for each in found.proposals if isinstance(each.change, Padding))
    assert padding.blocks == (2, 2)  # 1024 threads
    small = replace(job, launch=replace(job.launch, block=(32, 8, 1)))
    found = suggest(analyzed(small))
    padding = next(each for each in found.proposals if isinstance(each.change, Padding))
    assert padding.blocks == (7, 6)
    assert "6 blocks per multiprocessor instead of 7" in render(found)


def test_what_does_not_fit_is_not_proposed(tmp_path: Path) -> None:
    job = transpose("float tile[384][32]").job(tmp_path)  # all of 48 KiB
    found = suggest(analyzed(job))
    assert [type(each.change) for each in found.proposals] == [XorSwizzle]


def test_arrays_behind_a_table_of_pointers_are_copied_and_compared() -> None:
    text = 'extern "C" __global__ void k(float *const *rows) { rows[1][threadIdx.x] = VALUE; }'
    whole = np.arange(64, dtype=np.float32)
    args = [Pointers((None, whole[32:]))]
    shape = Launch((1, 1, 1), (32, 1, 1))
    one, other = (Job(machine_kernel(text.replace("VALUE", value)), shape, args) for value in ("1", "2"))
    assert differing_results(one, one) == ()
    assert differing_results(one, other) == ("rows",)
    assert whole.tolist() == list(range(64))


def test_what_can_be_written_is_counted_though_others_are_cheaper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many equally good layouts only some are counted in full: one that has an edit is among them."""
    analysis = analyzed(transpose("float tile[32][32]").job(tmp_path))
    unwritten = Padding(256, 8)  # after every second row
    monkeypatch.setattr(
        "memsim.suggest.proposals.count", lambda analysis, tile, maps: first(analysis, tile, maps)
    )

    def first(analysis: Any, tile: Any, maps: Any) -> Any:
        return count(analysis, tile, [unwritten] if unwritten in maps else maps)

    found = suggest(analysis)
    assert [each.edit is not None for each in found.proposals].count(True) == 2


CONTRACTED = """
__global__ void k(float *x, float *y) {
    int i = threadIdx.x;
    float a = x[i], b = y[i], c = x[63 - i], d = y[63 - i];
    __syncthreads();
    x[i] = a * b + c * d;
}
"""
# Which the compiler does not contract.
PRODUCT = "__fmul_rn(a, b)"


def products(folder: Path, text: str = CONTRACTED) -> Job:
    """Sums of two products."""
    args = [ArrayArg((64,), "float32"), ArrayArg((64,), "float32", seed=1)]
    return launched(folder, text, args, (64,))


def test_results_that_differ_by_contraction_alone_are_told_as_that(tmp_path: Path) -> None:
    job = products(tmp_path)
    other = with_text(job, "k.cu", CONTRACTED.replace("a * b", PRODUCT))
    differ = differing_results(job, other)
    assert differ == ("x",)
    found = rounding_between(job, other, differ)
    assert found is not None
    assert (0 < found.values[0] < 64, found.values[1]) == (True, 64)
    assert not differing_results(found.before, found.after)
    assert f"(--fmad=false); with it, {found.values[0]} of 64 values are rounded otherwise" in found.told


def test_sums_in_another_order_differ_without_contraction_too(tmp_path: Path) -> None:
    text = CONTRACTED.replace("a * b + c * d", "a + b + c * d")
    job = products(tmp_path, text)
    other = with_text(job, "k.cu", text.replace("a + b + c * d", "a + (b + c * d)"))
    differ = differing_results(job, other)
    assert differ == ("x",)
    assert rounding_between(job, other, differ) is None
