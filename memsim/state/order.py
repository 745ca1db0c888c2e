"""Minimum and maximum of floats, and saturation, as in IEEE 754 and CUDA."""

from __future__ import annotations

import numpy as np

from memsim.state.by_mask import select
from memsim.state.rounding import Array


def lower(a: Array, b: Array) -> Array:
    """IEEE minimumNumber: the number if the other is NaN; -0 below +0."""
    return select((a < b) | np.isnan(b) | ((a == b) & np.signbit(a)), a, b)


def higher(a: Array, b: Array) -> Array:
    """IEEE maximumNumber: the number if the other is NaN; +0 above -0."""
    return select((a > b) | np.isnan(b) | ((a == b) & np.signbit(b)), a, b)


def saturated(array: Array) -> Array:
    """Clamped to [0, 1]; NaN and -0 become +0."""
    return np.where(array > 0, np.minimum(array, 1), 0).astype(array.dtype)
