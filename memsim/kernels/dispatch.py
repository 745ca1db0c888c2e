"""A dispatcher of the catalogue: a name for one of several kernels, chosen by size.

A size that the chosen kernel rejects is rejected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from memsim.job import Job
from memsim.kernels.pace import Adding, Pace
from memsim.kernels.spec import PART_UNIT, REFERENCES, Arrays, Family, Size, Spec

if TYPE_CHECKING:
    from memsim.analysis import Analysis
    from memsim.trace.trace import Trace

PARTS = "parts"  # the name of the size by which kernels of a family split K among blocks
DIVIDED = "K"
MOST_PARTS = 64


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """A kernel for sizes below some limits. pace: its time estimate; None: the first that fits is taken."""

    spec: Spec
    below: dict[str, int] = field(default_factory=dict)
    pace: Pace | None = None

    def takes(self, sizes: Mapping[str, int]) -> bool:
        """Whether it is for these sizes, and its kernel accepts them."""
        fits = all(sizes[name] % divisor == 0 for name, divisor in self.spec.requires)
        return fits and all(sizes[name] < limit for name, limit in self.below.items())


@dataclass(frozen=True, slots=True)
class SumOfParts:
    """The kernel that adds the parts, and its time estimate."""

    spec: Spec
    pace: Adding


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """The first choice that accepts a size; of those with a pace, the fastest.

    sum: the kernel that adds the parts of K, and its time estimate; without one, K is not split. The other
    fields and the methods are those of `Spec`.
    """

    name: str
    story: str
    article: str
    says: str
    family: Family
    choices: tuple[KernelChoice, ...]
    sum: SumOfParts | None = None

    def __repr__(self) -> str:
        return f"<Dispatcher {self.name}: {self.story}>"

    def pick(self, size: Size = None) -> Spec:
        """The kernel for a size; for a kernel that splits K, with the number of parts.

        Raises:
            MemsimError: as `Spec.sizes`.
        """
        sizes = self.family.named(size, self.name)
        fitting = [choice for choice in self.choices if choice.takes(sizes)] or [self.choices[-1]]
        offers = [offer for choice in fitting for offer in self._offers(choice, sizes)]
        return min(offers, key=lambda offer: offer[0])[1]

    def _offers(self, choice: KernelChoice, sizes: Mapping[str, int]) -> Iterator[tuple[float, Spec]]:
        """A kernel with every possible split of K, each with its estimated nanoseconds."""
        divides = PARTS in choice.spec.family.sizes
        for parts in range(1, self._most_parts(sizes) + 1) if divides else (1,):
            spec = replace(choice.spec, fixed={PARTS: parts}) if divides else choice.spec
            yield self._nanoseconds(choice, spec, sizes, parts), spec

    def _most_parts(self, sizes: Mapping[str, int]) -> int:
        return min(MOST_PARTS, -(-sizes[DIVIDED] // PART_UNIT)) if self.sum else 1

    def _nanoseconds(self, choice: KernelChoice, spec: Spec, sizes: Mapping[str, int], parts: int) -> float:
        if choice.pace is None:
            return 0.0
        taken = choice.pace.nanoseconds(prod(spec.blocks(sizes)), sizes[DIVIDED] / parts)
        if self.sum is None:
            return taken
        floats = prod(sizes[extent] for shape in self.family.outputs.values() for extent in shape)
        return taken + self.sum.pace.nanoseconds(parts, floats)

    def adding(self, size: Size = None) -> Spec | None:
        """The kernel that adds the parts if the chosen kernel splits K; else None."""
        parts = self.pick(size).fixed.get(PARTS, 1)
        return replace(self.sum.spec, fixed={PARTS: parts}) if self.sum is not None and parts > 1 else None

    def job(self, size: Size = None, seed: int = 0) -> Job:
        """As `Spec.job`, for the chosen kernel."""
        return self.pick(size).job(size, seed)

    def expected(self, arrays: Mapping[str, np.ndarray]) -> Arrays:
        """As `Spec.expected`."""
        return REFERENCES[self.family.name](arrays)

    def trace(self, size: Size = None, blocks: int | None = None, code: str | None = None) -> Trace:
        """As `Spec.trace`; the trace has the name of the chosen kernel."""
        return self.pick(size).trace(size, blocks, code)

    def analyze(self, size: Size = None, blocks: int | None = None) -> Analysis:
        """As `Spec.analyze`; the analysis has the name of the chosen kernel."""
        return self.pick(size).analyze(size, blocks)

    def run(self, size: Size = None, seed: int = 0) -> Arrays:
        """As `Spec.run`; parts are added."""
        sizes = self.family.named(size, self.name)
        arrays = self.pick(size).run(size, seed)
        adding = self.adding(size)
        if adding is not None:
            (summed,), (output,) = adding.family.inputs, self.family.outputs
            asked = [sizes[name] for name in adding.family.sizes if name not in adding.fixed]
            arrays |= {output: adding.run(asked, given={summed: arrays[output]})[output]}
        return {
            name: arrays[name].reshape([sizes[extent] for extent in shape])
            for name, shape in self.family.arrays.items()
        }
