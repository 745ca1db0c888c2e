"""Numbers as registers and memory hold them: of 64 bits in two registers, the lower word first; packed in a
word; small floats as bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memsim.argument_types import dtype_of
from memsim.state.partial import Value
from memsim.state.parts import contiguous, noted_as_one
from memsim.state.registers import as_unsigned, fit, from_array, ints, plus, times, to_array
from memsim.state.rounding import Array, narrow, to_bf16
from memsim.state.sums import Int, shift_right, u64


def join_words(low: Int, high: Int) -> Int:
    """Two signed 32-bit words as one 64-bit integer."""
    return plus(as_unsigned(low, 32), times(high, 1 << 32))


def split_words(value: Int) -> tuple[Int, Int]:
    """A 64-bit integer (modulo 2**64) as two words."""
    value = fit(value, 64)
    return fit(value, 32), fit(shift_right(value, 32, True, 64), 32)


def to_double(value: Int) -> np.ndarray:
    """64 bits read as a float64."""
    return contiguous(to_array(value)).view(np.float64)


def double_of(low: Value, high: Value) -> np.ndarray:
    """The words of two registers read as a float64.

    Raises:
        Poisoned: one of them is unknown.
    """
    if (
        isinstance(low, np.ndarray)
        and isinstance(high, np.ndarray)
        and low.shape == high.shape
        and low.itemsize == high.itemsize == 4
    ):
        words = np.empty((*low.shape, 2), np.uint32)
        words[..., 0], words[..., 1] = low.view(np.uint32), high.view(np.uint32)
        return words.view(np.float64)[..., 0]
    return to_double(join_words(ints(low), ints(high)))


def from_double(array: np.ndarray) -> tuple[Value, Value]:
    """float64 as two words; if all threads differ, they are most often read as floats."""
    array = contiguous(array).astype(np.float64, copy=False)
    if isinstance(array, np.ndarray) and min(array.shape) > 1:
        words = array.view(np.float32)
        return words[:, ::2].copy(), words[:, 1::2].copy()
    return split_words(from_array(array.view(np.int64)))


# --- packed in a word ------------------------------------------------------------------------


def readings(x: Int, y: Int, signed: bool, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Two integers as arrays that numpy compares and divides as the type requires."""
    if bits == 64 and not signed:
        return u64(to_array(x)), u64(to_array(y))
    p, q = (x, y) if signed else (as_unsigned(x, bits), as_unsigned(y, bits))
    return to_array(p), to_array(q)


def fields(value: Int, signed: bool, size: int) -> list[np.ndarray]:
    """The numbers packed in a word, lowest first."""
    array = to_array(value)
    picked = [(array >> shift) & ((1 << size) - 1) for shift in range(0, 32, size)]
    sign = 1 << (size - 1)
    return [(field ^ sign) - sign if signed else field for field in picked]


def pack_fields(numbers: Sequence[np.ndarray], size: int) -> Int:
    """The opposite: numbers, modulo 2**size, in one word."""
    total = np.zeros((1, 1), np.int64)
    for place, number in enumerate(numbers):
        total = total | (number & ((1 << size) - 1)) << size * place
    return fit(from_array(total), 32)


# --- floats as bits --------------------------------------------------------------------------

_DTYPES = {
    **{"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64", "TF32": "float32"},
    **{"E4M3": "float8_e4m3fn", "E5M2": "float8_e5m2", "S8": "int8", "U8": "uint8", "S32": "int32"},
}
#: The largest numbers of 8-bit floats.
_LARGEST = {"E4M3": 448.0, "E5M2": 57344.0}
#: The NaN that float32 operations return.
NAN = np.uint32(0x7FFFFFFF).view(np.float32)


def bits_of_type(name: str) -> int:
    """Bits of an element as it lies in a register."""
    return 8 if name in _LARGEST else int(name.lstrip("BFSTU"))


def numbers_of(content: np.ndarray, name: str) -> Array:
    """Elements stored contiguously in the last dimension, uint8 or wider integers, as float64."""
    found = np.ascontiguousarray(content).view(dtype_of(_DTYPES[name]))
    if name == "TF32":
        found = without_low_bits(found.view(np.uint32))
    return np.asarray(found, np.float64)


def without_low_bits(words: np.ndarray) -> Array:
    """TF32 numbers, as float32, of words whose low bits do not count."""
    found: Array = (words & np.uint32(0xFFFFE000)).view(np.float32)
    return found


def of_bits(bits: np.ndarray, bf16: bool) -> Array:
    """The float16 or bfloat16 numbers of these bits, integers, as float32."""
    if bf16:
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return bits.astype(np.uint16).view(np.float16).astype(np.float32)


@noted_as_one
def half_bits(value: Array, mode: str = "rn") -> Array:
    """float64 rounded to float16, as int64 bits; any NaN is 0x7fff."""
    bits = narrow(value, np.float16, mode).view(np.uint16).astype(np.int64)
    return np.where(np.isnan(value), 0x7FFF, bits)


def to_bits(value: Array, bf16: bool, mode: str = "rn") -> Array:
    """float64 rounded to float16 or bfloat16, as int64 bits; any NaN is 0x7fff."""
    return to_bf16(value, mode) if bf16 else half_bits(value, mode)


def to_byte(value: Array, name: str) -> Array:
    """Codes of float32 numbers as an 8-bit float, rounded to nearest even and saturated; any NaN is 0x7f."""
    size = _LARGEST[name]
    codes = np.clip(np.nan_to_num(value, posinf=size, neginf=-size), -size, size).astype(
        dtype_of(_DTYPES[name])
    )
    return np.where(np.isnan(value), 0x7F, codes.view(np.uint8).astype(np.int64))


def to_tf32(value: Array, mode: str) -> Array:
    """float32 numbers rounded to TF32."""
    bits = value.astype(np.float32).view(np.uint32).astype(np.int64)
    carry = 0xFFF + (bits >> 13 & 1) if mode == "rn" else 0
    rounded = np.where(np.isfinite(value), bits + carry, np.where(np.isnan(value), 0x7FFFFFFF, bits))
    return (rounded & ~0x1FFF).astype(np.uint32).view(np.float32)
