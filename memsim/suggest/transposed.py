"""A global access coalesced by a tile of shared memory, as an edit: what a naive transpose needs.

`out[x * n + y] = in[y * n + x];` becomes a store into a tile, a barrier, and a store from the tile by threads
in another order, in which neighbours in a column of the block are neighbours in a warp. Written where a
statement of the kernel's body, or of an `if` in it, has one such access, and its index and condition are made
of thread indices, parameters and constants. For blocks of another shape the statement stays as it was.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from memsim.analysis import BADLY_COALESCED, Analysis
from memsim.arch.units import BANKS, WARP
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.source.kernels import parameters
from memsim.source.text import bracket_end, without_comments
from memsim.source.values import initializers
from memsim.suggest.c_text import names_in
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.global_accesses import Staging
from memsim.suggest.prove import edit_job, replay_job, source_of
from memsim.suggest.threads import Remapped, body_of, total

_STATEMENT = re.compile(r"(\w+)\s*\[([^;=]+)\]\s*=(?!=)\s*([^;]+);")
_LOADED = re.compile(r"(\w+)\s*\[")
_BUILT_IN = frozenset(("threadIdx", "blockIdx", "blockDim", "gridDim", "int", "unsigned"))
TILE, COLUMN, ROW = "staged", "staged_column", "staged_row"


@dataclass(frozen=True, slots=True)
class _Statement:
    """`if (condition) array[index] = value;` in a kernel, "" without a condition.

    start, end: its span; place: where the assignment ends.
    """

    start: int
    end: int
    place: int
    condition: str
    array: str
    index: str
    value: str


def transposed(job: Job, before: Analysis, staging: Sequence[Staging]) -> tuple[Remapped, ...]:
    """The edits for accesses that staging helps, compiled and replayed; those that save needless sectors."""
    x, y, z = job.launch.block
    if source_of(job) is None or min(x, y) == 1 or z > 1:
        return ()
    found = []
    for each in staging:
        edit = None if each.fills else _edit(job, before, each)
        if edit is None:
            continue
        changed = edit_job(job, edit, job.launch)
        try:
            done = Remapped(
                edit_name(each),
                before,
                edit,
                changed,
                replay_job(changed),
            )
        except MemsimError:
            continue  # a change that does not compile or run is not proposed
        saved = total(before, "sectors") - total(done.analysis, "sectors")
        if saved >= BADLY_COALESCED * sum(site.needless_sectors for site in before.sites):
            found.append(done)
    return tuple(found)


def edit_name(staged: Staging) -> str:
    """What an edit for it is called."""
    return f"the {staged.site.op} of line {staged.site.line} through a tile of shared memory"


def _edit(job: Job, before: Analysis, staged: Staging) -> Edit | None:
    text = before.trace.sources.get(staged.site.file, "")
    if staged.site.file != job.kernel.file or re.search(rf"\b{TILE}\w*\b", text):
        return None
    code = without_comments(text)
    kernel = before.trace.kernel
    body = body_of(code, kernel.partition("<")[0].rpartition("::")[2])
    if body is None:
        return None
    of_line = [
        one for one in _statements(code, *body) if text.count("\n", 0, one.place) + 1 == staged.site.line
    ]
    types = {name: kind for kind, name in parameters(text, kernel.partition("<")[0], kernel)}
    if len(of_line) != 1:
        return None
    statement = of_line[0]
    written = _written(statement, staged.site.op, types, initializers(code[slice(*body)]), job.launch.block)
    if written is None:
        return None
    indent = re.match(r"[ \t]*", text[text.rfind("\n", 0, statement.start) + 1 :])
    lines = written.replace("\n", "\n" + (indent[0] if indent else ""))
    names = names_in(statement.index, statement.condition, statement.value)
    return Edit(
        staged.site.file,
        text,
        (
            Replacement(
                statement.start, statement.end, lines.replace("@", text[statement.start : statement.end])
            ),
        ),
        names=("blockDim.x", "blockDim.y", *(name for name in names if name in types)),
        declared=code.index("{", body[0]) + 1,
    )


def _statements(code: str, start: int, end: int) -> Iterator[_Statement]:
    """The assignments to elements in a kernel's body, and alone in an `if` of it, that all threads reach."""
    for match in _STATEMENT.finditer(code, start, end):
        first, last = match.span()
        before = code[start:first]
        if re.search(r"\breturn\b", before):
            return
        depth = before.count("{") - before.count("}")
        condition, heading = "", re.compile(r"[;{}]").split(before)[-1]
        if depth == 2 and not heading.strip():  # `if (...) { statement }`
            opening = code.rindex("{", start, first)
            closing = re.compile(r"\s*\}(?!\s*else\b)").match(code, last)
            if closing is None or code[opening + 1 : first].strip():
                continue
            first, last = opening, closing.end()
            heading = re.compile(r"[;{}]").split(code[start:opening])[-1]
        elif depth != 1:
            continue
        if heading.strip():
            branch = re.search(r"\bif\s*\(", heading)
            at = first - len(heading) + (branch.start() if branch else 0)
            closed = bracket_end(code, first - len(heading) + branch.end()) if branch else 0
            alone = (
                branch is not None
                and not heading[: branch.start()].strip()
                and not code[closed:first].strip()
            )
            if not alone or branch is None or re.match(r"\s*else\b", code[last:]):
                continue
            condition, first = code[first - len(heading) + branch.end() : closed - 1], at
        yield _Statement(
            first,
            last,
            match.end(),
            " ".join(condition.split()),
            match[1],
            match[2].strip(),
            match[3].strip(),
        )


def _written(
    statement: _Statement,
    op: str,
    types: Mapping[str, str],
    initialized: Mapping[str, str],
    block: tuple[int, int, int],
) -> str | None:
    """The statement through a tile; @ stands for the statement as it was. None if it cannot be written."""
    x, y, _ = block
    if op == "store":
        array, index, value = statement.array, statement.index, statement.value
    else:
        load = _LOADED.search(statement.value)
        end = bracket_end(statement.value, load.end(), "[") if load else 0
        if load is None or not end or _LOADED.search(statement.value, end):
            return None
        array, index = load[1], statement.value[load.end() : end - 1]
        value = f"{statement.value[: load.start()]}{TILE}[threadIdx.y][threadIdx.x]{statement.value[end:]}"
    moved = [_by_others(text, types, initialized) for text in (index, statement.condition)]
    kind = re.sub(r"\bconst\b|\bvolatile\b|\*", "", types.get(array, "")).strip()
    if not kind or None in moved or re.search(r"\+\+|--", f"{index}{value}"):
        return None
    other_index, other_condition = moved
    own, others = (f"if ({text}) " if text else "" for text in (statement.condition, other_condition))
    element, other = f"{TILE}[threadIdx.y][threadIdx.x]", f"{TILE}[{ROW}][{COLUMN}]"
    if op == "store":
        steps = f"{own}{element} = {value};", f"{others}{array}[{other_index}] = {other};"
    else:
        steps = (
            f"{others}{other} = {array}[{other_index}];",
            f"{own}{statement.array}[{statement.index}] = {value};",
        )
    return "\n".join(
        (
            f"if (blockDim.x == {x} && blockDim.y == {y} && blockDim.z == 1) {{",
            f"    __shared__ {kind} {TILE}[{y}][{x} + {_padding(x, y)}];",
            f"    const unsigned {COLUMN} = (threadIdx.y * {x} + threadIdx.x) / {y};",
            f"    const unsigned {ROW} = (threadIdx.y * {x} + threadIdx.x) % {y};",
            f"    {steps[0]}",
            "    __syncthreads();",
            f"    {steps[1]}",
            "} else {",
            "    @",
            "}",
        )
    )


def _padding(columns: int, rows: int) -> int:
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


def _by_others(text: str, types: Mapping[str, str], initialized: Mapping[str, str]) -> str | None:
    """An expression for the thread of the tile's other row and column; None if a variable is not known."""
    for _ in range(8):
        ours = [name for name in re.findall(r"(?<![\w.])[A-Za-z_]\w*", text) if name in initialized]
        if not ours:
            break
        text = re.sub(
            r"(?<![\w.])[A-Za-z_]\w*\b",
            lambda match: f"({initialized[match[0]]})" if match[0] in initialized else match[0],
            text,
        )
    for name in re.findall(r"(?<![\w.])[A-Za-z_]\w*", text):
        if (
            name not in _BUILT_IN
            and name not in types
            and not name.isupper()
            and name not in ("int", "unsigned")
        ):
            return None
    return re.sub(
        r"threadIdx\s*\.\s*([xy])\b", lambda match: COLUMN if match[1] == "x" else ROW, " ".join(text.split())
    )
