"""Products that a program asks cuBLAS for, on a device's memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from memsim.driver.matrix_products import (
    AUX,
    BGRADB,
    BIAS,
    DGELU,
    DRELU,
    GELU,
    PRODUCT,
    RELU,
    TYPES,
    NotSupported,
    multiply,
    read_product,
)
from memsim.driver.program_memory import ProgramMemory
from memsim.errors import MemsimError

M, N, K = 5, 4, 7
F32, F64, F16, I8, C64, I32 = 0, 1, 2, 3, 4, 10
NUMBERS = {type.name: number for number, type in TYPES.items()}
Steps = tuple[int, int, int, int, int, int, int]


class Device:
    """A device's memory with arrays in it."""

    def __init__(self) -> None:
        self.memory = ProgramMemory(1 << 24)

    def put(self, array: np.ndarray) -> int:
        """The address of a copy, column after column."""
        content = np.frombuffer(array.tobytes("F"), np.uint8)
        at = self.memory.allocate(max(content.size, 1))
        self.memory.view(at, content.size)[:] = content
        return at

    def take(self, at: int, shape: tuple[int, ...], type: int) -> Any:
        """What is there now."""
        size = int(np.prod(shape)) * TYPES[type].itemsize
        return self.memory.view(at, size).view(TYPES[type]).reshape(shape, order="F").copy()

    def multiply(
        self,
        a: Steps,
        b: Steps,
        d: Steps,
        *,
        scale_type: int = F32,
        alpha: complex = 1,
        beta: complex = 0,
        batches: int = 1,
        epilogue: int = 1,
        bias: int = 0,
        aux: int = 0,
        scales: tuple[int, int, int, int] = (0, 0, 0, 0),
        modes: tuple[int, int, int, int] = (0, 0, 0, 0),
        m: int = M,
    ) -> bytes:
        """Asks as native/blas.c does."""
        kind = TYPES[scale_type]
        numbers = [np.array(one).astype(kind).tobytes().ljust(16, b"\0") for one in (alpha, beta)]
        head = (b"cublasLtMatmul", m, N, K, batches, scale_type, *numbers, *a, *b, *d, *d)
        tail = (epilogue, d[3], d[3], 0, bias, aux, *scales, 0, d[1], 0, *modes)
        return multiply(read_product(PRODUCT.pack(*head, *tail)), self.memory)


@pytest.fixture
def device() -> Iterator[Device]:
    made = Device()
    yield made
    made.memory.close()


def matrix(
    at: int, ld: int, type: int, op: int = 0, stride: int = 0, row: int = 0, indirect: int = 0
) -> Steps:
    return at, ld, stride, type, op, row, indirect


def numbers(*shape: int, seed: int = 27) -> np.ndarray:
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float64)


@pytest.mark.parametrize("op_a", [0, 1, 2])
@pytest.mark.parametrize("op_b", [0, 1, 2])
@pytest.mark.parametrize(
    ("type", "out", "scale"),
    [(F32, F32, F32), (F64, F64, F64), (F16, F16, F32), (F16, F16, F16), (I8, I32, I32), (C64, C64, C64)],
)
def test_every_type_turned_and_not(
    device: Device, op_a: int, op_b: int, type: int, out: int, scale: int
) -> None:
    a, b, c = numbers(M, K), numbers(K, N, seed=1), numbers(M, N, seed=2)
    if type == C64:
        a, b = a + 1j * numbers(M, K, seed=3), b + 1j * numbers(K, N, seed=4)
    stored = [one.T.conj() if op == 2 else one.T if op else one for one, op in ((a, op_a), (b, op_b))]
    at = [device.put(one.astype(TYPES[type])) for one in stored]
    d = device.put(c.astype(TYPES[out]))
    device.multiply(
        matrix(at[0], K if op_a else M, type, op_a),
        matrix(at[1], N if op_b else K, type, op_b),
        matrix(d, M, out),
        scale_type=scale,
        alpha=2,
        beta=3,
    )
    assert (device.take(d, (M, N), out) == (2 * (a @ b) + 3 * c).astype(TYPES[out])).all()


def test_rows_and_batches_and_arrays_of_addresses(device: Device) -> None:
    a, b = numbers(3, M, K), numbers(K, N, seed=1)
    at = [device.put(one.T.astype("f4")) for one in a]  # row after row
    pointers = device.put(np.array(at, np.uint64))
    whole = device.put(a.transpose(1, 2, 0).astype("f4"))
    right, d = device.put(b.astype("f4")), device.put(np.zeros((M, N, 3), "f4"))
    operand, out = matrix(right, K, F32), matrix(d, M, F32, stride=M * N)
    expected = np.stack([one @ b for one in a], -1)
    device.multiply(matrix(whole, M, F32, stride=M * K), operand, out, batches=3)
    assert (device.take(d, (M, N, 3), F32) == expected).all()
    device.memory.view(d, 4 * M * N * 3)[:] = 0
    device.multiply(matrix(pointers, K, F32, row=1, indirect=1), operand, out, batches=3)
    assert (device.take(d, (M, N, 3), F32) == expected).all()


def test_epilogues_and_what_they_keep(device: Device) -> None:
    m = 128  # a bit of each element is kept: whole bytes
    a, b, bias = numbers(m, K), numbers(K, N, seed=1), numbers(m, seed=2)
    at = [device.put(one.astype("f4")) for one in (a, b, bias)]
    d, aux = device.put(np.zeros((m, N), "f4")), device.put(np.zeros((m, N), "f4"))
    left, right, out = matrix(at[0], m, F32), matrix(at[1], K, F32), matrix(d, m, F32)
    sums = a @ b + bias[:, None]

    def ask(epilogue: int) -> np.ndarray:
        device.multiply(left, right, out, epilogue=epilogue, bias=at[2], aux=aux, m=m)
        found: np.ndarray = device.take(d, (m, N), F32)
        return found

    assert (ask(BIAS) == sums).all()
    assert (ask(RELU | BIAS | AUX) == np.maximum(sums, 0)).all()
    assert (ask(DRELU | AUX) == (a @ b) * (sums > 0)).all()
    half = 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (sums + 0.044715 * sums**3)))
    assert np.allclose(ask(GELU | BIAS | AUX), sums * half, atol=1e-4)
    assert (device.take(aux, (m, N), F32) == sums).all()
    step = 1e-4
    more = sums + step
    slope = (
        more * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (more + 0.044715 * more**3))) - sums * half
    ) / step
    assert np.allclose(ask(DGELU | AUX), (a @ b) * slope, atol=0.1)
    ask(BGRADB)
    assert (device.take(at[2], (N,), F32) == b.sum(0)).all()


def test_scales_of_eight_bits(device: Device) -> None:
    f8 = NUMBERS["float8_e4m3fn"]
    a, b = numbers(M, K), numbers(K, N, seed=1)
    at = [device.put(one.astype(TYPES[f8])) for one in (a, b)]
    rows, all_ = device.put(np.arange(1, M + 1, dtype="f4")), device.put(np.array([0.5], "f4"))
    d = device.put(np.zeros((M, N), "f4"))
    operands = matrix(at[0], M, f8), matrix(at[1], K, f8), matrix(d, M, F32)
    device.multiply(*operands, scales=(rows, all_, 0, 0), modes=(3, 0, 0, 0))
    assert (device.take(d, (M, N), F32) == (a * np.arange(1, M + 1)[:, None]) @ b * 0.5).all()
    with pytest.raises(NotSupported, match="scales of blocks"):
        device.multiply(*operands, scales=(rows, all_, 0, 0), modes=(2, 0, 0, 0))


def test_a_product_for_the_program_is_answered(device: Device) -> None:
    """As cublasSdot with its result on the host."""
    a, b = numbers(M, K), numbers(K, N, seed=1)
    at = [device.put(one.astype("f4")) for one in (a, b)]
    answer = device.multiply(matrix(at[0], M, F32), matrix(at[1], K, F32), matrix(0, M, F32))
    assert (np.frombuffer(answer, "f4").reshape(M, N) == a @ b).all()


def test_what_lies_outside_or_is_unknown_is_refused(device: Device) -> None:
    at = [device.put(np.zeros(shape, "f4")) for shape in ((M, K), (K, N), (M, N))]
    a, b, d = (matrix(one, ld, F32) for one, ld in zip(at, (M, K, M)))
    assert device.multiply(a, b, d) == b""
    for wrong in (
        matrix(at[0], M + 1, F32),
        matrix(at[0] + 4, M, F32),
        matrix(1, M, F32),
        matrix(at[0], 1 << 60, F32),
    ):
        with pytest.raises(MemsimError, match=r"cublasLtMatmul: A, .* is not within"):
            device.multiply(wrong, b, d)
    with pytest.raises(NotSupported, match="cudaDataType 99"):
        device.multiply(matrix(at[0], M, 99), b, d)
    with pytest.raises(NotSupported, match="negative step"):
        device.multiply(matrix(at[0], -M, F32), b, d)
    with pytest.raises(NotSupported, match="epilogue 1024"):
        device.multiply(a, b, d, epilogue=1024)
