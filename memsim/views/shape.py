"""Rows and columns of a shared array, as the source declares them: `tile[TILE][TILE + PAD]`."""

from __future__ import annotations

from memsim.source.declared import ArrayShape, array_shape, template_constants
from memsim.trace.trace import Trace


def declared_shape(trace: Trace, name: str, size: int) -> ArrayShape | None:
    """The shape of the shared array `name` of `size` bytes; None where no source file declares it so.

    Extents may be constants of the source, and of a template the parameters of the instance that is launched.
    """
    for text in trace.sources.values():
        shape = array_shape(text, name, size, template_constants(text, trace.kernel))
        if shape is not None:
            return shape
    return None
