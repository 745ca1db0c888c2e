"""Global accesses coalesced by a tile of shared memory, as an edit: what a naive transpose needs.

`out[x * n + y] = in[y * n + x];` becomes a store into a tile, a barrier, and a store from the tile by threads
in another order, in which neighbours in a column of the block are neighbours in a warp. For blocks of another
shape the statements stay as they were.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from memsim.analysis import BADLY_COALESCED, Analysis
from memsim.arch.units import BANKS, WARP
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.source.text import bracket_end
from memsim.suggest.c_text import names_in
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.global_accesses import Staging
from memsim.suggest.places import LOADED, AssigningPart, Places, Statement
from memsim.suggest.prove import edit_job, replay_job, source_of
from memsim.suggest.threads import Remapped, total

_THREAD = re.compile(r"threadIdx\s*\.\s*([xy])\b")
TILE, COLUMN, ROW = "staged", "staged_column", "staged_row"


def transposed(job: Job, before: Analysis, staging: Sequence[Staging]) -> tuple[Remapped, ...]:
    """The edits for accesses that staging helps, compiled and replayed; those that save needless sectors."""
    x, y, z = job.launch.block
    if source_of(job) is None or min(x, y) == 1 or z > 1:
        return ()
    found: dict[str, Remapped] = {}
    for each in staging:
        edit = None if each.fills else _Transposed(job, before, staging).edit(each)
        if edit is None or any(one.edit == edit for one in found.values()):
            continue
        changed = edit_job(job, edit, job.launch)
        try:
            name = f"the {each.site.op} of line {each.site.line} through a tile of shared memory"
            done = Remapped(name, before, edit, changed, replay_job(changed))
        except MemsimError:
            continue  # a change that does not compile or run is not proposed
        saved = total(before, "sectors") - total(done.analysis, "sectors")
        if saved >= BADLY_COALESCED * sum(site.needless_sectors for site in before.sites):
            found[done.name] = done
    return tuple(found.values())


def is_staged(edit: Edit, staged: Staging) -> bool:
    """Whether an edit changes the statement of an access."""
    lines = ([edit.text.count("\n", 0, at) + 1 for at in (one.start, one.end)] for one in edit.replacements)
    return staged.site.file == edit.file and any(a <= staged.site.line <= b for a, b in lines)


class _Transposed(Places):
    """A kernel's source, in which a tile is put between loads and stores."""

    def __init__(self, job: Job, before: Analysis, staging: Sequence[Staging]) -> None:
        super().__init__(job, before, (each.site for each in staging))
        self.block = job.launch.block

    def edit(self, staged: Staging) -> Edit | None:
        """The kernel with an access through a tile, and those that are made with it."""
        if self.definition is None or staged.site.file != self.file or f"{TILE}[" in self.text:
            return None
        places = [each for each in self.places() if self._has(each, staged)]
        if len(places) != 1:
            return None
        (place,) = places
        written = None if self.is_elsewhere(place) else self._written(place)
        if written is None:
            return None
        new = written.replace("\n", "\n" + self.indent(place.start))
        replacements = [Replacement(start, end, "") for start, end in place.returns]
        replacements.append(Replacement(place.start, place.end, new))
        parts = (part for one in place.statements for part in (one.index, one.value))
        used = names_in(*place.conditions, *parts)
        return Edit(
            self.file,
            self.text,
            tuple(replacements),
            names=("blockDim.x", "blockDim.y", *(name for name in used if name in self.types)),
            declared=self.opening(self.definition),
        )

    def _has(self, place: AssigningPart, staged: Staging) -> bool:
        first, last = (self.text.count("\n", 0, at) + 1 for at in (place.start, place.end))
        return first <= staged.site.line <= last and any(one.op for one in place.statements)

    def _written(self, place: AssigningPart) -> str | None:
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
            steps = self._steps(one, place.variables)
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
        return "\n".join(
            (
                f"if (blockDim.x == {x} && blockDim.y == {y} && blockDim.z == 1) {{",
                f"    __shared__ {kinds.pop()} {TILE}[{y}][{x} + {padded(x, y)}];",
                f"    const unsigned {COLUMN} = (threadIdx.y * {x} + threadIdx.x) / {y};",
                f"    const unsigned {ROW} = (threadIdx.y * {x} + threadIdx.x) % {y};",
                *(f"    {line}" for line in lines),
                "} else {",
                f"    {self.as_it_was(place)}",
                "}",
            )
        )

    def _steps(self, statement: Statement, variables: Sequence[str]) -> tuple[str, str] | None:
        """What is done before the barrier, and behind it."""
        own, other = f"{TILE}[threadIdx.y][threadIdx.x]", f"{TILE}[{ROW}][{COLUMN}]"
        if re.search(r"\+\+|--", f"{statement.index}{statement.value}"):
            return None
        if statement.op == "store":
            index = self._by_others(statement.index, variables)
            if index is None:
                return None
            return f"{own} = {statement.value};", f"{statement.array}[{index}] = {other};"
        value = statement.value
        load = LOADED.search(value)
        end = bracket_end(value, load.end(), "[") if load else 0
        index = self._by_others(value[load.end() : end - 1], variables) if load and end else None
        if load is None or index is None:
            return None
        kept = f"{statement.array}[{statement.index}] = {value[: load.start()]}{own}{value[end:]};"
        return f"{other} = {load[1]}[{index}];", kept

    def _by_others(self, text: str, variables: Sequence[str]) -> str | None:
        """An expression for the thread of the tile's other row and column; None with unknown variables."""
        inlined = self.inlined(text, variables)
        return inlined and _THREAD.sub(lambda match: COLUMN if match[1] == "x" else ROW, inlined)


def padded(columns: int, rows: int) -> int:
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
