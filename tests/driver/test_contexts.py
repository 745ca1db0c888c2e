"""The stack of contexts of a thread, as programs of the driver API push and pop them."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc"), reason="needs Linux and a C compiler"
)
PROGRAM = """
import ctypes
cuda, context, device = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_int()
popped = []

def current():
    found = ctypes.c_void_p()
    cuda.cuCtxGetCurrent(ctypes.byref(found))
    return found.value == context.value != None

def pop_all():  # as Numba's cuda.close() does
    while not (result := cuda.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))):
        popped.append(current())
    return result

print(cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), current(), pop_all())
print(cuda.cuCtxGetDevice(ctypes.byref(device)), cuda.cuCtxSetCurrent(context), cuda.cuCtxSetCurrent(context))
print(current(), cuda.cuCtxPushCurrent_v2(context), pop_all(), popped, current())
print(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0), current(), cuda.cuCtxDestroy_v2(context), current())
print(cuda.cuCtxPushCurrent_v2(context), cuda.cuCtxSetCurrent(None), current(), cuda.cuCtxSetCurrent(None))
"""


def test_contexts_are_popped_until_there_is_none() -> None:
    command = [sys.executable, "-m", "memsim", "exec", "--", sys.executable, "-c", PROGRAM]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.stdout.splitlines() == [
        "0 0 False 201",
        "201 0 0",
        "True 0 201 [True, False] False",
        "0 True 0 False",
        "0 0 False 0",
    ], ran.stderr
