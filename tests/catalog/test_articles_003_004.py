"""The kernels of decoupled access and of beating cuBLAS: right, and they cost what their comments say."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsim.analysis import Analysis
from memsim.api.running import run, trace
from memsim.errors import MemsimError
from memsim.kernels import Dispatcher, catalog, compiled, read_catalog
from memsim.launch import ArrayArg, Texture1D
from memsim.model import copy_access, global_access, shared_access
from tests.few import few

ADA = "Optimized SGEMM on Ada Lovelace: A Study on Decoupled Access/Compute Architecture"
BEATING = "Beating cuBLAS in Single-Precision General Matrix Multiplication"
SGEMM = ["sgemm_128x128x8", "sgemm_128x128x8_texld", "sgemm_128x256x8"]
NAMES = ["ada_decoupled", *SGEMM]

ALIGNED = (256, 256, 128)  # whole tiles of every kernel
LANES = np.arange(32)


@cache
def analysis(name: str) -> Analysis:
    return compiled()[name].analyze(ALIGNED)


def requests_of(name: str, op: str, array: str, width: int) -> np.ndarray:
    """Addresses of the distinct requests of one kind, a column for each lane."""
    found = compiled()[name].trace(ALIGNED)
    kinds = [(site.op, site.array, site.width) for site in found.sites]
    rows = np.isin(found.site, [i for i, kind in enumerate(kinds) if kind == (op, array, width)])
    assert rows.any() and found.active[rows].all()
    addresses: np.ndarray = found.addresses[rows]
    return addresses


# The catalogue


def test_the_names_are_in_the_catalogue() -> None:
    assert [name for name, spec in catalog().items() if spec.article == ADA] == ["ada_decoupled"]
    assert [name for name, spec in catalog().items() if spec.article == BEATING] == [*SGEMM, "beating_sgemm"]


@pytest.mark.parametrize("name", NAMES)
def test_a_source_says_what_the_catalogue_says(name: str) -> None:
    spec = compiled()[name]
    assert (spec.source.name, spec.entry, len(spec.says) > 50) == (f"{name}.cu", name, True)
    text = spec.source.read_text(encoding="utf-8")
    signature = re.search(rf'extern "C" __global__ void {name}\(([^)]*)\)', text)
    assert signature is not None
    names = [parameter.split()[-1].lstrip("*") for parameter in signature[1].split(",")]
    assert names == list(spec.arguments)
    assert f"// Block {spec.block[0]} x 1; grid.x covers N, grid.y covers M." in text


@pytest.mark.parametrize(
    ("name", "instructions"),
    [
        ("sgemm_128x128x8", {"ld.global.f32", "st.shared.v4.f32", "st.shared.f32"}),
        ("sgemm_128x128x8_texld", {"tex.1d.v4.f32.s32", "st.shared.v4.f32", "st.shared.f32"}),
        ("sgemm_128x256x8", {"cp.async.ca.shared.global", "cp.async.commit_group", "cp.async.wait_group"}),
    ],
)
def test_the_instructions_are_those_of_the_article(name: str, instructions: set[str]) -> None:
    ptx = compiled()[name].ptx()
    everywhere = {"ld.shared.v4.f32", "ld.shared.f32", "st.shared.v4.f32", "ld.global.f32", "st.global.f32"}
    memory = r"(?:[ls][dt]\.(?:shared|global)|tex|cp)\.[.\w]*"
    assert set(re.findall(memory, ptx)) == instructions | everywhere
    assert re.search(r"setp\.ne\.b32 p, %r\d+, 0; mov\.f32 %f\d+, 0f00000000; @p ld\.global\.f32", ptx)
    assert "cvta.to.shared.u64" in ptx


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("name", "switches"),
    [
        ("sgemm_128x128x8", {8192, 4096}),
        ("sgemm_128x128x8_texld", {8192, 4096}),
        ("sgemm_128x256x8", {8192}),
    ],
)
def test_buffers_are_switched_by_xor(name: str, switches: set[int]) -> None:
    spec = compiled()[name]
    assert {int(n) for n in re.findall(r"xor\.b32\s+%r\d+, %r\d+, (\d+);", spec.ptx())} == switches
    sizes = {
        array: size for array, space, _, size in spec.trace(ALIGNED, blocks=1).arrays if space == "shared"
    }
    assert sorted(sizes.values()) == [2 * min(switches), 2 * max(switches)]


# Results


def product(
    name: str,
    size: tuple[int, ...],
    alpha: float = 1.0,
    beta: float = 0.0,
    padding: tuple[int, int, int] = (0, 0, 0),
    nowhere: float = np.nan,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """C, what it should be, and how far it may be from that; what is outside the matrices is `nowhere`."""
    spec = compiled()[name]
    m, n, k = size
    rng = np.random.default_rng(5)
    matrices = {}
    for (array, shape), pad in zip({"A": (m, k), "B": (k, n), "C": (m, n)}.items(), padding):
        matrices[array] = np.full((shape[0], shape[1] + pad), nowhere, np.float32)
        matrices[array][:, : shape[1]] = rng.uniform(-1, 1, shape)
    a, b, c = (matrices[array].astype(np.float64)[:, :extent] for array, extent in zip("ABC", (k, n, n)))
    if beta == 0:
        matrices["C"].fill(np.nan)
        c = np.zeros_like(c)
    values: dict[str, Any] = {"M": m, "N": n, "K": k, "alpha": alpha, "beta": beta, **matrices}
    values.update({f"ld{array.lower()}": matrix.shape[1] for array, matrix in matrices.items()})
    arguments = [Texture1D(values[x]) if x in spec.textures else values[x] for x in spec.arguments]
    sizes = {"M": m, "N": n, "K": k}  # not by the plan: that takes lda = K
    grid = [-(-sizes[extent] // tile) for extent, tile in spec.grid]
    run(spec.kernel(), grid, spec.block, arguments)

    assert np.isnan(matrices["C"][:, n:]).all()
    # One rounding for each product and sum: Higham, Accuracy and Stability, section 3.1.
    roundings = (k + 3) * 2.0**-24
    bound = roundings / (1 - roundings) * (abs(alpha) * (np.abs(a) @ np.abs(b)) + abs(beta) * np.abs(c))
    return matrices["C"][:, :n], alpha * (a @ b) + beta * c, bound


SHAPES = {
    "one tile": (128, 128, 8),
    "square": (256, 256, 32),
    "tall": (260, 4, 20),
    "wide": (4, 516, 20),
    "odd": (131, 261, 33),
    "tiny": (1, 1, 1),
    "a row": (1, 130, 9),
}


@pytest.mark.some(2)
@pytest.mark.parametrize("size", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize("name", few(SGEMM))
def test_alpha_and_beta(name: str, size: tuple[int, ...]) -> None:
    for extent, divisor in compiled()[name].requires:
        place = "MNK".index(extent)
        size = (*size[:place], -(-size[place] // divisor) * divisor, *size[place + 1 :])
    for alpha, beta in ((1.0, 0.0), (-1.5, 0.25)):
        c, expected, bound = product(name, size, alpha, beta)
        assert (np.abs(c - expected) <= bound).all()


@pytest.mark.some(2)
@pytest.mark.parametrize(("alpha", "beta"), [(0.0, 1.0), (0.0, 0.0), (1.0, -1.0), (3.0, 1e-3)])
@pytest.mark.parametrize("name", few(SGEMM))
def test_special_alphas_and_betas(name: str, alpha: float, beta: float) -> None:
    c, expected, bound = product(name, (20, 36, 12), alpha, beta)
    assert (np.abs(c - expected) <= bound + abs(beta) * 1e-7).all()


@pytest.mark.some(1)
@pytest.mark.parametrize("padding", [(3, 5, 7), (0, 1, 2), (8, 0, 4)])
@pytest.mark.parametrize("name", ["sgemm_128x128x8", "sgemm_128x256x8"])
def test_leading_dimensions(name: str, padding: tuple[int, int, int]) -> None:
    c, expected, bound = product(name, (130, 67, 21), 2.0, -0.5, padding)
    assert (np.abs(c - expected) <= bound).all()


@pytest.mark.some(1)
@pytest.mark.parametrize(("size", "padding"), [((130, 67, 21), (3, 5, 7)), ((9, 66, 10), (2, 6, 0))])
def test_textures_take_any_size_with_leading_dimensions_of_four(
    size: tuple[int, int, int], padding: tuple[int, int, int]
) -> None:
    c, expected, bound = product("sgemm_128x128x8_texld", size, 2.0, -0.5, padding)
    assert (np.abs(c - expected) <= bound).all()
    c, expected, bound = product("sgemm_128x128x8_texld", size, 1.0, 0.0, padding, nowhere=np.inf)
    assert (np.abs(c - expected) <= bound).all()


def test_textures_need_sizes_of_four() -> None:
    spec = compiled()["sgemm_128x128x8_texld"]
    with pytest.raises(MemsimError, match="needs K to be a multiple of 4, but it is 5"):
        spec.job((4, 4, 5))
    assert isinstance(spec.job((5, 4, 4)).args[4], Texture1D)
    assert list(spec.run((5, 4, 4))) == ["A", "B", "C"]


def test_c_is_read_where_beta_is_not_0() -> None:
    spec = compiled()["sgemm_128x128x8"]
    plan = spec.job(ALIGNED)
    names = spec.arguments
    for beta, loads in ((0.0, 0), (0.5, 4 * 8 * 64)):  # blocks, warps, rows of 32 floats
        args = [beta if name == "beta" else arg for name, arg in zip(names, plan.args)]
        found = trace(spec.kernel(), plan.launch.grid, plan.launch.block, args)
        sites = [site for site in found.sites if (site.op, site.array) == ("load", "C")]
        assert sum(site.instructions for site in sites) == loads
        for i, site in enumerate(found.sites):
            if site in sites:
                rows = found.site == i
                cost = global_access(found.addresses[rows], site.width)
                assert (cost.sectors == 4).all() and (cost.lines == 1).all()


# Shared memory

# By (operation, array, bytes a lane): wavefronts of each request and worst ways, for ALIGNED.
FRAGMENTS = {("load", "blocks_a", 16): (2, 1), ("load", "blocks_b", 16): (2, 1)}
STAGING = {("store", "blocks_a", 16): (8, 2), ("load", "blocks_a", 4): (1, 1)}
SHARED: dict[str, dict[tuple[str, str, int], tuple[int, int]]] = {
    "ada_decoupled": {
        ("store", "s_a", 16): (4, 1),
        ("store", "s_b", 16): (4, 1),
        ("load", "s_a", 4): (2, 2),
        ("load", "s_b", 16): (8, 2),
    },
    "sgemm_128x128x8": {**FRAGMENTS, **STAGING, ("store", "blocks_b", 4): (1, 1)},
    "sgemm_128x128x8_texld": {
        **FRAGMENTS,
        **STAGING,
        ("store", "blocks_a", 4): (1, 1),
        ("store", "blocks_b", 16): (4, 1),
    },
    "sgemm_128x256x8": {
        **FRAGMENTS,
        **STAGING,
        ("cp_async", "blocks_a", 4): (4, 4),  # where they read; where they write they are clean, see below
        ("cp_async", "blocks_b", 4): (1, 1),
    },
}


@pytest.mark.parametrize("name", NAMES)
def test_shared_accesses_cost_what_is_told(name: str) -> None:
    sites = [site for site in analysis(name).sites if site.space == "shared"]
    assert {(site.op, site.array, site.width) for site in sites} == set(SHARED[name])
    for site in sites:
        wavefronts, ways = SHARED[name][site.op, site.array, site.width]
        if (site.op, site.width) == ("store", 16) and "STS4(shared_a + sts_a" in site.source:
            wavefronts, ways = 4, 1  # the A tile of sgemm_128x128x8; what goes to the stage is the other one
        assert site.requests
        assert (site.wavefronts, site.max_ways) == (wavefronts * site.requests, ways)


def test_half_of_the_wavefronts_that_ada_computes_with_are_conflicts() -> None:
    loads = [site for site in analysis("ada_decoupled").sites if (site.space, site.op) == ("shared", "load")]
    assert 2 * sum(site.conflicts or 0 for site in loads) == sum(site.wavefronts or 0 for site in loads) > 0


def test_ada_computes_with_the_accesses_of_kernel_v3() -> None:
    metric = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
    assert analysis("ada_decoupled").totals[metric] == compiled()["kernel_v3"].analyze(ALIGNED).totals[metric]


def test_a_line_of_the_a_tile_is_132_floats_and_with_128_the_stores_conflict_8_ways() -> None:
    stores = requests_of("sgemm_128x128x8", "store", "blocks_a", 16)
    tile = stores[stores[:, 1] - stores[:, 0] == 132 * 4]  # the others go to the stage
    line, column = np.divmod(tile - tile[:, :1], 132 * 4)
    assert len(tile) and (line == LANES % 8).all() and (column == LANES // 8 * 16).all()
    assert (shared_access(tile, 16, "store").ways == 1).all()
    assert (shared_access(line * 128 * 4 + column, 16, "store").ways == 8).all()


@pytest.mark.some(1)
@pytest.mark.parametrize("name", SGEMM)
def test_lanes_read_fragments_in_pairs(name: str) -> None:
    a, b = (requests_of(name, "load", array, 16) for array in ("blocks_a", "blocks_b"))
    assert (a == a[:, LANES ^ 2]).all() and (a[:, 0::2] != a[:, 1::2]).all()
    assert (b == b[:, LANES ^ 1]).all() and (b != b[:, LANES ^ 2]).all()
    assert all(len(set(row)) == 4 for row in a) and all(len(set(row)) == 8 for row in b)


@pytest.mark.parametrize(
    ("order", "consecutive", "wavefronts"),
    [
        # row and column among 4 x 8 lanes; how many in a run read the same of A; wavefronts of A, B, stage
        ((LANES // 16 * 2 + LANES % 2, LANES // 2 % 8), 1, (2, 2, 8)),  # the order of these kernels
        ((LANES // 4 % 4, LANES % 4 + LANES // 16 * 4), 4, (2, 4, 8)),
        ((LANES // 8, LANES % 8), 8, (2, 4, 4)),
    ],
)
def test_what_the_order_of_lanes_costs(
    order: tuple[np.ndarray, np.ndarray], consecutive: int, wavefronts: tuple[int, int, int]
) -> None:
    """A broadcast to 8 lanes in a run costs no more than one to 4: what costs is the other fragment."""
    row, column = order
    runs = np.diff(np.flatnonzero(np.r_[True, row[1:] != row[:-1], True]))
    assert set(runs) == {consecutive}
    a = shared_access(16 * row, 16, "load")
    b = shared_access(16 * column, 16, "load")
    stage = shared_access(4 * (4 * row * 32 + 4 * column), 16, "store")
    assert (int(a.wavefronts), int(b.wavefronts), int(stage.wavefronts)) == wavefronts
    assert not (a.conflicts or b.conflicts)


def test_a_broadcast_of_16_bytes_reaches_half_a_warp() -> None:
    for lanes, wavefronts in ((4, 1), (8, 1), (16, 1), (32, 2)):
        first = np.arange(32) < lanes
        assert shared_access(0 * LANES, 16, "load", first).wavefronts == wavefronts


def test_copies_by_the_threads_of_sgemm_128x128x8_would_write_into_the_same_banks() -> None:
    ours = requests_of("sgemm_128x256x8", "cp_async", "blocks_a", 4)
    assert (shared_access(ours, 4, "cp_async").ways == 1).all()
    theirs = 4 * (LANES % 8 * 132 + LANES // 8 * 4)
    assert shared_access(theirs, 4, "cp_async").ways == 4
    assert shared_access(theirs, 16, "store").ways == 1


def test_copies_of_four_rows_meet_where_they_read_unless_lda_keeps_them_apart() -> None:
    ours = requests_of("sgemm_128x256x8", "cp_async", "blocks_a", 4)
    rows, column = 4 * (LANES // 8), 4 * (LANES % 8)
    for lda, ways in ((1024, 4), (1024 + 8, 1), (1024 + 4, 2)):
        assert (copy_access(ours, np.broadcast_to(rows * lda + column, ours.shape), 4).ways == ways).all()


def test_the_larger_tile_takes_three_quarters_of_the_wavefronts() -> None:
    def fragments(name: str) -> int:
        sites = [site for site in analysis(name).sites if (site.space, site.op) == ("shared", "load")]
        return sum(site.wavefronts or 0 for site in sites if site.width == 16)

    assert 4 * fragments("sgemm_128x256x8") == 3 * fragments("sgemm_128x128x8")


# Global memory

# By (operation, array): sectors of each request, ideal ones, lines.
GLOBAL: dict[str, dict[tuple[str, str], tuple[int, int, int]]] = {
    "ada_decoupled": {
        ("load", "A"): (16, 16, 16),
        ("load", "B"): (16, 16, 4),
        ("store", "C"): (32, 16, 8),
    },
    "sgemm_128x128x8": {("load", "A"): (4, 4, 4), ("load", "B"): (4, 4, 1), ("store", "C"): (4, 4, 1)},
    "sgemm_128x128x8_texld": {("store", "C"): (4, 4, 1)},
    "sgemm_128x256x8": {
        ("cp_async", "A"): (4, 4, 4),
        ("cp_async", "B"): (4, 4, 1),
        ("store", "C"): (4, 4, 1),
    },
}


@pytest.mark.parametrize("name", NAMES)
def test_global_accesses_take_the_sectors_that_are_told(name: str) -> None:
    sites = [site for site in analysis(name).sites if site.space == "global" and site.unresolved is None]
    assert {(site.op, site.array) for site in sites} == set(GLOBAL[name])
    for site in sites:
        assert site.requests
        told = tuple(count * site.requests for count in GLOBAL[name][site.op, site.array])
        assert (site.sectors, site.ideal_sectors, site.lines) == told


def test_texture_fetches_are_told_and_not_counted() -> None:
    fetches = 4 * 16 * 8 * 2  # blocks, steps, warps, tiles
    assert analysis("sgemm_128x128x8_texld").trace.notes == (f"texture fetches ({fetches:,} requests)",)
    assert analysis("sgemm_128x128x8").trace.notes == ()


def test_reads_of_copies_count_as_loads_and_hits_decide_their_conflicts() -> None:
    copies = 2 * 16 * 8 * 12  # blocks, steps, warps, copies
    totals = analysis("sgemm_128x256x8").totals
    assert totals["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] == copies
    assert totals["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 4 * copies
    assert totals["l1tex__t_set_accesses_pipe_lsu_mem_global_op_ld.sum"] == copies // 3 * (4 + 2)
    assert [metric for metric, total in totals.items() if total is None] == [
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum"
    ]


def test_accumulators_stored_as_float4_would_fill_whole_sectors() -> None:
    """Without the stage: a warp's 4 x 8 lanes, each 4 columns of a row; as single floats it would be bad."""
    row, column = LANES // 16 * 2 + LANES % 2, LANES // 2 % 8
    addresses = 4 * (4 * row * 1024 + 4 * column)
    whole, single = global_access(addresses, 16, "store"), global_access(addresses, 4, "store")
    assert [int(n) for n in (whole.sectors, whole.ideal_sectors, whole.lines)] == [16, 16, 4]
    assert [int(n) for n in (single.sectors, single.ideal_sectors, single.lines)] == [16, 4, 4]


# The dispatcher


@pytest.mark.parametrize(
    ("size", "picked"),
    [
        ((1, 1, 1), "sgemm_128x128x8"),
        ((2499, 2499, 9000), "sgemm_128x128x8"),
        ((2500, 2499, 8), "sgemm_128x256x8"),
        ((2499, 2500, 8), "sgemm_128x256x8"),
        ("4096,4096,4096", "sgemm_128x256x8"),
        (None, "sgemm_128x128x8"),
    ],
)
def test_the_dispatcher_picks_by_size(size: tuple[int, int, int] | str | None, picked: str) -> None:
    sgemm = catalog()["beating_sgemm"]
    assert sgemm.pick(size).name == picked
    assert sgemm.job(size) == compiled()[picked].job(size)


def test_the_dispatcher_is_used_like_a_kernel() -> None:
    sgemm = catalog()["beating_sgemm"]
    assert isinstance(sgemm, Dispatcher) and "beating_sgemm" not in compiled()
    arrays = sgemm.run((20, 30, 40), seed=3)
    assert np.abs(arrays["C"] - sgemm.expected(arrays)["C"]).max() < 1e-5
    assert sgemm.analyze((128, 128, 8)).trace.kernel == "sgemm_128x128x8"
    large = sgemm.trace((2560, 2560, 8), blocks=2)
    assert (large.kernel, large.launch.grid, large.blocks_replayed) == ("sgemm_128x256x8", (10, 20, 1), 2)
    with pytest.raises(MemsimError, match="takes a size M,N,K"):
        sgemm.pick("8,8")


# A catalogue file with scalars, textures and a dispatcher

FILE = """\
[articles]
own = "Own"
[families.sgemm]
sizes = { M = 8, N = 8, K = 8 }
inputs = { A = ["M", "K"], B = ["K", "N"] }
outputs = { C = ["M", "N"] }
[kernels.one]
story = "one"
article = "own"
family = "sgemm"
source = "one.cu"
entry = "one"
arguments = ["A", "lda", "alpha", "C"]
scalars = { alpha = 2.5, lda = "K" }
textures = ["A"]
grid = ["N/4"]
block = [4]
[dispatchers.both]
story = "both"
article = "own"
says = ""
family = "sgemm"
choices = [{ kernel = "one", below = { M = 10 } }, { kernel = "one", start = 5, line = [1.5, 2] }]
"""


def read(folder: Path, text: str) -> None:
    (folder / "one.cu").touch()
    (folder / "catalog.toml").write_text(text)
    found = read_catalog(folder / "catalog.toml")
    assert found["both"].job((9, 9, 12)).args == (
        Texture1D(ArrayArg((9, 12))),
        12,
        2.5,
        ArrayArg((9, 9), fill="zeros", seed=2),
    )


def test_scalars_textures_and_dispatchers_are_read(tmp_path: Path) -> None:
    read(tmp_path, FILE)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('lda = "K"', 'lda = "L"', "kernels.one.scalars: there is no 'L'; there are M, N, K"),
        ('textures = ["A"]', 'textures = ["C"]', "kernels.one.textures: there is no 'C'; there are A, B"),
        ('"alpha", "C"]', '"beta", "C"]', "kernels.one.arguments: there is no 'beta'"),
        ('kernel = "one", b', 'kernel = "two", b', "dispatchers.both: there is no 'two'; there are one"),
        ("below = { M = 10 }", "below = { L = 10 }", "dispatchers.both.below: there is no 'L'"),
        ("below = { M = 10 }", "above = 1", "dispatchers.both.choices: above unknown"),
        ("start = 5, line", "line", "dispatchers.both.choices: start missing"),
        ('family = "sgemm"\nchoices', 'family = "x"\nchoices', "dispatchers.both.family: there is no 'x'"),
        ('says = ""\n', 'says = ""\nsum = { kernel = "one" }\n', "dispatchers.both.sum: each, start missing"),
        ('article = "own"\nsays', 'article = "her"\nsays', "dispatchers.both.article: there is no 'her'"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in FILE
    with pytest.raises(MemsimError, match=re.escape(message)):
        read(tmp_path, FILE.replace(old, new, 1))
