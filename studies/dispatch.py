"""A dispatcher: a name for several kernels of the catalogue, one of which is chosen by size.

`dispatchers.toml` lists them, kernels by their names.

`pick` is the kernel for all of a product. Two launches can be faster: `pieces` divides the rows of C where
the blocks of one kernel would leave the last wave half empty. A size that the chosen kernel rejects is
rejected.

Time estimates choose. Their constants were measured on one chip and serve this choice only; lower bounds
are in `memsim.bound`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memsim.files import parse_toml
from memsim.kernels import catalog
from memsim.kernels.spec import PART_UNIT, REFERENCES, Arrays, Family, Size, Spec

if TYPE_CHECKING:
    import numpy as np

    from memsim.job import Job

MULTIPROCESSORS = 132  # of the chip on which the constants were measured, an H200


@dataclass(frozen=True, slots=True)
class Pace:
    """The time estimate of a kernel whose blocks all do the same.

    start: nanoseconds of a block besides its lines. line: nanoseconds per line of K if each multiprocessor
    has one block, two, ... up to as many as fit.
    """

    start: float
    line: tuple[float, ...]

    @property
    def wave(self) -> int:
        """As many blocks as fit the chip at a time."""
        return MULTIPROCESSORS * len(self.line)

    def nanoseconds(self, blocks: int, lines: int) -> float:
        """Of all blocks, in as many waves as needed; the last may not fill the multiprocessors."""
        waves, rest = divmod(-(-blocks // MULTIPROCESSORS), len(self.line))
        full = waves * (self.start + lines * self.line[-1])
        return full + (self.start + lines * self.line[rest - 1] if rest else 0.0)


@dataclass(frozen=True, slots=True)
class Adding:
    """The time estimate of adding parts: nanoseconds per launch, and per float read or written."""

    start: float
    each: float

    def nanoseconds(self, parts: int, floats: int) -> float:
        """For so many parts of so many floats; zero for a single part."""
        return self.start + (2 * parts + 1) * floats * self.each if parts > 1 else 0.0


PARTS = "parts"  # the name of the size by which kernels of a family split K among blocks
DIVIDED = "K"
ROWS = "M"  # what `Dispatcher.pieces` divides
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

    @property
    def divides(self) -> bool:
        """Whether its kernel can split K."""
        return PARTS in self.spec.family.sizes

    def blocks(self, sizes: Mapping[str, int], parts: int = 1) -> int:
        """The number of blocks of a launch."""
        return prod(self.spec.blocks({**sizes, PARTS: parts}))

    def rows_of_complete_waves(self, sizes: Mapping[str, int]) -> int | None:
        """As many rows of C as have blocks for complete waves only; None if these are all rows, or none."""
        tiles = dict(self.spec.grid)
        if self.pace is None or ROWS not in tiles:
            return None
        across = self.blocks({**sizes, ROWS: 1})
        waves = self.blocks(sizes) // self.pace.wave
        rows = waves * self.pace.wave // across * tiles[ROWS]
        return rows if 0 < rows < sizes[ROWS] else None


@dataclass(frozen=True, slots=True)
class SumOfParts:
    """The kernel that adds the parts, and its time estimate."""

    spec: Spec
    pace: Adding


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of the outputs, from `first` on, that one kernel makes. size: of its problem. adding: the kernel
    that adds its parts, if it splits K.
    """

    first: int
    size: tuple[int, ...]
    spec: Spec
    adding: Spec | None

    @property
    def parts(self) -> int:
        """Among how many blocks K is divided."""
        return self.spec.fixed.get(PARTS, 1)

    @property
    def launches(self) -> list[tuple[Spec, tuple[int, ...]]]:
        """Its kernels, with their sizes."""
        adding = [(self.adding, self.size[:2])] if self.adding is not None else []
        return [(self.spec, self.size), *adding]


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """The first choice that accepts a size; of those with a pace, the fastest.

    sum: the kernel that adds the parts of K, and its time estimate; without one, K is not split. launch:
    nanoseconds of a launch besides its waves of blocks.
    """

    name: str
    story: str
    family: Family
    choices: tuple[KernelChoice, ...]
    sum: SumOfParts | None = None
    launch: float = 0.0

    def __repr__(self) -> str:
        return f"<Dispatcher {self.name}: {self.story}>"

    def pick(self, size: Size = None) -> Spec:
        """The kernel for a size; for a kernel that splits K, with the number of parts.

        Raises:
            MemsimError: as `Spec.sizes`.
        """
        return self._piece(self.family.named(size, self.name), 0).spec

    def pieces(self, size: Size = None) -> tuple[Piece, ...]:
        """What is launched for a size: one kernel, or one for the rows of C whose blocks fill complete waves,
        and another for the other rows, if that is faster by their estimates.

        Raises:
            MemsimError: as `Spec.sizes`.
        """
        sizes = self.family.named(size, self.name)
        best, cut = self._best(sizes)[0], 0
        for choice in self._fitting(sizes):
            rows = choice.rows_of_complete_waves(sizes)
            if rows is None:
                continue
            first = self._nanoseconds(choice, {**sizes, ROWS: rows}, 1)
            if first < best:
                both = first + self._best({**sizes, ROWS: sizes[ROWS] - rows})[0]
                best, cut = min((best, cut), (both, rows))
        if not cut:
            return (self._piece(sizes, 0),)
        return (self._piece({**sizes, ROWS: cut}, 0), self._piece({**sizes, ROWS: sizes[ROWS] - cut}, cut))

    def alternatives(self, size: Size = None) -> tuple[Piece, ...]:
        """Each kernel that could be launched for all of a size, K divided as it would be for that kernel.

        Raises:
            MemsimError: as `Spec.sizes`.
        """
        sizes = self.family.named(size, self.name)
        return tuple(replace(self, choices=(one,))._piece(sizes, 0) for one in self._fitting(sizes))

    def _piece(self, sizes: Mapping[str, int], first: int) -> Piece:
        _, parts, choice = self._best(sizes)
        spec = choice.spec
        if choice.divides:
            spec = replace(spec, fixed={PARTS: parts})
        adding = replace(self.sum.spec, fixed={PARTS: parts}) if self.sum is not None and parts > 1 else None
        return Piece(first, tuple(sizes.values()), spec, adding)

    def _fitting(self, sizes: Mapping[str, int]) -> list[KernelChoice]:
        return [choice for choice in self.choices if choice.takes(sizes)] or [self.choices[-1]]

    def _best(self, sizes: Mapping[str, int]) -> tuple[float, int, KernelChoice]:
        """Estimated nanoseconds of the fastest kernel, with its parts of K; the first of equals."""
        offers = (offer for choice in self._fitting(sizes) for offer in self._offers(choice, sizes))
        return min(offers, key=lambda offer: offer[0])

    def _offers(
        self, choice: KernelChoice, sizes: Mapping[str, int]
    ) -> Iterator[tuple[float, int, KernelChoice]]:
        """Estimated nanoseconds of a kernel for every possible number of parts of K."""
        most = min(MOST_PARTS, -(-sizes[DIVIDED] // PART_UNIT)) if self.sum and choice.divides else 1
        for parts in range(1, most + 1):
            yield self._nanoseconds(choice, sizes, parts), parts, choice

    def _nanoseconds(self, choice: KernelChoice, sizes: Mapping[str, int], parts: int) -> float:
        if choice.pace is None:
            return 0.0
        units = -(-sizes[DIVIDED] // PART_UNIT)
        lines = min(sizes[DIVIDED], -(-units // parts) * PART_UNIT)  # of the first part, which has most
        taken = self.launch + choice.pace.nanoseconds(choice.blocks(sizes, parts), lines)
        if self.sum is None:
            return taken
        floats = prod(sizes[extent] for shape in self.family.outputs.values() for extent in shape)
        return taken + self.sum.pace.nanoseconds(parts, floats)

    def job(self, size: Size = None, seed: int = 0) -> Job:
        """As `Spec.job`, for the chosen kernel."""
        return self.pick(size).job(size, seed)

    def expected(self, arrays: Mapping[str, np.ndarray]) -> Arrays:
        """As `Spec.expected`."""
        return REFERENCES[self.family.name](arrays)

    def run(self, size: Size = None, seed: int = 0) -> Arrays:
        """As `Spec.run`; parts are added."""
        from numpy import empty

        sizes = self.family.named(size, self.name)
        (output,) = self.family.outputs
        given = self._inputs(size, seed)
        result = empty([sizes[extent] for extent in self.family.outputs[output]], "float32")
        for piece in self.pieces(size):
            rows = slice(piece.first, piece.first + piece.size[0])
            arrays = {
                name: array[rows] if self.family.inputs[name][0] == ROWS else array
                for name, array in given.items()
            }
            made = piece.spec.run(piece.size, given=arrays)[output]
            if piece.adding is not None:
                (summed,) = piece.adding.family.inputs
                made = piece.adding.run(piece.size[:2], given={summed: made})[output]
            result[rows] = made.reshape(result[rows].shape)
        return {**given, output: result}

    def _inputs(self, size: Size, seed: int) -> Arrays:
        """Random inputs by name."""
        spec = self.pick(size)
        arguments = dict(zip(spec.arguments, spec.job(size, seed).args, strict=True))
        return {name: arguments[name].make() for name in self.family.inputs}


@cache
def dispatchers() -> Mapping[str, Dispatcher]:
    """All dispatchers, by name."""
    tables = parse_toml(Path(__file__).with_name("dispatchers.toml").read_text("utf-8"))
    return {name: _dispatcher(name, table) for name, table in tables.items()}


def entry_of(name: str) -> Spec | Dispatcher:
    """The dispatcher of a name, or else the kernel of the catalogue.

    Raises:
        MemsimError: there is neither.
    """
    return dispatchers().get(name) or catalog()[name]


def picked(entry: Spec | Dispatcher, size: Size) -> Spec:
    """The kernel that an entry stands for at a size."""
    return entry.pick(size) if isinstance(entry, Dispatcher) else entry


def _dispatcher(name: str, table: Mapping[str, Any]) -> Dispatcher:
    choices = tuple(map(_choice, table["choices"]))
    adding = None
    if (of := table.get("sum")) is not None:
        adding = SumOfParts(catalog()[of["kernel"]], Adding(float(of["start"]), float(of["each"])))
    family = catalog()[table["like"]].family
    return Dispatcher(name, table["story"], family, choices, adding, float(table.get("launch", 0.0)))


def _choice(row: Mapping[str, Any]) -> KernelChoice:
    pace = Pace(float(row["start"]), tuple(map(float, row["line"]))) if "line" in row else None
    return KernelChoice(catalog()[row["kernel"]], row.get("below", {}), pace)
