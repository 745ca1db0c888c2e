"""Kernels of tiles, which have their own block: a launch says one thread."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.driver.test_own_device import done, pytestmark

__all__ = ["pytestmark"]

#: A kernel that adds up its threads; what a compiler of tiles writes besides is left out.
MODULE = """
.version 8.0
.target sm_90
.address_size 64
{variable}
.visible .entry count_Kt1_A1i32(.param .u64 a) .reqntid 64 {{
  .reg .b32 %r<2>;
  .reg .b64 %d<2>;
  ld.param.u64 %d0, [a];
  mov.u32 %r0, 1;
  red.global.add.u32 [%d0], %r0;
  ret;
}}
"""
OF_TILES = ".visible .global .align 8 .b8 ___NV_TILE_LAUNCH_META_DATA___[64];"
SCRIPT = """
import ctypes
import memsim

with memsim.device("sm_90") as launches:
    cuda = ctypes.CDLL("libcuda.so.1")
    context, module, kernel, place = (ctypes.c_void_p() for _ in range(4))
    cuda.cuInit(0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)
    assert not cuda.cuModuleLoadData(ctypes.byref(module), open("module.ptx", "rb").read())
    assert not cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"count_Kt1_A1i32")
    cuda.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(4))
    cuda.cuMemsetD32_v2(place, 0, ctypes.c_size_t(1))
    given = (ctypes.c_void_p * 1)(ctypes.addressof(place))
    print(bool(cuda.cuLaunchKernel(kernel, 3, 1, 1, 1, 1, 1, 0, None, given, None)))
    found = ctypes.c_uint32()
    cuda.cuMemcpyDtoH_v2(ctypes.byref(found), place, ctypes.c_size_t(4))
print(found.value, [(kind.name, kind.shape.block) for kind in launches])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        (OF_TILES, "False\n192 [('count', (64, 1, 1))]\n"),
        ("", "True\n0 [('count', (1, 1, 1))]\n"),
    ],
    ids=["of tiles", "of threads"],
)
def test_the_block_is_the_kernels_own(tmp_path: Path, variable: str, expected: str) -> None:
    (tmp_path / "module.ptx").write_text(MODULE.format(variable=variable))
    shown = done(SCRIPT, tmp_path)
    assert shown.stdout == expected, shown.stderr
