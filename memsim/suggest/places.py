"""Where in a kernel threads do nothing but assign elements, each thread its own.

Such assignments may be made by other threads than they are written for: they are in the kernel's body, in
an `if`, alone or with others, and in loops that all threads go through alike, behind `if (...) return;` too,
with indices and conditions made of thread indices, parameters and constants.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from memsim.analysis import Analysis, SiteCounts
from memsim.job import Job
from memsim.source.expressions import evaluate
from memsim.source.kernels import template_arguments
from memsim.source.syntax import Node, body_of, fields, walk
from memsim.source.text import bracket_end, without_comments
from memsim.source.values import DECLARED, DEFINE, changes, constants, declared_pairs, initializers
from memsim.suggest.c_text import EFFECT, NAME, index_in, names_in, substitute_variables
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.kernel_tree import KernelTree
from memsim.suggest.loops import LEAVES, LoopHead, loop_of
from memsim.suggest.prove import macros_of, source_of

#: The names of a tile, and of what is accessed in it.
TILE, COLUMN, ROW = "staged", "staged_column", "staged_row"
_STAGED = "staged_value"  # what is loaded, until it is known from where
LOADED = re.compile(r"(\w+)\s*\[")
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
    left out. strides: loops of a thread that are part of the place, by their variables.
    """

    start: int
    end: int
    statements: tuple[Statement, ...]
    conditions: tuple[str, ...]
    variables: tuple[str, ...]
    returns: tuple[tuple[int, int], ...]
    strides: Mapping[str, LoopHead] = field(default_factory=dict)


class Places(KernelTree):
    """A kernel's source, in which such statements are looked for."""

    strided = False  # whether loops in which each thread has steps of its own are part of a place

    def __init__(self, job: Job, before: Analysis, bad: Iterable[SiteCounts]) -> None:
        super().__init__(before, job)
        self.job = job
        self.bad = {(site.line, site.op) for site in bad if site.file == self.file}

    @cached_property
    def initialized(self) -> dict[str, str]:
        """What the kernel's variables that never change are initialized with, or assigned once."""
        code = self.own_code
        found = dict(initializers(code))
        for name in [name for name, value in found.items() if not value]:
            assigned = re.search(rf"(?<![\w.*]){name}\s*=\s*([^;,=][^;,]*);", code)
            found[name] = assigned[1] if assigned else name
        return {name: value for name, value in found.items() if name not in NAME.findall(value)}

    @cached_property
    def constants(self) -> set[str]:
        """Macros and constants that are numbers, of included files, too, and parameters of the template; not
        those that other variables of the kernel hide.
        """
        included = source_of(self.job).included_texts(self.kernel_text)
        code = without_comments("\n".join((self.kernel_text, *included)))
        pairs = [*DEFINE.findall(code), *chain(*(declared_pairs(one[1]) for one in DECLARED.finditer(code)))]
        known = {**constants(code), **macros_of(self.job)}
        numbers = (name for name, value in pairs if evaluate(value, known) is not None)
        template = template_arguments(code, self.before.trace.kernel)
        return {*known, *numbers, *template} - set(self._variables(known))

    def _variables(self, known: Mapping[str, int]) -> Iterator[str]:
        """The names of what the kernel declares, but for constants that are numbers."""
        for node in (one for each in self.kernels for one in walk(each) if one.type == "declaration"):
            is_constant = re.search(r"\bconst(?:expr)?\b", self.tree.text(node)) is not None
            for left, value in self._assigned(node):
                if not is_constant or evaluate(self.tree.text(value), known) is None:
                    yield from NAME.findall(self.tree.text(left))[:1]

    def inlined(self, text: str, variables: Sequence[str]) -> str | None:
        """An expression of nothing but parameters, constants, thread indices and such variables."""
        text = substitute_variables(text, self.initialized)
        known = {*_BUILT_IN, _STAGED, *self.types, *variables, *self.constants}
        if any(name not in known for name in NAME.findall(text)):
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
        """Whether anything else stores what they access for other threads, or reads what they store."""
        inside = self.code[place.start : place.end]
        body = self.own_code.partition("{")[2]
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

    def written(
        self, place: AssigningPart, lines: Iterable[str], used: Iterable[str], *, among_blocks: bool = False
    ) -> Edit:
        """An edit with other lines in place of statements, and of the returns before them."""
        replaced = [Replacement(start, end, "") for start, end in place.returns]
        new = "\n".join(lines).replace("\n", f"\n{self.indent(place.start)}")
        replaced.append(Replacement(place.start, place.end, new))
        parts = (part for one in place.statements for part in (one.index, one.value))
        names = (name for name in names_in(*place.conditions, *parts, *used) if name in self.types)
        sizes = [name for name in used if name.startswith("blockDim.")]
        return self.edit(replaced, (*sizes, *names), among_blocks=among_blocks)

    def steps(
        self,
        one: Statement,
        op: str,
        elements: tuple[str, str],
        readers: tuple[Callable[[str], str | None], Callable[[str], str | None]],
    ) -> tuple[str, str] | None:
        """What is done before and behind a barrier; None if it cannot be written.

        elements: of the tile, of the thread that has the statement, and of the one that does its badly
        coalesced part; readers: make expressions those of these threads.
        """
        own, other = elements
        of_own, of_other = readers
        if EFFECT.search(one.index + one.value):
            return None
        if op == "store":
            value, index = of_own(one.value), of_other(one.index)
            return (
                None if None in (value, index) else (f"{own} = {value};", f"{one.array}[{index}] = {other};")
            )
        load = LOADED.search(one.value)
        end = bracket_end(one.value, load.end(), "[") if load else 0
        if load is None or not end:
            return None
        value = of_own(f"{one.value[: load.start()]}{_STAGED}{one.value[end:]}")
        index, moved = of_own(one.index), of_other(one.value[load.end() : end - 1])
        if value is None or None in (index, moved):
            return None
        kept = f"{one.array}[{index}] = {value.replace(_STAGED, own)};"
        return f"{other} = {load[1]}[{moved}];", kept

    def places(self) -> Iterator[AssigningPart]:
        """Where assignments to elements are all that a part of the kernel does."""
        seen = set()
        for node in (one for each in self.kernels for one in walk(each)):
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
        """The statements of a part, with conditions and loops around it; None if no barrier may be there."""
        statements = self._statements([part] if part.type == "expression_statement" else part.named_children)
        conditions: list[str] = []
        variables: list[str] = []
        strides: dict[str, LoopHead] = {}
        inner, outer = part, part.parent
        while outer is not None:
            stride = self._strides(outer)
            if stride is not None and not strides:
                strides[stride.variable] = stride
                conditions.append(f"{stride.variable} < {stride.end}")
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
        if EFFECT.search(" ".join(conditions)):
            return None
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
        """Assignments to elements, in terms of no local variables; None if there is anything else."""
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
                text = substitute_variables(self.tree.text(value), local, 1)
                if left.type == "subscript_expression" and node.type == "expression_statement":
                    index = substitute_variables(index_in(name), local, 1)
                    ops = sorted({op for line, op in self.bad if line in lines})
                    array = name[: name.index("[")].strip()
                    found.append(Statement(array, " ".join(index.split()), text, tuple(ops)))
                    lines = set()
                elif left.type == "identifier" and changes(name, self.own_code) == 1:
                    local[name] = text
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

    def _whole(self, node: Node | None) -> LoopHead | None:
        """A loop that declares its variable, and that is not left before its end."""
        loop = loop_of(self.tree, node)
        whole = loop is not None and loop.type and loop.is_steady and not LEAVES.search(loop.body)
        return loop if whole else None

    def _strides(self, node: Node | None) -> LoopHead | None:
        """A loop in which threads have steps of their own."""
        loop = self._whole(node) if self.strided else None
        if loop is None or loop.test != "<" or "threadIdx" not in (self.inlined(loop.start, ()) or ""):
            return None
        return loop

    def uniform(self, node: Node) -> str | None:
        """The variable of a loop that all threads go through alike; None if they may not."""
        loop = self._whole(node)
        others = names_in(loop.start, loop.end, loop.step) if loop is not None else []
        known = {*self.sizes, *self.constants}
        alike = all(name in known or name.startswith("blockDim") for name in others)
        return loop.variable if alike and loop is not None else None

    def _returns(self, function: Node, end: int) -> Iterator[tuple[str, tuple[int, int]]]:
        """The conditions on which threads have returned before a place, each with the statement's span."""
        body = body_of(function)
        for node in [] if body is None else body.named_children:
            if node.type != "if_statement" or node.start_byte >= end:
                continue
            asked = fields(node, "condition", "consequence")
            if asked is None or node.child_by_field_name("alternative") is not None:
                continue
            if re.fullmatch(r"\{?\s*return\s*;\s*\}?", self.tree.text(asked[1])):
                yield self.tree.text(asked[0])[1:-1], (node.start_byte, node.end_byte)

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
