"""Accesses of loops that walk along rows, a row for each thread.

Such a loop, in the kernel or in a function that it calls, counts a variable. The index grows with it, or with
a pointer or another index that it moves, by a number (tried with numbers for all names in it); each iteration
takes the next element, or the next few, and no other access in the loop may concern them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memsim.analysis import Analysis
from memsim.job import Job
from memsim.source.syntax import Node, assignment_to, outside, walk
from memsim.source.values import changes, initializers
from memsim.suggest.c_text import EFFECT, distance, index_in, names_in, substitute_variables
from memsim.suggest.footprints import changes_of, may_be_left_out
from memsim.suggest.kernel_tree import KernelTree
from memsim.suggest.loops import STEP, loop_of

_STEPS = ("update_expression", "assignment_expression")
MOST = 8  # elements of an iteration
OTHER_LOOPS = ("while_statement", "do_statement", "for_range_loop", "lambda_expression")
#: What may let others see, or change, elements while a thread holds them. Atomics alone order nothing.
_SHARED_BY_OTHERS = re.compile(r"\b(?:return|goto|asm|volatile|__sync\w+|__threadfence\w*)\b")
#: A block behind which a loop is left.
_LEAVES = re.compile(r"\{[^{}]*\bbreak\s*;\s*\}")
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


class RowAccesses(KernelTree):
    """A file, in which such accesses are looked for, of elements of `least` to `most` bytes."""

    def __init__(self, job: Job, before: Analysis, file: str, least: int, most: int) -> None:
        super().__init__(before, job, file)
        self.least, self.most = least, most

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
            by_itself = self._moved(loop, name) if name != variable else 0
            if by_itself is None or (name == variable and changes(name, code)):
                return None
            following |= {name: f"{name} + {by_itself}"} if by_itself else {}
        if EFFECT.search(index):
            return None
        moved = substitute_variables(index, following, 1)
        grown = distance(index, moved)
        if grown is not None:
            places, rest = divmod(grown, element.unit)
            return str(places) if 0 < places <= MOST and not rest else None
        steps = (name for name in names_in(index) if name not in following and element.unit == 1)
        return next((step for step in steps if distance(f"{index} + {step}", moved) == 0), None)

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
