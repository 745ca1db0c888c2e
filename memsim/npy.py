"""Reads arrays in numpy's format, checking the header before unpacking.

Arrays of objects, which could run foreign code, are rejected.
"""

from __future__ import annotations

import warnings
from math import prod
from tokenize import TokenError
from typing import IO

import numpy as np

MOST_OF_HEADER = 1 << 13
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


# Errors that numpy raises for an invalid header, besides `ValueError`.
DAMAGED = (SyntaxError, TokenError, TypeError, OverflowError, EOFError, MemoryError, RecursionError)


def read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether it is in Fortran order, and type.

    Raises:
        ValueError: not an array, or one of objects.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about Python syntax in a damaged header
            version = np.lib.format.read_magic(stream)
            if version not in HEADERS:
                raise ValueError(f"format {version} is not supported")
            shape, in_columns, dtype = HEADERS[version](stream, max_header_size=MOST_OF_HEADER)
    except DAMAGED as error:
        raise ValueError(f"its header is damaged: {type(error).__name__}") from None
    if dtype.hasobject or any(extent < 0 for extent in shape):
        raise ValueError("its header is damaged, or it has objects")
    return shape, in_columns, dtype


def read_array(stream: IO[bytes], size: int) -> np.ndarray:
    """The array in a stream of `size` bytes.

    Raises:
        ValueError: not an array, one of objects, or truncated.
    """
    shape, in_columns, dtype = read_header(stream)
    needed = prod(shape) * dtype.itemsize
    if needed > size:
        raise ValueError("it is truncated")
    content = stream.read(needed)
    if len(content) != needed:
        raise ValueError("it is truncated")
    flat = np.frombuffer(content, dtype) if needed else np.zeros(prod(shape), dtype)
    return flat.reshape(shape[::-1]).T if in_columns else flat.reshape(shape)
