"""What the recorder needs to know of what it hears of: access sites, copies, blocks that run at once."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from memsim.state.registers import Sum


class SiteLike(Protocol):
    """A place that accesses memory: its number, and what an access is."""

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
    """The other end of a copy: the lanes' addresses there, and the lanes that read."""

    @property
    def address(self) -> int | Sum: ...

    @property
    def active(self) -> Any: ...


class ChunkLike(Protocol):
    """Blocks that run at once: their linear numbers [B], and the threads of each, padded to whole warps.

    first: the number of the first of these threads in the block [B, 1]; not 0 where each warp is a row.
    """

    @property
    def blocks(self) -> np.ndarray: ...

    @property
    def threads(self) -> int: ...

    @property
    def first(self) -> np.ndarray: ...
