"""The kernels that a source defines, in source order, with their C and template parameters.

Kernels defined by macros are not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from memsim.source.syntax import Tree, is_fragment, parse, parse_declarations, place_of

if TYPE_CHECKING:
    from tree_sitter import Node

_KEPT_OUT = re.compile(r"\b(?:__restrict__|__restrict|restrict|__grid_constant__)\b")
_FOLDERS = ("declaration_list", "translation_unit", "ERROR")


@dataclass(frozen=True, slots=True)
class SourceParameter:
    """A parameter of a kernel: its C type (`const float *`) and its name."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}{'' if self.type.endswith(('*', '&')) else ' '}{self.name}"


@dataclass(frozen=True, slots=True)
class TemplateParameter:
    """`typename T`, `int N = 4`: its kind (`typename`, `int`), its name, and its default."""

    kind: str
    name: str
    default: str | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".strip()

    @property
    def example(self) -> str:
        """An argument that may be given for it."""
        return {"typename": "float", "class": "float", "bool": "true"}.get(self.kind, "8")


@dataclass(frozen=True, slots=True)
class KernelSource:
    """A kernel as its source defines it.

    Attributes:
        name: with its namespaces, `ns::transpose`.
        parameters: in order.
        template: its template parameters; empty if it is not a template.
        line: of its definition.
        file: the header that `#line` names; empty for the source itself.
    """

    name: str
    parameters: tuple[SourceParameter, ...]
    template: tuple[TemplateParameter, ...]
    line: int
    file: str = ""

    @property
    def plain(self) -> str:
        """Its name without namespaces."""
        return self.name.rpartition("::")[2]

    @property
    def example(self) -> str:
        """An instance of the template: `transpose<float, 8>`."""
        return f"{self.name}<{', '.join(parameter.example for parameter in self.template)}>"

    @property
    def signature(self) -> str:
        """`transpose<typename T, int N>(const T *in, T *out)`."""
        template = f"<{', '.join(map(str, self.template))}>" if self.template else ""
        return f"{self.name}{template}({', '.join(map(str, self.parameters))})"


@lru_cache(maxsize=64)
def kernels(text: str) -> tuple[KernelSource, ...]:
    """The kernels of a source in the order of their definitions, without duplicates."""
    if "__global__" not in text:
        return ()
    tree = parse(text)
    found: dict[str, KernelSource] = {}
    for kernel in _in(tree, tree.root, ""):
        found.setdefault(kernel.name, kernel)
    ordered = sorted(found.values(), key=lambda kernel: kernel.line)
    places = (place_of(text, kernel.line) for kernel in ordered)
    return tuple(replace(kernel, file=file, line=line) for kernel, (file, line) in zip(ordered, places))


def _in(tree: Tree, node: Node, namespace: str, *, reparse: bool = True) -> Iterator[KernelSource]:
    """The kernels in a node; `anew`: code that failed to parse is parsed again, piece by piece."""
    children = node.named_children
    if reparse and (node.type == "ERROR" or any(map(is_fragment, children))):
        children, reparse = list(parse_declarations(tree, node.start_byte, node.end_byte)), False
    for child in children:
        inner, template = child, None
        while inner.type in ("template_declaration", "linkage_specification") and inner.named_children:
            template = inner.child_by_field_name("parameters") or template
            body = inner.child_by_field_name("body")
            inner = body if body is not None else inner.named_children[-1]
        if inner.type == "function_definition":
            kernel = _kernel(tree, child, inner, template, namespace)
            if kernel is not None:
                yield kernel
        elif inner.type == "namespace_definition":
            name = inner.child_by_field_name("name")
            body = inner.child_by_field_name("body")
            inside = f"{namespace}{tree.text(name)}::" if name is not None else namespace
            if body is not None:
                yield from _in(tree, body, inside, reparse=reparse)
        elif inner.type in _FOLDERS or inner.type.startswith("preproc_"):
            yield from _in(tree, inner, namespace, reparse=reparse)


def _kernel(
    tree: Tree, whole: Node, function: Node, template: Node | None, namespace: str
) -> KernelSource | None:
    body, declarator = function.child_by_field_name("body"), function.child_by_field_name("declarator")
    if body is None or declarator is None or declarator.type != "function_declarator":
        return None
    head = tree.content[whole.start_byte : body.start_byte]
    name, parameters = (
        declarator.child_by_field_name("declarator"),
        declarator.child_by_field_name("parameters"),
    )
    if b"__global__" not in head or name is None or parameters is None:
        return None
    return KernelSource(
        namespace + tree.text(name),
        tuple(
            _parameter(tree, child)
            for child in parameters.named_children
            if child.type.endswith("parameter_declaration") and tree.text(child) != "void"
        ),
        template_parameters(template) if template is not None else (),
        name.start_point.row + 1,
    )


def _parameter(tree: Tree, node: Node) -> SourceParameter:
    """`const float *__restrict__ in` has the type `const float *` and the name `in`."""
    text = tree.text(node)
    name = node.child_by_field_name("declarator")
    while name is not None and name.type not in ("identifier", "field_identifier"):
        inside = name.child_by_field_name("declarator")
        name = (
            inside
            if inside is not None
            else next(
                (
                    child
                    for child in reversed(name.named_children)
                    if child.type.endswith(("identifier", "declarator"))
                ),
                None,
            )
        )
    called = tree.text(name) if name is not None else ""
    array = "*" if "[" in text and name is not None else ""
    kind = (
        tree.masked[node.start_byte : name.start_byte].decode("utf-8", "replace")
        if name is not None
        else text
    )
    kind = re.sub(r"\s+", " ", _KEPT_OUT.sub(" ", kind)).strip()
    return SourceParameter(
        re.sub(r"\s*([*&])\s*(?=[*&]|$)", r" \1", kind + array).replace("* *", "**"), called
    )


def template_parameters(node: Node) -> tuple[TemplateParameter, ...]:
    """The parameters in `<typename T, int N = 4>`."""
    return tuple(
        _template_parameter((child.text or b"").decode("utf-8", "replace"))
        for child in node.named_children
        if child.type.endswith("declaration")
    )


def _template_parameter(text: str) -> TemplateParameter:
    declared, _, default = text.partition("=")
    words = declared.split()
    name = re.sub(r"\W", "", words[-1]) if words else ""
    return TemplateParameter(" ".join(words[:-1]), name, default.strip() or None)
