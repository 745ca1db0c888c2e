"""Arrays in numpy's own format, looked at before they are unpacked.

In: a stream and how many bytes it has. Out: the array, or a `ValueError`. Left out on purpose: objects, which
would run code of others.
"""

from __future__ import annotations

import warnings
from math import prod
from tokenize import TokenError
from typing import IO

import numpy as np

MOST_OF_HEADER = 1 << 13
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


# What numpy raises of a header that is none, beside `ValueError`.
DAMAGED = (SyntaxError, TokenError, TypeError, OverflowError, EOFError, MemoryError, RecursionError)


def read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether it is in Fortran's order, and type.

    Raises:
        ValueError: it is no array, or one of objects.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the Python that a damaged header is
            version = np.lib.format.read_magic(stream)
            if version not in HEADERS:
                raise ValueError(f"format {version} is not known")
            shape, in_columns, dtype = HEADERS[version](stream, max_header_size=MOST_OF_HEADER)
    except DAMAGED as error:
        raise ValueError(f"its header is damaged: {type(error).__name__}") from None
    if dtype.hasobject or any(extent < 0 for extent in shape):
        raise ValueError("its header is damaged, or it has objects")
    return shape, in_columns, dtype


def read_array(stream: IO[bytes], size: int) -> np.ndarray:
    """The array in a stream of `size` bytes.

    Raises:
        ValueError: it is no array, one of objects, or cut short.
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
