"""The catalogue: what the file says is complete, and launches, sizes and mistakes are as promised."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsim.argument_types import ArrayArg, Texture1D
from memsim.data import data_folder
from memsim.errors import MemsimError
from memsim.kernels import Spec, by_article, catalog, read_catalog
from memsim.kernels import spec as spec_module

#: Kernels with a source of their own; a tile is an instance of a template.
OF_ONE_SOURCE = [name for name, spec in catalog().items() if spec.entry == name]
#: How many kernels tell what each article says.
BY_ARTICLE = {
    "The Chase for cuBLAS-like SGEMM Performance (WIP)": 9,
    "CUDA GEMM Optimization Guide": 9,
    "SGEMM Optimization": 10,
    "Optimized SGEMM on Ada Lovelace: A Study on Decoupled Access/Compute Architecture": 1,
    "Beating cuBLAS in Single-Precision General Matrix Multiplication": 3,
}


@pytest.mark.parametrize("name", catalog())
def test_a_story_is_a_line(name: str) -> None:
    spec = catalog()[name]
    assert spec.name == name
    assert 20 < len(spec.story) <= 120 and "\n" not in spec.story


@pytest.mark.parametrize("name", OF_ONE_SOURCE)
def test_a_source_says_what_the_catalogue_says(name: str) -> None:
    spec = catalog()[name]
    text = spec.source.read_text(encoding="utf-8")
    bounds = r"(?:__launch_bounds__\([^)]*\)\s+)?"
    signature = re.search(rf'extern "C" __global__ void\s+{bounds}{spec.entry}\(([^)]*)\)', text)
    assert signature is not None and spec.source.name == f"{name}.cu"
    names = [parameter.split()[-1].lstrip("*") for parameter in signature[1].split(",")]
    assert names == list(spec.arguments)
    x, y = (size for size, _ in spec.grid)
    block = rf"// Block {spec.block[0]} x {spec.block[1]}\b"
    assert re.search(rf"{block}[^;]*; grid\.x covers {x}, grid\.y covers {y}\b", text)


def test_kernels_of_an_article_tell_what_it_says() -> None:
    assert {article: len(by_article()[article]) for article in BY_ARTICLE} == BY_ARTICLE
    assert all(len(spec.says) > 50 for article in BY_ARTICLE for spec in by_article()[article])


def test_every_source_is_in_the_catalogue() -> None:
    sources = {spec.source for spec in catalog().values()}
    assert sources == set(data_folder("kernels").glob("*.cu"))


def test_the_default_launch_is_1024_cubed() -> None:
    plan = catalog()["kernel_v4"].job()
    assert (plan.launch.grid, plan.launch.block, plan.launch.shared_bytes) == ((8, 8, 1), (16, 16, 1), 0)
    assert plan.size == {"M": 1024, "N": 1024, "K": 1024}
    assert plan.args[3:] == (1024, 1024, 1024)
    assert [arg.shape for arg in plan.args[:3] if isinstance(arg, ArrayArg)] == [(1024, 1024)] * 3


def test_a_size_shapes_grid_and_arrays() -> None:
    for size in ("100,300,7", (100, 300, 7)):
        plan = catalog()["kernel_v4"].job(size)
        assert plan.launch.grid == (3, 1, 1)
        assert [arg.shape for arg in plan.args[:3] if isinstance(arg, ArrayArg)] == [
            (100, 7),
            (7, 300),
            (100, 300),
        ]
        assert plan.args[3:] == (100, 300, 7)
    assert catalog()["kernel_v1"].job("100,300,7").launch.grid == (4, 10, 1)
    assert catalog()["transpose_xor"].job("100,300").launch.grid == (10, 4, 1)


def test_inputs_differ_from_each_other_and_by_seed() -> None:
    def inputs(seed: int) -> list[ArrayArg]:
        args = catalog()["kernel_v1"].job("4,4,4", seed).args
        return [arg for arg in args if isinstance(arg, ArrayArg) and arg.fill == "random"]

    first, second = inputs(0), inputs(1)
    assert len({arg.seed for arg in first + second}) == 4
    assert first == inputs(0)


@given(st.sampled_from(sorted(catalog())), st.tuples(*[st.integers(1, 5000)] * 4))
def test_the_grid_covers_every_size_and_no_more(name: str, size: tuple[int, ...]) -> None:
    spec = catalog()[name]
    multiples = dict(spec.requires)
    rounded = [
        -(-value // multiples.get(extent, 1)) * multiples.get(extent, 1)
        if extent != "parts"
        else value % 50 + 1
        for extent, value in zip(spec.family.sizes, size)
    ]
    plan = spec.job(rounded)
    sizes = dict(zip(spec.family.sizes, rounded))
    for blocks, (extent, tile) in zip(plan.launch.grid, spec.grid):
        assert (blocks - 1) * tile < sizes[extent] <= blocks * tile


@pytest.mark.parametrize(
    "size",
    ["", "1024", "1024,1024", "1,2,3,4", "8,0,8", "8,-8,8", "8,x,8", "8,8.5,8", (8, 8.5, 8), (8, 8), ()],
)
def test_a_size_that_is_none_is_refused(size: object) -> None:
    with pytest.raises(MemsimError, match="kernel_v4 takes a size M,N,K of 3 positive integers") as caught:
        catalog()["kernel_v4"].job(size)  # type: ignore[arg-type]
    assert caught.value.exit_code == 2
    assert catalog()["kernel_v4"].job("8, 8, 8").args[3:] == (8, 8, 8)


@pytest.mark.parametrize(
    ("name", "refused", "says", "hint", "taken"),
    [
        ("permuted_write", "64,65", "N to be a multiple of 32, but it is 65", "96", "64,96"),
        ("sgemm_128x128x8_texld", "4,4,5", "K to be a multiple of 4, but it is 5", "8", "5,4,4"),
        ("sgemm_tuned", "64,128,8", "M to be a multiple of 128, but it is 64", "128", "128,128,8"),
        ("sgemm_tuned", "128,130,8", "N to be a multiple of 128, but it is 130", "256", "128,256,8"),
        ("sgemm_tuned", "128,128,12", "K to be a multiple of 8, but it is 12", "16", "128,128,16"),
    ],
)
def test_a_size_that_the_kernel_refuses(name: str, refused: str, says: str, hint: str, taken: str) -> None:
    spec = catalog()[name]
    with pytest.raises(MemsimError, match=f"{name} needs {says}") as caught:
        spec.job(refused)
    assert caught.value.hint == f"the next one is {hint}"
    assert list(spec.job(taken).size.values()) == [int(extent) for extent in taken.split(",")]


def test_an_array_too_large_for_32_bit_indices() -> None:
    with pytest.raises(MemsimError, match="C would have 2147483648 elements"):
        catalog()["kernel_v1"].job("65536,32768,1")
    assert catalog()["kernel_v1"].job("65536,32767,1").launch.grid == (2048, 1024, 1)


def test_an_unknown_name_gives_the_nearest() -> None:
    with pytest.raises(MemsimError, match="there is no kernel 'kernel_4' in the catalogue") as caught:
        catalog()["kernel_4"]
    assert caught.value.hint is not None and "kernel_v4" in caught.value.hint
    assert caught.value.exit_code == 2
    with pytest.raises(MemsimError) as caught:
        catalog()["zzz"]
    assert caught.value.hint == "memsim list shows them all"
    assert "kernel_4" not in catalog() and catalog().get("kernel_4") is None


def test_what_is_expected_is_the_product() -> None:
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((3, 2), np.float32)
    assert catalog()["kernel_v1"].expected({"A": a, "B": b})["C"].tolist() == [[3, 3], [12, 12]]
    assert catalog()["transpose_xor"].expected({"A": a})["C"].tolist() == [[0, 3], [1, 4], [2, 5]]


def test_sources_are_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "kernel_v2.cu").write_text("somebody else's kernel")
    monkeypatch.chdir(tmp_path)
    spec_module._kernels.clear()
    spec = catalog()["kernel_v2"]
    sources = spec.kernel().sources
    assert sources["kernels/kernel_v2.cu"] == spec.source.read_text(encoding="utf-8")
    assert "load4_edge" in sources["kernels/edge.cuh"]


def test_a_kernel_is_loaded_once() -> None:
    assert catalog()["kernel_v2"].kernel() is catalog()["kernel_v2"].kernel()


# A catalogue file

ENTRY = """\
[articles]
own = "Own"
[families.sgemm]
sizes = { M = 8, N = 8, K = 8 }
inputs = { A = ["M", "K"], B = ["K", "N"] }
outputs = { C = ["M", "N"] }
[families.transpose]
sizes = { M = 8, N = 8 }
inputs = { A = ["M", "N"] }
outputs = { C = ["N", "M"] }
[kernels.turn]
story = "turns"
article = "own"
family = "transpose"
source = "turn.cu"
entry = "turn<4>"
options = ["-DTILE=4"]
arguments = ["A", "C", "M", "N"]
grid = ["N/4", "M/4"]
block = [4, 4]
shared_bytes = 64
requires = ["M % 4 == 0"]
[kernels.one]
story = "one"
article = "own"
family = "sgemm"
source = "turn.cu"
entry = "one"
arguments = ["A", "lda", "alpha", "C"]
scalars = { alpha = 2.5, lda = "K" }
textures = ["A"]
grid = ["N/4"]
block = [4]
"""


def read(folder: Path, text: str) -> dict[str, Spec]:
    (folder / "turn.cu").touch()
    path = folder / "catalog.toml"
    path.write_text(text)
    return read_catalog(path)


def test_every_key_of_a_file_is_used(tmp_path: Path) -> None:
    found = read(tmp_path, ENTRY)
    spec = found["turn"]
    assert (spec.story, spec.article, spec.says) == ("turns", "Own", "")
    assert (spec.source, spec.entry, spec.options) == (tmp_path / "turn.cu", "turn<4>", ("-DTILE=4",))
    assert spec.compiled_path == tmp_path / "compiled" / "turn.zip"
    plan = spec.job("12,20")
    assert (plan.launch.grid, plan.launch.block, plan.launch.shared_bytes) == ((5, 3, 1), (4, 4, 1), 64)
    with pytest.raises(MemsimError, match="multiple of 4"):
        spec.job("13,20")
    c = ArrayArg((9, 9), fill="zeros", seed=2)
    assert found["one"].job((9, 9, 12)).args == (Texture1D(ArrayArg((9, 12))), 12, 2.5, c)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[articles]", "[article]", "the file: articles missing"),
        ("[articles]", "[other]\n[articles]", "the file: other unknown"),
        ("[families.transpose]", "[families.flip]", "families.flip: it has no reference result"),
        ('["N", "M"]', '["N", "L"]', "families.transpose, shape of C: there is no 'L'; there are M, N"),
        ('story = "turns"\n', "", "kernels.turn: story missing"),
        ("story =", "storey =", "kernels.turn: story missing"),
        ('entry = "turn<4>"', 'entry = "turn<4>"\nwarps = 3', "kernels.turn: warps unknown"),
        ('article = "own"', 'article = "her"', "kernels.turn.article: there is no 'her'; there are own"),
        ('family = "transpose"', 'family = "product"', "kernels.turn.family: there is no 'product'"),
        ('source = "turn.cu"', 'source = "burn.cu"', "kernels.turn.source: there is no file burn.cu"),
        ('["A", "C", "M", "N"]', '["A", "C", "M", "lda"]', "kernels.turn.arguments: there is no 'lda'"),
        ('["N/4", "M/4"]', '["N/0", "M/4"]', "kernels.turn.grid: 'N/0' is not written as"),
        ('["N/4", "M/4"]', '["N/4", "P/4"]', "kernels.turn.grid: there is no 'P'"),
        ('["M % 4 == 0"]', '["M > 4"]', "kernels.turn.requires: 'M > 4' is not written as"),
        ("block = [4, 4]", "block = [4, 0]", "kernels.turn.block must be one to three positive integers"),
        ("shared_bytes = 64", "shared_bytes = -1", "kernels.turn.shared_bytes: -1 is not a number of bytes"),
        ("[articles]", "[articles", "not TOML"),
        ('lda = "K"', 'lda = "L"', "kernels.one.scalars: there is no 'L'; there are M, N, K"),
        ('textures = ["A"]', 'textures = ["C"]', "kernels.one.textures: there is no 'C'; there are A, B"),
        ('"alpha", "C"]', '"beta", "C"]', "kernels.one.arguments: there is no 'beta'"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in ENTRY
    with pytest.raises(MemsimError, match=re.escape(message)):
        read(tmp_path, ENTRY.replace(old, new, 1))


def test_an_absent_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MemsimError, match="cannot read the catalogue"):
        read_catalog(tmp_path / "catalog.toml")


def test_sums_have_as_many_terms_as_the_axes_that_outputs_lack() -> None:
    sizes = {"M": 3, "N": 5, "K": 7, "parts": 2}
    terms = {spec.family.name: spec.family.terms(sizes) for spec in catalog().values()}
    assert terms == {"sgemm": 7, "sgemm_parts": 7, "sum_of_parts": 2, "transpose": 0}
