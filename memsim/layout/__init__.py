"""Layouts as values: where each element of an array lies.

In: shapes and strides, or a text in CuTe's notation. Out: element offsets for coordinates. Left out on
purpose: bytes, banks, and what is stored.
"""

from memsim.layout.layout import Layout
from memsim.layout.swizzle import Swizzle

__all__ = ["Layout", "Swizzle"]
