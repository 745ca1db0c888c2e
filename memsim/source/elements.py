"""Array elements as declared in C: numbers, CUDA's vector types, and the source's own structs.

A struct is laid out as in C: each member at a multiple of its alignment. Not supported: templates, base
classes, virtual functions, bit fields, unions, and `#pragma pack`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING

from memsim.source.expressions import ELEMENT_BYTES
from memsim.source.kernels import template_arguments
from memsim.source.syntax import Tree, macros, parse
from memsim.source.values import DEFINE, constants, value_of, without_excluded_branches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

#: Numbers of C, as `--arg` names them.
NUMBERS = {
    **{"float": "f32", "double": "f64", "half": "f16", "__half": "f16", "int": "i32", "unsigned": "u32"},
    **{"unsigned int": "u32", "uint": "u32", "int32_t": "i32", "uint32_t": "u32", "short": "i16"},
    **{"int16_t": "i16", "uint16_t": "u16", "unsigned short": "u16", "char": "i8", "signed char": "i8"},
    **{"unsigned char": "u8", "int8_t": "i8", "uint8_t": "u8", "bool": "u8", "long": "i64", "size_t": "u64"},
    **{"long long": "i64", "unsigned long long": "u64", "int64_t": "i64", "uint64_t": "u64"},
    **{"unsigned long": "u64", "uchar": "u8", "ushort": "u16", "longlong": "i64", "ulonglong": "u64"},
    **{"__nv_bfloat16": "bf16", "nv_bfloat16": "bf16"},
}
_VECTOR = re.compile(
    r"(float|double|int|uint|short|ushort|char|uchar|longlong|ulonglong|(?:__)?half|__nv_bfloat16)([1234])"
)
_ALIGNED = re.compile(r"\b(struct|class)\s+(?:__align__|alignas)\s*\(\s*(\d+)\s*\)(?=\s+(\w+))")
_ALIAS = re.compile(r"\busing\s+(\w+)\s*=\s*([\w\s]+);|\btypedef\s+([\w\s]+?)\s+(\w+)\s*;")
_UNREAD = ("base_class_clause", "virtual", "bitfield_clause")


@dataclass(frozen=True, slots=True)
class ElementType:
    """One element of an array: `count` contiguous numbers of the type `short` ("f32").

    size, alignment: in bytes. For a struct with padding, or of several types, the numbers are words or bytes.
    """

    short: str
    count: int
    size: int
    alignment: int


def element(text: str, name: str) -> ElementType | None:
    """The layout of an element of the C type `name`; None if unknown."""
    structs = _structs(text)
    return structs.number(name) or structs.of(name.rpartition("::")[2])


def type_sizes(text: str, kernel: str) -> dict[str, int]:
    """Bytes of types by name: of CUDA's own, of other names that a source gives them (`typedef`, `using`,
    `#define`), and of type parameters of a kernel, `tile<float, 32>`.
    """
    found = dict(ELEMENT_BYTES)
    for name, kind in {
        **_aliases(text),
        **dict(DEFINE.findall(text)),
        **template_arguments(text, kernel),
    }.items():
        known = _plain(kind.strip())
        if known is not None:
            found[name] = known.size
    return found


def struct_argument(text: str, name: str, parameter: str) -> tuple[str, tuple[str, ...]] | None:
    """`--arg` for a parameter that is a struct or a vector, and the names in it.

    `i32(p.width,p.height)+f32[p.data_SIZE]`; the parameter's own name if not all of its members are numbers
    and pointers to numbers. None if the type is no vector and the source has no such struct.
    """
    vector = _VECTOR.fullmatch(name)
    if vector is not None:
        members: list[_Member] | None = [
            _Member(NUMBERS[vector[1]], axis) for axis in "xyzw"[: int(vector[2])]
        ]
    elif _declares(text, name.partition("<")[0].rpartition("::")[2].strip()):
        members = _structs(text).numbers(name.rpartition("::")[2])
    else:
        return None
    if members is None:
        return parameter, (parameter,)
    words, asked = [], []
    for (short, is_pointer), some in groupby(members, key=lambda one: (one.short, one.is_pointer)):
        names = [f"{parameter}.{one.name}{'_SIZE' * is_pointer}" for one in some]
        words += [f"{short}[{one}]" for one in names] if is_pointer else [f"{short}({','.join(names)})"]
        asked += names
    return "+".join(words), tuple(asked)


@dataclass(frozen=True, slots=True)
class _Member:
    """A member that is a number of the type `short` ("f32"), or a pointer to such."""

    short: str
    name: str
    is_pointer: bool = False


@lru_cache(maxsize=256)
def _declares(text: str, name: str) -> bool:
    """Has the source a struct of that name? `class` may also begin a parameter of a template."""
    return bool(re.search(rf"\b(?:struct|class)\b[^;{{>=]*\b{name}\b[^;{{]*\{{|\}}\s*{name}\s*;", text))


def _plain(name: str) -> ElementType | None:
    """A number, or a vector of numbers."""
    vector = _VECTOR.fullmatch(name)
    kind, count = (vector[1], int(vector[2])) if vector is not None else (name, 1)
    if kind not in NUMBERS:
        return None
    size = int(re.sub(r"\D", "", NUMBERS[kind])) // 8
    return ElementType(NUMBERS[kind], count, size * count, size if count == 3 else min(16, size * count))


#: A member that is a pointer.
POINTER = ElementType("u64", 1, 8, 8)


def _aliases(text: str) -> dict[str, str]:
    """Types by other names that a source gives them."""
    found = _ALIAS.findall(without_excluded_branches(text, macros(text)))
    pairs = {(name or other, (kind or given).strip()) for name, kind, given, other in found}
    return {name: kind for name, kind in pairs if [one for one, _ in pairs].count(name) == 1}


@lru_cache(maxsize=4)
def _structs(text: str) -> _Structs:
    return _Structs(text)


class _Structs:
    """The structs of one source."""

    def __init__(self, text: str) -> None:
        self.alignments = {found[3]: int(found[2]) for found in _ALIGNED.finditer(text)}
        self.text = text
        self.tree: Tree = parse(_ALIGNED.sub(lambda found: found[1].ljust(len(found[0])), text))
        self.known = constants(text)
        self.open: set[str] = set()
        self.aliases = _aliases(text)

    def number(self, kind: str) -> ElementType | None:
        """A number or a vector of numbers, also by a name that the source gives it: `using real = float;`."""
        return _plain(kind) or _plain(self.aliases.get(kind.rpartition("::")[2], kind))

    def of(self, name: str) -> ElementType | None:
        """The struct of a name."""
        body = None if "#pragma pack" in self.text or name in self.open else self._body(self.tree.root, name)
        if body is None:
            return None
        self.open.add(name)
        members = list(self._members(body))
        self.open.discard(name)
        found = [member for member in members if member is not None]
        return (
            None if len(found) < len(members) or not found else _struct(found, self.alignments.get(name, 1))
        )

    def numbers(self, name: str) -> list[_Member] | None:
        """The members of a struct of numbers and pointers to numbers; None if it is another one."""
        is_plain = "#pragma pack" not in self.text and name not in self.alignments
        body = self._body(self.tree.root, name) if is_plain else None
        found: list[_Member] = []
        for field in body.named_children if body is not None else ():
            kind = field.child_by_field_name("type")
            one = None if kind is None else self.number(self.tree.text(kind))
            for declarator in field.children_by_field_name("declarator"):
                if declarator.type == "function_declarator":
                    continue
                is_pointer = declarator.type == "pointer_declarator"
                named = declarator.child_by_field_name("declarator") if is_pointer else declarator
                if one is None or one.count > 1 or named is None or named.type != "field_identifier":
                    return None
                found.append(_Member(one.short, self.tree.text(named), is_pointer))
        return found or None

    def _body(self, node: Node, name: str) -> Node | None:
        """The members of `struct name {...}` or `typedef struct {...} name`."""
        for child in node.named_children:
            kind = child
            named = child.child_by_field_name("name")
            if child.type == "type_definition":
                kind = child.child_by_field_name("type") or child
                named = child.child_by_field_name("declarator")
            body = kind.child_by_field_name("body")
            if (
                kind.type in ("struct_specifier", "class_specifier")
                and named is not None
                and body is not None
            ):
                if self.tree.text(named) == name:
                    return None if any(part.type in _UNREAD for part in kind.named_children) else body
            elif child.type in ("namespace_definition", "declaration_list", "linkage_specification"):
                inside = self._body(child, name)
                if inside is not None:
                    return inside
        return None

    def _members(self, body: Node) -> Iterator[ElementType | None]:
        """Each member that takes space; None for an unsupported one."""
        for field in body.named_children:
            kind, declarators = field.child_by_field_name("type"), field.children_by_field_name("declarator")
            is_nameless = (
                field.type == "field_declaration" and not declarators
            )  # an anonymous union or struct
            if is_nameless or any(part.type in _UNREAD for part in field.children):
                yield None
            if field.type != "field_declaration" or re.match(r"\s*static\b", self.tree.text(field)):
                continue
            for declarator in declarators:
                if declarator.type != "function_declarator":
                    yield None if kind is None else self._member(self.tree.text(kind), declarator)

    def _member(self, kind: str, declarator: Node) -> ElementType | None:
        count = 1
        while declarator.type == "array_declarator":
            size, inner = declarator.child_by_field_name("size"), declarator.child_by_field_name("declarator")
            extent = value_of(self.tree.text(size), self.known) if size is not None else None
            if extent is None or inner is None:
                return None
            count, declarator = count * extent, inner
        if declarator.type == "pointer_declarator":
            one: ElementType | None = POINTER
        else:
            one = self.number(kind) or self.of(kind.rpartition("::")[2])
        return one and ElementType(one.short, one.count * count, one.size * count, one.alignment)


def _struct(members: list[ElementType], least: int) -> ElementType:
    """Consecutive members, each at its alignment."""
    end, padded = 0, False
    alignment = max(least, *(member.alignment for member in members))
    for member in members:
        start = -(-end // member.alignment) * member.alignment
        padded |= start != end
        end = start + member.size
    size = -(-end // alignment) * alignment
    kinds = {member.short for member in members}
    if len(kinds) == 1 and not padded and size == end:
        return ElementType(kinds.pop(), sum(member.count for member in members), size, alignment)
    return (
        ElementType("i32", size // 4, size, alignment)
        if size % 4 == 0
        else ElementType("u8", size, size, alignment)
    )
