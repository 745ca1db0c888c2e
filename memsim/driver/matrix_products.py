"""Products of matrices that a program asks cuBLAS or cuBLASLt for: computed by numpy on the device's memory.

They stand for kernels that memsim does not have, so nothing of them is modelled: no counts, no time. Sums are
made in the type in which the library makes them, in numpy's order, which is not the library's: last bits
differ. TF32 and the other fast ways are not imitated.
"""

from __future__ import annotations

import struct
from itertools import islice
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from numpy.lib.stride_tricks import as_strided

from memsim.driver.program_memory import ProgramMemory
from memsim.errors import MemsimError

#: cudaDataType, in library_types.h.
TYPES: dict[int, np.dtype[np.generic]] = {
    0: np.dtype(np.float32),
    1: np.dtype(np.float64),
    2: np.dtype(np.float16),
    3: np.dtype(np.int8),
    4: np.dtype(np.complex64),
    5: np.dtype(np.complex128),
    10: np.dtype(np.int32),
    14: np.dtype(ml_dtypes.bfloat16),
    28: np.dtype(ml_dtypes.float8_e4m3fn),
    29: np.dtype(ml_dtypes.float8_e5m2),
}
#: cublasLtEpilogue_t: its bits. The derivatives have AUX, and take what it holds.
RELU, BIAS, DRELU, BGRAD, GELU, DGELU, AUX, BGRADA, BGRADB = 2, 4, 8, 16, 32, 64, 128, 256, 512
#: cublasOperation_t: conjugated, too.
CONJUGATED = 2
#: cublasLtMatmulMatrixScale_t: one factor of all, and one of each row.
SCALAR, OUTER_VECTOR = 0, 3
MOST_BATCHES = 1 << 20

_MATRIX = "Qqq4I"
PRODUCT = struct.Struct("<32s3q2I16s16s" + 4 * _MATRIX + "4I2Q4Q3q4I")


class NotSupported(MemsimError):
    """The library can do it, and memsim cannot."""


class MatrixOperand(NamedTuple):
    """As `struct matrix` of native/matrix.h."""

    at: int
    ld: int
    stride: int
    type: int
    op: int
    is_row_major: int
    is_indirect: int


class MatrixProduct(NamedTuple):
    """As `struct product` of native/matrix.h."""

    name: str
    m: int
    n: int
    k: int
    batches: int
    scale_type: int
    alpha: bytes
    beta: bytes
    a: MatrixOperand
    b: MatrixOperand
    c: MatrixOperand
    d: MatrixOperand
    epilogue: int
    bias_type: int
    aux_type: int
    is_alpha_vector: int
    bias: int
    aux: int
    scales: tuple[int, ...]
    bias_stride: int
    aux_ld: int
    aux_stride: int
    scale_modes: tuple[int, ...]


def read_product(data: bytes) -> MatrixProduct:
    """The question of a program.

    Raises:
        struct.error: it has another size.
    """
    fields = iter(PRODUCT.unpack(data))
    read: list[Any] = [next(fields).partition(b"\0")[0].decode(errors="replace"), *islice(fields, 7)]
    read += [MatrixOperand(*islice(fields, 7)) for _ in range(4)]
    read += islice(fields, 6)
    read += [tuple(islice(fields, 4)), *islice(fields, 3), tuple(fields)]
    return MatrixProduct(*read)


def multiply(product: MatrixProduct, memory: ProgramMemory) -> bytes:
    """Computes it in place; returns the product if the program wants it itself.

    Raises:
        MemsimError: an operand is not in an allocation. NotSupported: of what memsim cannot do.
    """
    known = BIAS | RELU | GELU | AUX | DRELU | DGELU | BGRAD | BGRADA | BGRADB | 1
    if product.epilogue & ~known or product.batches > MOST_BATCHES:
        raise NotSupported(f"{product.name}: epilogue {product.epilogue} of {product.batches:,} products")
    return b"".join(_Multiplication(product, memory, i).run() for i in range(product.batches))


class _Multiplication:
    """One product of a batch."""

    def __init__(self, product: MatrixProduct, memory: ProgramMemory, number: int) -> None:
        self.product, self.memory, self.number = product, memory, number
        scale = _type(product.scale_type, product.name)
        narrow = scale == np.float16
        self.type = np.dtype(np.float32) if narrow else scale
        self.scalar = scale

    def run(self) -> bytes:
        """Computes it."""
        product, (m, n, k) = self.product, self.product[1:4]
        alpha, beta = self._alpha(), np.frombuffer(product.beta, self.scalar, 1)[0].astype(self.type)
        a, b = self._operand(product.a, (m, k), "A"), self._operand(product.b, (k, n), "B")
        wide = np.dtype(np.int64) if self.type.kind == "i" else self.type
        found = a.astype(wide) @ b.astype(wide)
        found = alpha * (found * self._scale(0, (m, 1)) * self._scale(1, (1, n))).astype(self.type)
        if beta:
            c = self._operand(product.c, (m, n), "C")
            found = found + beta * (c.astype(self.type) * self._scale(2, (m, 1)))
        if product.d.at == 0:
            return bytes(found.astype(_type(product.d.type, product.name)).data)
        found = self._epilogue(found.astype(self.type), a, b)
        stored = self._view(product.d, (m, n), "D")
        with np.errstate(over="ignore"):
            stored[...] = (found * self._scale(3, (m, 1))).astype(stored.dtype)
        return b""

    def _epilogue(self, found: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """What cublasLtEpilogue_t asks for."""
        kind, m, n = self.product.epilogue, self.product.m, self.product.n
        if kind & BIAS:
            found = found + self._bias(m)[:, None]
        if kind & (DRELU | DGELU):
            kept = (
                np.unpackbits(self._bits(), axis=0, bitorder="little")[:m] if kind & DRELU else self._sums()
            )
            found = found * (kept if kind & DRELU else _gelu_slope(kept.astype(self.type)))
        elif kind & RELU and kind & AUX:
            self._bits()[...] = np.packbits(found > 0, axis=0, bitorder="little")
        elif kind & AUX:
            self._sums()[...] = found
        if kind & RELU:
            found = np.maximum(found, 0)
        if kind & GELU:
            found = _gelu(found)
        if kind & BGRAD:
            self._bias(m)[...] = found.sum(1)
        if kind & BGRADA:
            self._bias(m)[...] = a.astype(self.type).sum(1)
        if kind & BGRADB:
            self._bias(n)[...] = b.astype(self.type).sum(0)
        return found

    def _alpha(self) -> Any:
        product = self.product
        if not product.is_alpha_vector:
            return np.frombuffer(product.alpha, self.scalar, 1)[0].astype(self.type)
        at = int.from_bytes(product.alpha[:8], "little")
        return self._at(at, self.scalar, (product.m, 1), (1, 1), "alpha").astype(self.type)

    def _operand(self, matrix: MatrixOperand, shape: tuple[int, int], what: str) -> np.ndarray:
        """op(A)."""
        stored = self._view(matrix, shape[::-1] if matrix.op else shape, what)
        turned = stored.T if matrix.op else stored
        return turned.conj() if matrix.op == CONJUGATED and turned.dtype.kind == "c" else turned

    def _scale(self, which: int, shape: tuple[int, int]) -> Any:
        """The factor of A, B, C or D."""
        product = self.product
        at, mode = product.scales[which], product.scale_modes[which]
        if not at:
            return self.type.type(1)
        if mode not in (SCALAR, OUTER_VECTOR):
            raise NotSupported(f"{product.name}: scales of blocks (mode {mode})")
        whole = shape if mode == OUTER_VECTOR else (1, 1)
        return self._at(at, np.dtype(np.float32), whole, (1, 1), "scale").astype(self.type)

    def _bias(self, size: int) -> np.ndarray:
        product = self.product
        kind = _type(product.bias_type, product.name)
        at = product.bias + self.number * product.bias_stride * kind.itemsize
        return self._at(at, kind, (size, 1), (1, 1), "bias")[:, 0]

    def _sums(self) -> np.ndarray:
        """What GELU keeps for its derivative: what it was applied to."""
        product = self.product
        kind = _type(product.aux_type, product.name)
        at = product.aux + self.number * product.aux_stride * kind.itemsize
        return self._at(at, kind, (product.m, product.n), (1, product.aux_ld), "aux")

    def _bits(self) -> np.ndarray:
        """What ReLU keeps: a bit of each element, uint8 [ceil(m / 8), n]."""
        product = self.product
        at = product.aux + self.number * product.aux_stride // 8
        shape = -(-product.m // 8), product.n
        return self._at(at, np.dtype(np.uint8), shape, (1, product.aux_ld // 8), "aux")

    def _view(self, matrix: MatrixOperand, shape: tuple[int, int], what: str) -> np.ndarray:
        """A matrix as it is stored, in place."""
        kind = _type(matrix.type, self.product.name)
        if matrix.is_indirect:
            where = self._at(matrix.at + 8 * self.number, np.dtype(np.uint64), (1, 1), (1, 1), what)
            at = int(where[0, 0])
        else:
            at = matrix.at + self.number * matrix.stride * kind.itemsize
        steps = (matrix.ld, 1) if matrix.is_row_major else (1, matrix.ld)
        return self._at(at, kind, shape, steps, what)

    def _at(
        self,
        at: int,
        kind: np.dtype[np.generic],
        shape: tuple[int, int],
        steps: tuple[int, int],
        what: str,
    ) -> np.ndarray:
        """Elements in an allocation, `steps` of them apart."""
        if 0 in shape:
            return np.zeros(shape, kind)
        if min(steps) < 0:
            raise NotSupported(f"{self.product.name}: {what} with a negative step")
        size = (1 + sum((count - 1) * step for count, step in zip(shape, steps))) * kind.itemsize
        buffer = self.memory.find(at)
        if buffer is None or at + size > buffer.end or at % kind.itemsize:
            where = (
                "no allocation" if buffer is None else f"{buffer.name} ({buffer.end - buffer.start:,} bytes)"
            )
            raise MemsimError(
                f"{self.product.name}: {what}, {size:,} bytes at {at:#x}, is not within {where}"
            )
        content = self.memory.view(at, size).view(kind)
        return as_strided(content, shape, tuple(step * kind.itemsize for step in steps))


def _type(number: int, name: str) -> np.dtype[np.generic]:
    found = TYPES.get(number)
    if found is None:
        raise NotSupported(f"{name}: numbers of cudaDataType {number}")
    return found


def _gelu(x: np.ndarray) -> np.ndarray:
    """GELU by tanh, as cuBLASLt's."""
    found: np.ndarray = x * 0.5 * (1 + np.tanh(_inner(x)))
    return found


def _gelu_slope(x: np.ndarray) -> np.ndarray:
    tanh = np.tanh(_inner(x))
    found: np.ndarray = 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh**2) * (
        np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * x**2)
    )
    return found


def _inner(x: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    return found
