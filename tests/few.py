"""Of many alike, those that run each time; the others are marked `slow`, and run with `-m slow`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest

#: Kernels of the catalogue with all that the others have: tiles that are padded, permuted and plain, loops
#: with two buffers, textures, cp.async, ragged edges.
KERNELS = ("kernel_v4", "transpose_naive", "guide_v11", "sgemm_128x128x8_texld", "sgemm_tuned")


def few(
    values: Iterable[Any], kept: Collection[str] = KERNELS, name: Callable[[Any], str] = str
) -> list[Any]:
    """Parameters by name; those whose name is not among `kept` are slow."""
    named = [(name(value), value) for value in values]
    assert {*kept} & {known for known, _ in named}, "nothing would run"
    return [
        pytest.param(value, id=known, marks=() if known in kept else pytest.mark.slow)
        for known, value in named
    ]
