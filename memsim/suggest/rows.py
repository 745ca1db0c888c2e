"""A row for each thread, moved in pieces: an edit of loops in which threads walk along rows.

`sum += in[row * n + k];` with a row for each thread moves 32 sectors for 32 elements. The edit holds a
piece of the row: `sum += in_row0(&in[row * n + k], n - k);` loads it, 32 bytes by two neighbouring threads
where the address is aligned and both rows have so many more, or more bytes by the threads of a warp side by
side: each sector once, of rows of every length and alignment. Elements that are stored are collected alike:
both ways are an object for each row, called for each element that is loaded, `put` for each that is stored,
and `close` behind the loop.

Such a loop, in the kernel or in a function that it calls, counts a variable. The index grows with it, or with
a pointer or another index that it moves, by a number (tried with numbers for all names in it); each iteration
takes the next element, or the next few, and no other access in the loop may concern them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from memsim.analysis import Analysis
from memsim.arch.units import WARP, WORD
from memsim.job import Job
from memsim.source.syntax import Node, assignment_to, outside, walk
from memsim.source.values import changes, initializers
from memsim.suggest.c_text import EFFECT, distance, index_in, names_in, substitute_variables
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.footprints import changes_of, may_be_left_out
from memsim.suggest.kernel_tree import KernelTree, wasting_files, with_pragmas
from memsim.suggest.loops import STEP, loop_of
from memsim.suggest.threads import Remapped, replay_edit

_STEPS = ("update_expression", "assignment_expression")
MOST = 8  # elements of an iteration
OTHER_LOOPS = ("while_statement", "do_statement", "for_range_loop", "lambda_expression")
#: What may let others see, or change, elements while a thread holds them. Atomics alone order nothing.
_SHARED_BY_OTHERS = re.compile(r"\b(?:return|goto|asm|volatile|__sync\w+|__threadfence\w*)\b")
#: A block behind which a loop is left.
_LEAVES = re.compile(r"\{[^{}]*\bbreak\s*;\s*\}")
WIDTHS = (1, 2, 4, 8)  # bytes of an element
WIDEST = 16  # of a vector


@dataclass(frozen=True, slots=True)
class RowAccess:
    """`array[index]` in a loop, at an `address`, which `p++` moves. value: what it is assigned, None for a
    load; left: how many elements the row has from there on, in C. always: whether each iteration makes
    it. operator: of `array[index] += value`. branch: of the only `if` on which it is made, and where that
    begins; None without one. step: by what its place grows in each iteration; if that is a name, there is a
    row where it is 1. pointer: the array as it is cast.
    """

    node: Node
    loop: Node
    array: str
    index: str
    address: str
    value: Node | None
    left: str
    always: bool
    operator: str = ""
    branch: tuple[int, str] | None = None
    step: str = "1"
    pointer: str = ""

    @property
    def end(self) -> int:
        """Where it ends, or the value that it stores."""
        return self.node.end_byte if self.value is None else self.value.end_byte

    @property
    def moves(self) -> bool:
        """Whether it moves the pointer or the index, too."""
        return "++" in self.address

    @property
    def at(self) -> str:
        """The address without that."""
        return self.address.replace("++", "")

    @property
    def elements(self) -> tuple[int, str, str]:
        """The loop, and which element of an iteration is accessed."""
        index = "" if self.is_record else "".join(self.index.split())
        return self.loop.start_byte, self.array, index

    @property
    def is_record(self) -> bool:
        """Whether it is of several elements of each iteration."""
        return self.step.isdecimal() and self.step != "1"


@dataclass(frozen=True, slots=True)
class _Element:
    """An element of an array, in a function; or `unit` of them, by a `pointer` that the array is cast to."""

    array: str
    index: str
    address: str
    function: Node
    pointer: str = ""
    unit: int = 1


PREFIX = "row_of_thread"
CHUNKS = (64, 48, 32)  # bytes of a row in the tile, the best first
SHORT = 8  # of rows that are shorter than those


@dataclass(frozen=True, slots=True)
class RowText:
    """A way to move rows. name: in reports; text: the file of what is added before the kernel; opening: of an
    object, in which {array}, {number}, {warps} and {bytes} are replaced. staged: whether it takes shared
    memory.
    """

    name: str
    text: str
    opening: str
    staged: bool

    def chunk(self, rows: int, warps: int, room: int, chunks: Sequence[int]) -> int | None:
        """How many bytes of each row are held in `room` bytes of shared memory; None if these are too few."""
        of_byte = rows * warps * WARP
        # Two words behind each row of the tile, so that neighbouring rows are in other banks.
        fitting = (each for each in chunks if of_byte * (each + 2 * WORD) <= room)
        return next(fitting, None) if self.staged else 16


IN_PAIRS = RowText(
    "rows of threads moved 32 bytes at a time", "row_in_pairs", "row_along({array})", staged=False
)
BY_WARPS = RowText(
    "rows of threads moved by their warp side by side",
    "row_by_warps",
    "row_along<{bytes}, {warps}, {number}>({array})",
    staged=True,
)


def rows_of_threads(job: Job, before: Analysis) -> tuple[Remapped, ...]:
    """The edits, compiled and replayed, that save a quarter of the needless sectors or more."""
    ways = product((IN_PAIRS, BY_WARPS), wasting_files(before))
    tried = (_moved_by(text, job, before, file) for text, file in ways)
    return tuple({done.edit: done for done in tried if done is not None}.values())


def _moved_by(text: RowText, job: Job, before: Analysis, file: str) -> Remapped | None:
    tried: list[Edit] = []
    every, short = min(WIDTHS), (SHORT,)
    # Where narrow elements cost more than they save, the wide ones alone; where rows are short, pieces too.
    for least, chunks in ((every, CHUNKS), (WORD, CHUNKS), (every, short)):
        edit = _Rows(job, before, file, text, least, chunks).moved()
        if edit is None or edit in tried:
            continue
        tried.append(edit)
        done = replay_edit(text.name, job, before, edit)
        if done is not None and done.saves:
            return done
    return None


class _Rows(KernelTree):
    """A file, in which such accesses are looked for, of elements of `least` bytes or more."""

    def __init__(
        self, job: Job, before: Analysis, file: str, row: RowText, least: int, chunks: Sequence[int]
    ) -> None:
        super().__init__(before, job, file)
        self.row, self.chunks = row, chunks
        self.least, self.most = least, max(WIDTHS) if row.staged else WIDEST
        self.warps = -(-job.launch.threads // WARP)

    def moved(self) -> Edit | None:
        """The kernel with all such accesses changed; None if there is none."""
        if PREFIX in self.text:
            return None
        groups: dict[tuple[int, str, str], list[RowAccess]] = {}
        functions = self.functions()
        for one in (each for function in functions for each in self.accesses(function)):
            groups.setdefault(one.elements, []).append(one)
        room = self.before.arch.static_shared_bytes - self.before.trace.shared_end
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
            one, name = some[0], f"{some[0].array.replace('.', '_')}_row{number}"
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
                row = self.row.opening.format(array=one.pointer, number=place, warps=self.warps, bytes=size)
                opening.append(f"auto {each} = {row};")
            if stores:
                opening.append(f"auto {name}_end = {one.pointer};")
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
        found.append(self.added(self.row.text, changed_functions))
        if changed_functions != self.kernels:
            names += self.sizes
        return self.edit(found, names)

    def _changed(self, some: list[RowAccess], name: str) -> list[Replacement] | None:
        """The accesses to one element of an iteration, which is read and stored once."""
        one, stores = some[0], _stores(some)
        if one.is_record:
            return self._several(some, name)
        if stores and not _is_stored_once(stores):
            return None
        if not stores and (self.is_stored(one) or not any(each.always for each in some)):
            return None
        if len(some) == 1 and not stores:
            return [Replacement(*one.node.byte_range, f"{name}({one.address}, {one.left})")]
        found, loads = [], f"{name}_in" if stores else name
        along = ")" if one.step == "1" else f", {one.step} == 1)"
        for each in some:
            if each.value is None:
                behind = _is_behind(each, stores)
                if behind is None:
                    return None
                value = f"{name}.last" if behind else f"{name}_value"
                value = f"({each.address}, {value})" if each.moves else value
                found.append(Replacement(*each.node.byte_range, value))
                continue
            old = f"{name}_value {each.operator} (" if each.operator else ""
            put = f"{name}_end = {each.at} + 1, {name}.put({each.address}, {old}"
            found += [
                Replacement(each.node.start_byte, each.value.start_byte, put),
                Replacement(each.end, each.end, ")" * bool(old) + along),
            ]
        if stores and not _is_loaded(some):
            return found
        value = f"{loads}({{}}, {one.left})"
        return self._ahead(one, [f"const auto {name}_value = {value}"], found)

    def _several(self, some: list[RowAccess], name: str) -> list[Replacement] | None:
        """The accesses of each iteration to a record, which is as long as the row grows."""
        apart = [distance(some[0].index, one.index) for one in some]
        known = [each for each in apart if each is not None]
        length, low = int(some[0].step), min(known, default=0)
        places = [each - low for each in known]
        whole = len(known) == len(some) and sorted(set(places)) == list(range(length))
        if not whole or _stores(some) or self.is_stored(some[0]) or not all(one.always for one in some):
            return None
        if any(one.moves for one in some):
            return None
        first = some[places.index(0)]
        left = f"{length} * ({first.left})"
        lines = [
            f"const auto {name}_{place} = {name}({{}} + {place}, {left} - {place})" for place in range(length)
        ]
        found = [
            Replacement(*one.node.byte_range, f"{name}_{place}")
            for one, place in zip(some, places, strict=True)
        ]
        return self._ahead(first, lines, found)

    def _ahead(self, one: RowAccess, lines: list[str], found: list[Replacement]) -> list[Replacement] | None:
        """With lines, of the access's address, where the loop begins; None if it is another one there."""
        body = one.loop.child_by_field_name("body")
        if body is None:
            return None
        code = self.code[body.start_byte : one.node.start_byte]
        index = substitute_variables(one.index, initializers(self.tree.text(body)))
        if any(changes_of(each, code) for each in (one.array, *names_in(index))):
            return None
        address = f"{one.pointer.removesuffix(one.array)}&{one.array}[{index}]"
        first = " ".join(["", *(f"{line.format(address)};" for line in lines)])
        start, end = body.start_byte, body.end_byte
        if body.type == "compound_statement":
            return [Replacement(start + 1, start + 1, first), *found]
        return [Replacement(start, start, f"{{{first} "), *found, Replacement(end, end, " }")]

    def accesses(self, definition: Node) -> Iterator[RowAccess]:
        """The accesses along rows, of elements that an access in a line that wastes sectors concerns."""
        others = set(self.not_of_global_memory(definition))
        found: list[RowAccess] = []
        wasted = set()
        for node in walk(definition):
            element = self._element(node, definition)
            one = None if element is None or element.array in others else self._access(node, element)
            if one is not None:
                found.append(one)
                wasted |= {one.elements} if self._wastes(one) else set()
        return (one for one in found if one.elements in wasted)

    def _wastes(self, one: RowAccess) -> bool:
        """Whether sectors are wasted in the lines of an access."""
        op = "load" if one.value is None else "store"
        of_kernel = self.definition is not None and one.node.start_byte in range(*self.definition.byte_range)
        own = {one.array} & set(self.types if of_kernel else ())  # a parameter is known by its name
        return any(
            own <= set(site.array.split("|")) and site.op == op and self.least <= site.width <= self.most
            for site in self.wasted(self.lines_of(one.node))
        )

    def _element(self, node: Node, function: Node) -> _Element | None:
        """The element that `p[i]`, `*p`, `*p++` and vectors are."""
        text = self.tree.text(node)
        base = self.tree.text(node.children[0]) if node.children else ""
        vector = self.vector(node, function) if self.most == WIDEST else None
        if vector is not None:
            address = f"{vector.base}[{vector.index}]"
            return _Element(vector.array, vector.index, address, function, vector.pointer, vector.unit)
        if node.type == "subscript_expression" and re.fullmatch(r"\w+(?:\.\w+)?", base):
            return _Element(base, index_in(text).removesuffix("++").strip(), f"&{text}", function)
        pointer = re.fullmatch(r"\*\s*(?P<address>(?P<name>\w+)\s*(?:\+\+)?)", text)
        return None if pointer is None else _Element(pointer["name"], "0", pointer["address"], function)

    def _access(self, node: Node, element: _Element) -> RowAccess | None:
        array, index = element.array, element.index
        inner, loop = node, node.parent
        skipped: list[tuple[Node, Node]] = []
        while loop is not None and loop.type not in ("for_statement", "while_statement"):
            if loop.type in (*OTHER_LOOPS, "function_definition"):
                return None
            skipped += [(loop, inner)] if may_be_left_out(loop, inner) else []
            inner, loop = loop, loop.parent
        inside = None if loop is None else loop.child_by_field_name("body")
        if loop is None or inside is None or node.start_byte < inside.start_byte:
            return None
        counted = self._counted(loop, node)
        if counted is None or _SHARED_BY_OTHERS.search(self.tree.text(inside)):
            return None
        variable, by, left, code = counted
        step = self._along(loop, element, (variable, by), _LEAVES.sub("", code))
        if step is None:
            return None
        ending = self._ending(skipped, (variable, by), code)
        if ending:
            skipped, left = [], f"min({left}, {ending})"
        assigned = assignment_to(node)
        is_part = assigned is not None and assigned.parent and assigned.parent.type != "expression_statement"
        if is_part or not self._alone(inside, element):
            return None
        value = None if assigned is None else assigned.children[2]
        operator = "" if assigned is None else self.tree.text(assigned.children[1])[:-1]
        ahead = self.text[inside.start_byte : node.start_byte]
        always, branch = not skipped and not re.search(r"\bcontinue\b", ahead), None
        if len(skipped) == 1 and skipped[0][0].type == "if_statement" and "continue" not in ahead:
            branch = skipped[0][0].start_byte, skipped[0][1].type
        left = f"{step} == 1 ? {left} : 1" if not step.isdecimal() else left
        how = value, left, always, operator, branch, step, f"{element.pointer}{array}"
        return RowAccess(node, loop, array, index, element.address, *how)

    def _ending(self, skipped: list[tuple[Node, Node]], counted: tuple[str, str], code: str) -> str:
        """How many iterations there are before `if (i < end)` ends them, where the access is behind that
        alone, and `i` grows; "" for anything else.
        """
        branch = skipped[0][0] if len(skipped) == 1 else None
        if branch is None or branch.type != "if_statement" or skipped[0][1].type == "else_clause":
            return ""
        condition = self.tree.text(branch.children[1])
        test = re.fullmatch(r"\(\s*(\w+)\s*<([\w\s*+-]+)\)", condition)
        if test is None or branch.child_by_field_name("alternative") is not None:
            return ""
        (variable, by), values = counted, initializers(code)
        now = substitute_variables(test[1], values)
        grown = distance(now, substitute_variables(now, {variable: f"{variable} + {by}"}, 1))
        fixed = not any(changes(name, code) for name in names_in(now, test[2]))
        if not grown or grown < 0 or not fixed:
            return ""
        return f"((long long)({test[2]}) - ({test[1]}) + {grown - 1}) / {grown}"

    def _along(self, loop: Node, element: _Element, counted: tuple[str, str], code: str) -> str | None:
        """By what an element's place grows in each iteration of a loop: a number, or a name of one that may
        be 1; None if by anything else. counted: the loop's variable, and by what it grows.
        """
        variable, by = counted
        index = f"{substitute_variables(element.index, initializers(code))} + {element.array}"
        following = {variable: f"{variable} + {by}"}
        for name in names_in(index):
            moved = self._moved(loop, name) if name != variable else 0
            if moved is None or (name == variable and changes(name, code)):
                return None
            following |= {name: f"{name} + {moved}"} if moved else {}
        if EFFECT.search(index):
            return None
        grown = distance(index, substitute_variables(index, following, 1))
        if grown is not None:
            places, rest = divmod(grown, element.unit)
            return str(places) if 0 < places <= MOST and not rest else None
        steps = (name for name in names_in(index) if name not in following and element.unit == 1)
        return next(
            (
                step
                for step in steps
                if distance(f"{index} + {step}", substitute_variables(index, following, 1)) == 0
            ),
            None,
        )

    def _moved(self, loop: Node, name: str) -> int | None:
        """By how much each iteration moves a pointer or an index, once; None if not known."""
        every = changes_of(name, _LEAVES.sub("", self.tree.text(loop)))
        if not every:
            return 0
        alone, found = (loop, loop.child_by_field_name("body")), list[int]()
        for node in walk(loop):
            step = STEP.fullmatch(self.tree.text(node)) if node.type in _STEPS else None
            if step is None or name not in step.groups() or node.parent is None:
                continue
            around = node.parent.parent if node.parent.type == "expression_statement" else node.parent
            while around is not None and around.type == "comma_expression":
                around = around.parent
            is_read = node.parent.type in ("pointer_expression", "subscript_argument_list")
            if around in alone or (is_read and step["mark"]):
                by = step["by"] or step["of"] or "1"
                found += [int(by)] if by.isdecimal() and "-" not in step[0] and "*" not in step[0] else []
        return found[0] if len(found) == 1 == every else None

    def _counted(self, loop: Node, node: Node) -> tuple[str, str, str, str] | None:
        """The variable of a loop and by what it grows, how many iterations there are from its value on at a
        node, and the code that they repeat.
        """
        found = loop_of(self.tree, loop)
        if found is None or not found.step.isdecimal() or found.test not in ("<", "<=", "!="):
            return None
        if re.search(rf"\b{found.variable}\b|\w\s*\(", found.end):
            return None
        if changes(found.variable, _LEAVES.sub("", found.body)):
            return None
        if found.stepped is not None and found.stepped < node.end_byte:
            return None
        more = int(found.step) - (found.test != "<=")
        left = f"(long long)({found.end}) - {found.variable}{f' + {more}' if more else ''}"
        left = left if found.step == "1" else f"({left}) / {found.step}"
        return found.variable, found.step, left, found.body

    def _alone(self, inside: Node, element: _Element) -> bool:
        """Whether nothing else in a loop may concern the elements: more stores than those of two branches,
        other elements of an array that is stored to.
        """
        targets, others, array = 0, False, element.array
        for use in walk(inside):
            if not use.is_named or self.tree.text(use) != array or use.parent is None:
                continue
            if use.type == "field_identifier":  # of another record
                continue
            node = self._vector_around(use, element) or use.parent
            if node.type == "assignment_expression" and STEP.fullmatch(self.tree.text(node)):
                continue  # which moves the pointer
            if node.type == "update_expression":
                if node.parent is None or node.parent.type != "pointer_expression":
                    continue
                node = node.parent
            found = self._element(node, element.function)
            if found is None or (use == node.children[-1] and node.type == "subscript_expression"):
                return False
            around = node.parent
            if around is None or around.type in ("pointer_expression", "update_expression"):
                return False
            targets += assignment_to(node) is not None
            others |= "".join(found.index.split()) != "".join(element.index.split())
        return targets == 0 or (targets <= 2 and not others)

    def _vector_around(self, use: Node, element: _Element) -> Node | None:
        """The vector that the name of an array is in, if it is one that is looked for."""
        for node in outside(use) if element.unit > 1 else ():
            if node.type.endswith("statement"):
                break
            found = self._element(node, element.function)
            if found is not None and found.array == element.array and found.unit == element.unit:
                return node
        return None

    def is_stored(self, one: RowAccess) -> bool:
        """Whether a loop stores to the array."""
        function = next(around for around in outside(one.loop) if around.type == "function_definition")
        elements = ((node, self._element(node, function)) for node in walk(one.loop))
        return any(found and found.array == one.array and assignment_to(node) for node, found in elements)


def _outermost(loop: Node) -> int:
    loops = (one for one in outside(loop) if one.type.endswith(("for_statement", *OTHER_LOOPS)))
    return min((one.start_byte for one in loops), default=loop.start_byte)


def _stores(some: list[RowAccess]) -> list[RowAccess]:
    return [each for each in some if each.value is not None]


def _is_stored_once(stores: list[RowAccess]) -> bool:
    """Whether each iteration makes one of these stores: always, or in each branch of an `if`."""
    branches = {each.branch for each in stores}
    both = len(stores) == 2 == len(branches) and None not in branches
    return stores[0].always if len(stores) == 1 else both and len({each[0] for each in branches if each}) == 1


def _is_behind(read: RowAccess, stores: list[RowAccess]) -> bool | None:
    """Whether an element is read after it was stored; None if that depends on a branch."""
    if any(store.node.start_byte < read.node.start_byte < store.end for store in stores):
        return False
    behind = {store.end < read.node.start_byte for store in stores}
    return None if len(behind) > 1 else True in behind


def _is_loaded(some: list[RowAccess]) -> bool:
    """Whether an element that is stored is read before."""
    stores = _stores(some)
    reads = (_is_behind(each, stores) is False for each in some if each.value is None)
    return bool(stores) and (any(store.operator for store in stores) or any(reads))
