"""memsim inside a browser, by Pyodide: replies to the page's worker.

numpy's own integers have 32 bits there. Answers and reports of traces are counted with types that are written
down; the emulator is not tried, so that saved launches are executed on the user's machine only.
"""

from __future__ import annotations

import sys
from typing import Any, Protocol

import numpy as np

from memsim.play.replies import reply

if sys.platform == "emscripten":
    _repeat = np.repeat

    def _repeat_by_any(array: Any, repeats: Any, axis: int | None = None) -> Any:
        return _repeat(array, np.asarray(repeats).astype(np.intp), axis)

    #: numpy takes no counts that are wider than an address.
    np.repeat = _repeat_by_any


class JsBytes(Protocol):
    """An array of bytes of JavaScript."""

    def to_bytes(self) -> bytes:
        """A copy."""


def reply_to_page(asked: str, body: JsBytes) -> tuple[bool, str]:
    """What `reply` says, as text."""
    good, content = reply(asked, body.to_bytes())
    return good, content.decode()
