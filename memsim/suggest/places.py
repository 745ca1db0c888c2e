"""Where in a kernel threads do nothing but assign elements, each thread its own.

Such assignments may be made by other threads than they are written for: they are in the kernel's body, in
an `if`, alone or with others, and in loops that all threads go through alike, behind `if (...) return;` too,
with indices and conditions made of thread indices, parameters and constants.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from memsim.analysis import Analysis, SiteCounts
from memsim.job import Job
from memsim.source.text import bracket_end
from memsim.source.values import changes, initializers
from memsim.suggest.c_text import names_in
from memsim.suggest.kernel_tree import KernelTree, walk

if TYPE_CHECKING:
    from tree_sitter import Node

LOADED = re.compile(r"(\w+)\s*\[")
NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*\b")
_BUILT_IN = frozenset(
    ("threadIdx", "blockIdx", "blockDim", "gridDim", "int", "unsigned", "size_t", "float", "double")
)
#: What has an effect of its own, or reads memory: it may not come before what the whole block does.
_ACTS = re.compile(r"\[|\w\s*\(|\+\+|--|\*\s*\w+\s*=|->")
_QUALIFIERS = re.compile(r"\bconst\b|\bvolatile\b|\b__restrict(?:__)?\b|\*")


@dataclass(frozen=True, slots=True)
class Statement:
    """`array[index] = value;`. ops: what is badly coalesced of it."""

    array: str
    index: str
    value: str
    ops: tuple[str, ...]

    @property
    def op(self) -> str:
        """What is badly coalesced, if it is one; else ""."""
        return self.ops[0] if len(self.ops) == 1 else ""


@dataclass(frozen=True, slots=True)
class AssigningPart:
    """Statements that each thread makes if `conditions` hold, at [start, end).

    variables: of the loops around that all threads go through alike. returns: spans of those before, to be
    left out. strides: of loops of a thread that are part of the place, what each variable begins with, where
    it ends, and its step.
    """

    start: int
    end: int
    statements: tuple[Statement, ...]
    conditions: tuple[str, ...]
    variables: tuple[str, ...]
    returns: tuple[tuple[int, int], ...]
    strides: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)


class Places(KernelTree):
    """A kernel's source, in which such statements are looked for."""

    strided = False  # whether loops in which each thread has steps of its own are part of a place

    def __init__(self, job: Job, before: Analysis, bad: Iterable[SiteCounts]) -> None:
        super().__init__(before, job)
        self.bad = {(site.line, site.op) for site in bad if site.file == self.file}

    @cached_property
    def initialized(self) -> dict[str, str]:
        """What the kernel's variables that never change are initialized with, or assigned once."""
        assert self.definition is not None
        code = self.code[self.definition.start_byte : self.definition.end_byte]
        found = dict(initializers(code))
        for name in [name for name, value in found.items() if not value]:
            assigned = re.search(rf"(?<![\w.*]){name}\s*=\s*([^;,=][^;,]*);", code)
            found[name] = assigned[1] if assigned else name
        return {name: value for name, value in found.items() if name not in NAME.findall(value)}

    def inlined(self, text: str, variables: Sequence[str]) -> str | None:
        """An expression of nothing but parameters, constants, thread indices and such variables."""
        for _ in range(8):
            if not any(name in self.initialized for name in NAME.findall(text)):
                break
            text = NAME.sub(
                lambda one: f"({self.initialized[one[0]]})" if one[0] in self.initialized else one[0], text
            )
        known = {*_BUILT_IN, *self.types, *variables}
        if any(name not in known and not name.isupper() for name in NAME.findall(text)):
            return None
        return " ".join(text.split())

    def kind(self, statement: Statement, op: str) -> str | None:
        """The type of the elements that a statement loads or stores."""
        array = statement.array
        if op == "load":
            loads = LOADED.findall(statement.value)
            if len(loads) != 1:
                return None
            array = loads[0]
        return _QUALIFIERS.sub("", self.types.get(array, "")).strip() or None

    def is_elsewhere(self, place: AssigningPart) -> bool:
        """Whether elements that a thread accesses for another one are stored, or the stored ones read, by
        anything but the statements.
        """
        assert self.definition is not None
        inside = self.code[place.start : place.end]
        body = self.code[self.opening(self.definition) : self.definition.end_byte]
        arrays = {one.array for one in place.statements}
        texts = (*place.conditions, *(text for one in place.statements for text in (one.index, one.value)))
        read = {name for text in texts for name in LOADED.findall(text)}
        named = ([len(re.findall(rf"\b{name}\b", code)) for code in (body, inside)] for name in arrays | read)
        return bool(arrays & read) or any(everywhere > here for everywhere, here in named)

    def as_it_was(self, place: AssigningPart) -> str:
        """The statements, behind the conditions on which threads have returned before them."""
        text = self.text[place.start : place.end]
        openings = (self.text.index("(", start) + 1 for start, _ in place.returns)
        held = " && ".join(f"!({self.text[one : bracket_end(self.text, one) - 1]})" for one in openings)
        return f"if ({held}) {text}" if held else text

    def places(self) -> Iterator[AssigningPart]:
        """Where assignments to elements are all that a part of the kernel does."""
        assert self.definition is not None
        seen = set()
        for node in walk(self.definition):
            if node.type != "expression_statement" or node.parent is None:
                continue
            block = node.parent
            whole = block.type == "compound_statement" and (
                _is_if(block.parent) or self._strides(block.parent)
            )
            found = self._place(block if whole else node)
            if found is not None and found.start not in seen:
                seen.add(found.start)
                yield found

    def _place(self, part: Node) -> AssigningPart | None:
        """The statements of a part, with the conditions and loops around it; None if a barrier may not be
        there.
        """
        statements = self._statements([part] if part.type == "expression_statement" else part.named_children)
        conditions: list[str] = []
        variables: list[str] = []
        strides: dict[str, tuple[str, str, str]] = {}
        inner, outer = part, part.parent
        while outer is not None:
            stride = self._strides(outer)
            if stride is not None and not strides:
                strides |= stride
                conditions += [f"{name} < {end}" for name, (_, end, _) in stride.items()]
            elif outer.type == "if_statement":
                condition = outer.child_by_field_name("condition")
                if condition is None or outer.child_by_field_name("alternative") is not None:
                    return None
                conditions.append(self.tree.text(condition)[1:-1])
            else:
                break
            inner, outer = outer, outer.parent
            alone = outer is not None and len(outer.named_children) == 1
            if alone and outer is not None and (_is_if(outer.parent) or self._strides(outer.parent)):
                inner, outer = outer, outer.parent
        whole = inner
        while outer is not None and outer.type != "function_definition":
            if outer.type == "for_statement":
                variable = self.uniform(outer)
                if variable is None:
                    return None
                variables.append(variable)
            elif outer.type != "compound_statement":
                return None
            inner, outer = outer, outer.parent
        if outer is None or not statements:
            return None
        returns = list(self._returns(outer, whole.start_byte))
        if self._leaves(outer, whole, returns, bool(variables)):
            return None
        conditions += [f"!({condition})" for condition, _ in returns]
        return AssigningPart(
            whole.start_byte,
            whole.end_byte,
            tuple(statements),
            tuple(" ".join(one.split()) for one in conditions),
            tuple(variables),
            tuple(span for _, span in returns),
            strides,
        )

    def _statements(self, nodes: Sequence[Node]) -> list[Statement] | None:
        """Assignments to elements, with what variables stand for that are declared or assigned among them;
        None if there is anything else.
        """
        found: list[Statement] = []
        local: dict[str, str] = {}
        lines: set[int] = set()
        for node in nodes:
            if node.type == "comment":
                continue
            lines |= set(range(node.start_point[0] + 1, node.end_point[0] + 2))
            pairs = list(self._assigned(node))
            if not pairs:
                return None
            for left, value in pairs:
                name = self.tree.text(left)
                text = NAME.sub(lambda one: local.get(one[0], one[0]), self.tree.text(value))
                if left.type == "subscript_expression" and node.type == "expression_statement":
                    index = NAME.sub(
                        lambda one: local.get(one[0], one[0]), name[name.index("[") + 1 : name.rindex("]")]
                    )
                    ops = sorted({op for line, op in self.bad if line in lines})
                    array = name[: name.index("[")].strip()
                    found.append(Statement(array, " ".join(index.split()), text, tuple(ops)))
                    lines = set()
                elif left.type == "identifier" and self._is_set_once(name):
                    local[name] = text if re.fullmatch(r"[\w.]+", text) else f"({text})"
                else:
                    return None
        return found

    def _assigned(self, node: Node) -> Iterator[tuple[Node, Node]]:
        """What a declaration or an assignment sets, and to what."""
        if node.type == "declaration":
            for one in node.children_by_field_name("declarator"):
                parts = one.child_by_field_name("declarator"), one.child_by_field_name("value")
                yield parts[0] or one, parts[1] or one
        elif node.type == "expression_statement" and node.named_children:
            assigned = node.named_children[0]
            if assigned.type == "assignment_expression" and assigned.children[1].type == "=":
                yield assigned.children[0], assigned.children[2]

    def _is_set_once(self, name: str) -> bool:
        assert self.definition is not None
        code = self.code[self.definition.start_byte : self.definition.end_byte]
        return changes(name, code) == 1

    def _strides(self, loop: Node | None) -> dict[str, tuple[str, str, str]] | None:
        """The variable of a loop in which threads have steps of their own: its beginning, end and step."""
        if not self.strided or loop is None or loop.type != "for_statement":
            return None
        head = self.tree.text(loop)[: loop.children[-1].start_byte - loop.start_byte]
        found = re.fullmatch(
            r"for\s*\(\s*(?:const\s+)?(?:unsigned\s+int|unsigned|int|size_t)\s+(\w+)\s*=\s*([^;,]+);\s*"
            r"\1\s*<\s*([^;,<>]+);\s*\1\s*\+=\s*([^;,]+)\)\s*",
            head,
        )
        if found is None or re.search(r"\b(?:break|continue|return)\b", self.tree.text(loop)):
            return None
        return (
            {found[1]: (found[2], found[3], found[4])}
            if "threadIdx" in (self.inlined(found[2], ()) or "")
            else None
        )

    def uniform(self, loop: Node) -> str | None:
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


def _is_if(node: Node | None) -> bool:
    return node is not None and node.type == "if_statement"
