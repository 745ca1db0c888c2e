"""A dispatcher of the catalogue: a name that stands for one kernel or another, by size.

In: a size. Out: what the kernel gives that it picks. Left out on purpose: anything of its own; a size
that the picked kernel refuses is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memsim.job import Job
from memsim.kernels.spec import Arrays, Family, Size, Spec

if TYPE_CHECKING:
    from memsim.analysis import Analysis
    from memsim.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """`small` where each size that `below` names is less than its limit, else `large`.

    The other fields and the methods are those of `Spec`.
    """

    name: str
    story: str
    article: str
    says: str
    small: Spec
    large: Spec
    below: dict[str, int]

    def __repr__(self) -> str:
        return f"<Dispatcher {self.name}: {self.story}>"

    @property
    def family(self) -> Family:
        """What both kernels compute."""
        return self.small.family

    def pick(self, size: Size = None) -> Spec:
        """The kernel for a size.

        Raises:
            MemsimError: as `Spec.sizes`.
        """
        sizes = self.small.sizes(size)
        is_small = all(sizes[name] < limit for name, limit in self.below.items())
        return self.small if is_small else self.large

    def job(self, size: Size = None, seed: int = 0) -> Job:
        """As `Spec.job`; it launches the kernel that was picked."""
        return self.pick(size).job(size, seed)

    def expected(self, arrays: Mapping[str, np.ndarray]) -> Arrays:
        """As `Spec.expected`."""
        return self.small.expected(arrays)

    def trace(self, size: Size = None, blocks: int | None = None, code: str | None = None) -> Trace:
        """As `Spec.trace`; the trace has the name of the kernel that was picked."""
        return self.pick(size).trace(size, blocks, code)

    def analyze(self, size: Size = None, blocks: int | None = None) -> Analysis:
        """As `Spec.analyze`; the analysis has the name of the kernel that was picked."""
        return self.pick(size).analyze(size, blocks)

    def run(self, size: Size = None, seed: int = 0) -> Arrays:
        """As `Spec.run`."""
        return self.pick(size).run(size, seed)
