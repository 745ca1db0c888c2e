"""Global accesses coalesced by a tile of shared memory, as an edit: what a naive transpose needs.

`out[x * n + y] = in[y * n + x];` becomes a store into a tile, a barrier, and a store from the tile by threads
in another order, in which neighbours in a column of the block are neighbours in a warp. For blocks of another
shape the statements stay as they were.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial

from memsim.analysis import Analysis
from memsim.arch.units import BANKS, WARP
from memsim.job import Job
from memsim.suggest.edit import Edit
from memsim.suggest.global_accesses import Staging
from memsim.suggest.places import COLUMN, ROW, TILE, AssigningPart, Places
from memsim.suggest.prove import is_the_same
from memsim.suggest.threads import Remapped, replay_edit

_THREAD = re.compile(r"threadIdx\s*\.\s*([xy])\b")


def staged_accesses(job: Job, before: Analysis, staging: Sequence[Staging]) -> tuple[Remapped, ...]:
    """The edits for accesses that staging helps, compiled and replayed: those that save needless sectors, and
    have the same results.
    """
    x, y, z = job.launch.block
    if min(x, y) == 1 or z > 1:
        return ()
    found: dict[str, Remapped] = {}
    for each in staging:
        edit = None if each.fills else _Transposed(job, before, staging).tiled(each)
        if any(one.edit == edit for one in found.values()):
            continue
        name = f"the {each.site.op} of line {each.site.line} through a tile of shared memory"
        done = replay_edit(name, job, before, edit)
        if done is not None and done.saves and is_the_same(job, done.job):
            found[name] = done
    return tuple(found.values())


def is_staged(edit: Edit, staged: Staging) -> bool:
    """Whether an edit changes the statement of an access."""
    lines = ([edit.text.count("\n", 0, at) + 1 for at in (one.start, one.end)] for one in edit.replacements)
    return staged.site.file == edit.file and any(a <= staged.site.line <= b for a, b in lines)


class _Transposed(Places):
    def __init__(self, job: Job, before: Analysis, staging: Sequence[Staging]) -> None:
        super().__init__(job, before, (each.site for each in staging))
        self.block = job.launch.block

    def tiled(self, staged: Staging) -> Edit | None:
        """The kernel with an access through a tile, and those that are made with it."""
        if staged.site.file != self.file or f"{TILE}[" in self.text:
            return None
        found = []
        for each in self.places():
            first, last = (self.text.count("\n", 0, at) + 1 for at in (each.start, each.end))
            if first <= staged.site.line <= last and any(one.op for one in each.statements):
                found.append(each)
        if len(found) != 1:
            return None
        (place,) = found
        lines = None if self.is_elsewhere(place) else self._lines(place)
        return None if lines is None else self.written(place, lines, ("blockDim.x", "blockDim.y"))

    def _lines(self, place: AssigningPart) -> list[str] | None:
        """The statements through a tile, and as they were; None if they cannot be written."""
        x, y, _ = self.block
        conditions = (
            [f"({one})" for one in place.conditions] if len(place.conditions) > 1 else place.conditions
        )
        own = " && ".join(conditions)
        others = self._by_others(own, place.variables)
        kinds = {self.kind(one, one.op) for one in place.statements if one.op}
        if others is None or len(kinds) != 1 or None in kinds:
            return None
        guard, guard_of_others = (f"if ({text}) " if text else "" for text in (own, others))
        lines: list[str] = []
        for one in place.statements:
            if not one.op:
                lines.append(f"{guard}{one.array}[{one.index}] = {one.value};")
                continue
            elements = f"{TILE}[threadIdx.y][threadIdx.x]", f"{TILE}[{ROW}][{COLUMN}]"
            readers = str, partial(self._by_others, variables=place.variables)
            steps = self.steps(one, one.op, elements, readers)
            if steps is None:
                return None
            of_first, of_second = (guard, guard_of_others) if one.op == "store" else (guard_of_others, guard)
            lines += [
                f"{of_first}{steps[0]}",
                "__syncthreads();",
                f"{of_second}{steps[1]}",
                "__syncthreads();",
            ]
        if lines[-1].startswith("__sync") and not place.variables:
            lines.pop()
        return [
            f"if (blockDim.x == {x} && blockDim.y == {y} && blockDim.z == 1) {{",
            f"    __shared__ {kinds.pop()} {TILE}[{y}][{x} + {tile_padding(x, y)}];",
            f"    const unsigned {COLUMN} = (threadIdx.y * {x} + threadIdx.x) / {y};",
            f"    const unsigned {ROW} = (threadIdx.y * {x} + threadIdx.x) % {y};",
            *(f"    {line}" for line in lines),
            "} else {",
            f"    {self.as_it_was(place)}",
            "}",
        ]

    def _by_others(self, text: str, variables: Sequence[str]) -> str | None:
        """An expression for the thread of the tile's other row and column; None with unknown variables."""
        inlined = self.inlined(text, variables)
        return inlined and _THREAD.sub(lambda match: COLUMN if match[1] == "x" else ROW, inlined)


def tile_padding(columns: int, rows: int) -> int:
    """The words behind each row with which its words, by rows and by columns, take the fewest wavefronts."""

    def wavefronts(padding: int) -> int:
        orders = (divmod(thread, columns) for thread in range(columns * rows))
        by_rows = [row * (columns + padding) + column for row, column in orders]
        others = (divmod(thread, rows) for thread in range(columns * rows))
        by_columns = [row * (columns + padding) + column for column, row in others]
        warps = (
            places[first : first + WARP]
            for places in (by_rows, by_columns)
            for first in range(0, len(places), WARP)
        )
        return sum(max(Counter(place % BANKS for place in warp).values()) for warp in warps)

    return min(range(1, 9), key=wavefronts)
