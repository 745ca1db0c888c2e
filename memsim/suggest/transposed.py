"""Global accesses coalesced by a tile of shared memory, as an edit: what a naive transpose needs.

`out[x * n + y] = in[y * n + x];` becomes a store into a tile, a barrier, and a store from the tile by threads
in another order, in which neighbours in a column of the block are neighbours in a warp. Written for
assignments in the kernel's body, in an `if`, alone or with others, and in loops that all threads go through
alike, behind `if (...) return;` too; where indices and conditions are made of thread indices, parameters and
constants. For blocks of another shape the statements stay as they were.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from memsim.analysis import BADLY_COALESCED, Analysis
from memsim.arch.units import BANKS, WARP
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.source.text import bracket_end
from memsim.source.values import changes, initializers
from memsim.suggest.c_text import names_in
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.global_accesses import Staging
from memsim.suggest.kernel_tree import KernelTree, walk
from memsim.suggest.prove import edit_job, replay_job, source_of
from memsim.suggest.threads import Remapped, total

if TYPE_CHECKING:
    from tree_sitter import Node

_LOADED = re.compile(r"(\w+)\s*\[")
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*\b")
_THREAD = re.compile(r"threadIdx\s*\.\s*([xy])\b")
_BUILT_IN = frozenset(("threadIdx", "blockIdx", "blockDim", "gridDim", "int", "unsigned", "size_t"))
#: What has an effect of its own, or reads memory: it may not come before what the whole block does.
_ACTS = re.compile(r"[\[(]|\+\+|--|\*\s*\w+\s*=|->")
TILE, COLUMN, ROW = "staged", "staged_column", "staged_row"


@dataclass(frozen=True, slots=True)
class _Statement:
    """`array[index] = value;`, of which `op` is badly coalesced, "" if nothing is."""

    array: str
    index: str
    value: str
    op: str


@dataclass(frozen=True, slots=True)
class _Place:
    """Statements that each thread makes if `conditions` hold, at [start, end). variables: of the loops
    around; returns: spans of those before, to be left out.
    """

    start: int
    end: int
    statements: tuple[_Statement, ...]
    conditions: tuple[str, ...]
    variables: tuple[str, ...]
    returns: tuple[tuple[int, int], ...]


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


class _Transposed(KernelTree):
    """A kernel's source, in which such statements are looked for."""

    def __init__(self, job: Job, before: Analysis, staging: Sequence[Staging]) -> None:
        super().__init__(before, job)
        self.block = job.launch.block
        self.bad = {(each.site.line, each.site.op) for each in staging if each.site.file == self.file}

    @cached_property
    def initialized(self) -> dict[str, str]:
        """What the kernel's variables that never change are initialized with."""
        assert self.definition is not None
        return dict(initializers(self.code[self.definition.start_byte : self.definition.end_byte]))

    def edit(self, staged: Staging) -> Edit | None:
        """The kernel with an access through a tile, and those that are made with it."""
        if self.definition is None or staged.site.file != self.file or f"{TILE}[" in self.text:
            return None
        places = [each for each in self._places() if self._has(each, staged)]
        if len(places) != 1:
            return None
        (place,) = places
        written = None if self._is_elsewhere(place) else self._written(place)
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

    def _is_elsewhere(self, place: _Place) -> bool:
        """Whether elements that a thread accesses for another one are stored, or the stored ones read, by
        anything but the statements.
        """
        assert self.definition is not None
        inside = self.code[place.start : place.end]
        body = self.code[self.opening(self.definition) : self.definition.end_byte]
        arrays = {one.array for one in place.statements}
        read = {name for one in place.statements for name in _LOADED.findall(one.value)}
        named = ([len(re.findall(rf"\b{name}\b", code)) for code in (body, inside)] for name in arrays | read)
        return bool(arrays & read) or any(everywhere > here for everywhere, here in named)

    def _has(self, place: _Place, staged: Staging) -> bool:
        first, last = (self.text.count("\n", 0, at) + 1 for at in (place.start, place.end))
        return first <= staged.site.line <= last and any(one.op for one in place.statements)

    def _places(self) -> Iterator[_Place]:
        """Where assignments to elements are all that a part of the kernel does."""
        assert self.definition is not None
        seen = set()
        for node in walk(self.definition):
            if node.type != "expression_statement" or node.parent is None:
                continue
            block = node.parent
            of_if = block.type == "compound_statement" and _is_if(block.parent)
            found = self._place(block if of_if else node)
            if found is not None and found.start not in seen:
                seen.add(found.start)
                yield found

    def _place(self, part: Node) -> _Place | None:
        """The statements of a part, with the conditions and loops around it; None if a barrier may not be
        there.
        """
        alone = [part] if part.type == "expression_statement" else part.named_children
        statements = [self._statement(one) for one in alone if one.type != "comment"]
        conditions: list[str] = []
        variables: list[str] = []
        inner, outer = part, part.parent
        while outer is not None and outer.type == "if_statement" and not variables:
            condition = outer.child_by_field_name("condition")
            if condition is None or outer.child_by_field_name("alternative") is not None:
                return None
            conditions.append(self.tree.text(condition)[1:-1])
            inner, outer = outer, outer.parent
            if outer is not None and len(outer.named_children) == 1 and _is_if(outer.parent):
                inner, outer = outer, outer.parent
        whole = inner
        while outer is not None and outer.type != "function_definition":
            if outer.type == "for_statement":
                variable = self._uniform(outer)
                if variable is None:
                    return None
                variables.append(variable)
            elif outer.type != "compound_statement":
                return None
            inner, outer = outer, outer.parent
        if outer is None or not statements or None in statements:
            return None
        returns = list(self._returns(outer, whole.start_byte))
        if self._leaves(outer, whole, returns, bool(variables)):
            return None
        conditions += [f"!({condition})" for condition, _ in returns]
        return _Place(
            whole.start_byte,
            whole.end_byte,
            tuple(one for one in statements if one is not None),
            tuple(" ".join(one.split()) for one in conditions),
            tuple(variables),
            tuple(span for _, span in returns),
        )

    def _statement(self, node: Node) -> _Statement | None:
        """An assignment to an element, alone."""
        assigned = node.named_children[0] if node.named_children else None
        if assigned is None or assigned.type != "assignment_expression":
            return None
        left, sign, right = assigned.children
        if left.type != "subscript_expression" or sign.type != "=":
            return None
        text, first = self.tree.text(left), node.start_point[0] + 1
        lines = range(first, node.end_point[0] + 2)
        ops = {op for line, op in self.bad if line in lines}
        array, index = text[: text.index("[")].strip(), text[text.index("[") + 1 : text.rindex("]")]
        op = ops.pop() if len(ops) == 1 else ""
        return _Statement(array, " ".join(index.split()), self.tree.text(right), op)

    def _uniform(self, loop: Node) -> str | None:
        """The variable of a loop that all threads go through alike; None if they may not."""
        parts = [loop.child_by_field_name(name) for name in ("initializer", "condition", "update", "body")]
        if None in parts:
            return None
        start, condition, update, body = (self.tree.text(part) for part in parts if part is not None)
        declared = re.fullmatch(
            r"(?:const\s+)?(?:unsigned\s+int|unsigned|int|size_t)\s+(\w+)\s*=\s*([^,;]+);?", start
        )
        if (
            declared is None
            or changes(declared[1], body)
            or re.search(r"\b(?:break|continue|return)\b", body)
        ):
            return None
        others = [name for name in names_in(declared[2], condition, update) if name != declared[1]]
        known = all(name in self.sizes or name.isupper() or name.startswith("blockDim") for name in others)
        return declared[1] if known else None

    def _returns(self, function: Node, end: int) -> Iterator[tuple[str, tuple[int, int]]]:
        """The conditions on which threads have returned before a place, each with the statement's span."""
        body = function.child_by_field_name("body")
        for node in [] if body is None else body.named_children:
            if node.type != "if_statement" or node.start_byte >= end:
                continue
            condition, then = (node.child_by_field_name(name) for name in ("condition", "consequence"))
            if condition is None or then is None or node.child_by_field_name("alternative") is not None:
                continue
            if re.fullmatch(r"\{?\s*return\s*;\s*\}?", self.tree.text(then)):
                yield self.tree.text(condition)[1:-1], (node.start_byte, node.end_byte)

    def _leaves(
        self, function: Node, whole: Node, returns: Sequence[tuple[str, tuple[int, int]]], in_loop: bool
    ) -> bool:
        """Whether threads may not come to a place, or, where returns before it are left out, do anything but
        initialize variables in between, or anything behind it.
        """
        before = self.code[function.start_byte : whole.start_byte]
        if len(re.findall(r"\breturn\b", before)) != len(returns):
            return True
        if not returns:
            return False
        between = self.code[returns[0][1][1] : whole.start_byte]
        for _, (start, end) in returns[1:]:
            between = between.replace(self.code[start:end], "")
        behind = self.code[whole.end_byte : function.end_byte]
        return in_loop or bool(_ACTS.search(between)) or bool(behind.strip(" \n\t\r{};"))

    def _written(self, place: _Place) -> str | None:
        """The statements through a tile, and as they were; None if they cannot be written."""
        x, y, _ = self.block
        conditions = (
            [f"({one})" for one in place.conditions] if len(place.conditions) > 1 else place.conditions
        )
        own = " && ".join(conditions)
        others = self._by_others(own, place.variables)
        kinds = {self._kind(one) for one in place.statements if one.op}
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
        as_it_was = self.text[place.start : place.end]
        if place.returns:
            held = " && ".join(f"!({self._condition(span)})" for span in place.returns)
            as_it_was = f"if ({held}) {as_it_was}"
        return "\n".join(
            (
                f"if (blockDim.x == {x} && blockDim.y == {y} && blockDim.z == 1) {{",
                f"    __shared__ {kinds.pop()} {TILE}[{y}][{x} + {_padding(x, y)}];",
                f"    const unsigned {COLUMN} = (threadIdx.y * {x} + threadIdx.x) / {y};",
                f"    const unsigned {ROW} = (threadIdx.y * {x} + threadIdx.x) % {y};",
                *(f"    {line}" for line in lines),
                "} else {",
                f"    {as_it_was}",
                "}",
            )
        )

    def _condition(self, span: tuple[int, int]) -> str:
        """Of an `if` at a place."""
        opening = self.text.index("(", span[0]) + 1
        return self.text[opening : bracket_end(self.text, opening) - 1]

    def _kind(self, statement: _Statement) -> str | None:
        """The type of the elements that go through the tile."""
        array = statement.array
        if statement.op == "load":
            loads = _LOADED.findall(statement.value)
            if len(loads) != 1:
                return None
            array = loads[0]
        qualifiers = r"\bconst\b|\bvolatile\b|\b__restrict(?:__)?\b|\*"
        return re.sub(qualifiers, "", self.types.get(array, "")).strip() or None

    def _steps(self, statement: _Statement, variables: Sequence[str]) -> tuple[str, str] | None:
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
        load = _LOADED.search(value)
        end = bracket_end(value, load.end(), "[") if load else 0
        index = self._by_others(value[load.end() : end - 1], variables) if load and end else None
        if load is None or index is None:
            return None
        kept = f"{statement.array}[{statement.index}] = {value[: load.start()]}{own}{value[end:]};"
        return f"{other} = {load[1]}[{index}];", kept

    def _by_others(self, text: str, variables: Sequence[str]) -> str | None:
        """An expression for the thread of the tile's other row and column; None with unknown variables."""
        for _ in range(8):
            if not any(name in self.initialized for name in _NAME.findall(text)):
                break
            text = _NAME.sub(
                lambda one: f"({self.initialized[one[0]]})" if one[0] in self.initialized else one[0], text
            )
        known = {*_BUILT_IN, *self.types, *variables}
        if any(name not in known and not name.isupper() for name in _NAME.findall(text)):
            return None
        return _THREAD.sub(lambda match: COLUMN if match[1] == "x" else ROW, " ".join(text.split()))


def _is_if(node: Node | None) -> bool:
    return node is not None and node.type == "if_statement"


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
