"""The shipped machine code is what NVRTC makes of the shipped sources, and is never used for other ones."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from memsim.compile.compilers import release_of
from memsim.compile.cuda_source import compile_cubin
from memsim.data import data_folder
from memsim.errors import MemsimError
from memsim.kernels import Spec, catalog
from memsim.kernels.shipped import Shipped, read_shipped
from memsim.sass.cubin import read_cubin
from studies.kernel_ptx import compile_cuda
from tests.few import few
from tools.write_compiled import write_shipped

RELEASE = "12.0.140"  # of the NVRTC that made what ships, which the extra `shipped-test` brings

# NVRTC 12.0 orders the many instructions of sgemm_tile.cu in another way from one run to the next.
REPEATED = [name for name, spec in catalog().items() if spec.source.stem != "sgemm_tile"]


@cache
def other_nvrtc() -> str:
    """Why what ships cannot be made again here; empty if it can."""
    try:
        release = release_of(compile_cuda("__global__ void nothing() {}\n"))
    except MemsimError as error:
        return error.message
    return "" if release == RELEASE else f"NVRTC {RELEASE} made what ships, and {release} makes other code"


@pytest.fixture
def copied(tmp_path: Path) -> Spec:
    """A kernel of the catalogue in a folder of its own, with all that ships."""
    shutil.copytree(data_folder("kernels"), tmp_path / "kernels")
    spec = catalog()["transpose_xor"]
    return replace(spec, source=tmp_path / "kernels" / spec.source.name)


@pytest.mark.some(1)
@pytest.mark.parametrize("name", few(REPEATED))
def test_regenerated_code_is_the_shipped_code(name: str) -> None:
    if why := other_nvrtc():
        pytest.skip(why)
    spec = catalog()[name]
    shipped = read_shipped(spec.compiled_path)
    again = compile_cubin(spec.source, spec.options, name=f"kernels/{spec.source.name}")
    assert (
        read_cubin(again.cubin).kernels[spec.entry].code == read_cubin(shipped.cubin).kernels[spec.entry].code
    )
    assert again.compiler == shipped.made.compiler


@pytest.mark.some(12)
@pytest.mark.parametrize("name", catalog())
def test_what_ships_fits_its_source(name: str) -> None:
    spec = catalog()[name]
    assert read_shipped(spec.compiled_path).fits(spec.source_texts(), spec.options)
    assert spec.kernel().origin.form == "machine code"
    named = {line.source.file for line in spec.machine().listings[spec.entry].lines if line.source}
    assert named <= set(spec.source_texts())


def test_nothing_is_left_over() -> None:
    paths = {spec.compiled_path for spec in catalog().values()}
    assert {path for folder in {path.parent for path in paths} for path in folder.iterdir()} == paths


def test_an_edited_source_is_compiled_anew(copied: Spec) -> None:
    assert copied.analyze((64, 64)).totals == catalog()["transpose_xor"].analyze((64, 64)).totals
    text = copied.source.read_text("utf-8")
    copied.source.write_text(text.replace(" ^ ", " + 0 * "), "utf-8")
    assert copied.shipped() is None
    assert "conflict-free" not in copied.analyze((64, 64)).verdict
    copied.source.write_text(text, "utf-8")
    assert "conflict-free" in copied.analyze((64, 64)).verdict


def test_without_a_compiler_it_is_refused(copied: Spec, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*arguments: object, **options: object) -> None:
        raise MemsimError("NVRTC, NVIDIA's compiler library, is not installed", hint="pip install it")

    monkeypatch.setattr("memsim.compile.cuda_source.compile_cubin", absent)
    assert copied.analyze((64, 64)).sites  # what ships needs no compiler
    copied.source.write_text(copied.source.read_text("utf-8") + "\n// a remark\n", "utf-8")
    with pytest.raises(MemsimError, match=r"transpose_xor\.cu or its header changed since it was compiled"):
        copied.kernel()


def test_an_edited_header_counts_too(copied: Spec) -> None:
    spec = replace(catalog()["kernel_v4"], source=copied.source.parent / "kernel_v4.cu")
    assert spec.shipped() is not None
    header = copied.source.parent / "edge.cuh"
    header.write_text(header.read_text("utf-8") + "\n", "utf-8")
    assert spec.shipped() is None


def test_other_options_are_another_kernel(copied: Spec) -> None:
    assert copied.shipped() is not None
    assert replace(copied, options=("-DN=1",)).shipped() is None


def test_equal_contents_make_equal_files(tmp_path: Path) -> None:
    shipped = read_shipped(catalog()["kernel_v2"].compiled_path)
    write_shipped(tmp_path / "a.zip", shipped)
    write_shipped(tmp_path / "b.zip", read_shipped(tmp_path / "a.zip"))
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    assert read_shipped(tmp_path / "a.zip") == shipped
    assert isinstance(shipped, Shipped)


@pytest.mark.parametrize("spoil", [b"", b"not a zip file", None])
def test_a_damaged_file_is_an_error(spoil: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "k.zip"
    whole = catalog()["kernel_v2"].compiled_path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if spoil is None else spoil)
    with pytest.raises(MemsimError, match="this is not a compiled kernel"):
        read_shipped(path)
    path.write_bytes(whole)
    assert read_shipped(path).made.arch == "sm_90"
