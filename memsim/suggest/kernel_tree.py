"""A kernel's source as a syntax tree, in which an edit looks for accesses.

Calls of the source's own macros, and of `__ldg`, are what they stand for: `vload(v, &C(i, j))` is an access
that nobody sees before it is `v = *((float4 *)(&C[(i) + (j)*ldc]));`. An edit of the expanded text replaces
whole calls by that, and leaves all others as they are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path, PurePath

from memsim.analysis import Analysis, SiteCounts
from memsim.job import Job
from memsim.source.expressions import ELEMENT_BYTES
from memsim.source.kernels import parameter_of, parameters
from memsim.source.syntax import Node, Tree, body_of, outside, parameters_of, parse, walk
from memsim.source.text import bracket_end, split_at_commas, substitute_names, without_comments
from memsim.suggest.edit import Edit, Replacement, apply_replacements
from memsim.suggest.global_accesses import is_badly_coalesced
from memsim.suggest.prove import source_text

_MACRO = re.compile(
    r"^[ \t]*#[ \t]*(?:define[ \t]+(?P<name>\w+)\((?P<of>[\w\s,]*)\)(?P<body>(?:\\\r?\n|[^\n])*)"
    r"|(?:define|undef)[ \t]+(?P<other>\w+))",
    re.MULTILINE,
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\r?\n|[^\n])*", re.MULTILINE)
_CALL = re.compile(r"\b([A-Za-z_]\w*)[ \t]*\(")
READ = "__ldg"  # which reads an element through its address
#: What a body has that is no part of a function's code, or is more than text.
_MORE = re.compile(r"#|\b__(?:global|device|shared)__\b")


class Expanded:
    """A text in which macros with arguments, and `__ldg`, are expanded; of a name that is defined anew, those
    before and behind an `#undef`. Lines keep their numbers.

    calls: where each begins and ends in it, and by how much the text up to there is longer than the original.
    """

    def __init__(self, original: str) -> None:
        code = without_comments(original)
        self._macros: dict[str, list[tuple[int, list[str], str]]] = {}
        for found in _MACRO.finditer(code):
            body = re.sub(r"\s*\\\r?\n\s*", " ", found["body"] or "").strip()
            before = self._macros.setdefault(found["name"] or found["other"], [(-1, [], "")])
            is_known = not _MORE.search(body) and not before[-1][2]
            parameters = [one.strip() for one in (found["of"] or "").split(",")]
            before.append((found.start(), parameters, body if is_known else ""))
        directives = [one.span() for one in _DIRECTIVE.finditer(code)] if self._macros else []
        calls = [one for one in self._calls(code) if not any(a <= one.start < b for a, b in directives)]
        self.text, longer = apply_replacements(original, calls), 0
        self.calls: list[tuple[int, int, int]] = []
        for one in calls:
            start = one.start + longer
            longer += len(one.new) - (one.end - one.start)
            self.calls.append((start, one.end + longer, longer))

    def _calls(self, code: str, at: int = -1, within: frozenset[str] = frozenset()) -> list[Replacement]:
        """The outermost calls in code, by what they stand for, where that is at a place of the source.

        within: macros of which this is the text, in which their names are no calls.
        """
        found = list[Replacement]()
        for match in _CALL.finditer(code) if self._macros or READ in code else ():
            if match[1] in within or (found and match.start() < found[-1].end):
                continue
            place, end = match.start() if at < 0 else at, bracket_end(code, match.end())
            new = self._stands_for(match[1], code[match.end() : end - 1], place) if end else ""
            if not new:
                continue
            lines = code.count("\n", match.start(), end)
            if new.count("\n") != lines:
                new = " ".join(new.split()) + "\n" * lines
            new = apply_replacements(new, self._calls(new, place, within | {match[1]} - {READ}))
            found.append(Replacement(match.start(), end, new))
        return found

    def _stands_for(self, name: str, inside: str, place: int) -> str:
        """What a call at a place is, with what is inside of its parentheses; "" if it stays as it is."""
        if name == READ:
            return _read(inside.strip())
        known = [one for one in self._macros.get(name, ()) if one[0] <= place]
        _, parameters, body = known[-1] if known else (0, [], "")
        given = [one.strip(" ") for one in split_at_commas(inside, "([{", ")]}")]
        return substitute_names(body, dict(zip(parameters, given))) if len(given) == len(parameters) else ""

    def back(self, replacements: Iterable[Replacement]) -> list[Replacement]:
        """Replacements of the text as such of the original: of whole calls, where they are in some."""
        found = list[Replacement]()
        for start, end, some in self._groups(replacements):
            inside = [Replacement(one.start - start, one.end - start, one.new) for one in some]
            new = apply_replacements(self.text[start:end], inside)
            found.append(Replacement(self.place(start), self.place(end), new))
        return found

    def _groups(self, replacements: Iterable[Replacement]) -> list[tuple[int, int, list[Replacement]]]:
        """Replacements together with others in the calls that they cut: where, and which."""
        groups = list[tuple[int, int, list[Replacement]]]()
        for one in sorted(replacements, key=lambda each: (each.start, each.end)):
            start, end = one.start, one.end
            for first, last, _ in self.calls:
                if first < start < last or first < end < last:
                    start, end = min(start, first), max(end, last)
            before = groups.pop() if groups and start < groups[-1][1] else (start, end, [])
            groups.append((min(before[0], start), max(before[1], end), [*before[2], one]))
        return groups

    def place(self, at: int) -> int:
        """A place of the text in the original, in no call."""
        return at - next((longer for start, _, longer in reversed(self.calls) if start < at), 0)


def _read(address: str) -> str:
    """The element that an address is of, or that a pointer points to."""
    element = re.match(r"&\s*(\w+\s*\[)", address)
    if element is not None:
        whole = bracket_end(address, element.end(), "[") == len(address)
        return address[element.start(1) :] if whole else ""
    return f"*({address})" if re.match(r"\w+\s*(?:\+|$)", address) else ""


@lru_cache(maxsize=16)
def expand_macros(text: str) -> Expanded:
    """A text with its macros expanded."""
    return Expanded(text)


DEVICE = Path(__file__).parent / "device"
LIBRARY = ""  # a file that no edit changes
_WHOLE = ("expression_statement", "return_statement", "declaration")

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


class KernelTree:
    """The file that defines a kernel, or another one with functions that it calls. A letter that is not
    ASCII, as in comments, is a byte of the tree, too; calls of the file's macros and `__ldg` are expanded.
    """

    is_bad = staticmethod(is_badly_coalesced)

    def __init__(self, before: Analysis, job: Job, file: str = "") -> None:
        self.before, own = before, job.kernel.file
        self.title = before.trace.kernel.partition("<")[0].rpartition("::")[2]
        texts = dict(before.trace.sources)
        texts[own] = texts.get(own, "") or source_text(job)
        defined = re.compile(rf"\b__global__\b[^;{{}}]*\b{re.escape(self.title)}\s*[<(]")
        self.kernel_file = next((one for one in (own, *texts) if defined.search(texts[one])), own)
        self.file = file or self.kernel_file
        self.expanded, self.kernel_text = expand_macros(texts[self.file]), texts[self.kernel_file]
        self.original, self.text = texts[self.file], self.expanded.text
        self.tree = parse(re.sub(r"[^\x00-\x7f]", "?", self.text))

    @cached_property
    def code(self) -> str:
        """The text without comments, at the same positions."""
        return without_comments(self.text)

    @cached_property
    def definition(self) -> Node | None:
        """The kernel's definition, with its template."""
        for node in walk(self.tree.root):
            head = self._head(node)
            if "__global__" in head and re.search(rf"\b{self.title}\s*[<(]", head):
                return _with_template(node)
        return None

    @property
    def kernels(self) -> list[Node]:
        """The kernel's definition, if it is found."""
        return [] if self.definition is None else [self.definition]

    @property
    def body(self) -> Node | None:
        """The kernel's."""
        return None if self.definition is None else body_of(self.definition)

    def functions(self, op: str = "") -> list[Node]:
        """The kernel, and functions of a device with accesses that waste sectors: any, or of an `op`."""
        lines = {one.line for one in self.wasting if op in ("", one.op)}
        found = dict.fromkeys(self.kernels)
        for node in walk(self.tree.root):
            inside = any(node.start_point[0] < line <= node.end_point[0] + 1 for line in lines)
            if inside and "__device__" in self._head(node):
                found[_with_template(node)] = None
        return list(found)

    def _head(self, node: Node) -> str:
        """What a function's definition has before its body, "" of anything else."""
        declared = node.child_by_field_name("declarator") if node.type == "function_definition" else None
        return "" if declared is None else self.tree.text(node)[: declared.end_byte - node.start_byte]

    @cached_property
    def types(self) -> dict[str, str]:
        """The types of the kernel's parameters, by name."""
        found = parameters(self.kernel_text, self.title, self.before.trace.kernel)
        return {name: kind for kind, name in found}

    @property
    def sizes(self) -> list[str]:
        """The kernel's parameters that are no pointers."""
        return [name for name, kind in self.types.items() if "*" not in kind]

    def lines_of(self, node: Node) -> range:
        """The lines of the statement that an expression is in, any of which a compiler gives its access."""
        while node.type not in _WHOLE and node.parent is not None:
            if node.parent.type.endswith("statement") and node.parent.type not in _WHOLE:
                break  # a block, or what it is the head of
            node = node.parent
        return range(node.start_point[0] + 1, node.end_point[0] + 2)

    def indent(self, place: int) -> str:
        """The blanks with which the line of a place begins."""
        found = re.match(r"[ \t]*", self.text[self.text.rfind("\n", 0, place) + 1 : place])
        return found[0] if found else ""

    @property
    def own_code(self) -> str:
        """The kernel's definition without comments, "" if it was not found."""
        return "" if self.definition is None else self.code[slice(*self.definition.byte_range)]

    def opening(self, definition: Node) -> int:
        """The place behind the brace that opens a definition's body."""
        body = body_of(definition)
        return definition.start_byte if body is None else body.start_byte + 1

    def edit(
        self, replacements: Iterable[Replacement], names: Iterable[str], *, among_blocks: bool = False
    ) -> Edit:
        """An edit of the source, in which conditions are stated where the kernel begins."""
        place = 0 if self.definition is None else self.opening(self.definition)
        back, place = tuple(self.expanded.back(replacements)), self.expanded.place(place)
        used = tuple(dict.fromkeys(names))
        return Edit(self.file, self.original, back, names=used, declared=place, among_blocks=among_blocks)

    @cached_property
    def wasting(self) -> list[SiteCounts]:
        """The accesses of the file that waste sectors, and those that a library makes for the kernel."""
        files = {self.file, LIBRARY} if self.file == self.kernel_file else {self.file}
        return [one for one in self.before.sites if _file_of(one) in files and self.is_bad(one)]

    def wasted(self, lines: range) -> list[SiteCounts]:
        """Those that may be of these lines, which a library's have no more."""
        return [one for one in self.wasting if one.line in lines or one.file != self.file]

    def not_of_global_memory(self, definition: Node) -> Iterator[str]:
        """Arrays that a kernel declares, in registers or shared memory, and what is volatile."""
        for node in walk(definition):
            of_parameter = node.parent is not None and node.parent.type == "parameter_declaration"
            if node.type == "array_declarator" and not of_parameter:
                yield self.tree.text(node.children[0])
        for match in re.finditer(r"\bvolatile\b[^;,(){}]*?\b(\w+)\s*(?=[;,)=])", self.tree.text(definition)):
            yield match[1]

    def added(self, name: str, before: Iterable[Node]) -> Replacement:
        """The CUDA C++ of a file in `device/`, ahead of the first of some definitions."""
        place = min(map(self._head_line, before))
        return Replacement(place, place, (DEVICE / f"{name}.cuh").read_text("utf-8") + "\n")

    def _head_line(self, definition: Node) -> int:
        """The start of the line in which a definition begins, outside of `extern "C"`."""
        linked = [one for one in outside(definition) if one.type == "linkage_specification"]
        return self.text.rfind("\n", 0, (linked or [definition])[-1].start_byte) + 1

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
        wide, narrow = ELEMENT_BYTES.get(cast["type"], 0), self.element_bytes(element[1], function)
        if not narrow or wide <= narrow or wide % narrow:
            return None
        pointer = f"({cast['const'] or ''}{cast['type']} *)"
        return Vector(element[1], pointer, element[2].strip(), wide // narrow)

    def words_of(self, array: str, function: Node) -> list[str]:
        """The words of an array's type."""
        name = array.rpartition(".")[2]
        declared = re.search(rf"(\w+)\s*[*&][\s\w]*\b{name}\s*[=;]", self.text)
        return re.findall(r"\w+", self.types_of(function).get(array, declared[1] if declared else "float"))

    def element_bytes(self, array: str, function: Node) -> int:
        """Of an element; 0 if its type is not known."""
        words = self.words_of(array, function) if array in self.types_of(function) else []
        known = [ELEMENT_BYTES[word] for word in words if word in ELEMENT_BYTES]
        return 8 if "long" in words else min(known, default=0)

    def types_of(self, function: Node) -> dict[str, str]:
        """The types of a function's parameters, by name."""
        return self.types if function == self.definition else declared_types(self.tree, function)


def declared_types(tree: Tree, function: Node) -> dict[str, str]:
    """The types of a function's parameters, by name, as declared."""
    return {one.name: one.type for one in (parameter_of(tree, node) for node in parameters_of(function))}


def wasting_files(before: Analysis, is_bad: Callable[[SiteCounts], bool] = is_badly_coalesced) -> list[str]:
    """The files with accesses that waste sectors, most first; `LIBRARY` for the kernel's own."""
    wasted = Counter[str]()
    for one in before.sites:
        if is_bad(one):
            wasted[_file_of(one)] += one.needless_sectors or 0
    return [file for file, _ in wasted.most_common() if file in (LIBRARY, *before.trace.sources)]


def _file_of(site: SiteCounts) -> str:
    """The file of an access; `LIBRARY` if code of a library's is all that is known: a copy of a `half2`."""
    return LIBRARY if PurePath(site.file).is_absolute() else site.file


def _with_template(function: Node) -> Node:
    around = function.parent
    return around if around is not None and around.type == "template_declaration" else function


def with_pragmas(text: str, place: int) -> int:
    """Where the pragmas of a loop begin, which has to follow them."""
    found = re.search(r"(?:#[ \t]*pragma[^\n]*\n\s*)+$", text[:place])
    return place if found is None else found.start()


def _bare(text: str) -> str:
    """An expression without the parentheses around it."""
    text = text.strip()
    while text.startswith("(") and bracket_end(text, 1) == len(text):
        text = text[1:-1].strip()
    return text
