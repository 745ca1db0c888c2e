"""The shipped PTX is what NVRTC makes of the shipped sources."""

from __future__ import annotations

import re

import pytest

from memsim.compile.compilers import release_of
from memsim.kernels import catalog
from studies.kernel_ptx import compile_ptx, ptx_of, ptx_path
from tests.catalog.test_compiled import RELEASE, REPEATED, other_nvrtc
from tests.few import few


@pytest.mark.some(1)
@pytest.mark.parametrize("name", few(REPEATED))
def test_regenerated_ptx_is_the_shipped_ptx(name: str) -> None:
    if why := other_nvrtc():
        pytest.skip(why)
    assert compile_ptx(catalog()[name]) == ptx_of(catalog()[name])


@pytest.mark.parametrize("name", catalog())
def test_shipped_ptx_loads_on_drivers_since_cuda_12(name: str) -> None:
    ptx = ptx_of(catalog()[name])
    assert release_of(ptx) == RELEASE
    assert "\n.version 8.0\n" in ptx


@pytest.mark.parametrize("name", catalog())
def test_every_shared_and_global_access_has_a_source_line(name: str) -> None:
    spec = catalog()[name]
    ptx = ptx_of(spec)
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
    paths = {ptx_path(spec) for spec in catalog().values()}
    assert {path for folder in {path.parent for path in paths} for path in folder.iterdir()} == paths


#: Accesses to shared memory and other special ones; of guarded ones there are several forms.
STAGED = {"ld.shared.v4.f32", "st.shared.v4.f32", "st.shared.f32"}
BY_CACHE = {"ld.global.nc.L2::128B.f32", *STAGED}
OF_SGEMM = {"ld.shared.f32", "ld.shared.v4.f32", "st.shared.v4.f32"}
FORMS = {
    **dict.fromkeys(("kernel_v4", "kernel_v4_colmajor", "kernel_v4_padded", "kernel_v5"), STAGED),
    **dict.fromkeys(
        ("opt_5_float4", "opt_6_double_buffer", "opt_7_no_bank_conflict", "opt_7_zorder"), STAGED
    ),
    **dict.fromkeys(("guide_v10", "guide_v11", "guide_v12"), BY_CACHE),
    "sgemm_128x128x8": {*OF_SGEMM, "st.shared.f32"},
    "sgemm_128x128x8_texld": {*OF_SGEMM, "st.shared.f32", "tex.1d.v4.f32.s32"},
    "sgemm_128x256x8": {
        *OF_SGEMM,
        *("cp.async.ca.shared.global", "cp.async.commit_group", "cp.async.wait_group"),
    },
}


@pytest.mark.parametrize("name", FORMS)
def test_accesses_have_the_forms_of_the_article(name: str) -> None:
    memory = r"\b(?:(?:ld|st)\.shared|ld\.global\.nc|tex|cp\.async)[.:\w]*"
    assert set(re.findall(memory, ptx_of(catalog()[name]))) == FORMS[name]


@pytest.mark.parametrize("name", ["kernel_v4", "kernel_v4_colmajor", "kernel_v4_padded", "kernel_v5"])
def test_stores_to_the_tile_and_aligned_matrices_take_16_bytes(name: str) -> None:
    ptx = ptx_of(catalog()[name])
    tiles = 2 if name == "kernel_v5" else 1  # the first tile of kernel_v5 is stored before the loop
    counts = {"st.shared.f32": 4 * tiles, "st.shared.v4.f32": tiles}
    counts |= {"ld.global.v4.f32": 2 * tiles, "st.global.v4.f32": 16}
    assert {form: len(re.findall(rf"{re.escape(form)}\b", ptx)) for form in counts} == counts


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["sgemm_128x128x8", "sgemm_128x128x8_texld", "sgemm_128x256x8"])
def test_buffers_are_switched_by_xor_and_edges_by_predicates(name: str) -> None:
    ptx = ptx_of(catalog()[name])
    switches = {8192} if name == "sgemm_128x256x8" else {8192, 4096}
    assert {int(n) for n in re.findall(r"xor\.b32\s+%r\d+, %r\d+, (\d+);", ptx)} == switches
    assert re.search(r"setp\.ne\.b32 p, %r\d+, 0; mov\.f32 %f\d+, 0f00000000; @p ld\.global\.f32", ptx)
    arrays = catalog()[name].trace((256, 256, 128), blocks=1).arrays
    sizes = sorted(size for _, space, _, size in arrays if space == "shared")
    assert sizes == [2 * min(switches), 2 * max(switches)]


def test_launch_bounds_are_in_the_ptx() -> None:
    ptx = ptx_of(catalog()["guide_v12"])
    assert re.search(r"^\.maxntid 256, 1, 1\n\.minnctapersm 2$", ptx, re.M)
    assert ".minnctapersm" not in ptx_of(catalog()["guide_v11"])
