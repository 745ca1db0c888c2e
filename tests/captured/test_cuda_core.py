"""A module of cuda.core is a module."""

from __future__ import annotations

from pathlib import Path

import pytest

import memsim
from memsim.compile.compile_cache import compiled_source
from memsim.errors import MemsimError
from tests.assembler import needs_assembler

SOURCE = """
extern "C" __global__ void scale(float *x, float by) { x[2 * threadIdx.x] *= by; }
extern "C" __global__ void clear(float *x) { x[threadIdx.x] = 0; }
"""
PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .entry one(.param .u64 p) {
 .reg .b64 %rd<2>;
 ld.param.u64 %rd1, [p];
 st.global.u32 [%rd1], 1;
 ret;
}
"""
LAUNCH = (1, 32, (memsim.ArrayArg((64,)), 2.0))


class ObjectCode:
    """As `cuda.core.ObjectCode`."""

    def __init__(self, code_type: str, code: bytes | str) -> None:
        self.code_type, self.code = code_type, code


@pytest.fixture(scope="module")
def cubin() -> bytes:
    return compiled_source(f"{SOURCE}\n", (), "sm_90", "scale.cu", None).cubin


def test_a_kernel_of_a_cubin_is_analyzed_by_name(cubin: bytes, tmp_path: Path) -> None:
    verdict = memsim.analyze(memsim.load(SOURCE)["scale"], *LAUNCH).verdict
    assert "8.0 sectors per request instead of 4.0" in verdict
    file = tmp_path / "scale.cubin"
    file.write_bytes(cubin)
    for code in (cubin, str(file)):
        found = memsim.analyze(ObjectCode("cubin", code), *LAUNCH, name="scale")
        assert found.verdict.split(";")[-1] == verdict.split(";")[-1]
    assert {*memsim.load(ObjectCode("cubin", cubin))} == {"scale", "clear"}


def test_of_several_one_is_chosen(cubin: bytes) -> None:
    with pytest.raises(MemsimError, match="scale"):
        memsim.analyze(ObjectCode("cubin", cubin), *LAUNCH)


@needs_assembler
def test_ptx_is_assembled() -> None:
    found = memsim.analyze(ObjectCode("ptx", PTX.encode()), 1, 32, (memsim.ArrayArg((1,), "i32"),))
    assert found.sectors == 1


def test_what_a_linker_would_take_is_refused() -> None:
    with pytest.raises(MemsimError, match="an ObjectCode with ltoir cannot be loaded"):
        memsim.load(ObjectCode("ltoir", b""))


def test_a_module_of_the_package_itself(cubin: bytes) -> None:
    made = pytest.importorskip("cuda.core").ObjectCode.from_cubin(cubin)
    assert memsim.analyze(made, *LAUNCH, name="scale").sectors == 16
