"""Interfaces that the recorder uses: access sites, copies, and chunks of blocks."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from memsim.state.registers import Sum


class SiteLike(Protocol):
    """A place that accesses memory: its number, and its kind of access."""

    @property
    def index(self) -> int: ...

    @property
    def instruction(self) -> Any: ...

    @property
    def op(self) -> str: ...

    @property
    def space(self) -> str: ...

    @property
    def width(self) -> int: ...


class CopySourceLike(Protocol):
    """The other side of a copy: the lanes' addresses there, and the lanes that read."""

    @property
    def address(self) -> int | Sum: ...

    @property
    def active(self) -> Any: ...


class ChunkLike(Protocol):
    """Blocks that run together: their linear numbers [B], and the threads of each, padded to whole warps.

    first: the number of the first of these threads in the block [B, 1]; not 0 if each warp is a row.
    """

    @property
    def blocks(self) -> np.ndarray: ...

    @property
    def threads(self) -> int: ...

    @property
    def first(self) -> np.ndarray: ...
