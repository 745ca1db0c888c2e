"""The pieces of a source that are kept or removed as wholes: functions, classes, variables, uses of macros.

What each declares, names, and whether device code can use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memsim.source.syntax import Node, Tree, is_fragment, parse_declarations

WORD = re.compile(r"[A-Za-z_]\w*")
_DEVICE = re.compile(
    r"\b__(?:global|device|constant|shared|managed)__\b|\w*DEVICE\w*|\b(?:constexpr|consteval|texture|CONSTEXPR)\b"
)
_STAYS = re.compile(r"\b(?:const|static_assert)\b")
_USED = re.compile(r"(?<!\.)(?<!->)\b[A-Za-z_]\w*")
_QUIET = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_CLASS = re.compile(
    r"\s*(?:template\s*<[^{;]*>\s*)?(?:typedef\s+)?(?:struct|class|union|enum)\b"
    r"(?:\s+\w+\s*\((?:[^{;()]|\([^{;()]*\))*\))*"  # __align__(8), ALIGNED(sizeof(T) * 4)
    r"(?:\s+[A-Z_]+)*\s+(\w+)\s*(?:final\s*)?[:{]"
)
_TYPEDEF = re.compile(
    r"\s*typedef\s+(?:struct|union|enum)\b.*\}(?:\s*\w+\s*\([^)]*\))*\s*(\w+)\s*;\s*", re.DOTALL
)
_GLOBAL = re.compile(r"\b__global__\b")

# Nodes whose children are separate items; what is between these, such as `namespace x {`, is kept.
_FOLDERS = frozenset({
    "translation_unit", "namespace_definition", "linkage_specification", "declaration_list",
    "preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef",
})  # fmt: skip
_DIRECTIVES = frozenset({"preproc_def", "preproc_function_def", "preproc_call", "comment", "preproc_include"})
_CLASSES = frozenset({"struct_specifier", "class_specifier", "union_specifier", "enum_specifier"})
_OTHER_NAMES = frozenset(
    "type_definition alias_declaration namespace_alias_definition concept_definition".split()
)
_IDENTIFIERS = frozenset(
    "identifier type_identifier namespace_identifier field_identifier operator_name".split()
)
_WITHOUT_BODY = ("default_method_clause", "delete_method_clause")


@dataclass(slots=True)
class Item:
    """A piece of a source that is kept or removed as a whole.

    Attributes:
        file: the text that it is in.
        start, end: its bytes there.
        names: that it declares.
        uses: the identifiers in it.
        kernel: it contains a kernel.
        device: device code can use it.
        always: it is kept unconditionally.
        instance: an explicit instantiation of a template, kept if that is a kernel.
        holes: bytes inside it that are removed even if it is kept: host methods.
    """

    file: str
    start: int
    end: int
    names: frozenset[str] = frozenset()
    uses: frozenset[str] = frozenset()
    kernel: bool = False
    device: bool = False
    always: bool = False
    instance: bool = False
    asserts: bool = False
    holes: list[tuple[int, int]] = field(default_factory=list)


class ItemReader:
    """The items of one text."""

    def __init__(self, file: str, tree: Tree, macros: Mapping[str, str]) -> None:
        self.file, self.tree, self.macros = file, tree, macros

    def items(self) -> Iterator[Item]:
        """All of them, in no order."""
        found = list(self._in(self.tree.root))
        yield from found
        yield from self._in_other_branches(found)
        for call in self.tree.calls:
            yield self._of_macro(call.name, call.start, call.end)

    def _in_other_branches(self, found: Sequence[Item]) -> Iterator[Item]:
        """The items of branches that were hidden from the parser, unless they are part of one that it saw."""
        whole = replace(self.tree, masked=self.tree.content)
        for start, end in (place for cut in self.tree.cuts for place in cut.hidden):
            if not any(item.start <= start and end <= item.end for item in found):
                yield from map(self._of, parse_declarations(whole, start, end))

    def _in(self, folder: Node) -> Iterator[Item]:
        if folder.type == "ERROR" or any(map(is_fragment, _body(folder).named_children)):
            for node in parse_declarations(self.tree, folder.start_byte, folder.end_byte):
                yield self._of(node)
            return
        skipped = {folder.child_by_field_name(name) for name in ("name", "condition", "value")}
        for node in folder.named_children:
            if node in skipped or node.type in _DIRECTIVES:
                continue
            body = node.child_by_field_name("body") if node.type == "linkage_specification" else node
            if (node.type in _FOLDERS and body is not None and body.type in _FOLDERS) or node.type == "ERROR":
                yield from self._in(node)
            else:
                yield self._of(node)

    def _of(self, node: Node) -> Item:
        inner = _inner(node)
        start, end = node.start_byte, self._end(node)
        text = self.tree.content[start:end].decode("utf-8", "replace")
        item = Item(self.file, start, end, uses=_words(text))
        named = _CLASS.match(text) or _TYPEDEF.match(text)
        if text.strip() == ";":
            item.always = True
        elif inner.type == "static_assert_declaration":
            item.asserts = True
        elif inner.type == "function_definition":
            body = inner.child_by_field_name("body")
            head = self.tree.content[node.start_byte : (body or inner).start_byte if body else inner.end_byte]
            self._mark(item, head.decode("utf-8", "replace"))
            item.names = frozenset(self._declared(inner))
            # Calls of an operator do not name it.
            item.always = item.device and any(name.startswith("operator") for name in item.names)
            if named is not None:  # `struct __align__(8) Pair {...}` parses as a function
                item.device = True
                item.names |= {named[1]}
        elif inner.type in _CLASSES:
            item.device = True
            item.names = frozenset(self._declared(inner))
            item.holes = list(self._holes(inner))
        elif inner.type == "declaration":
            self._mark(item, text)
            item.names = frozenset(self._declared(inner))
            function = _is_function(inner)
            kind = inner.child_by_field_name("type")
            if kind is not None and kind.type in _CLASSES:
                item.device = True
                item.holes = list(self._holes(kind))
            elif not function:
                item.device |= _STAYS.search(text) is not None
            item.kernel &= not function  # a prototype needs its definition
            item.device |= function and _GLOBAL.search(text) is not None
        elif inner.type in _OTHER_NAMES:
            item.device = True
            item.names = frozenset(self._declared(inner))
            kind = inner.child_by_field_name("type")
            if kind is not None and kind.type in _CLASSES:
                item.holes = list(self._holes(kind))
        elif inner.type == "using_declaration":
            item.device = True
            item.always = re.search(r"\busing\s+namespace\b", text) is not None
            item.names = frozenset(WORD.findall(text)[-1:])
        elif inner.type == "template_instantiation":
            item.names = frozenset(self._declared(inner))
            item.instance = True
            item.always = _GLOBAL.search(text) is not None
        elif named is not None:
            item.device = True
            item.names = frozenset([named[1]])
        else:
            first = WORD.match(_QUIET.sub(" ", text).lstrip())
            if first is not None and first[0] in self.macros:
                return self._of_macro(first[0], node.start_byte, node.end_byte)
            self._mark(item, text)
            item.names = frozenset(re.findall(r"([A-Za-z_]\w*)\s*\(", text))
        return item

    def _end(self, node: Node) -> int:
        """Where a node ends: of one that ends in a branch of a cut group, with the other branches."""
        end = node.end_byte
        for cut in self.tree.cuts:
            if cut.start < end < cut.end and not self.tree.masked[end : cut.end].strip():
                return cut.end
        return end

    def _of_macro(self, name: str, start: int, end: int) -> Item:
        text = self.tree.content[start:end].decode("utf-8", "replace")
        item = Item(self.file, start, end, uses=_words(text))
        said = _expanded(text, self.macros)
        item.kernel = _GLOBAL.search(said) is not None
        item.always = item.kernel or re.search(r"\b__(?:device|constant)__\b", said) is not None
        item.names = frozenset(re.findall(r"\b(?:struct|class|enum|union|using)\s+(\w+)", said))
        item.device = item.always or bool(item.names)
        return item

    def _mark(self, item: Item, text: str) -> None:
        """Is it a kernel, or for the device, as far as `text` and the macros in it say?"""
        said = _expanded(text, self.macros)
        item.kernel = _GLOBAL.search(said) is not None
        item.device = _DEVICE.search(said) is not None

    def _declared(self, node: Node) -> Iterator[str]:
        """The names that a declaration declares: of functions, variables, types, enumerators."""
        if node.type in _IDENTIFIERS:
            yield self.tree.text(node)
        elif node.type in ("template_function", "template_type") or node.type == "enumerator":
            name = node.child_by_field_name("name")
            yield from self._declared(name) if name else ()
        elif node.type in ("qualified_identifier", "enumerator_list", "init_declarator_list"):
            for child in node.named_children:
                yield from self._declared(child)
        elif node.type in _CLASSES:
            for part in ("name", "body"):
                found = node.child_by_field_name(part)
                if found is not None and (part == "name" or found.type == "enumerator_list"):
                    yield from self._declared(found)
        else:
            kind = node.child_by_field_name("type")
            if kind is not None and kind.type in _CLASSES:
                yield from self._declared(kind)
            for field_name in ("declarator", "name"):
                for child in node.children_by_field_name(field_name):
                    yield from self._declared(child)
            if node.type in ("reference_declarator", "pointer_declarator", "parenthesized_declarator"):
                for child in node.named_children:
                    yield from self._declared(child)

    def _holes(self, node: Node) -> Iterator[tuple[int, int]]:
        """Methods of a class that device code cannot call."""
        body = node if node.type in _FOLDERS else node.child_by_field_name("body")
        if body is None or body.type not in ("field_declaration_list", *_FOLDERS):
            return
        for member in body.named_children:
            inner = _inner(member)
            if member.type in _FOLDERS:
                yield from self._holes(member)
            elif inner.type == "friend_declaration" or (
                # `EXTENSION union {...}` parses as a function without parameters
                inner.type in ("function_definition", "field_declaration", "declaration")
                and _is_function(inner)
            ):
                code = inner.child_by_field_name("body")
                head = self.tree.content[member.start_byte : code.start_byte if code else member.end_byte]
                said = _expanded(head.decode("utf-8", "replace"), self.macros)
                bodyless = any(child.type in _WITHOUT_BODY for child in inner.named_children)
                traits = code is None and re.search(
                    r"\bstatic\b", said
                )  # asked for its type, and never called
                if not (_DEVICE.search(said) or re.search(r"\bvirtual\b", said) or bodyless or traits):
                    yield member.start_byte, member.end_byte
            elif inner.type in ("field_declaration", "declaration"):
                kind = inner.child_by_field_name("type")
                if kind is not None and kind.type in _CLASSES:
                    yield from self._holes(kind)
            elif inner.type in _CLASSES:
                yield from self._holes(inner)


def _body(folder: Node) -> Node:
    """The body of a namespace or `extern "C"` block."""
    return folder.child_by_field_name("body") or folder


def _is_function(node: Node) -> bool:
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type in ("pointer_declarator", "reference_declarator"):
        declarator = declarator.named_children[-1] if declarator.named_children else None
    return declarator is not None and declarator.type in ("function_declarator", "operator_cast")


def _inner(node: Node) -> Node:
    """The declaration inside a template or `extern "C"`."""
    while node.type in ("template_declaration", "linkage_specification"):
        inside = [
            child
            for child in node.named_children
            if child.type not in ("template_parameter_list", "string_literal", "requires_clause", "comment")
        ]
        if not inside:
            break
        node = inside[-1]
    return node


def _words(text: str) -> frozenset[str]:
    """The identifiers that a piece of code uses, without members after a dot."""
    return frozenset(_USED.findall(_QUIET.sub(" ", text)))


def _expanded(text: str, macros: Mapping[str, str]) -> str:
    """A text followed by the bodies of the macros in it."""
    said, seen = [text], set[str]()
    waiting = WORD.findall(text)
    while waiting:
        word = waiting.pop()
        if word in macros and word not in seen:
            seen.add(word)
            said.append(macros[word])
            waiting += WORD.findall(macros[word])
    return " ".join(said)
