"""Records that a kernel passes on: `f(p + 5 * i)`, where `f` reads or assigns five elements.

The record is moved by the warp, and `f` gets a copy of it. What is read is moved before the call, or before a
loop around it in which the pointer stays the same, if the loop is entered; what is assigned, behind it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memsim.source.values import changes
from memsim.suggest.c_text import names_in
from memsim.suggest.edit import Replacement
from memsim.suggest.footprints import AccessedElements, Footprints, may_be_left_out
from memsim.suggest.global_accesses import is_badly_coalesced
from memsim.suggest.kernel_tree import KernelTree, walk, with_pragmas

if TYPE_CHECKING:
    from tree_sitter import Node

#: What lets others see, or change, elements while a thread holds them.
_SHARED_BY_OTHERS = re.compile(r"\b(?:asm|volatile|atomic\w+|__sync\w+|__threadfence\w*)\b")


@dataclass(frozen=True, slots=True)
class PassedRecord:
    """A pointer that a call gets. node: the argument; base: the array; statement: before or behind which its
    elements are moved, if `condition` holds, "" for always. elements: those that the call accesses.
    """

    node: Node
    base: str
    statement: Node
    condition: str
    elements: AccessedElements
    length: int

    def moved(self, source: KernelTree, name: str, warps: int) -> list[Replacement]:
        """The call with a copy, which is loaded before it or stored behind it."""
        address, shape = source.tree.text(self.node), f"<{self.length}, {warps}>"
        start = with_pragmas(source.text, self.statement.start_byte)
        line = f"\n{source.indent(start)}"
        how = f"record_for{shape}({address})"
        opening = f"auto {name} = {how};{line}"
        if self.elements.loads:
            opening = f"auto {name} = record_at{shape}({address});{line}"
            if self.condition:
                opening = f"auto {name} = {how};{line}if ({self.condition}) {name}.load({address});{line}"
        end = self.statement.end_byte
        stored = [Replacement(end, end, f"{line}{name}.store({address});")] if self.elements.stores else []
        copy = Replacement(self.node.start_byte, self.node.end_byte, f"&{name}[0]")
        return [Replacement(start, start, opening), copy, *stored]


def passed_records(
    source: KernelTree, definition: Node, pointers: Mapping[str, str], footprints: Footprints
) -> Iterator[PassedRecord]:
    """The records that a kernel passes on, of arrays that waste sectors.

    pointers: to global memory, each with its parameter.
    """
    for call in walk(definition):
        given = call.child_by_field_name("arguments") if call.type == "call_expression" else None
        if given is None or call.children[0].type not in ("identifier", "template_function"):
            continue
        for place, node in enumerate(given.named_children):
            base = _base(source, node, pointers)
            elements = None if base is None else footprints.of_call(call, place)
            if base is None or elements is None or elements.length is None:
                continue
            if not _wastes(source, pointers[base], elements.stores):
                continue
            found = _placed(source, node, call, elements.stores)
            if found is None or not _is_alone(source, definition, node, found[0], base, pointers, elements):
                continue
            yield PassedRecord(node, base, *found, elements, elements.length)


def _base(source: KernelTree, node: Node, pointers: Mapping[str, str]) -> str | None:
    """The array to which a pointer of a thread's own points; None if it is none, or the same for all."""
    text = source.tree.text(node)
    made = re.match(r"(\w+)\s*\+(?![+=])|&\s*(\w+)\s*\[", text)
    if made is not None:
        name = made[1] or made[2]
        return name if name in pointers and not re.search(r"\+\+|--|(?<![=!<>])=(?!=)", text) else None
    return text if text in pointers and text not in source.types else None


def _wastes(source: KernelTree, array: str, stores: bool) -> bool:
    op = "store" if stores else "load"
    bad = (site for site in source.before.sites if site.op == op and is_badly_coalesced(site))
    return any(array in site.array.split("|") for site in bad)


def _placed(source: KernelTree, node: Node, call: Node, stores: bool) -> tuple[Node, str] | None:
    """The statement before or behind which elements are moved, and the condition on which."""
    names, condition = names_in(source.tree.text(node)), ""
    inner, outer = call, call.parent
    while outer is not None and outer.type != "function_definition":
        if outer.type == "compound_statement":
            if stores and _SHARED_BY_OTHERS.search(source.tree.text(inner)):
                return None
            loop = outer.parent
            entered = None if loop is None or stores or condition else _entered(source, loop, names)
            if loop is None or entered is None or not _is_reached(source, outer, inner):
                return inner, condition
            inner, outer, condition = loop, loop.parent, entered
            continue
        if may_be_left_out(outer, inner):
            return None
        inner, outer = outer, outer.parent
    return None


def _entered(source: KernelTree, loop: Node, names: Collection[str]) -> str | None:
    """The condition on which a loop is entered in which a pointer stays the same; None if it is no such."""
    if loop.type != "for_statement" or _SHARED_BY_OTHERS.search(source.tree.text(loop)):
        return None
    start, condition = (loop.child_by_field_name(field) for field in ("initializer", "condition"))
    code = source.tree.text(loop)
    if start is None or condition is None or any(changes(name, code) for name in names):
        return None
    first = re.fullmatch(r"(?:\w+\s+)*(\w+)\s*=\s*([^=,;]+);?", source.tree.text(start).strip())
    test = re.fullmatch(r"(\w+)(\s*(?:<=?|>=?|!=).*)", source.tree.text(condition).strip())
    if (
        first is None
        or test is None
        or first[1] != test[1]
        or re.search(r"\(|\+\+|--", f"{first[2]}{test[2]}")
    ):
        return None
    return f"({first[2].strip()}){test[2]}" if not first[2].strip().isalnum() else first[2].strip() + test[2]


def _is_reached(source: KernelTree, block: Node, statement: Node) -> bool:
    """Whether the first iteration of a loop comes to a statement of its body."""
    before = source.tree.content[block.start_byte : statement.start_byte]
    return not re.search(rb"\b(?:continue|break|return|goto)\b", before)


def _is_alone(
    source: KernelTree,
    definition: Node,
    node: Node,
    statement: Node,
    base: str,
    pointers: Mapping[str, str],
    elements: AccessedElements,
) -> bool:
    """Whether nothing else of a kernel concerns the elements: another use of a pointer to what is assigned, a
    store to what is read.
    """
    code, name, array = source.tree.text(definition), source.tree.text(node), pointers[base]
    if name == base and changes(name, code) != 1:
        return False
    same = [one for one, other in pointers.items() if other == array]
    if elements.stores:
        return _uses(same, source.tree.text(statement)) == 1
    stored = any(re.search(rf"\b{one}\s*\[[^;]*?\]\s*(?:[-+*/%|&^]|<<|>>)?=(?!=)", code) for one in same)
    constant = "const" in source.types[array]
    return not stored and (constant or _uses(same, source.tree.text(statement)) == 1)


def _uses(names: Collection[str], code: str) -> int:
    return len(re.findall(rf"(?<![\w.])(?:{'|'.join(names)})\b", code))
