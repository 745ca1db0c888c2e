"""What memsim counts, as the generated documents ask for it.

A question names a kernel and a piece of a source line, or the words that 32 lanes access. The text of a
`Cost` is a cell of a table.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from memsim.analysis import Analysis, SiteCounts
from memsim.errors import MemsimError
from memsim.guard.select import Selector
from memsim.kernels import Spec, catalog
from memsim.model import shared_access

LANES = np.arange(32)


@dataclass(frozen=True, slots=True)
class Cost:
    """What some requests cost together, in wavefronts (shared memory) or in sectors (global memory).

    width: bytes a lane, 0 if they differ. ways: the worst of them. What does not apply is 0.
    """

    requests: int
    width: int
    wavefronts: int = 0
    conflicts: int = 0
    ideal_wavefronts: int = 0
    ways: int = 0
    sectors: int = 0
    ideal_sectors: int = 0
    lines: int = 0

    @property
    def wavefronts_each(self) -> float:
        """Wavefronts a request."""
        return self.wavefronts / self.requests

    @property
    def sectors_each(self) -> float:
        """Sectors a request."""
        return self.sectors / self.requests

    @property
    def lines_each(self) -> float:
        """128-byte lines a request."""
        return self.lines / self.requests

    @property
    def is_coalesced(self) -> bool:
        """No sector more than the bytes need."""
        return self.sectors == self.ideal_sectors

    def __str__(self) -> str:
        """`2 wavefronts a request (ideal 1), 2 ways, 3 conflicts` or `16 sectors a request (ideal 16)`."""
        if self.sectors:
            ideal = self.ideal_sectors / self.requests
            return f"{counted(self.sectors_each, 'sector')} a request (ideal {ideal:g})"
        return (
            f"{counted(self.wavefronts_each, 'wavefront')} a request "
            f"(ideal {self.ideal_wavefronts / self.requests:g}), "
            f"{counted(self.ways, 'way')}, {counted(self.conflicts, 'conflict')}"
        )


def counted(number: float, what: str) -> str:
    """`1 way`, `2 ways`, `4.5 wavefronts`, `1,024 conflicts`."""
    exact = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{exact} {what}{'' if number == 1 else 's'}"


def cost_of(rows: Sequence[SiteCounts]) -> Cost:
    """Rows of an analysis as one.

    Raises:
        LookupError: one of them could not be counted.
    """
    for row in rows:
        if row.unresolved is not None:
            raise LookupError(f"line {row.line} of {row.file} is not counted: {row.unresolved}")

    def total(quantity: str) -> int:
        return sum(getattr(row, quantity) or 0 for row in rows)

    widths = {row.width for row in rows}
    return Cost(
        requests=total("requests"),
        width=widths.pop() if len(widths) == 1 else 0,
        wavefronts=total("wavefronts"),
        conflicts=total("conflicts"),
        ideal_wavefronts=total("ideal_wavefronts"),
        ways=max((row.max_ways or 0 for row in rows), default=0),
        sectors=total("sectors"),
        ideal_sectors=total("ideal_sectors"),
        lines=total("lines"),
    )


class Kernels:
    """The analyses of kernels, each made once, when it is first asked for.

    Lines are found by `code`, a piece of their text, and `kind`, such as "shared store"; all that fit are
    taken together.
    """

    def __init__(self, specs: Mapping[str, Spec], size: Sequence[int] | None = None) -> None:
        self._specs = specs
        self._size = size
        self._analyses: MutableMapping[str, Analysis] = {}

    def at(self, size: Sequence[int], **scalars: float) -> Kernels:
        """The same kernels at another size, and with other values of scalar arguments."""
        specs = {
            name: replace(spec, scalars={**spec.scalars, **scalars}) for name, spec in self._specs.items()
        }
        return Kernels(specs if scalars else self._specs, size)

    def beside(self, analyses: Mapping[str, Analysis]) -> Kernels:
        """These kernels and others, which are analyzed already."""
        found = Kernels(self._specs, self._size)
        found._analyses = ChainMap(self._analyses, dict(analyses))
        return found

    def analysis(self, name: str) -> Analysis:
        """All that is counted of a kernel."""
        if name not in self._analyses:
            self._analyses[name] = self._specs[name].analyze(self._size)
        return self._analyses[name]

    def sizes(self, name: str) -> dict[str, int]:
        """M, N and K."""
        return self._specs[name].sizes(self._size)

    def cost(self, name: str, code: str, kind: str = "") -> Cost:
        """The lines with `code` in them.

        Raises:
            LookupError: no such line; lines of several kinds, and no `kind` to tell which; not counted.
        """
        return cost_of(self._rows(name, code, kind))

    def selected(self, selector: Selector) -> Cost:
        """The accesses that a selector of budgets means, of the kernels that it names.

        Raises:
            LookupError: there are none, or one is not counted.
        """
        rows = [
            row
            for name in selector.values("kernel")
            for row in self.analysis(name).sites
            if selector.matches(name, row) is not False
        ]
        if not rows:
            raise LookupError(f"{selector.text} is no access")
        return cost_of(rows)

    def all(self, name: str, kind: str) -> Cost:
        """All accesses of a kind: `all("kernel_v4", "shared load")`."""
        return cost_of(self._rows(name, "", kind))

    def words(self, name: str, code: str, kind: str = "") -> np.ndarray:
        """The 4-byte words of the lines with `code`: a row a distinct request, a column a lane."""
        rows = {(row.file, row.line, row.op, row.space) for row in self._rows(name, code, kind)}
        trace = self.analysis(name).trace
        chosen = [i for i, s in enumerate(trace.sites) if (s.file, s.line, s.op, s.space) in rows]
        found = np.isin(trace.site, chosen)
        assert trace.active[found].all(), "idle lanes"
        return trace.addresses[found] // 4

    def shared_bytes(self, name: str, array: str = "") -> int:
        """Bytes of shared memory of a block, or of one of its arrays."""
        trace = self.analysis(name).trace
        arrays = {found: size for found, space, _, size in trace.arrays if space == "shared"}
        return arrays[array] if array else sum(arrays.values()) + trace.launch.shared_bytes

    def _rows(self, name: str, code: str, kind: str) -> list[SiteCounts]:
        rows = [
            row
            for row in self.analysis(name).sites
            if code in row.source and kind in ("", f"{row.space} {row.op}")
        ]
        kinds = {f"{row.space} {row.op}" for row in rows}
        if len(kinds) != 1:
            raise LookupError(f"{name} has {' and '.join(sorted(kinds)) or 'no'} {kind} lines with {code!r}")
        return rows


@cache
def shipped() -> Kernels:
    """The kernels of the catalogue at its size, 1024 cubed."""
    return Kernels(catalog())


def shared_request(
    words: ArrayLike, width: int = 4, op: str = "load", active: ArrayLike | None = None
) -> Cost:
    """One request for shared memory, lane i at word `words[i]`."""
    cost = shared_access(4 * np.asarray(words), width, op, active)
    counts = (cost.wavefronts, cost.conflicts, cost.ideal, cost.ways)
    return Cost(1, width, *(int(count) for count in counts))


def refusal(request: Callable[[], object]) -> str:
    """What memsim says to a request that no GPU would serve; "" if it takes it."""
    try:
        request()
    except MemsimError as error:
        return str(error).splitlines()[0]
    return ""
