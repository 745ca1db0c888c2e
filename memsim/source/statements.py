"""Statements of CUDA source: which lines belong to one, and its text without line breaks and comments.

    Bs[ty][tx] =
        Bm[row * n + col];   // both lines are the statement `Bs[ty][tx] = Bm[row * n + col];`

Of a statement that contains others (`if`, `for`, a lambda) only what is outside of them counts: its head.
Statements that share a line belong together, because a line table cannot tell them apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from memsim.source.syntax import Node, parse
from memsim.source.text import without_comments

#: Nodes whose children are statements, and which are none themselves.
_CONTAINERS = frozenset(
    (
        "translation_unit compound_statement declaration_list field_declaration_list namespace_definition "
        "linkage_specification template_declaration function_definition class_specifier struct_specifier "
        "case_statement labeled_statement else_clause"
    ).split()
)
_PARTS = ("body", "consequence", "alternative")
_NO_CODE = (b"", b"else", b"do")
_ASM = re.compile(rb"\b(?:asm|__asm|__asm__)\b")


@dataclass(frozen=True, slots=True)
class SourceStatement:
    """Lines `first` to `last` of a source, 1-based, and their code in one line."""

    first: int
    last: int
    text: str


def statement_at(text: str, line: int) -> SourceStatement | None:
    """The statement, or the statements of one line, of which `line` is a part.

    None if the line has no statement of its own, or one that could not be parsed, or inline assembly.
    """
    return _by_line(text).get(line)


@lru_cache(maxsize=16)
def _by_line(text: str) -> dict[int, SourceStatement]:
    """The statements of a source by each of their lines."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    tree = parse(text)
    groups: list[tuple[int, int, bool]] = []  # [first byte, last byte), does it contain assembly
    try:
        units = sorted(_units(tree.root, tree.content))
    except RecursionError:  # thousands of blocks in blocks, or an expression of thousands of terms
        return {}
    for start, end in units:
        is_asm = _ASM.search(tree.content, start, end) is not None
        if groups and b"\n" not in tree.content[groups[-1][1] : start]:
            start, end, is_asm = groups[-1][0], max(end, groups[-1][1]), is_asm or groups[-1][2]
            groups.pop()
        groups.append((start, end, is_asm))
    code = without_comments(text).encode()
    found: dict[int, SourceStatement] = {}
    row, place = 1, 0
    for start, end, is_asm in groups:
        row, place = row + tree.content.count(b"\n", place, start), start
        last = row + tree.content.count(b"\n", start, end)
        if not is_asm:
            said = " ".join(code[start:end].decode("utf-8", "replace").split())
            found |= dict.fromkeys(range(row, last + 1), SourceStatement(row, last, said))
    return found


def _units(node: Node, content: bytes) -> Iterator[tuple[int, int]]:
    """The bytes of each simple statement, and of each head."""
    if node.type in _CONTAINERS or node.type.startswith("preproc_"):
        for child in node.named_children:
            yield from _units(child, content)
    elif node.type.endswith(("_statement", "declaration")):
        place = node.start_byte
        for part in _parts(node):
            yield from _code(content, place, part.start_byte)
            yield from _units(part, content)
            place = part.end_byte
        yield from _code(content, place, node.end_byte)


def _code(content: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The bytes [start, end) without blanks around them; none if there is no code in them."""
    piece = content[start:end]
    if piece.strip(b" \t\r\n{};") not in _NO_CODE:
        start += len(piece) - len(piece.lstrip())
        yield start, start + len(piece.strip())


def _parts(node: Node) -> Iterator[Node]:
    """The statements inside of a statement: of `if` and of loops what they control, of a lambda its body."""
    for number, child in enumerate(node.children):
        is_control = node.type.endswith("_statement") and node.field_name_for_child(number) in _PARTS
        if is_control or child.type == "compound_statement":
            yield child
        else:
            yield from _parts(child)
