"""A launch in clusters says to the driver what cuda.h wants to hear."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from memsim.errors import MemsimError
from memsim.validate import device_memory

KERNEL = 0x7000


class FakeDriver:
    """Reads a CUlaunchConfig as cuda.h lays it out, byte by byte."""

    def __init__(self, answer: int = 0) -> None:
        self.answer = answer
        self.numbers: list[int] = []
        self.attribute: tuple[int, list[int]] = (0, [])
        self.parameters: list[bytes] = []

    def cuLaunchKernelEx(self, configuration: Any, function: Any, places: Any, extra: Any) -> int:  # noqa: N802
        assert function.value == KERNEL and extra.value is None
        start = ctypes.cast(configuration, ctypes.c_void_p).value or 0
        self.numbers = list((ctypes.c_uint32 * 7).from_address(start))
        stream, attributes = (ctypes.c_uint64.from_address(start + at).value for at in (32, 40))
        count = ctypes.c_uint32.from_address(start + 48).value
        assert (stream, count) == (0, 1)
        kind = ctypes.c_uint32.from_address(attributes).value
        self.attribute = kind, list((ctypes.c_uint32 * 3).from_address(attributes + 8))
        self.parameters = [ctypes.string_at(place, 4) for place in places]
        return self.answer


def launch(monkeypatch: pytest.MonkeyPatch, answer: int = 0) -> FakeDriver:
    driver = FakeDriver(answer)
    monkeypatch.setattr(device_memory, "driver", lambda: driver)
    parameters = [b"abcd", b"efghij"]
    device_memory.launch_clusters(KERNEL, (8, 2, 1), (128, 1, 1), (2, 1, 1), 4096, parameters)
    return driver


def test_the_driver_gets_shape_cluster_and_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = launch(monkeypatch)
    assert driver.numbers == [8, 2, 1, 128, 1, 1, 4096]
    assert driver.attribute == (4, [2, 1, 1])  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    assert driver.parameters == [b"abcd", b"efgh"]


def test_what_the_driver_rejects_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MemsimError, match=r"clusters of \[2, 1, 1\] \(CUDA error 912\)"):
        launch(monkeypatch, 912)
