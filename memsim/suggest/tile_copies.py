"""Where a kernel stores elements of global memory to shared arrays, and what would copy them instead.

Left out is what a copy cannot do: conversions, elements of other than 4, 8 or 16 bytes, and arrays that are
read, or stored to otherwise, before the barrier, and what might change in global memory until then.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from memsim.analysis import Analysis
from memsim.job import Job
from memsim.source.expressions import ELEMENT_BYTES
from memsim.source.kernels import parameter_of
from memsim.source.syntax import Node, arguments_of, assignment_parts, bare, outside, parameters_of, walk
from memsim.source.values import changes
from memsim.suggest.c_text import EFFECT, names_in
from memsim.suggest.kernel_tree import KernelTree

SIZES = (4, 8, 16)  # of a copy, in bytes
#: What is not moved, and nothing over it, and what leaves a loop.
STAYS = re.compile(
    r"\b(?:asm|volatile|atomic\w*|__sync\w+|__threadfence\w*|return|goto|break|continue)\b|\bsync\s*\("
)
_LOOPS = re.compile(r"\b(?:for|while|do)\b")
_NO_TYPE = re.compile(
    r"\b(?:(?:__align__|alignas)\s*\((?:[^()]|\([^()]*\))*\)|extern|static|const|__shared__)|\w*restrict\w*|\*"
)
_DECLARATORS = ("init_declarator", "array_declarator", "pointer_declarator", "identifier")


@dataclass(frozen=True, slots=True)
class Pointed:
    """What a pointer points to. space: `shared`, `global` or ""; of: elements; array: of shared memory."""

    space: str = ""
    of: str = ""
    array: str = ""


def declarators(node: Node) -> Iterator[Node]:
    """Of a declaration; none of anything else."""
    inside = node.named_children if node.type == "declaration" else ()
    yield from (one for one in inside if one.type in _DECLARATORS)


def element_type(declared: str) -> str:
    """The type of elements, as declared, without what says where they are."""
    return " ".join(_NO_TYPE.sub(" ", declared).split())


@dataclass(frozen=True, slots=True)
class TileStore:
    """Stores to a shared array. copy: what is instead, "" if it stays; without: what goes with it."""

    statement: Node
    array: str
    copy: str = ""
    without: tuple[Node, ...] = ()


class TileCopies(KernelTree):
    """A kernel's source, in which elements go from global to shared memory.

    nodes: all of the kernel. arrays: declarators of shared arrays, by name. pointers: what these and pointers
    point to; of variables in shared memory that is not known. conditions: that types have to meet, in C.
    """

    def __init__(self, before: Analysis, job: Job) -> None:
        super().__init__(before, job)
        blocks = "|".join(re.findall(r"\bthread_block\s+(\w+)\s*[=(]", self.own_code)) or "$."
        waits = r"__syncthreads\(\)", rf"(?:\w+::)*sync\((?:{blocks})\)", rf"(?:{blocks})\.sync\(\)"
        self._barrier = re.compile(f"(?:{'|'.join(waits)});")
        self.conditions = set[str]()
        self.nodes = [node for one in self.kernels for node in walk(one)]
        self.arrays: dict[str, Node] = {}
        self.pointers: dict[str, Pointed] = {}
        for one in (parameter for each in self.kernels for parameter in parameters_of(each)):
            declared = parameter_of(self.tree, one)
            if declared.type.endswith("*"):
                self.pointers[declared.name] = Pointed("global", element_type(declared.type[:-1]))
        for node in self.nodes:
            self._find(node)
        for left, mark, right in map(assignment_parts, self.nodes):
            name = "" if left is None or mark != "=" else self.tree.text(left)
            made = Pointed() if right is None else self.pointed(right) or Pointed()
            if name in self.pointers and replace(made, of=self.pointers[name].of) != self.pointers[name]:
                self.pointers[name] = Pointed()

    def _find(self, node: Node) -> None:
        text = self.tree.text(node) if node.type == "declaration" else ""
        of = element_type(re.split(r"\*|\b\w+\s*[\[=]", text)[0])
        for one in walk(node) if "__shared__" in text else ():
            if one.type == "array_declarator" and one.children[0].type == "identifier":
                name = self.tree.text(one.children[0])
                self.arrays[name], self.pointers[name] = one, Pointed("shared", of, name)
        for one in declarators(node):
            if one.type == "identifier" and "__shared__" in text:
                self.pointers[self.tree.text(one)] = Pointed()
            if one.type == "init_declarator" and one.children[0].type == "pointer_declarator":
                made = self.pointed(one.children[2]) or Pointed()
                self.pointers[self.name(one)] = replace(made, of=of)

    def pointed(self, node: Node) -> Pointed | None:
        """What an expression points to; None if that is not known."""
        node = bare(node)
        first = node.children[0] if node.children else node
        if node.type == "identifier":
            return self.pointers.get(self.tree.text(node))
        if node.type == "pointer_expression" and first.type == "&":
            return self.element(node.children[1])
        moved = node.type == "binary_expression" and node.children[1].type in ("+", "-")
        if moved or node.type == "subscript_expression":
            return self.pointed(first)
        cast = self.cast(node)
        made = None if cast is None else self.pointed(cast[1])
        return made and cast and replace(made, of=element_type(cast[0]))

    def cast(self, node: Node) -> tuple[str, Node] | None:
        """To which pointer an expression casts, `float4 *`, and what; None of any other."""
        to, inside = "", arguments_of(node)
        if node.type == "cast_expression":
            to, inside = self.tree.text(node.children[1]), node.children[-1:]
        elif by_name := re.match(r"reinterpret_cast\s*<([^<>]*)>", self.tree.text(node)):
            to = by_name[1]
        return (to, inside[0]) if to.count("*") == 1 and len(inside) == 1 else None

    def address(self, node: Node) -> str:
        """The address of an element, without casts: `&s[i]` of `*(float4 *)&s[i]`."""
        node = bare(node)
        of_pointer = node.type == "pointer_expression"
        inside = bare(node.children[of_pointer])
        cast = self.cast(inside)
        if not of_pointer and (cast is None or self.tree.text(node.children[1]) != "[0]"):
            return f"&{self.tree.text(node)}"
        while cast is not None:
            inside = bare(cast[1])
            cast = self.cast(inside)
        if inside.type == "pointer_expression" and inside.children[0].type == "&":
            return f"&{self.tree.text(bare(inside.children[1]))}"
        return self.tree.text(inside)

    def element(self, node: Node) -> Pointed | None:
        """What an expression is an element of; None of anything else."""
        node = bare(node)
        of_pointer = node.type == "pointer_expression" and node.children[0].type == "*"
        if node.type == "subscript_expression" or of_pointer:
            return self.pointed(node.children[of_pointer])
        return None

    def is_own(self, left: Node) -> bool:
        """Whether what is assigned to is a variable, or in an array, of the thread."""
        known = self.pointers.get(self.name(left))
        if bare(left).type == "identifier":
            return known is None or known.space != ""
        return known is None and "->" not in self.tree.text(left)

    def name(self, node: Node) -> str:
        """The first name in a declarator or an expression."""
        names = (self.tree.text(one) for one in walk(node) if one.type == "identifier")
        return next((one for one in names if one != "reinterpret_cast"), "")

    def stores(self) -> Iterator[TileStore]:
        """The statements that store to shared memory, with what copies instead."""
        for node in self.nodes:
            left, mark, right = assignment_parts(node)
            element, statement = None if left is None or mark != "=" else self.element(left), node.parent
            if element is None or element.space != "shared" or left is None or right is None:
                continue
            if statement is not None and statement.type == "expression_statement":
                copied = self._copied(left, element.of, right, statement)
                yield TileStore(statement, element.array, *(copied or ()))

    def _copied(
        self, to: Node, kind: str, value: Node, statement: Node
    ) -> tuple[str, tuple[Node, ...]] | None:
        """What copies a value to an element, and what goes for that; None if the value is no such element."""
        value = bare(value)
        element, left, right = self.element(value), self.tree.text(to), self.tree.text(value)
        if element is not None and element.space == "global":
            if element.of != kind or EFFECT.search(left + right) or not self._can_be_copied(kind):
                return None
            places = f"{self.address(to)}, {self.address(value)}"
            return f"__pipeline_memcpy_async({places}, sizeof({kind}));", ()
        if value.type == "conditional_expression":
            condition, ways = self.tree.text(bare(value.children[0])), (value.children[2], value.children[4])
            copies = [self._copied(to, kind, one, statement) for one in ways]
            if not any(copies) or any(one is not None and one[1] for one in copies):
                return None
            one, two = (
                f"{left} = {self.tree.text(way)};" if copy is None else copy[0]
                for way, copy in zip(ways, copies)
            )
            return f"if ({condition}) {one} else {two}", ()
        return self._held(to, kind, right, statement) if value.type == "identifier" else None

    def _can_be_copied(self, kind: str) -> bool:
        """Whether a type has the size of a copy; asserted, if that is not known here."""
        sizes = {ELEMENT_BYTES[word] for word in kind.split() if word in ELEMENT_BYTES}
        if sizes or not kind or "long" in kind:
            return kind.startswith("long long") or ("long" not in kind and max(sizes, default=0) in SIZES)
        size = " || ".join(f"sizeof({kind}) == {one}" for one in SIZES)
        self.conditions.add(f"({size}) && alignof({kind}) == sizeof({kind})")
        return True

    def _held(self, to: Node, kind: str, name: str, statement: Node) -> tuple[str, tuple[Node, ...]] | None:
        """What copies an element that a local variable, which nothing else uses, has in between."""
        block = statement.parent
        inside = block.named_children if block is not None and block.type == "compound_statement" else []
        ahead = [one for one in inside if one.end_byte <= statement.start_byte]
        found = [each for one in ahead for each in declarators(one) if self.name(each) == name]
        uses = self._uses(name, block) if block is not None and len(found) == 1 else []
        places = [one for one in ahead if any(is_in(use, one) for use in uses)]
        if not 2 <= len(uses) == len(places) + 1 <= 3:
            return None
        load, value, when, other = places[-1], found[0].child_by_field_name("value"), "", ""
        if len(places) == 2:
            then = load
            if load.type == "if_statement" and value is not None and len(load.named_children) == 2:
                condition, then = load.named_children
                when, other = f"if {self.tree.text(condition)} ", self.tree.text(value)
                then = then.named_children[0] if len(then.named_children) == 1 else then
            then = then.named_children[0] if then.type == "expression_statement" else then
            left, mark, value = assignment_parts(then)
            if left is None or self.tree.text(left) != name or mark != "=" or names_in(other):
                return None
        copied = None if value is None else self._copied(to, kind, value, statement)
        names = (one for one in names_in(self.tree.text(load)) if one != name)
        if copied is None or copied[1] or self._type_of(found[0]) not in (kind, "auto"):
            return None
        other = f" else {self.tree.text(to)} = {other};" if when else ""
        still = self._is_still(load.end_byte, statement.start_byte, names)
        return (f"{when}{copied[0]}{other}", (found[0], *places[1:])) if still else None

    def _type_of(self, declarator: Node) -> str:
        declared = declarator.parent or declarator
        first = next(declarators(declared), declarator)
        return element_type(self.tree.text(declared)[: first.start_byte - declared.start_byte])

    def _is_still(self, start: int, end: int, names: Iterable[str]) -> bool:
        """Whether what is loaded at a place may be loaded at another one behind it."""
        code = self.code[start:end]
        moves = STAYS.search(code) or _LOOPS.search(code) or any(changes(name, code) for name in names)
        return not moves and not self.may_store(start, end)

    def may_store(self, start: int, end: int, given: Container[str] = ()) -> bool:
        """Whether code may store to global memory, or a function with pointers to more than `given`."""
        for one in self.nodes:
            left = assignment_parts(one)[0] if start <= one.start_byte < end else None
            if left is not None and not self.is_own(left):
                element = self.element(left)
                if element is None or element.space != "shared":
                    return True
            called = start <= one.start_byte < end and self.cast(one) is None
            passed = arguments_of(one) if called else []
            pointers = (self.pointed(each) for each in passed if self.element(each) is None)
            if any(each is not None and each.array not in given for each in pointers):
                return True
        return False

    def declared(self, nodes: Iterable[Node]) -> set[str]:
        """The names that are declared in statements."""
        return {self.name(one) for node in nodes for each in walk(node) for one in declarators(each)}

    def _uses(self, name: str, block: Node) -> list[Node]:
        """Where a block names a variable of its own, and no other one of that name inside."""
        inside = [one for one in walk(block) if one.type == "declaration" and one.parent != block]
        hidden = [one.parent for one in inside if one.parent and name in self.declared([one])]
        found = (one for one in walk(block) if one.type == "identifier" and self.tree.text(one) == name)
        return [use for use in found if not any(is_in(use, one) for one in hidden)]

    def groups(self) -> dict[Node, list[TileStore]]:
        """The barriers behind stores of which some become copies, each with its stores."""
        found: dict[Node, list[TileStore]] = defaultdict(list)
        for store in self.stores():
            barrier = self._barrier_behind(store.statement)
            if barrier is not None:
                found[barrier].append(store)
        sound = {barrier: list(self._sound(barrier, some)) for barrier, some in found.items()}
        return {barrier: some for barrier, some in sound.items() if any(one.copy for one in some)}

    def is_barrier(self, node: Node) -> bool:
        """Whether all threads of a block wait for each other in a statement."""
        return self._barrier.fullmatch("".join(self.code[slice(*node.byte_range)].split())) is not None

    def _barrier_behind(self, statement: Node) -> Node | None:
        """The barrier that all threads come to next; None if something else may be before it."""
        for inner, outer in pairwise([statement, *outside(statement, self.definition)]):
            behind = outer.named_children if outer.type == "compound_statement" else ()
            for one in (each for each in behind if each.start_byte >= inner.end_byte):
                if self.is_barrier(one):
                    return one
                if STAYS.search(self.code[slice(*one.byte_range)]):
                    return None
        return None

    def _sound(self, barrier: Node, some: list[TileStore]) -> Iterator[TileStore]:
        """The stores before a barrier, copies to arrays of which nothing else is read or stored."""
        outer = ([*outside(one.statement, barrier.parent)] or [one.statement] for one in some if one.copy)
        start = min((around[-1].start_byte for around in outer), default=barrier.start_byte)
        near = {name: one for name, one in self.pointers.items() if one.space != "global"}
        named = [one for one in self.nodes if one.type == "identifier" and self.tree.text(one) in near]
        stored = [next(each for each in walk(one.statement) if each in named) for one in some]
        between = (one for one in named if start <= one.start_byte < barrier.start_byte)
        read = {near[self.tree.text(one)].array for one in between if one not in stored}
        leaves = STAYS.search(self.code[start : barrier.start_byte]) is not None
        leaves = leaves or self.may_store(start, barrier.start_byte)
        for one in some:
            plain = (each for each in some if each.array == one.array and not each.copy)
            alone = all(_is_instead(each.statement, one.statement) for each in plain)
            stays = leaves or not alone or one.array in read or "" in read
            yield TileStore(one.statement, one.array) if stays else one


def is_in(node: Node, outer: Node) -> bool:
    """Whether a node is in another one, or is it."""
    return outer.start_byte <= node.start_byte and node.end_byte <= outer.end_byte


def _is_instead(one: Node, two: Node) -> bool:
    """Whether of two statements never both are executed: in branches of one `if`."""
    around = (each for each in outside(one) if each.type == "if_statement" and is_in(two, each))
    both = next(around, None)
    other = None if both is None else both.child_by_field_name("alternative")
    return other is not None and is_in(one, other) != is_in(two, other)
