"""A row for each thread, moved in pieces: an edit of loops in which threads walk along rows.

`sum += in[row * n + k];` with a row for each thread moves 32 sectors for 32 elements. The edit holds a
piece of the row: `sum += in_row0(&in[row * n + k], n - k);` loads it, 32 bytes by two neighbouring threads
where the address is aligned and both rows have so many more, or more bytes by the threads of a warp side by
side: each sector once, of rows of every length. Elements that are stored are collected alike. Such loops
may be in the kernel, or in a function of its file that it calls.

Such a loop counts a variable by one, the index grows by one with it (tried with numbers for all names in it),
every iteration makes the access, and no other access in the loop may concern the elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memsim.analysis import Analysis
from memsim.arch.units import WARP, WORD
from memsim.job import Job
from memsim.source.values import changes, initializers
from memsim.suggest.c_text import EFFECT, names_in
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.footprints import may_be_left_out, outside
from memsim.suggest.index_math import grows_by_one, substituted
from memsim.suggest.kernel_tree import KernelTree, assignment_to, walk, with_pragmas
from memsim.suggest.loops import loop_of
from memsim.suggest.proposals import shared_end
from memsim.suggest.row_texts import BY_WARPS, CHUNKS, IN_PAIRS, SHORT, RowText
from memsim.suggest.threads import Remapped, replayed

if TYPE_CHECKING:
    from tree_sitter import Node

PREFIX = "row_of_thread"
_OTHER_LOOPS = ("while_statement", "do_statement", "for_range_loop", "lambda_expression")
WIDTHS = (1, 2, 4, 8)  # bytes of an element
#: What may let others see, or change, elements while a thread holds them. Atomics alone order nothing.
_SHARED_BY_OTHERS = re.compile(r"\b(?:return|goto|asm|volatile|__sync\w+|__threadfence\w*)\b")
#: A block behind which a loop is left.
_LEAVES = re.compile(r"\{[^{}]*\bbreak\s*;\s*\}")


@dataclass(frozen=True, slots=True)
class _Access:
    """`array[index]` in a loop. value: what it is assigned, None for a load; left: how many elements the row
    has from there on, in C. always: whether each iteration makes it. operator: of `array[index] += value`.
    branch: of the only `if` on which it is made, and where that begins; None without one.
    """

    node: Node
    loop: Node
    array: str
    index: str
    value: Node | None
    left: str
    always: bool
    operator: str = ""
    branch: tuple[int, str] | None = None

    @property
    def end(self) -> int:
        """Where it ends, or the value that it stores."""
        return self.node.end_byte if self.value is None else self.value.end_byte

    @property
    def elements(self) -> tuple[int, str, str]:
        """The loop, and which element of an iteration is accessed."""
        return self.loop.start_byte, self.array, "".join(self.index.split())


def rows_of_threads(job: Job, before: Analysis) -> tuple[Remapped, ...]:
    """The kernel with its rows moved in pieces, by each thread and by warps, compiled and replayed.

    Those that save a quarter of the needless sectors or more.
    """
    return tuple(done for text in (IN_PAIRS, BY_WARPS) if (done := _moved_by(text, job, before)) is not None)


def _moved_by(text: RowText, job: Job, before: Analysis) -> Remapped | None:
    tried: list[Edit] = []
    every, short = min(WIDTHS), (SHORT,)
    # Where narrow elements cost more than they save, the wide ones alone; where rows are short, pieces too.
    for least, chunks in ((every, CHUNKS), (WORD, CHUNKS), (every, short)):
        edit = _Rows(job, before, text, least, chunks).moved()
        if edit is None or edit in tried:
            continue
        tried.append(edit)
        done = replayed(text.name, job, before, edit)
        if done is not None and done.saves:
            return done
    return None


class _Rows(KernelTree):
    """A kernel's source, in which such accesses are looked for, of elements of `least` bytes or more."""

    def __init__(self, job: Job, before: Analysis, row: RowText, least: int, chunks: Sequence[int]) -> None:
        super().__init__(before, job)
        self.row, self.least, self.chunks = row, least, chunks
        self.warps = -(-job.launch.threads // WARP)

    def moved(self) -> Edit | None:
        """The kernel with all such accesses changed; None if there is none."""
        if self.definition is None or PREFIX in self.text:
            return None
        groups: dict[tuple[int, str, str], list[_Access]] = {}
        functions = [self.definition, *self.called({one.line for one in self.wasting})]
        for one in (each for function in functions for each in self._accesses(function)):
            groups.setdefault(one.elements, []).append(one)
        room = self.before.arch.static_shared_bytes - shared_end(self.before.trace)
        at_once: dict[int, int] = {}  # rows of a loop and those in it; others take the same tiles
        for some in groups.values():
            outer = _outermost(some[0].loop) if len(functions) == 1 else 0
            at_once[outer] = at_once.get(outer, 0) + 1 + _is_loaded(some)
        size = self.row.chunk(max(at_once.values(), default=0), self.warps, room, self.chunks)
        if size is None:
            return None
        found: list[Replacement] = []
        names: list[str] = ["blockDim.x"]
        loops: dict[int, tuple[Node, list[str], list[str]]] = {}
        taken: dict[int, int] = {}
        for number, some in enumerate(groups.values()):
            one, name = some[0], f"{some[0].array}_row{number}"
            stores = _stores(some)
            changed = self._changed(some, name)
            if changed is None:
                continue
            found += changed
            names += names_in(one.index, one.left)
            _, opening, closing = loops.setdefault(one.loop.start_byte, (one.loop, [], []))
            for each in (name, f"{name}_in")[: 1 + _is_loaded(some)]:
                outer = _outermost(one.loop) if len(functions) == 1 else 0
                taken[outer] = place = taken.get(outer, -1) + 1
                row = self.row.opening.format(array=one.array, number=place, warps=self.warps, bytes=size)
                opening.append(f"auto {each} = {row};")
            if stores:
                opening.append(f"auto {name}_end = {one.array};")
                closing.append(f"{name}.close({name}_end);")
        if not found:
            return None
        for loop, opening, closing in loops.values():
            start, end = with_pragmas(self.text, loop.start_byte), loop.end_byte
            lines = f"\n{self.indent(start)}".join(["{", *opening, ""])
            found += [Replacement(start, start, lines), Replacement(end, end, " ".join(["", *closing, "}"]))]
        changed_functions = [
            one for one in functions if any(one.start_byte <= at < one.end_byte for at in loops)
        ]
        head = min(map(self.head, changed_functions))
        found.append(Replacement(head, head, self.row.text))
        if changed_functions != [self.definition]:
            names += self.sizes
        return self.edit(found, names)

    def _accesses(self, definition: Node) -> Iterator[_Access]:
        """The accesses along rows, of elements that an access in a line that wastes sectors concerns."""
        others = set(self.not_of_global_memory(definition))
        found: list[_Access] = []
        wasted = set()
        for node in walk(definition):
            if node.type != "subscript_expression" or node.children[0].type != "identifier":
                continue
            if self.tree.text(node.children[0]) in others:
                continue
            one = self._access(node)
            if one is not None:
                found.append(one)
                wasted |= {one.elements} if self._wastes(one) else set()
        return (one for one in found if one.elements in wasted)

    def _wastes(self, one: _Access) -> bool:
        """Whether sectors are wasted in the lines of an access."""
        first, last = (point[0] + 1 for point in (one.node.start_point, one.node.end_point))
        op = "load" if one.value is None else "store"
        of_kernel = self.definition is not None and one.node.start_byte in range(*self.definition.byte_range)
        own = {one.array} & set(self.types if of_kernel else ())  # a parameter is known by its name
        return any(
            own <= set(site.array.split("|"))
            and first <= site.line <= last
            and site.op == op
            and self.least <= site.width <= max(WIDTHS)
            for site in self.wasting
        )

    def _access(self, node: Node) -> _Access | None:
        array, index = self.tree.text(node.children[0]), _index(self.tree.text(node))
        inner, loop = node, node.parent
        skipped: list[tuple[Node, Node]] = []
        while loop is not None and loop.type != "for_statement":
            if loop.type in (*_OTHER_LOOPS, "function_definition"):
                return None
            skipped += [(loop, inner)] if may_be_left_out(loop, inner) else []
            inner, loop = loop, loop.parent
        inside = None if loop is None else loop.child_by_field_name("body")
        if loop is None or inside is None or node.start_byte < inside.start_byte:
            return None
        counted, code = self._counted(loop), self.tree.text(inside)
        if counted is None or _SHARED_BY_OTHERS.search(code):
            return None
        variable, left = counted
        if not _is_along(index, variable, _LEAVES.sub("", code)):
            return None
        assigned = assignment_to(node)
        is_part = assigned is not None and assigned.parent and assigned.parent.type != "expression_statement"
        if is_part or not self._alone(inside, array, index):
            return None
        value = None if assigned is None else assigned.children[2]
        operator = "" if assigned is None else self.tree.text(assigned.children[1])[:-1]
        ahead = self.text[inside.start_byte : node.start_byte]
        always, branch = not skipped and not re.search(r"\bcontinue\b", ahead), None
        if len(skipped) == 1 and skipped[0][0].type == "if_statement" and "continue" not in ahead:
            branch = skipped[0][0].start_byte, skipped[0][1].type
        return _Access(node, loop, array, index, value, left, always, operator, branch)

    def _counted(self, loop: Node) -> tuple[str, str] | None:
        """The variable that a loop counts by one, and how many iterations there are from its value on."""
        found = loop_of(self.tree, loop)
        if found is None or found.step != "1" or found.test not in ("<", "<=", "!="):
            return None
        if re.search(rf"\b{found.variable}\b|\(", found.end):
            return None
        one_more = " + 1" if found.test == "<=" else ""
        return found.variable, f"(long long)({found.end}) - {found.variable}{one_more}"

    def _alone(self, inside: Node, array: str, index: str) -> bool:
        """Whether nothing else in a loop may concern the elements: more stores than those of two branches,
        other elements of an array that is stored to.
        """
        targets, others = 0, False
        for use in walk(inside):
            if use.type != "identifier" or self.tree.text(use) != array:
                continue
            node = use.parent
            if node is None or node.type != "subscript_expression" or node.children[0] != use:
                return False
            around = node.parent
            if around is None or around.type in ("pointer_expression", "update_expression"):
                return False
            targets += assignment_to(node) is not None
            others |= "".join(_index(self.tree.text(node)).split()) != "".join(index.split())
        return targets == 0 or (targets <= 2 and not others)

    def _is_stored(self, one: _Access) -> bool:
        """Whether a loop stores to the array."""
        elements = (node for node in walk(one.loop) if node.type == "subscript_expression")
        return any(assignment_to(node) and self.tree.text(node.children[0]) == one.array for node in elements)

    def _changed(self, some: list[_Access], name: str) -> list[Replacement] | None:
        """The accesses to one element of an iteration, which is read and stored once."""
        one, stores, address = some[0], _stores(some), f"&{some[0].array}[{some[0].index}]"
        if stores and not _is_stored_once(stores):
            return None
        if not stores and (self._is_stored(one) or not any(each.always for each in some)):
            return None
        if len(some) == 1 and not stores:
            return [Replacement(*self.span(one.node), f"{name}({address}, {one.left})")]
        found, loads = [], f"{name}_in" if stores else name
        for each in some:
            if each.value is None:
                behind = _is_behind(each, stores)
                if behind is None:
                    return None
                found.append(
                    Replacement(*self.span(each.node), f"{name}.last" if behind else f"{name}_value")
                )
                continue
            old = f"{name}_value {each.operator} (" if each.operator else ""
            put = f"{name}_end = {address} + 1, {name}.put({address}, {old}"
            found += [
                Replacement(each.node.start_byte, each.value.start_byte, put),
                Replacement(each.end, each.end, ")" * (2 if old else 1)),
            ]
        if stores and not _is_loaded(some):
            return found
        body = one.loop.child_by_field_name("body")
        if body is None or set(re.findall(r"\w+", one.index)) & set(initializers(self.tree.text(body))):
            return None
        first = f" const auto {name}_value = {loads}({address}, {one.left});"
        start, end = body.start_byte, body.end_byte
        if body.type == "compound_statement":
            return [Replacement(start + 1, start + 1, first), *found]
        return [Replacement(start, start, f"{{{first} "), *found, Replacement(end, end, " }")]


def _outermost(loop: Node) -> int:
    """Where the outermost loop around a loop begins."""
    loops = (one for one in outside(loop) if one.type.endswith(("for_statement", *_OTHER_LOOPS)))
    return min((one.start_byte for one in loops), default=loop.start_byte)


def _stores(some: list[_Access]) -> list[_Access]:
    return [each for each in some if each.value is not None]


def _is_stored_once(stores: list[_Access]) -> bool:
    """Whether each iteration makes one of these stores: always, or in each branch of an `if`."""
    branches = {each.branch for each in stores}
    both = len(stores) == 2 == len(branches) and None not in branches
    return stores[0].always if len(stores) == 1 else both and len({each[0] for each in branches if each}) == 1


def _is_behind(read: _Access, stores: list[_Access]) -> bool | None:
    """Whether an element is read after it was stored; None if that depends on a branch."""
    if any(store.node.start_byte < read.node.start_byte < store.end for store in stores):
        return False
    behind = {store.end < read.node.start_byte for store in stores}
    return None if len(behind) > 1 else True in behind


def _is_loaded(some: list[_Access]) -> bool:
    """Whether an element that is stored is read before."""
    stores = _stores(some)
    reads = (_is_behind(each, stores) is False for each in some if each.value is None)
    return bool(stores) and (any(store.operator for store in stores) or any(reads))


def _index(access: str) -> str:
    """`i + 1` of `a[i + 1]`."""
    return access[access.index("[") + 1 : access.rindex("]")].strip()


def _is_along(index: str, variable: str, code: str) -> bool:
    """Whether an index grows by one with a variable of a loop, whatever the other names in it are."""
    index = substituted(index, initializers(code))
    fixed = not any(changes(name, code) for name in names_in(index))
    return fixed and not EFFECT.search(index) and grows_by_one(index, variable)
