"""The reads of arrays that are only read, in a kernel and in functions that all its threads call at once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memsim.analysis import Analysis
from memsim.arch.units import WORD
from memsim.job import Job
from memsim.source.elements import type_sizes
from memsim.source.kernels import template_arguments
from memsim.source.syntax import Node, arguments_of, assignment_to, function_name, outside, walk
from memsim.source.text import split_at_commas
from memsim.source.values import constants, value_of
from memsim.suggest.c_text import names_in
from memsim.suggest.global_accesses import wastes_sectors
from memsim.suggest.index_ends import WHOLE, Indices, NotKnown, Test
from memsim.suggest.index_sums import IndexSum
from memsim.suggest.kernel_tree import KernelTree, declared_types
from memsim.suggest.prove import integer_arguments, macros_of, source_of

QUALIFIERS = re.compile(r"\b(?:const|__restrict(?:__)?)\b|\*")
_SHARED = re.compile(r"\b__shared__\b[^;=]*?\b(\w+)\s*\[")
_PASSES_ON = ("argument_list", "binary_expression")


@dataclass(frozen=True)
class Read:
    """An element that is read. whole: the span that is replaced, and by what, with {} for the element. tests:
    behind which it is; conditions: those that are the same for the whole block. fills: it goes to shared
    memory.
    """

    node: Node
    whole: tuple[int, int, str]
    index: IndexSum
    tests: Sequence[Test]
    conditions: frozenset[str]
    fills: bool

    @property
    def flat(self) -> IndexSum:
        """The index without variables, from thread to thread."""
        return self.index.known.flat


class ReadsOfFile(KernelTree):
    """A file in which such reads are looked for. constants: of it, and of what the kernel's file includes."""

    is_bad = staticmethod(wastes_sectors)

    def __init__(self, before: Analysis, job: Job, file: str) -> None:
        super().__init__(before, job, file)
        included = source_of(job).included_texts(self.kernel_text)
        texts = dict.fromkeys((self.kernel_text, self.text, *included))
        self.constants = {**constants("\n".join(texts)), **macros_of(job)}
        given = template_arguments(self.kernel_text, before.trace.kernel)
        self.template = {name: value_of(text, {"true": 1, "false": 0}) for name, text in given.items()}
        numbers = {name: value for name, value in self.template.items() if value is not None}
        self.numbers = {**self.constants, **numbers, **integer_arguments(job)}
        self.launch = job.launch
        self.kernel = KernelTree(before, job)

    def reading(self) -> Iterator[ReadsOfFunction]:
        """The kernel, and functions that all its threads call at once, with accesses that waste sectors."""
        for node in self.functions():
            values = self.numbers if node in self.kernels else self._values(node)
            if values is not None:
                yield ReadsOfFunction(self, node, values)

    def _values(self, function: Node) -> dict[str, int] | None:
        """The integers of a function that all threads call once, with what is the same for all; else None."""
        name, kernel = function_name(self.tree, function), self.kernel
        named = re.compile(rf"{re.escape(name)}\s*(?:<.*>)?")
        trees = {kernel.file: kernel.tree, self.file: self.tree}
        nodes = [
            (tree, one) for tree in trees.values() for one in walk(tree.root) if one.type == "call_expression"
        ]
        calls = [one for tree, one in nodes if named.fullmatch(tree.text(one.children[0]))]
        body = kernel.body
        if body is None or len(calls) != 1 or calls[0].parent is None or calls[0].parent.parent != body:
            return None
        (call,) = calls
        if re.search(r"\breturn\b", kernel.code[body.start_byte : call.start_byte]):
            return None
        inside = re.search(r"<(.*)>", kernel.tree.text(call.children[0]))
        template = function.children[1].named_children if function.type == "template_declaration" else []
        formal = [self.tree.text(one).split()[-1] for one in template]
        values = dict(self.constants)
        given = [kernel.tree.text(one) for one in arguments_of(call)]
        for name, text in (
            *zip(declared_types(self.tree, function), given),
            *zip(formal, split_at_commas(inside[1]) if inside else []),
        ):
            if any(one not in kernel.types and one not in self.numbers for one in names_in(text)):
                return None
            value = value_of(text, self.numbers)
            values |= {} if value is None else {name: value}
        return values


class ReadsOfFunction:
    """Of the kernel, or of a function. values: of integers by name, those of the launch and block 0 too."""

    def __init__(self, file: ReadsOfFile, node: Node, values: dict[str, int]) -> None:
        self.file, self.node, self.types = file, node, declared_types(file.tree, node)
        sizes = {name for name, kind in self.types.items() if WHOLE.search(kind) and "*" not in kind}
        self.indices = Indices(file.tree, node, {*values, *sizes})
        launch = {"blockDim": file.launch.block, "gridDim": file.launch.grid, "blockIdx": (0, 0, 0)}
        of_launch = {f"{name}.{axis}": n for name, three in launch.items() for axis, n in zip("xyz", three)}
        self.values = {**values, **of_launch}
        no_int = {name for name in sizes if self.types[name].replace("const", "").strip() != "int"}
        #: Names of numbers that have a sign.
        self.signed = {name: f"(int){name}" for name in (*no_int, *of_launch)}

    def of_arrays(self) -> Iterator[tuple[str, str, int, list[Read]]]:
        """The reads of each array that is only read: its name, type, and bytes of an element."""
        sizes = type_sizes(self.file.text, self.file.before.trace.kernel)
        for array, kind in self.types.items():
            element = QUALIFIERS.sub("", kind).strip()
            reads = list(self._reads(array, kind.startswith("const"))) if kind.count("*") == 1 else []
            wasted = [site for one in reads for site in self.file.wasted(self.file.lines_of(one.node))]
            if wasted and "volatile" not in kind:
                yield array, element, sizes.get(element) or min(site.width for site in wasted), reads

    def _reads(self, array: str, is_const: bool) -> Iterator[Read]:
        """The reads of which everything is known; none if it may be stored, too."""
        tree, found = self.file.tree, []
        named = (one for one in walk(self.indices.body) if one.type == "identifier")
        for name in (one for one in named if tree.text(one) == array):
            node = name.parent
            if node is None or node.type != "subscript_expression" or node.children[0] != name:
                cast = any(one.type == "cast_expression" for one in outside(name, self.indices.body))
                if is_const and node is not None and node.type in _PASSES_ON and not cast:
                    continue
                return
            around = node.parent
            if assignment_to(node) is not None or around is None or around.type == "update_expression":
                return
            whole, fills = (node.start_byte, node.end_byte, "{}"), self._fills(node)
            if around.type == "pointer_expression":
                copy = self._copy(around)
                if copy is None and not is_const:
                    return
                if copy is None:
                    continue
                whole, fills = copy, True
            if not any(site.line in self.file.lines_of(node) for site in self.file.before.sites):
                continue  # no code of this launch
            try:
                index = self.indices.sum(node.named_children[1])
                tests, uniform = self.indices.conditions(node)
            except (NotKnown, RecursionError):
                continue
            texts = frozenset(("" if holds else "!") + f"({tree.text(one)})" for one, holds in uniform)
            if all(one in self.indices.uniform for one in names_in(*texts)):
                found.append(Read(node, whole, index, tests, texts, fills))
        yield from found

    def _fills(self, node: Node) -> bool:
        """Whether a read is what an element of shared memory is set to."""
        shared = set(_SHARED.findall(self.file.tree.text(self.node)))
        set_to = (
            one.children[0] for one in outside(node, self.indices.body) if one.type == "assignment_expression"
        )
        return any(self.file.tree.text(one).partition("[")[0].strip() in shared for one in set_to)

    def _copy(self, address: Node) -> tuple[int, int, str] | None:
        """What an asynchronous copy of a word from an address becomes."""
        call = None if address.parent is None else address.parent.parent
        given = [] if call is None else arguments_of(call)
        tree = self.file.tree
        if call is None or len(given) != 3 or tree.text(call.children[0]) != "__pipeline_memcpy_async":
            return None
        to, size = tree.text(given[0]), tree.text(given[2])
        of_word = size in ("sizeof(float)", "sizeof(int)") or value_of(size, self.values) == WORD
        if not to.startswith("&") or given[1] != address or not of_word:
            return None
        return call.start_byte, call.end_byte, f"{to[1:].strip()} = {{}}"
