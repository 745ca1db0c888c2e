"""Arrays of other packages, by stand-ins that can do what theirs can."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from memsim.argument_types import ArrayArg
from memsim.argument_types.argument import allocation
from memsim.argument_types.foreign_arrays import as_argument, as_arguments
from memsim.errors import MemsimError


class Storage:
    """As torch's `UntypedStorage`."""

    def __init__(self, memory: np.ndarray) -> None:
        self.memory = memory

    def data_ptr(self) -> int:
        return int(self.memory.ctypes.data)

    def nbytes(self) -> int:
        return self.memory.nbytes

    def cpu(self) -> Storage:
        return Storage(self.memory.copy())


class Tensor:
    """As torch's: a view of a storage; strides and offset count elements."""

    def __init__(
        self, memory: np.ndarray, dtype: str, shape: Any, stride: Any, offset: int, device: str
    ) -> None:
        self.memory, self.dtype, self.shape, self.device = memory, f"torch.{dtype}", shape, device
        self.is_meta = device == "meta"
        self._stride, self._offset = stride, offset

    def stride(self) -> Any:
        return self._stride

    def storage_offset(self) -> int:
        return self._offset

    def data_ptr(self) -> int:
        return 0 if self.is_meta else int(self.memory.ctypes.data)

    def untyped_storage(self) -> Storage:
        return Storage(self.memory)


class FakeTensor(Tensor):
    def data_ptr(self) -> int:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")


def test_a_tensor_lies_in_its_storage_in_place() -> None:
    memory = np.arange(100, dtype=np.float32)
    found = as_argument(Tensor(memory, "float32", (4, 3), (10, 2), 5, "cpu"))
    assert isinstance(found, np.ndarray)
    assert (found == memory[5:45].reshape(4, 10)[:, 0:6:2]).all()
    assert found.strides == (40, 8)
    whole, first = allocation(found)
    assert (whole.size, first) == (400, 20)
    found[0, 0] = -1
    assert memory[5] == -1


def test_a_tensor_on_the_gpu_is_copied() -> None:
    memory = np.arange(16, dtype=np.uint16)
    found = as_argument(Tensor(memory, "bfloat16", (8,), (1,), 4, "cuda:0"))
    assert found.dtype.name == "bfloat16"
    assert found.view(np.uint16).tolist() == list(range(4, 12))
    assert not np.shares_memory(found, memory)


@pytest.mark.parametrize("kind", [Tensor, FakeTensor])
def test_a_tensor_without_content_is_described(kind: type[Tensor]) -> None:
    found = as_argument(kind(np.zeros(0), "float16", (2, 3), (1, 2), 7, "meta"))
    assert found == ArrayArg((2, 3), "float16", strides=(2, 4), offset=14)


class OnTheGpu:
    """As an array of CuPy, or of Numba's: its memory is out of reach, a copy is not."""

    def __init__(self, array: np.ndarray, address: int, strides: bool = True) -> None:
        self.array = array
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (address, False),
            "strides": array.strides if strides else None,
            "version": 3,
        }


class CuPyArray(OnTheGpu):
    def get(self) -> np.ndarray:
        return self.array.copy()


@pytest.mark.parametrize(("address", "first"), [(0x7F00_0000_0000, 0), (0x7F00_0000_0104, 4)])
def test_an_array_on_the_gpu_is_as_aligned_as_it_is_there(address: int, first: int) -> None:
    array = np.arange(12, dtype=np.int32)
    for kind, strides in ((CuPyArray, False), (OnTheGpu, True)):
        found = as_argument(kind(array, address, strides))
        if kind is CuPyArray:
            assert (found == array).all() and allocation(found)[1] == first
        else:
            assert isinstance(found, ArrayArg) and found.start == first and found.shape == (12,)


def test_an_array_that_runs_backwards_has_room_in_front() -> None:
    array = np.arange(12, dtype=np.int32)[::-1]
    found = as_argument(CuPyArray(array, 0x7F00_0000_0000 + 44))
    assert found.tolist() == list(range(11, -1, -1)) and found.strides == (-4,)
    assert allocation(found)[1] == 44


class ByDlpack:
    def __init__(self, array: np.ndarray, device: int) -> None:
        self.array, self.device = array, device

    def __dlpack__(self, **how: Any) -> Any:
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


def test_dlpack_of_the_cpu_is_taken_and_of_the_gpu_refused() -> None:
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    found = as_argument(ByDlpack(array, 1))
    assert (found == array).all() and np.shares_memory(found, array)
    with pytest.raises(MemsimError, match="content of a ByDlpack on a GPU cannot be read"):
        as_argument(ByDlpack(array, 2))
    with pytest.raises(MemsimError, match="content of a ByDlpack cannot be read"):
        as_argument(ByDlpack(array.astype("datetime64[s]"), 1))  # DLPack has no such type


def test_what_is_no_array_stays_as_it_is() -> None:
    values = [None, 3, 2.5, True, b"12", np.float32(1), "text", ArrayArg((4,))]
    assert as_arguments(values) == values
    assert as_arguments("no list") == "no list"  # refused with all its words later
    array = np.zeros(3)
    assert as_argument(array) is array
    memory = (ctypes.c_float * 4)()
    assert as_argument(memory) is memory
