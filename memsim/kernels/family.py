"""What a group of kernels computes: its sizes and arrays, and the reference for its results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from operator import index

import numpy as np

from memsim.errors import MemsimError

Arrays = dict[str, np.ndarray]
Size = str | Sequence[int] | None  # "512,512,256", (512, 512, 256), or None for the default

PART_UNIT = 32  # lines: K is split into parts in these units; the first need not be whole


def _product_of_parts(arrays: Mapping[str, np.ndarray]) -> Arrays:
    """A times B over each part of K. The first parts have one unit more if K does not divide evenly."""
    a, b = (arrays[name].astype(np.float64) for name in "AB")
    (parts, *_), lines = arrays["C"].shape, a.shape[1]
    units = -(-lines // PART_UNIT)
    cuts = [part * (units // parts) + min(part, units % parts) for part in range(parts + 1)]
    starts = [max(0, cut * PART_UNIT - (units * PART_UNIT - lines)) for cut in cuts]
    return {"C": np.stack([a[:, i:j] @ b[i:j] for i, j in pairwise(starts)])}


# References of the families: from all arrays by name to the outputs by name, in float64.
REFERENCES: dict[str, Callable[[Mapping[str, np.ndarray]], Arrays]] = {
    "sgemm": lambda arrays: {"C": arrays["A"].astype(np.float64) @ arrays["B"].astype(np.float64)},
    "sgemm_parts": _product_of_parts,
    "sum_of_parts": lambda arrays: {"C": arrays["P"].astype(np.float64).sum(axis=0)},
    "transpose": lambda arrays: {"C": arrays["A"].T.astype(np.float64)},
}


@dataclass(frozen=True, slots=True)
class Family:
    """What a group of kernels computes: sizes with defaults, and arrays with their shapes by
    names of sizes.
    """

    name: str
    sizes: dict[str, int]
    inputs: dict[str, tuple[str, ...]]
    outputs: dict[str, tuple[str, ...]]

    @property
    def arrays(self) -> dict[str, tuple[str, ...]]:
        """All arrays, inputs first."""
        return {**self.inputs, **self.outputs}

    def terms(self, sizes: Mapping[str, int]) -> int:
        """The number of terms that an element of the outputs is a sum of; 0 if it is only moved.

        The axes that inputs have and outputs do not are summed over.
        """
        kept = {axis for axes in self.outputs.values() for axis in axes}
        summed = {axis for axes in self.inputs.values() for axis in axes} - kept
        return prod(sizes[axis] for axis in summed) if summed else 0

    def named(self, size: Size, kernel: str, fixed: Collection[str] = ()) -> dict[str, int]:
        """The sizes by name, without the fixed ones; `kernel` is the name in errors.

        Raises:
            MemsimError: not as many positive integers as needed.
        """
        defaults = {name: value for name, value in self.sizes.items() if name not in fixed}
        if size is None:
            return defaults
        given = size.split(",") if isinstance(size, str) else size
        try:
            values = [int(value) if isinstance(value, str) else index(value) for value in given]
        except (TypeError, ValueError):
            values = []
        if len(values) != len(defaults) or min(values) < 1:
            shown = ",".join(map(str, given)) if isinstance(given, (list, tuple)) else given
            raise MemsimError(
                f"{kernel} takes a size {','.join(defaults)} of {len(defaults)} positive integers, "
                f"not {shown!r}",
                hint=f"the default is {','.join(map(str, defaults.values()))}",
            )
        return dict(zip(defaults, values))
