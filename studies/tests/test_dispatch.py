"""`sgemm` chooses among tiles by how long each may take, and divides K where that is worth its sum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsim.errors import MemsimError
from memsim.kernels import catalog
from memsim.kernels.spec import PART_UNIT, REFERENCES
from studies.dispatch import (
    MULTIPROCESSORS,
    PARTS,
    Adding,
    Dispatcher,
    KernelChoice,
    Pace,
    SumOfParts,
    dispatchers,
)
from tests.catalog.test_results import rounding_bound
from tests.few import few

TILES = sorted(name for name, spec in catalog().items() if spec.family.name == "sgemm_parts")
SIZES = {"one tile": (32, 64, 32), "aligned": (68, 100, 132), "odd": (67, 99, 131), "a float": (1, 1, 1)}


def sgemm() -> Dispatcher:
    return dispatchers()["sgemm"]


@pytest.mark.some(3)
@pytest.mark.parametrize("parts", [1, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("name", few(TILES, ("tile_64x64x32", "tile_32x32x32_any")))
def test_every_tile_is_right_in_every_part(name: str, size: tuple[int, int, int], parts: int) -> None:
    spec = catalog()[name]
    divisors = dict(spec.requires)
    taken = [-(-n // divisors.get(at, 1)) * divisors.get(at, 1) for at, n in zip("MNK", size, strict=True)]
    arrays = spec.run((*taken, parts))
    assert arrays["C"].shape == (parts, *taken[:2])
    error = np.abs(arrays["C"] - spec.expected(arrays)["C"])
    assert (error <= rounding_bound(arrays["A"], arrays["B"])).all()


@pytest.mark.some(1)
@pytest.mark.parametrize("name", TILES)
def test_a_tile_has_no_conflict_but_where_rows_of_a_are_read_from_one_bank(name: str) -> None:
    spec = catalog()[name]
    sites = [site for site in spec.analyze((256, 256, 128, 1)).sites if site.space == "shared"]
    assert all(site.conflicts == 0 for site in sites if site.op in ("load", "store"))
    assert any(site.conflicts for site in sites if site.op == "cp_async")


@pytest.mark.slow
def test_the_tuned_kernel_has_no_conflict_and_wastes_no_sector() -> None:
    sites = catalog()["sgemm_tuned"].analyze("256,256,64").sites
    assert {site.space for site in sites} == {"shared", "global"}
    for site in sites:
        assert site.conflicts in (0, None) and site.wavefronts == site.ideal_wavefronts
        assert site.sectors == site.ideal_sectors


@given(st.integers(1, 200), st.integers(1, 9))
def test_parts_are_whole_units_and_add_up_to_the_product(lines: int, parts: int) -> None:
    a, b = (np.random.default_rng(lines).integers(-2, 3, size) for size in ((3, lines), (lines, 2)))
    c = np.empty((parts, 3, 2))
    found = REFERENCES["sgemm_parts"]({"A": a, "B": b, "C": c})["C"]
    assert found.shape == c.shape and (found.sum(axis=0) == a @ b).all()
    tail = REFERENCES["sgemm_parts"]({"A": a[:, -PART_UNIT:], "B": b[-PART_UNIT:], "C": c[:1]})["C"]
    if lines >= PART_UNIT and parts == -(-lines // PART_UNIT):
        assert (found[-1] == tail[0]).all()


def test_the_sum_of_parts_is_in_their_order() -> None:
    parts = np.array([1e8, 1.0, -1e8], np.float32).reshape(3, 1, 1) * np.ones((3, 9, 33), np.float32)
    found = catalog()["sum_of_parts"].run((9, 33, 3), given={"P": parts})
    assert (found["C"] == np.float32(0.0)).all()  # (1e8 + 1) - 1e8, and not 1


@pytest.mark.some(2)
@pytest.mark.parametrize("size", [(33, 70, 40), (20, 24, 300), (128, 256, 64), (1, 1, 1), (5, 3, 700)])
def test_sgemm_is_right_at_any_size(size: tuple[int, int, int]) -> None:
    arrays = sgemm().run(size, seed=1)
    assert {name: array.shape for name, array in arrays.items()} == {
        **{"A": (size[0], size[2]), "B": (size[2], size[1]), "C": size[:2]}
    }
    error = np.abs(arrays["C"] - sgemm().expected(arrays)["C"])
    assert (error <= rounding_bound(arrays["A"], arrays["B"])).all()


def test_k_is_divided_where_there_are_few_tiles_and_then_parts_are_added() -> None:
    deep, wide = (128, 128, 8192), (4096, 4096, 4096)
    parts = sgemm().pick(deep).fixed[PARTS]
    assert parts > 8 and sgemm().job(deep).launch.grid[2] == parts
    adding = sgemm().pieces(deep)[0].adding
    assert adding is not None and adding.job(deep[:2]).args[0:3] == (128, 128, parts)
    assert sgemm().pieces(wide)[0].adding is None and sgemm().job(wide).launch.grid[2] == 1


@given(st.tuples(*[st.integers(1, 9000)] * 3))
def test_what_is_picked_takes_the_size_and_no_choice_is_faster(size: tuple[int, int, int]) -> None:
    picked = sgemm().pick(size)
    sizes = picked.sizes(size)
    assert list(sizes) == ["M", "N", "K"]
    offers = {
        (choice.spec.name, parts): nanoseconds
        for choice in sgemm().choices
        if choice.takes(sizes)
        for nanoseconds, parts, _ in sgemm()._offers(choice, sizes)
    }
    assert offers[picked.name, picked.fixed.get(PARTS, 1)] == min(offers.values())


@given(st.tuples(*[st.integers(1, 9000)] * 3))
def test_pieces_are_all_rows_and_the_first_fills_complete_waves(size: tuple[int, int, int]) -> None:
    first, *others = sgemm().pieces(size)
    assert first.first == 0 and first.size[1:] == size[1:]
    if not others:
        assert first.size == size and first.spec == sgemm().pick(size)
        assert (first.adding is None) == (first.parts == 1)
        return
    (rest,) = others
    assert (rest.first, rest.size) == (first.size[0], (size[0] - first.size[0], *size[1:]))
    for piece in (first, rest):
        assert piece.spec == sgemm().pick(piece.size) and (piece.adding is None) == (piece.parts == 1)
    estimates = [sgemm()._best(dict(zip("MNK", each, strict=True)))[0] for each in (first.size, rest.size)]
    assert sum(estimates) < sgemm()._best(dict(zip("MNK", size, strict=True)))[0]


@pytest.mark.slow
def test_two_pieces_are_the_product() -> None:
    tile = KernelChoice(catalog()["tile_32x32x32_any"], pace=Pace(0.0, (1.0,)))
    adding = SumOfParts(catalog()["sum_of_parts"], Adding(0.0, 1e-3))
    pieced = replace(sgemm(), choices=(tile,), sum=adding, launch=0.0)
    assert len(replace(pieced, launch=1e6).pieces((32 * MULTIPROCESSORS + 40, 9, 70))) == 1
    size = (32 * MULTIPROCESSORS + 40, 9, 70)
    first, rest = pieced.pieces(size)
    assert (first.size[0], first.parts) == (32 * MULTIPROCESSORS, 1)
    assert (rest.first, rest.size[0], rest.parts) == (first.size[0], 40, 3)
    assert [(spec.name, asked) for spec, asked in rest.launches] == [
        ("tile_32x32x32_any", (40, 9, 70)),
        ("sum_of_parts", (40, 9)),
    ]
    arrays = pieced.run(size, seed=2)
    error = np.abs(arrays["C"] - pieced.expected(arrays)["C"])
    assert (error <= rounding_bound(arrays["A"], arrays["B"])).all()


def test_a_pace_counts_rounds_of_blocks() -> None:
    pace = Pace(start=100.0, line=(2.0, 3.0))
    full = 2 * MULTIPROCESSORS
    assert pace.nanoseconds(1, 10) == pace.nanoseconds(MULTIPROCESSORS, 10) == 120.0
    assert pace.nanoseconds(MULTIPROCESSORS + 1, 10) == pace.nanoseconds(full, 10) == 130.0
    assert pace.nanoseconds(full + 1, 10) == 250.0 and pace.nanoseconds(2 * full, 10) == 260.0
    assert Adding(50.0, 0.5).nanoseconds(1, 10) == 0.0 and Adding(50.0, 0.5).nanoseconds(3, 10) == 85.0


def test_the_first_that_fits_without_a_pace_and_the_fastest_with_one() -> None:
    small, large = (catalog()[name] for name in ("kernel_v4", "kernel_v5"))
    plain = replace(sgemm(), choices=(KernelChoice(small, {"M": 10}), KernelChoice(large)), sum=None)
    assert [plain.pick((m, 1, 1)).name for m in (9, 10)] == ["kernel_v4", "kernel_v5"]
    paces = (KernelChoice(small, pace=Pace(0.0, (2.0,))), KernelChoice(large, pace=Pace(5.0, (1.0,))))
    paced = replace(plain, choices=paces)
    assert [paced.pick((1, 1, k)).name for k in (4, 6)] == ["kernel_v4", "kernel_v5"]
    tile = next(choice.spec for choice in sgemm().choices if PARTS in choice.spec.family.sizes)
    never = replace(plain, choices=(KernelChoice(tile, pace=Pace(0.0, (1.0,))),))
    assert never.pick((64, 64, 6400)).fixed == {PARTS: 1}
    free = replace(never, sum=SumOfParts(catalog()["sum_of_parts"], Adding(0.0, 0.0)))
    assert free.pick((64, 64, 6400)).fixed[PARTS] > 1


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
def test_by_limits_of_the_size(size: tuple[int, int, int] | str | None, picked: str) -> None:
    sgemm = dispatchers()["beating_sgemm"]
    assert sgemm.pick(size).name == picked
    assert sgemm.job(size) == catalog()[picked].job(size)


@pytest.mark.slow
def test_the_dispatcher_is_used_like_a_kernel() -> None:
    sgemm = dispatchers()["beating_sgemm"]
    arrays = sgemm.run((20, 30, 40), seed=3)
    assert np.abs(arrays["C"] - sgemm.expected(arrays)["C"]).max() < 1e-5
    with pytest.raises(MemsimError, match="takes a size M,N,K"):
        sgemm.pick("8,8")
