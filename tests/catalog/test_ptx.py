"""The shipped PTX is what NVRTC makes of the shipped sources."""

from __future__ import annotations

import platform
import re

import pytest

from memsim.compile import compile_cuda, compiler_of
from memsim.errors import MemsimError
from memsim.kernels import compiled
from tests.few import few

RELEASE = "12.0.140"  # of the NVRTC that the extra `test` names, except on Arm
ARM = platform.machine().lower() in ("aarch64", "arm64")


# NVRTC 12.0 orders the many instructions of sgemm_tile.cu in another way from one run to the next.
REPEATED = [name for name, spec in compiled().items() if spec.source.stem != "sgemm_tile"]


def nvrtc_is_absent() -> str:
    """Why there is no NVRTC; empty if there is one."""
    try:
        compile_cuda("__global__ void nothing() {}\n")
    except MemsimError as error:
        return error.message
    return ""


@pytest.mark.some(2)
@pytest.mark.skipif(ARM, reason=f"NVRTC {RELEASE} is not made for Arm")
@pytest.mark.parametrize("name", few(REPEATED))
def test_regenerated_ptx_is_the_shipped_ptx(name: str) -> None:
    if absent := nvrtc_is_absent():
        pytest.skip(absent)
    assert compiled()[name].compile_ptx() == compiled()[name].ptx()


@pytest.mark.parametrize("name", compiled())
def test_shipped_ptx_loads_on_drivers_since_cuda_12(name: str) -> None:
    ptx = compiled()[name].ptx()
    assert compiler_of(ptx) == RELEASE
    assert "\n.version 8.0\n" in ptx


@pytest.mark.parametrize("name", compiled())
def test_every_shared_and_global_access_has_a_source_line(name: str) -> None:
    spec = compiled()[name]
    ptx = spec.ptx()
    assert f'.file\t1 "kernels/{spec.source.name}"' in ptx
    lines = spec.source.read_text(encoding="utf-8").splitlines()
    found = 0
    place = None
    for text in ptx.splitlines():
        if loc := re.match(r"\s*\.loc\s+(\d+) (\d+) (\d+)", text):
            place = (int(loc[1]), int(loc[2]))
        if re.match(r"\s*(@%p\d+ )?(ld|st)\.(shared|global)", text):
            assert place is not None and place[1] > 0
            if place[0] == 1:
                assert "[" in lines[place[1] - 1]
                found += 1
    assert found > 0


def test_no_ptx_is_left_over() -> None:
    paths = {spec.ptx_path for spec in compiled().values()}
    assert {path for folder in {path.parent for path in paths} for path in folder.iterdir()} == paths


@pytest.mark.parametrize("name", ["kernel_v4", "kernel_v4_colmajor", "kernel_v4_padded", "kernel_v5"])
def test_sixteen_byte_accesses_are_sixteen_bytes(name: str) -> None:
    """All shared loads, stores to the B tile, loads and stores of aligned matrices."""
    ptx = compiled()[name].ptx()
    assert set(re.findall(r"ld\.shared[.\w]*", ptx)) == {"ld.shared.v4.f32"}
    stores = re.findall(r"st\.shared[.\w]*", ptx)
    tiles = 2 if name == "kernel_v5" else 1  # the first tile of kernel_v5 is stored before the loop
    assert stores.count("st.shared.f32") == 4 * tiles
    assert stores.count("st.shared.v4.f32") == tiles
    assert re.findall(r"ld\.global\.v4[.\w]*", ptx) == ["ld.global.v4.f32"] * 2 * tiles
    assert re.findall(r"st\.global\.v4[.\w]*", ptx) == ["st.global.v4.f32"] * 16
