"""What pointers in a kernel's source point to: elements of global or of shared memory, and of which type."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memsim.analysis import Analysis
from memsim.job import Job
from memsim.suggest.footprints import parameters_of
from memsim.suggest.kernel_tree import KernelTree, arguments_of, bare, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_NO_TYPE = re.compile(
    r"\b(?:(?:__align__|alignas)\s*\((?:[^()]|\([^()]*\))*\)|extern|static|const|__shared__)|\w*restrict\w*|\*"
)
_DECLARATORS = ("init_declarator", "array_declarator", "pointer_declarator", "identifier")


@dataclass(frozen=True, slots=True)
class Pointed:
    """What a pointer points to. space: `shared`, `global`, or "" if not known. of: the type of elements.
    array: of shared memory.
    """

    space: str = ""
    of: str = ""
    array: str = ""


NOTHING = (None, "", None)  # that is assigned to, how, and what


class PointerTree(KernelTree):
    """A kernel's source, in which pointers are known.

    nodes: all of the kernel. arrays: declarators of shared arrays, by name. pointers: what these and pointers
    point to; of variables in shared memory that is not known.
    """

    def __init__(self, before: Analysis, job: Job) -> None:
        super().__init__(before, job)
        self.nodes = [] if self.definition is None else list(walk(self.definition))
        self.arrays: dict[str, Node] = {}
        self.pointers: dict[str, Pointed] = {}
        for one in parameters_of(self.definition) if self.definition is not None else ():
            of, pointer, _ = self.tree.text(one).rpartition("*")
            self.pointers |= {self.name(one): Pointed("global", element_type(of))} if pointer else {}
        for node in self.nodes:
            self._find(node)
        for left, mark, right in map(assigned, self.nodes):
            name = "" if left is None or mark != "=" else self.tree.text(left)
            made = Pointed() if right is None else self.pointed(right) or Pointed()
            if name in self.pointers and replace(made, of=self.pointers[name].of) != self.pointers[name]:
                self.pointers[name] = Pointed()

    def _find(self, node: Node) -> None:
        """Adds what a declaration declares."""
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
        return (
            None if cast is None or made is None else Pointed(made.space, element_type(cast[0]), made.array)
        )

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

    def space(self, left: Node) -> str:
        """The memory of an element that is assigned to; "" if it is no element, or that is not known."""
        return (self.element(left) or Pointed()).space

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


def assigned(node: Node) -> tuple[Node | None, str, Node | None]:
    """What an expression assigns to, how, and what."""
    if node.type == "assignment_expression":
        return node.children[0], node.children[1].type, node.children[2]
    if node.type == "update_expression":
        return node.named_children[0], "++", None
    return NOTHING


def declarators(node: Node) -> Iterator[Node]:
    """Of a declaration; none of anything else."""
    inside = node.named_children if node.type == "declaration" else ()
    yield from (one for one in inside if one.type in _DECLARATORS)


def element_type(declared: str) -> str:
    """The type of elements, as declared, without what says where they are."""
    return " ".join(_NO_TYPE.sub(" ", declared).split())
