"""memsim inside a browser, by Pyodide: replies to the page's worker.

numpy makes integers of 32 bits there where no type is asked for; memsim is written for 64. Sources are not
read, because there is no tree-sitter: a saved launch has the names of its arguments.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Protocol

import numpy as np

from memsim.play.replies import reply

#: What says a type to numpy.
TYPED = (np.ndarray, np.generic, np.dtype, type, str)


def _in_64_bits(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """A function of numpy's that makes 64-bit integers of Python's, as it does elsewhere."""

    @wraps(function)
    def call(*given: object, **more: object) -> np.ndarray:
        made = function(*given, **more)
        typed = "dtype" in more or any(isinstance(one, TYPED) for one in given)
        return made if typed or made.dtype != np.intp else function(*given, **more, dtype=np.int64)

    return call


def _with_addresses(function: Callable[..., object]) -> Callable[..., object]:
    """One whose second argument are counts or places, which are as wide as an address."""

    @wraps(function)
    def call(array: object, places: object, *given: object, **more: object) -> object:
        return function(array, np.asarray(places).astype(np.intp), *given, **more)

    return call


if sys.platform == "emscripten":
    np.arange, np.full, np.array = map(_in_64_bits, (np.arange, np.full, np.array))
    np.repeat = _with_addresses(np.repeat)


class JsBytes(Protocol):
    """An array of bytes of JavaScript."""

    def to_bytes(self) -> bytes:
        """A copy."""


def reply_to_page(asked: str, body: JsBytes) -> tuple[bool, str]:
    """What `reply` says, as text."""
    good, content = reply(asked, body.to_bytes())
    return good, content.decode()
