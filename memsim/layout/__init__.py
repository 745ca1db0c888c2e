"""Layouts as values: functions from coordinates to element offsets, from shapes and strides or CuTe's
notation.
"""

from memsim.layout.layout import Layout
from memsim.layout.swizzle import Swizzle

__all__ = ["Layout", "Swizzle"]
