"""docs/tuning.md: its variants compute the product, and its recordings are of them."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from memsim.data import data_folder
from memsim.kernels import Spec, catalog
from memsim.kernels.shipped import digest
from studies.bench.recording import newest_of_each_gpu
from studies.bench.table import make_rows
from studies.counted import shipped
from studies.kernel_ptx import ptx_of
from studies.tuning.page import SIZES, recordings
from studies.tuning.record_register_banks import KEEP_A, KEEP_B, places_of_ffmas, write
from studies.tuning.registers import EVEN, ODD, PATTERNS, Ffma, Register
from studies.tuning.variants import KERNEL, ROWS_OF_LANES, VARIANTS, Variant, make_specs
from tests.catalog.test_compiled import other_nvrtc
from tests.few import few

pytestmark = pytest.mark.slow

# FFMA R131, R88, R80.reuse, R24, as ptxas 13.0 wrote it and nvdisasm read it.
WRITTEN = struct.pack("<QQ", 0x0000005058837223, 0x094FE20000000018)


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Spec]:
    return {spec.name: spec for spec in make_specs(tmp_path_factory.mktemp("variants"))}


def test_the_kernel_itself_comes_first(specs: dict[str, Spec]) -> None:
    assert list(specs) == [KERNEL, *(variant.name for variant in VARIANTS)]
    if why := other_nvrtc():
        pytest.skip(why)
    assert ptx_of(specs[KERNEL]) == ptx_of(catalog()[KERNEL])
    assert len({ptx_of(spec) for spec in specs.values()}) == len(specs)


@pytest.mark.parametrize("name", few([KERNEL, *(variant.name for variant in VARIANTS)], (KERNEL,)))
@pytest.mark.parametrize("size", [(128, 128, 8), (128, 256, 40)])
def test_every_variant_computes_the_product(
    name: str, size: tuple[int, int, int], specs: dict[str, Spec]
) -> None:
    arrays = specs[name].run(size)
    roundings = (size[2] + 3) * 2.0**-24  # one for each product and sum
    bound = roundings / (1 - roundings) * (np.abs(arrays["A"]) @ np.abs(arrays["B"]))
    assert (np.abs(arrays["C"] - specs[name].expected(arrays)["C"]) <= bound).all()


def test_an_edit_that_fits_nowhere_is_told() -> None:
    good = Variant("good", "", "", (("constexpr int BM = 128", "constexpr int BM = 64"),))
    assert "BM = 64" in good.source()
    for old in ("constexpr int BM = 127", "buffer ^ 1"):
        with pytest.raises(ValueError, match=r"times in sgemm_tuned\.cu"):
            Variant("bad", "", "", ((old, ""),)).source()


@pytest.mark.slow
def test_what_memsim_counts_of_the_decisions_about_memory(specs: dict[str, Spec]) -> None:
    def counts(name: str) -> tuple[int, int]:
        sites = [site for site in specs[name].analyze((128, 128, 64)).sites if site.space == "shared"]
        return sum(site.wavefronts or 0 for site in sites), sum(site.conflicts or 0 for site in sites)

    tuned = counts(KERNEL)
    assert tuned[1] == 0
    assert counts("padded") == tuned
    assert counts("no_xor")[1] > 0
    assert counts(ROWS_OF_LANES)[0] > tuned[0] and counts(ROWS_OF_LANES)[1] == 0
    for name in ("stored_late", "along_rows", "no_turn", "sums_stored"):
        assert counts(name) == tuned


@pytest.mark.slow
def test_the_recordings_are_of_these_variants(specs: dict[str, Spec]) -> None:
    if why := other_nvrtc():
        pytest.skip(why)
    found = recordings()
    assert [recording.device.gpu for recording in found] == ["NVIDIA H100 80GB HBM3", "NVIDIA H200"]
    for recording in found:
        assert recording.sizes == SIZES
        assert {name: code.ptx for name, code in recording.kernels.items()} == {
            name: digest(ptx_of(spec)) for name, spec in specs.items()
        }


def test_the_tuned_kernel_was_as_fast_as_cublas() -> None:
    found = newest_of_each_gpu(data_folder("traces"))
    assert {recording.device.gpu for recording in found} == {"NVIDIA H100 80GB HBM3", "NVIDIA H200"}
    for recording in found:
        rows = {row.kernel: row for row in make_rows(recording, {KERNEL: shipped().analysis(KERNEL)})}
        shares = [speed.of_cublas for size in SIZES if (speed := rows[KERNEL].at(size)) is not None]
        assert len(shares) == len(SIZES) and min(shares) >= 1.0


def test_what_patterns_fetch() -> None:
    fetched = {pattern.name: pattern.fetched() for pattern in PATTERNS}
    assert fetched["three_of_one"] == (3.0, 0.0) and fetched["kept_same"] == (0.0, 2.0)
    assert fetched["two_kept"] == (1.0, 0.0)  # the sum alone
    assert fetched["tile"] == fetched["tile_as_a"] == fetched["tile_as_b"] == (1.0, 1.0)
    assert fetched["tile_not_kept"] == (1.5, 1.5)
    for pattern in PATTERNS:
        assert len({ffma.c for ffma in pattern.loop}) == len(pattern.loop)


def test_an_ffma_is_written_as_the_compiler_writes_it() -> None:
    registers = {Register(EVEN, 0): 88, Register(EVEN, 1): 80, Register(ODD, 0): 131}
    code = bytearray(32)
    write(code, 16, Ffma(Register(EVEN, 0), Register(EVEN, 1), Register(ODD, 0), False, True), registers)
    assert code[:16] == bytes(16)
    assert code[16:24] == WRITTEN[:8]
    written, ours = (struct.unpack_from("<Q", each)[0] for each in (WRITTEN[8:], code[24:]))
    assert ours & 0xFF == 131 and written & 0xFF == 24  # ours adds to the register that it writes
    assert ours & KEEP_B and not ours & KEEP_A and written & KEEP_B and not written & KEEP_A
    with pytest.raises(ValueError, match="1 FFMAs and not 512"):
        places_of_ffmas(bytes(code))


def test_the_page_names_files_that_are_there() -> None:
    root = Path(__file__).resolve().parents[2]
    page = (root / "docs" / "tuning.md").read_text("utf-8")
    for name in ("record_speed.py", "record_register_banks.py"):
        assert f"`studies/tuning/{name}`" in page and (root / "studies" / "tuning" / name).is_file()
    assert "`kernels/sgemm_tuned.cu`" in page and (root / "kernels" / "sgemm_tuned.cu").is_file()
