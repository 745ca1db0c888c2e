"""Vectors in arrays of their parts, as sources have them: `*(float4 *)&p[i]`, `*(float4 *)(p + i)`, and
`reinterpret_cast<float4 *>(&p[i])[0]`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memsim.source.expressions import ELEMENT_BYTES
from memsim.source.text import bracket_end
from memsim.suggest.footprints import parameters_of
from memsim.suggest.kernel_tree import KernelTree

if TYPE_CHECKING:
    from tree_sitter import Node

#: `(float4 *)` and `reinterpret_cast<float4 *>` of an address, `p[i]`, and `p + i`.
_CAST = re.compile(
    r"(?:\(|reinterpret_cast ?< ?)(?P<const>const )?(?P<type>\w+) ?\* ?[)>] ?(?P<of>.+)", re.DOTALL
)
_INDEXED, _PLUS = re.compile(r"(\w+) ?\[(.+)\]"), re.compile(r"(\w+) ?\+([^?=<>&|^]+)")


@dataclass(frozen=True, slots=True)
class Vector:
    """`unit` elements of an array as one, from an index on. pointer: the cast, as to `float4 *`.

    What is an element of the array has a unit of 1.
    """

    array: str
    pointer: str = ""
    index: str = ""
    unit: int = 1

    @property
    def base(self) -> str:
        """What comes before the index in its address."""
        return f"{self.pointer}&{self.array}"


class VectorTree(KernelTree):
    """A kernel's source, in which vectors are known."""

    def vector(self, node: Node, function: Node) -> Vector | None:
        """The vector that an expression is; None of any other."""
        text = " ".join(self.tree.text(node).split())
        last = text.rfind("[") if node.type == "subscript_expression" else -1
        if (last < 0 and node.type != "pointer_expression") or (last >= 0 and text[last:] != "[0]"):
            return None
        cast = _CAST.fullmatch(_bare(text[:last] if last >= 0 else text[1:]))
        placed = None if cast is None or text[0] == "&" else _bare(cast["of"])
        if cast is None or placed is None:
            return None
        element = _INDEXED.fullmatch(_bare(placed[1:])) if placed[0] == "&" else _PLUS.fullmatch(placed)
        whole = element is not None and bracket_end(f"{element[2]}]", 0, "[") == len(element[2]) + 1
        if element is None or not whole:
            return None
        wide, narrow = ELEMENT_BYTES.get(cast["type"], 0), self._bytes(element[1], function)
        if not narrow or wide <= narrow or wide % narrow:
            return None
        pointer = f"({cast['const'] or ''}{cast['type']} *)"
        return Vector(element[1], pointer, element[2].strip(), wide // narrow)

    def words_of(self, array: str, function: Node) -> list[str]:
        """The words of an array's type."""
        name = array.rpartition(".")[2]
        declared = re.search(rf"(\w+)\s*[*&][\s\w]*\b{name}\s*[=;]", self.text)
        return re.findall(r"\w+", self.types_of(function).get(array, declared[1] if declared else "float"))

    def _bytes(self, array: str, function: Node) -> int:
        """Of an element; 0 if its type is not known."""
        words = self.words_of(array, function) if array in self.types_of(function) else []
        known = [ELEMENT_BYTES[word] for word in words if word in ELEMENT_BYTES]
        return 8 if "long" in words else min(known, default=0)

    def types_of(self, function: Node) -> dict[str, str]:
        """The types of a function's parameters, by name."""
        if function == self.definition:
            return self.types
        found = {}
        for node in parameters_of(function):
            declared = re.fullmatch(r"(.*?)(\w+)\s*(\[[^\]]*\])?", self.tree.text(node), re.DOTALL)
            if declared is not None:
                found[declared[2]] = declared[1] + ("*" if declared[3] else "")
        return found


def _bare(text: str) -> str:
    """An expression without the parentheses around it."""
    text = text.strip()
    while text.startswith("(") and bracket_end(text, 1) == len(text):
        text = text[1:-1].strip()
    return text
