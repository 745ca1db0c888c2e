"""A kernel's source as a syntax tree, in which an edit looks for accesses."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from memsim.analysis import Analysis
from memsim.files import read_text
from memsim.job import Job
from memsim.source.kernels import parameters
from memsim.source.syntax import parse
from memsim.source.text import bracket_end, without_comments
from memsim.suggest.prove import source_of

if TYPE_CHECKING:
    from tree_sitter import Node


#: What reads an element through its address.
_READ_ONLY = re.compile(r"\b__ldg\s*\(\s*&\s*(?P<element>\w+\s*\[)")
_BEFORE = re.compile(r"\b__ldg\s*\(\s*&\s*$")


class KernelTree:
    """A kernel's source. A letter that is not ASCII, as in comments, is a byte of the tree, too; and
    `__ldg(&a[i])` is `a[i]`.
    """

    def __init__(self, before: Analysis, job: Job) -> None:
        self.before, self.file = before, job.kernel.file
        self.text = before.trace.sources.get(self.file, "") or _text_of(job)
        self.tree = parse(with_plain_reads(re.sub(r"[^\x00-\x7f]", "?", self.text)))
        self.title = before.trace.kernel.partition("<")[0].rpartition("::")[2]

    @cached_property
    def code(self) -> str:
        """The text without comments, at the same positions."""
        return without_comments(self.text)

    @cached_property
    def definition(self) -> Node | None:
        """The kernel's definition, with its template."""
        for node in walk(self.tree.root):
            declared = node.child_by_field_name("declarator") if node.type == "function_definition" else None
            if declared is None or not re.search(rf"\b{self.title}\s*[<(]", self.tree.text(declared)):
                continue
            if "__global__" in self.tree.text(node)[: declared.end_byte - node.start_byte]:
                of_template = node.parent is not None and node.parent.type == "template_declaration"
                return node.parent if of_template else node
        return None

    def called(self, lines: Collection[int]) -> Iterator[Node]:
        """The functions of a device with some of these lines."""
        for node in walk(self.tree.root):
            declared = node.child_by_field_name("declarator") if node.type == "function_definition" else None
            if (
                declared is None
                or "__device__" not in self.tree.text(node)[: declared.end_byte - node.start_byte]
            ):
                continue
            if any(node.start_point[0] < line <= node.end_point[0] + 1 for line in lines):
                whole = node.parent is not None and node.parent.type == "template_declaration"
                yield node.parent if whole and node.parent is not None else node

    @cached_property
    def types(self) -> dict[str, str]:
        """The types of the kernel's parameters, by name."""
        return {name: kind for kind, name in parameters(self.text, self.title, self.before.trace.kernel)}

    @property
    def sizes(self) -> list[str]:
        """The kernel's parameters that are no pointers."""
        return [name for name, kind in self.types.items() if "*" not in kind]

    def span(self, node: Node) -> tuple[int, int]:
        """Where an element is in the source, with the `__ldg` that reads it."""
        called = _BEFORE.search(self.text[: node.start_byte])
        behind = re.compile(r"\s*\)").match(self.text, node.end_byte)
        if called is None or behind is None:
            return node.start_byte, node.end_byte
        return called.start(), behind.end()

    def indent(self, place: int) -> str:
        """The blanks with which the line of a place begins."""
        found = re.match(r"[ \t]*", self.text[self.text.rfind("\n", 0, place) + 1 : place])
        return found[0] if found else ""

    def opening(self, definition: Node) -> int:
        """The place behind the brace that opens a definition's body."""
        whole = definition.type == "template_declaration"
        body = (definition.children[-1] if whole else definition).child_by_field_name("body")
        return definition.start_byte if body is None else body.start_byte + 1

    def not_of_global_memory(self, definition: Node) -> Iterator[str]:
        """Arrays that a kernel declares, in registers or shared memory, and what is volatile."""
        for node in walk(definition):
            of_parameter = node.parent is not None and node.parent.type == "parameter_declaration"
            if node.type == "array_declarator" and not of_parameter:
                yield self.tree.text(node.children[0])
        for match in re.finditer(r"\bvolatile\b[^;,(){}]*?\b(\w+)\s*(?=[;,)=])", self.tree.text(definition)):
            yield match[1]

    def head(self, definition: Node) -> int:
        """The start of the line in which a definition begins, outside of `extern "C"`."""
        place, around = definition.start_byte, definition.parent
        while around is not None:
            place = around.start_byte if around.type == "linkage_specification" else place
            around = around.parent
        return self.text.rfind("\n", 0, place) + 1


def _text_of(job: Job) -> str:
    """The source, of which a trace does not have what makes no access itself."""
    source = source_of(job)
    return "" if source is None else source.text or read_text(source.folder / source.file)


def with_plain_reads(text: str) -> str:
    """The text with blanks in place of the `__ldg(&` and `)` around elements."""
    letters = list(text)
    for found in _READ_ONLY.finditer(text):
        end = bracket_end(text, found.end())
        if end and bracket_end(text, found.end("element"), "[") == len(text[: end - 1].rstrip()):
            for place in (*range(found.start(), found.start("element")), end - 1):
                letters[place] = " " if letters[place] != "\n" else "\n"
    return "".join(letters)


def with_pragmas(text: str, place: int) -> int:
    """Where the pragmas of a loop begin, which has to follow them."""
    found = re.search(r"(?:#[ \t]*pragma[^\n]*\n\s*)+$", text[:place])
    return place if found is None else found.start()


def walk(node: Node) -> Iterator[Node]:
    """A node and all in it, in order."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += reversed(one.children)
