"""Fused multiply-adds by the processor's own instruction, with the same results as numpy's ten passes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np

from memsim.state import rounding
from memsim.state.rounding import Array, Fused

#: The library that native_build.py makes of native/arithmetic.c.
LIBRARY = "libmemsim_arithmetic.so"


def use_processor(folder: Path) -> None:
    """Lets `rounding.fma32` and `fma64` compute by the library in a folder."""
    library = ctypes.CDLL(str(folder / LIBRARY))
    rounding.IN_MACHINE_CODE[np.float32] = of_arrays(library.memsim_fma32, np.float32)
    rounding.IN_MACHINE_CODE[np.float64] = of_arrays(library.memsim_fma64, np.float64)


def of_arrays(function: Callable[..., None], dtype: type) -> Fused:
    """A function of three arrays of a type, which broadcast, by one of their addresses."""
    function.argtypes = [ctypes.c_size_t, *[ctypes.c_void_p] * 4]  # type: ignore[attr-defined]
    function.restype = None  # type: ignore[attr-defined]

    def compute(*operands: Array) -> Array:
        shape = np.broadcast_shapes(*(one.shape for one in operands))
        alike = (one if one.shape == shape else np.broadcast_to(one, shape) for one in operands)
        whole: list[Array] = [np.ascontiguousarray(one, dtype) for one in alike]
        out: Array = np.empty(shape, dtype)
        function(out.size, *(one.ctypes.data for one in (*whole, out)))
        return out

    return compute
