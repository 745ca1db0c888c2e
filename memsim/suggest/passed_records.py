"""Records that a kernel passes on: `f(p + 5 * i)`, where `f` reads or assigns five elements; and
`f(p.at(i))`, where a member function of a parameter's class returns such a pointer. `T x(p + 5 * i);` is
alike, whose constructor copies them.

The record is moved by the warp, and `f` gets a copy of it. What is read is moved before the call, or before a
loop around it in which the pointer stays the same, if the loop is entered; what is assigned, behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memsim.source.syntax import Node, arguments_of, walk
from memsim.source.values import changes
from memsim.suggest.c_text import EFFECT, names_in
from memsim.suggest.element_uses import SHARED_BY_OTHERS, ElementUse, ElementUses, MovedRecord
from memsim.suggest.footprints import AccessedElements, may_be_left_out
from memsim.suggest.loops import LEAVES, loop_of


class PassedRecords(ElementUses):
    """A kernel's source, in which records are looked for that it passes on."""

    def passed(self, kernel: Node) -> Iterator[MovedRecord]:
        """The records of arrays that waste sectors."""
        pointers = self.pointers(kernel)
        for call in walk(kernel):
            for place, node in enumerate(_given(call)):
                base = self._member(node) or self._base(node, set(pointers))
                elements = None
                if base is not None and call.type == "call_expression":
                    elements = self.footprints.of_call(call, place)
                elif base is not None:
                    elements = self.footprints.of_object(node)
                if base is None or elements is None or elements.length is None:
                    continue
                placed = self._placed(node, call, elements.stores)
                origin = pointers.get(base, base)
                same = [one for one in pointers if pointers[one] == origin] or [base]
                if placed is None or not self._wastes(origin, elements.stores):
                    continue
                if self._is_alone(kernel, node, placed[0], same, elements):
                    use = ElementUse(kernel, node, placed[0], base, "", True, elements.stores, base)
                    how = elements.loads, elements.stores, placed[1], call
                    yield MovedRecord(((0, use),), self.tree.text(node), elements.length, *how)

    def _base(self, node: Node, pointers: set[str]) -> str | None:
        """The array to which a pointer of a thread's own points; None if it is none, or the same for all."""
        text = self.tree.text(node)
        made = re.match(r"(\w+)\s*\+(?![+=])|&\s*(\w+)\s*\[", text)
        if made is not None:
            name = made[1] or made[2]
            return name if name in pointers and not EFFECT.search(text) else None
        return text if text in pointers and text not in self.types else None

    def _member(self, node: Node) -> str:
        """A parameter of a class, of which a member function returns a pointer that is made of numbers; "" of
        anything else.
        """
        made = re.match(r"(\w+)\.(\w+)\(", self.tree.text(node)) if node.type == "call_expression" else None
        if made is None or "*" in self.types.get(made[1], "*") or EFFECT.search(self.tree.text(node)):
            return ""
        defined = rf"\b{made[2]}\s*\([^()]*\)\s*(?:const\s*)?\{{([^{{}}]*)\}}"
        bodies = [found[1].strip() for text in self.texts for found in re.finditer(defined, text)]
        simple = [one for one in bodies if re.fullmatch(r"return\s[\w\s:.*+/%<>-]*;", one)]
        named = len(re.findall(rf"(?<![\w.]){made[1]}\b", self.own_code))
        return made[1] if bodies and simple == bodies and named == 2 else ""

    def _wastes(self, array: str, stores: bool) -> bool:
        """Whether accesses to an array do, of whatever file the function is that makes them."""
        op = "store" if stores else "load"
        sites = (one.array.split("|") for one in self.before.sites if one.op == op and self.is_bad(one))
        return any(array in (one, one.partition(".")[0]) for names in sites for one in names)

    def _placed(self, node: Node, call: Node, stores: bool) -> tuple[Node, str] | None:
        """The statement before or behind which elements are moved, and the condition on which."""
        names, condition = names_in(self.tree.text(node)), ""
        inner, outer = call, call.parent
        while outer is not None and outer.type != "function_definition":
            if outer.type == "compound_statement":
                if stores and SHARED_BY_OTHERS.search(self.tree.text(inner)):
                    return None
                entered = None if stores or condition else self._entered(outer.parent, names)
                ahead = self.tree.content[outer.start_byte : inner.start_byte].decode()
                if entered is None or LEAVES.search(ahead):
                    return inner, condition
                condition, outer = entered, outer.parent or outer
            elif may_be_left_out(outer, inner):
                of_loop = outer.type in ("for_statement", "while_statement")
                alone = of_loop and inner.type == "expression_statement"
                return (inner, condition) if alone and inner == outer.child_by_field_name("body") else None
            inner, outer = outer, outer.parent
        return None

    def _entered(self, node: Node | None, names: list[str]) -> str | None:
        """The condition on which a loop is entered in which a pointer stays the same; None if it does not."""
        loop = loop_of(self.tree, node)
        if node is None or loop is None or not loop.start:
            return None
        code = self.tree.text(node)
        if SHARED_BY_OTHERS.search(code) or any(changes(name, code) for name in names):
            return None
        start = loop.start if loop.start.isalnum() else f"({loop.start})"
        return None if "(" in loop.start + loop.end else f"{start} {loop.test} {loop.end}"

    def _is_alone(
        self, kernel: Node, node: Node, statement: Node, same: list[str], elements: AccessedElements
    ) -> bool:
        """Whether nothing else of a kernel concerns the elements: another use of a pointer to what is
        assigned, a store to what is read. same: the pointers to the array.
        """
        code, name = self.tree.text(kernel), self.tree.text(node)
        if name in same and changes(name, code) != 1:
            return False
        once = len(re.findall(rf"(?<![\w.])(?:{'|'.join(same)})\b", self.tree.text(statement))) == 1
        if elements.stores:
            return once
        stored = any(re.search(rf"\b{one}\s*\[[^;]*?\]\s*(?:[-+*/%|&^]|<<|>>)?=(?!=)", code) for one in same)
        return not stored and (once or any("const" in self.types.get(one, "") for one in same))


def _given(node: Node) -> list[Node]:
    """What a call by name gives, or an object is made of that a declaration has."""
    if node.type == "call_expression":
        return arguments_of(node) if node.children[0].type in ("identifier", "template_function") else []
    of_object = node.parent is not None and node.parent.type == "declaration" and len(node.children) == 2
    return node.children[1].named_children if of_object else []
