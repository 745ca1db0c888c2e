"""Kernels that fetch from textures of two and three dimensions: values, counts, and what is not known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memsim.analysis import Analysis, analyze_trace
from memsim.api.running import run, trace
from memsim.arch.texel_places import BITS, FIRST, NEXT, NONE, NUMBERS, pack_texels
from memsim.argument_types import ArrayArg, Texture
from memsim.errors import MemsimError
from memsim.kernel import Kernel
from memsim.model.texture_fetches import texture_access
from memsim.views.analyze.costs import count_or_limits
from memsim.views.analyze.terminal import MIPMAPS, render
from tests.simt.cuda import kernel, machine_kernel

HEAD = """
extern "C" __global__ void k(cudaTextureObject_t image, float4 *out, float at, const int *where) {
    int x = threadIdx.x, y = threadIdx.y, i = y * blockDim.x + x;
"""
POINT = HEAD + "out[i] = tex2D<float4>(image, x + at, y + 0.5f); }"
VOLUME = HEAD + "out[i] = tex3D<float4>(image, x + at, y + 0.5f, 2.5f); }"
LAYER = HEAD + "out[i] = tex2DLayered<float4>(image, x + at, y + 0.5f, 1); }"
GATHER = HEAD + "out[i] = tex2Dgather<float4>(image, x + at, y + 0.5f, 0); }"
LOOKED_UP = HEAD + "out[i] = tex2D<float4>(image, where[x] + at, y + 0.5f); }"
METRIC = "l1tex__t_{}_pipe_tex_mem_texture.sum"
BLOCK = (8, 4)


def analysis(k: Kernel, texture: Any, at: float = 0.5, where: Any = None) -> Analysis:
    given = ArrayArg((8,), "int32", "iota") if where is None else where
    return analyze_trace(trace(k, 1, BLOCK, [texture, ArrayArg((32, 4)), at, given]))


def fetch(found: Analysis) -> Any:
    (row,) = [row for row in found.sites if row.space == "texture"]
    return row


def counts(found: Analysis) -> tuple[int | None, ...]:
    row = fetch(found)
    totals = [found.totals[METRIC.format(name)] for name in ("requests", "sectors", "set_accesses")]
    assert totals == [row.requests, row.sectors, row.lines]
    return row.requests, row.sectors, row.lines


@pytest.mark.some(1)
@pytest.mark.parametrize("make", [kernel, machine_kernel])
def test_unfiltered_fetches_return_their_texels(make: Any) -> None:
    rng = np.random.default_rng(3)
    for text, shape, expect in (
        (POINT, (9, 12, 4), lambda a: a[:4, 2:10]),
        (VOLUME, (5, 9, 12, 4), lambda a: a[2, :4, 2:10]),
        (LAYER, (3, 9, 12, 4), lambda a: a[1, :4, 2:10]),
    ):
        texels = rng.normal(size=shape).astype(np.float32)
        texture = Texture(texels, 3 if text is VOLUME else 2, layered=text is LAYER)
        out = np.full((32, 4), np.nan, np.float32)
        run(make(text), 1, BLOCK, [texture, out, 2.5, np.zeros(8, np.int32)])
        assert np.array_equal(out.reshape(4, 8, 4), expect(texels))


def test_a_texture_of_halves_and_one_of_bytes() -> None:
    k = machine_kernel(POINT.replace("float4", "float"))
    for dtype, how, expect in (
        ("float16", {}, lambda a: a.astype(np.float32)),
        ("uint8", {"integers": "normalized"}, lambda a: a.astype(np.float32) / np.float32(255)),
    ):
        texels = np.arange(100).reshape(10, 10).astype(dtype)
        out = np.full(32, np.nan, np.float32)
        run(k, 1, BLOCK, [Texture(texels, **how), out, 0.5, np.zeros(8, np.int32)])
        assert np.array_equal(out.reshape(4, 8), expect(texels)[:4, :8])


@pytest.mark.some(1)
@pytest.mark.parametrize("make", [kernel, machine_kernel])
def test_counts_are_those_of_the_rule(make: Any) -> None:
    """Eight quads of four texels in a row: 16 bytes of two rows are a sector, 32 bytes of four rows a tag."""
    k = make(POINT.replace("float4", "float"))
    f32 = Texture(ArrayArg((64, 64)))
    assert counts(analysis(k, f32)) == (8, 8, 8)
    assert counts(analysis(k, f32, at=1.5)) == (8, 16, 12)
    assert counts(analysis(k, Texture(ArrayArg((64, 64)), memory="linear"), at=5.5)) == (8, 12, 12)
    filtered = Texture(ArrayArg((64, 64)), filter="linear")
    assert counts(analysis(k, filtered)) == counts(analysis(k, f32)), "centres of texels need no neighbours"
    assert counts(analysis(k, filtered, at=0.75)) == (8, 16, 12)
    assert counts(analysis(make(GATHER), f32)) == (8, 24, 15)


@pytest.mark.slow
def test_a_row_says_what_it_fetches_from() -> None:
    found = analysis(machine_kernel(POINT), Texture(ArrayArg((64, 64, 4), "float16")))
    row = fetch(found)
    assert (row.op, row.width, row.array, row.instructions) == ("point", 8, "image", 1)
    assert "textures: 16 sectors in 8 requests" in found.verdict
    assert any("texture units" in reason for reason in found.bound.lacks)
    assert not any("texture" in reason for reason in analysis(machine_kernel(STORES), 0).bound.lacks)
    assert MIPMAPS in render(found) and MIPMAPS not in render(analysis(machine_kernel(STORES), 0))


CUBE = HEAD + "out[i] = make_float4(texCubemap<float>(image, at, x * 0.1f, 0.3f), 0, 0, 0); }"
BY_CUBE = HEAD + "out[(int)texCubemap<float>(image, at, x * 0.1f, 0.3f) & 31] = make_float4(0, 0, 0, 0); }"


@pytest.mark.slow
def test_fetches_from_cubes_are_said_not_to_be_counted_and_their_values_not_to_be_known() -> None:
    faces = Texture(np.zeros((6, 16, 16), np.float32), layered=True, cube=True)
    for text, stores in ((CUBE, 16), (BY_CUBE, None)):
        found = analysis(machine_kernel(text), faces)
        told = "1 texture request is not counted"
        assert found.verdict.startswith(f"k: {told}; ") and found.bound.verdict.startswith(f"{told}; ")
        (store,) = (row for row in found.sites if row.op == "store")
        assert store.sectors == stores
        assert ("texture fetch that was not measured" in (store.unresolved or "")) == (stores is None)


STORES = HEAD + "out[i] = make_float4(at, 0, 0, 0); }"


def test_a_coordinate_that_wraps_touches_the_first_texel_too() -> None:
    wrapped = Texture(ArrayArg((64, 64)), filter="linear", address="wrap", normalized=True)
    text = HEAD + "out[i] = tex2D<float>(image, 1.0f - at, (0.5f + y) / 64); }"
    given = [wrapped, ArrayArg((32,)), 0.0, ArrayArg((8,), "int32")]
    found = trace(
        machine_kernel(text.replace("float4", "float")),
        1,
        BLOCK,
        given,
    )
    (row,) = [i for i, site in enumerate(found.sites) if site.space == "texture"]
    assert np.array_equal(
        found.addresses[found.site == row][0],
        pack_texels((63, np.arange(32) // 8, 0), (FIRST, NONE, NONE))[0],
    )
    assert pack_texels((1, 0, 0), (NEXT, 0, 0))[0, 0] > 1


def test_an_edge_that_rounding_decides_is_not_analyzed() -> None:
    text = (HEAD + "out[i] = tex2D<float>(image, at + x * 0.0f, 0.5f); }").replace("float4", "float")
    hundred = Texture(ArrayArg((75, 100)), address="wrap", normalized=True)
    assert "rounding" in (fetch(analysis(machine_kernel(text), hundred, at=-0.04)).unresolved or "")
    assert fetch(analysis(machine_kernel(text), hundred, at=-0.045)).sectors == 8
    power = Texture(ArrayArg((64, 128)), address="wrap", normalized=True)
    assert fetch(analysis(machine_kernel(text), power, at=-0.03125)).sectors == 8


def test_what_is_served_in_pairs_of_lanes_has_limits() -> None:
    """Pairs of neighbours along x, or of every other lane: with texels of 16 bytes they differ."""
    volume = Texture(ArrayArg((8, 8, 16)), 3, filter="linear")
    same = analysis(machine_kernel(VOLUME.replace("float4", "float")), volume, at=3.75)
    assert counts(same) == (8, 24, 20) and fetch(same).unresolved is None
    wide = Texture(ArrayArg((8, 16, 4)), filter="linear")
    found = analysis(machine_kernel(POINT), wide, at=0.75)
    row = fetch(found)
    assert "two lanes at a time" in (row.unresolved or "") and row.sectors is None
    limits = {name: (one.least, one.most) for name, one in row.ranges.items()}
    assert limits == {"requests": (8, 8), "sectors": (96, 128), "lines": (64, 80), "ideal_sectors": (64, 64)}
    assert found.totals[METRIC.format("requests")] == 8 and found.totals[METRIC.format("sectors")] is None
    total = found.undecided[METRIC.format("sectors")]
    assert (total.least, total.most) == (96, 128)
    assert "of 1 access only limits are known" in found.verdict and "assumed" not in found.verdict
    assert "takes at least 96, at most 128 sectors" in render(found)
    assert (
        count_or_limits(row, "sectors", "?") == "96 to 128" and count_or_limits(row, "requests", "?") == "8"
    )


def test_filtered_fetches_that_were_not_measured_are_not_analyzed() -> None:
    for text, texture in (
        (VOLUME, Texture(ArrayArg((8, 8, 8, 4)), 3, filter="linear")),
        (POINT.replace("float4", "float2"), Texture(ArrayArg((8, 8, 4)), filter="linear")),
    ):
        row = fetch(analysis(machine_kernel(text), texture))
        assert "has no rule" in (row.unresolved or "") and not row.ranges


@pytest.mark.slow
def test_unknown_coordinates_are_unresolved() -> None:
    k = machine_kernel(
        HEAD.replace("const int *where", "int *where")
        + """
    where[x] = atomicAdd(where + 1, 1);
    __syncthreads();
    out[i] = tex2D<float4>(image, where[x] + at, y + 0.5f); }"""
    )
    texture = Texture(ArrayArg((64, 64)))
    known = analysis(machine_kernel(LOOKED_UP), texture)
    assert fetch(known).sectors is not None
    assert not analysis(k, texture).trace.uncounted


def test_a_handle_that_is_no_texture_leaves_the_totals_unknown() -> None:
    text = """
extern "C" __global__ void k(cudaTextureObject_t a, cudaTextureObject_t b, float *out) {
    out[threadIdx.x] = tex2D<float>(a, threadIdx.x, 0.5f) + tex3D<float>(b, threadIdx.x, 0.5f, 0.5f);
}"""
    a, b = Texture(ArrayArg((64, 64))), Texture(ArrayArg((8, 8, 8)), 3)
    sure = analyze_trace(trace(machine_kernel(text), 1, 32, [a, b, ArrayArg((32,))]))
    other = analyze_trace(trace(machine_kernel(text), 1, 32, [a, a, ArrayArg((32,))]))
    assert sure.totals[METRIC.format("requests")] == 16
    assert other.totals[METRIC.format("requests")] is None and other.trace.uncounted == {"texture request": 1}


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"array": ArrayArg((8,))}, "no texture of 2 dimensions"),
        ({"array": ArrayArg((8, 8, 3))}, "no texture of 2 dimensions"),
        ({"array": ArrayArg((8, 8), "float64")}, "texels cannot lie over"),
        ({"filter": "cubic"}, "filter='cubic'"),
        ({"address": "wrap"}, "needs normalized coordinates"),
        ({"dimensions": 3, "array": ArrayArg((8, 8, 8)), "memory": "linear"}, "lies in an array"),
        (
            {"dimensions": 1, "array": ArrayArg((8,)), "memory": "linear", "filter": "linear"},
            "does not filter",
        ),
        ({"array": ArrayArg((8, 8), "uint8"), "filter": "linear"}, "filtered only as floats"),
    ],
)
def test_textures_that_cuda_has_not(how: dict[str, Any], said: str) -> None:
    with pytest.raises(MemsimError, match=said):
        Texture(**{"array": ArrayArg((8, 8)), **how})


@pytest.mark.parametrize(("filter", "sectors"), [("linear", (8, 16)), ("point", (8, 8))])
def test_requests_that_differ_in_the_second_row_alone_are_counted_apart(
    filter: str, sectors: tuple[int, int]
) -> None:
    """The same first texels, of which a filtered fetch takes the row below, too, or not.

    In `TexReadout` of cudahandbook 118 sectors were missed so: 3,835 instead of 3,953.
    """
    fetched = "out[i] = tex2D<float>(image, x + at, 1.5f + n * 0.25f); }"
    text = HEAD + "for (int n = 0; n < where[0]; ++n) " + fetched
    k = machine_kernel(text.replace("float4", "float"))
    texture = Texture(ArrayArg((64, 64)), filter=filter)
    for times in (1, 2):
        found = fetch(analysis(k, texture, where=np.full(8, times, np.int32)))
        assert found.sectors == sum(sectors[:times])
        assert found.unresolved is None
    most = pack_texels([2**bits - 1 for bits in BITS], (FIRST, FIRST, FIRST))
    assert NUMBERS // 2 <= most < NUMBERS


@pytest.mark.slow
def test_requests_that_are_folded_cost_the_same() -> None:
    """More different requests than a trace keeps at once are counted all the same."""
    text = """
extern "C" __global__ void k(cudaTextureObject_t image, float *out, int n) {
    float sum = 0;
    for (int i = 0; i < n; ++i) sum += tex2D<float>(image, threadIdx.x * i % 61 + 0.5f, i % 64 + 0.5f);
    out[threadIdx.x] = sum;
}"""
    given = [Texture(ArrayArg((64, 64))), ArrayArg((32,)), 200]
    found = analyze_trace(trace(machine_kernel(text), 1, 32, given))
    i, lane = np.arange(200)[:, None], np.arange(32)
    places = pack_texels((lane * i % 61, i % 64, 0), (0, 0, 0))
    cost = texture_access(places, 4, "point")
    assert (fetch(found).sectors, fetch(found).lines) == (cost.sectors.sum(), cost.tags.sum())


#: ptxas loads the handle under the predicate of the fetch: warps that do not fetch have other numbers there.
NEAR = """
extern "C" __global__ void k(const float *amp, const float *tau, float *out, int n, int reach,
                             cudaTextureObject_t table, float center) {
    float sum = 0, t = threadIdx.x;
    for (int m = threadIdx.y; m < n; m += blockDim.y) {
        float d = t - tau[m];
        sum += abs(d) < reach ? amp[m] * tex1D<float>(table, __fmaf_rz(d, 16, center)) : 0.0f;
    }
    out[threadIdx.y * blockDim.x + threadIdx.x] = sum;
}
"""


@pytest.mark.parametrize("reach", [0, 8, 1000])
def test_warps_that_do_not_fetch_need_no_handle(reach: int) -> None:
    """Every lane near enough fetches once; of a warp without one nothing is counted."""
    tau = np.linspace(0, 60, 23, dtype=np.float32)
    table = Texture(ArrayArg((2049,)), dimensions=1, memory="array", filter="linear", address="border")
    arguments = [ArrayArg((23,)), tau, ArrayArg((256,)), 23, reach, table, 1024.5]
    found = trace(machine_kernel(NEAR), 1, (64, 4), arguments)
    sites = [i for i, site in enumerate(found.sites) if site.space == "texture"]
    fetches = sum(
        int((found.active[found.site == i] * found.count[found.site == i, None]).sum()) for i in sites
    )
    assert fetches == (np.abs(np.arange(64, dtype=np.float32) - tau[:, None]) < reach).sum()
