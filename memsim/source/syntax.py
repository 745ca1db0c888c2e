"""CUDA C++ as a syntax tree, by tree-sitter.

Macro calls on a line of their own without a semicolon (`DEFINE_KERNEL(add, +)`) are not C++ before
preprocessing; they are hidden from the parser and returned beside the tree. So are macros behind a pointer's
asterisk (`float *RESTRICT in`), macros for execution spaces before some types
(`HOST_DEVICE vec<T, 4> zero()`), and attributes of kernels, and of shared arrays, that the parser does not
know (`__cluster_dims__(2)`, `__align__(16)`). There is no preprocessing: both branches of an `#if` are in the
tree, unless it cuts a declaration or a block (`memsim.source.text`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from memsim.errors import MemsimError
from memsim.source.text import NO_CODE, Cut, bracket_end, cuts, split_at_commas, substitute_names

if TYPE_CHECKING:
    from tree_sitter import Node as Node
    from tree_sitter import Parser
else:
    Node = Any  # where nobody looks at types, nor perhaps has the parser

_FUNCTION_LIKE = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([^)\n]*)\)((?:\\\r?\n|[^\n])*<<<(?:\\\r?\n|[^\n])*)", re.MULTILINE
)
_VISIBLE = re.compile(rb"[^\r\n]")
_LOOSE = frozenset(
    "ERROR number_literal type_identifier primitive_type argument_list parameter_list string_literal".split()
)
_TYPEDEF = re.compile(rb"\s*typedef\b")
_BRACE = re.compile(rb"[{}();]")
_SCOPE = re.compile(rb"(?:inline\s+)?namespace\b[\w:\s]*|extern")
_DIRECTIVE = re.compile(rb"[ \t]*#[ \t]*(\w+)")
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\([^)\n]*\))?((?:\\\r?\n|[^\n])*)", re.MULTILINE)
_LINE = re.compile(r'#line 1 "([^"]*)"')
_GOES_ON = re.compile(rb"\s*(?:[{;,.<>=+\-*:?\d\"']|/[^/*])")
_CALL = re.compile(rb"^[ \t]*(?P<name>[A-Za-z_]\w*)[ \t]*\(", re.MULTILINE)
_ATTRIBUTE = re.compile(
    rb"\b__(?:cluster_dims|block_size|maxnreg)__\s*\("
    rb"|(?<=__shared__\s)__align__\s*\(|\b__align__\s*\((?=[^()]*\)\s*__shared__)"
)
_SPECIFIER = b"inline"
# A macro for `__host__ __device__` before a type that the parser would take for what it declares:
# `HOST_DEVICE static vec<T, 4> zero()`, `HOST_DEVICE vec<T, 4> zero()`.
_EXECUTION_SPACE = re.compile(
    rb"\b[A-Z][A-Z0-9_]{5,}(?=\s+(?:static|constexpr|inline|virtual|explicit|friend)\b)"
    rb"|\b(?=\w{6})[A-Z0-9_]*DEVICE[A-Z0-9_]*(?=\s+[A-Za-z_][\w:]*\s*<)"
)
# A macro for `__restrict__`: `T *RESTRICT in`.
_QUALIFIER = re.compile(rb"(?<=[*&])(\s*)([A-Z][A-Z0-9_]*)(?=\s+[A-Za-z_]\w*\s*[,)=\[])")
_KEYWORDS = frozenset(b"if for while switch return sizeof catch do else asm static_assert defined".split())


@dataclass(frozen=True, slots=True)
class Call:
    """A macro call on a line of its own: bytes [start, end) of the text."""

    start: int
    end: int
    name: str


@dataclass(frozen=True, slots=True)
class Tree:
    """The bytes of a source, the root of their tree, and what was hidden from the parser: calls of macros,
    and branches of groups that cut something.
    """

    content: bytes
    masked: bytes
    root: Node
    calls: tuple[Call, ...]
    cuts: tuple[Cut, ...] = ()

    def text(self, node: Node) -> str:
        """The text of a node."""
        return self.content[node.start_byte : node.end_byte].decode("utf-8", "replace")


@lru_cache(maxsize=64)
def parse(text: str) -> Tree:
    """The tree of a source. Code that cannot be parsed is an `ERROR` node; nothing is raised."""
    content = text.encode("utf-8")
    calls = tuple(_standalone_calls(content))
    masked = _with_specifiers(_blanked(content, ((call.start, call.end) for call in calls)))
    masked = _QUALIFIER.sub(lambda found: found[1] + blank(found[2]), masked)
    root = _parser().parse(masked).root_node
    if root.has_error:
        code = _code_of(masked)
        found = tuple(cuts(code, directives(masked)))
        quiet = _blanked(masked, (place for cut in found for place in cut.hidden))
        other = _parser().parse(quiet).root_node if found else root
        if _error_bytes(other) < _error_bytes(root):
            return Tree(content, quiet, other, calls, found)
    return Tree(content, masked, root, calls)


def _with_specifiers(content: bytes) -> bytes:
    """The content with a specifier that the parser knows in place of each that it does not: attributes of
    kernels, and macros for execution spaces.
    """
    if not _ATTRIBUTE.search(content) and not _EXECUTION_SPACE.search(content):
        return content
    code = _code_of(content)
    left = bytearray(content)
    text = code.decode("latin-1")  # places in it are those of bytes
    places = [(one.start(), bracket_end(text, one.end()) or one.end()) for one in _ATTRIBUTE.finditer(code)]
    places += [one.span() for one in _EXECUTION_SPACE.finditer(code)]
    for start, end in places:
        left[start:end] = _SPECIFIER + blank(content[start + len(_SPECIFIER) : end])
    return bytes(left)


def _blanked(content: bytes, places: Iterable[tuple[int, int]]) -> bytes:
    """The content with these bytes [start, end) blank."""
    left = bytearray(content)
    for start, end in places:
        left[start:end] = blank(content[start:end])
    return bytes(left)


def _error_bytes(node: Node) -> int:
    """How many bytes are in the outermost nodes that could not be parsed; a missing token is one."""
    count, waiting = 0, [node]  # no recursion: blocks may be nested by the thousand
    while waiting:
        one = waiting.pop()
        if one.type == "ERROR" or one.is_missing:
            count += max(1, one.end_byte - one.start_byte)
        elif one.has_error:
            waiting += one.children
    return count


def _code_of(content: bytes) -> bytes:
    """The content with comments, strings and directives blanked."""
    return NO_CODE.sub(lambda piece: blank(piece[0]), content)


def blank(content: bytes) -> bytes:
    """Replace everything but line breaks by spaces."""
    return _VISIBLE.sub(b" ", content)


def parse_declarations(tree: Tree, start: int, end: int) -> Iterator[Node]:
    """The nodes of [start, end), parsed declaration by declaration: an error in one does not affect the
    others.
    """
    code = _code_of(tree.masked[start:end])
    quiet = bytearray(tree.masked)
    for at, until, _ in directives(tree.masked[start:end]):
        quiet[start + at : start + until] = blank(tree.masked[start + at : start + until])
    content = bytes(quiet)
    begin = depth = 0
    for found in _BRACE.finditer(code):
        if found[0] == b"{" and depth == 0 and _SCOPE.fullmatch(code[begin : found.start()].strip()):
            begin = found.end()
            continue
        depth += found[0] in (b"{", b"(")
        depth -= found[0] in (b"}", b")")
        if depth > 0 or found[0] not in (b";", b"}"):
            continue
        if found[0] == b"}" and _TYPEDEF.match(code, begin):
            continue  # the name comes after the brace
        depth = 0
        if code[begin : found.end()].strip(b"; \t\r\n}"):
            yield from _parse_range(content, start + begin, start + found.end())
        begin = found.end()
    if code[begin:].strip():
        yield from _parse_range(content, start + begin, end)


def place_of(text: str, line: int) -> tuple[str, int]:
    """The file that `#line 1 "FILE"` names for a line of the text, and the line there; "" if none does."""
    lines = text.split("\n", line)[: line - 1]
    for above, said in enumerate(reversed(lines)):
        header = _LINE.fullmatch(said)
        if header is not None:
            return header[1], above + 1
    return "", line


def is_fragment(node: Node) -> bool:
    """Is it a fragment of a declaration that could not be parsed?"""
    return node.type in _LOOSE


def _parse_range(content: bytes, start: int, end: int) -> list[Node]:
    """The nodes of [start, end) at their positions; one for all if they are fragments."""
    import tree_sitter

    first, last = (tree_sitter.Point(*_point(content, place)) for place in (start, end))
    parser = _parser()
    try:
        parser.included_ranges = [tree_sitter.Range(first, last, start, end)]
        root = parser.parse(content).root_node
        return [root] if any(map(is_fragment, root.named_children)) else root.named_children
    finally:
        parser.included_ranges = []


def _point(content: bytes, place: int) -> tuple[int, int]:
    return content.count(b"\n", 0, place), place - content.rfind(b"\n", 0, place) - 1


def macro_calls(text: str) -> Iterator[tuple[int, str, str]]:
    """Calls of the source's own macros with arguments: the line, the function's code before it, the
    expansion.

    One level deep, with `##` and `__VA_ARGS__`.
    """
    text = text.encode("ascii", "replace").decode()
    code = _code_of(text.encode()).decode()
    for define in _FUNCTION_LIKE.finditer(text):
        name, body = define[1], define[3].replace("\\\n", " ").replace("\\\r\n", " ")
        parameters = [parameter.strip() for parameter in define[2].split(",")]
        for found in re.finditer(rf"\b{name}\s*\(", code):
            end = bracket_end(code, found.end())
            if end == 0:
                continue
            before = code.rfind("\n}", 0, found.start()) + 2
            arguments = [part.strip() for part in split_at_commas(text[found.end() : end - 1], "([{", ")]}")]
            around = code[code.find("{", before) + 1 : found.start()]
            yield code.count("\n", 0, found.start()) + 1, around, _expand(body, parameters, arguments)


def _expand(body: str, parameters: list[str], arguments: list[str]) -> str:
    given = dict(zip(parameters, arguments))
    if parameters[-1] == "...":
        given["__VA_ARGS__"] = ", ".join(arguments[len(parameters) - 1 :])
    return re.sub(r"\s*##\s*", "", substitute_names(body, given))


def directives(content: bytes) -> Iterator[tuple[int, int, bytes]]:
    """The preprocessor directives: the bytes of each, and its name (`ifdef`)."""
    for piece in NO_CODE.finditer(content):
        found = _DIRECTIVE.match(piece[0])
        if found is not None:
            yield piece.start(), piece.end(), found[1]


def macros(text: str) -> dict[str, str]:
    """The bodies of the macros that a source defines, by name; for several definitions all bodies."""
    found: dict[str, str] = {}
    for define in _DEFINE.finditer(text):
        found[define[1]] = f"{found.get(define[1], '')} {define[2]}"
    return found


def has_parser() -> bool:
    """Whether tree-sitter is here; there is none for Python in a browser."""
    return find_spec("tree_sitter") is not None


@lru_cache(maxsize=1)
def _parser() -> Parser:
    try:
        import tree_sitter
        import tree_sitter_cuda
    except ImportError:
        hint = "pip install tree-sitter tree-sitter-cuda"
        raise MemsimError("the parser of CUDA source, tree-sitter, is not installed", hint=hint) from None
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cuda.language()))


def _standalone_calls(content: bytes) -> Iterator[Call]:
    """Calls such as `CHECK(x)` alone on their lines, without a semicolon."""
    code = _code_of(content)
    text = code.decode("latin-1")
    last = 0
    for found in _CALL.finditer(code):
        name = found["name"]
        before = code[last : found.start()].rstrip()[-1:]
        if name in _KEYWORDS or before not in (b"", b";", b"{", b"}", b":"):
            continue
        end = bracket_end(text, found.end())
        after = code[end:].lstrip(b" \t\r")
        if end == 0 or (after and not after.startswith(b"\n")):
            continue
        if _GOES_ON.match(content[end:]):
            continue
        if b"<<<" in code[found.start() : end]:
            continue
        last = end
        yield Call(found.start("name"), end, name.decode())


LOOPS = ("for_statement", "while_statement", "do_statement", "for_range_loop")
NOTHING = (None, "", None)  # that is assigned to, how, and what
_PARTS = ("field_expression", "subscript_expression")


def walk(node: Node) -> Iterator[Node]:
    """A node and all in it, in order."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += reversed(one.children)


def outside(node: Node, end: Node | None = None) -> Iterator[Node]:
    """What a node is in, from the inside, before `end`."""
    while node.parent is not None and node.parent != end:
        node = node.parent
        yield node


def fields(node: Node, *names: str) -> list[Node] | None:
    """These fields of a node; None if one is missing."""
    found = [one for one in map(node.child_by_field_name, names) if one is not None]
    return found if len(found) == len(names) else None


def body_of(definition: Node) -> Node | None:
    """The body of a function's definition, with its template or without."""
    return _without_template(definition).child_by_field_name("body")


def arguments_of(call: Node) -> list[Node]:
    """What a call gives; [] of anything else."""
    given = call.child_by_field_name("arguments") if call.type == "call_expression" else None
    return [] if given is None else [one for one in given.named_children if one.type != "comment"]


def assignment_to(node: Node) -> Node | None:
    """The assignment, by `=` or another operator, whose target a node is, in parentheses perhaps."""
    while node.parent is not None and node.parent.type == "parenthesized_expression":
        node = node.parent
    around = node.parent
    assigns = around is not None and around.type == "assignment_expression" and around.children[0] == node
    return around if assigns else None


def assignment_parts(node: Node) -> tuple[Node | None, str, Node | None]:
    """What an expression assigns to, how, and what."""
    if node.type == "assignment_expression":
        return node.children[0], node.children[1].type, node.children[2]
    if node.type == "update_expression":
        return node.named_children[0], "++", None
    return NOTHING


def part_around(node: Node) -> Node:
    """The field, or the element, of the field ... that is taken of a node: `p[i].v.x` of `p[i]`."""
    while (around := node.parent) is not None and around.type in _PARTS and around.children[0] == node:
        node = around
    return node


def bare(node: Node) -> Node:
    """An expression, or a condition, without the parentheses around it."""
    while node.type in ("parenthesized_expression", "condition_clause") and len(node.named_children) == 1:
        node = node.named_children[0]
    return node


def parameters_of(function: Node) -> list[Node]:
    """The declarations of a function's parameters."""
    for node in walk(function):
        if node.type == "parameter_list":
            return [one for one in node.named_children if one.type != "comment"]
    return []


def plain_name(function: str) -> str:
    """`f` of `f<4>`."""
    found = re.match(r"[\w:]*", function)
    return found[0] if found else ""


def declarator_of(function: Node) -> Node | None:
    """What a definition has between its type and its body, with its template or without."""
    return _without_template(function).child_by_field_name("declarator")


def _without_template(function: Node) -> Node:
    return function.children[-1] if function.type == "template_declaration" else function


def function_name(tree: Tree, function: Node) -> str:
    """What a definition is called, without the arguments of a specialization."""
    declared = declarator_of(function)
    return "" if declared is None else plain_name(tree.text(declared).lstrip("*& "))
