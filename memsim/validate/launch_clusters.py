"""Launches a kernel in clusters that the launch chooses, which CuPy cannot: `cuLaunchKernelEx` of the driver.

Source: CUlaunchConfig, CUlaunchAttribute of cuda.h.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from memsim.errors import MemsimError
from memsim.validate.driver_maps import driver

CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION


class _Attribute(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_int),
        ("padding", ctypes.c_int),
        ("value", ctypes.c_uint32 * 16),
    ]


class _Configuration(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared_bytes", ctypes.c_uint32),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint32),
    ]


def launch_clusters(
    function: int,
    grid: Sequence[int],
    block: Sequence[int],
    cluster: Sequence[int],
    shared_bytes: int,
    parameters: Sequence[bytes],
) -> None:
    """Launch a `CUfunction`, without waiting for it. parameters: the bytes of each.

    Raises:
        MemsimError: the driver rejects it.
    """
    attribute = _Attribute(CLUSTER_DIMENSION, 0, (ctypes.c_uint32 * 16)(*cluster))
    configuration = _Configuration(
        (ctypes.c_uint32 * 3)(*grid),
        (ctypes.c_uint32 * 3)(*block),
        shared_bytes,
        None,
        ctypes.pointer(attribute),
        1,
    )
    buffers = [ctypes.create_string_buffer(one, len(one)) for one in parameters]
    places = (ctypes.c_void_p * len(buffers))(*map(ctypes.addressof, buffers))
    refused = driver().cuLaunchKernelEx(
        ctypes.byref(configuration), ctypes.c_void_p(function), places, ctypes.c_void_p(None)
    )
    if refused:
        raise MemsimError(
            f"the driver rejects a launch in clusters of {list(cluster)} (CUDA error {refused})"
        )
