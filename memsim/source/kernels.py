"""The kernels that a source defines, in source order, with their C and template parameters.

Kernels defined by macros are not found.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile

from memsim.source.syntax import Node, Tree, has_parser, is_fragment, parse, parse_declarations, place_of
from memsim.source.text import NO_CODE, split_at_commas, substitute_names, without_dead_branches

_KEPT_OUT = re.compile(
    r"\b(?:__restrict__|__restrict|restrict|__grid_constant__)\b|\[\[.*?\]\]|\((?=[\s*&]*$)"
)
#: What ends a declaration in front of another.
_ENDS = (";", "}", "{", "compound_statement", "function_definition", "declaration")
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
    text = without_dead_branches(text)
    if "__global__" not in text:
        return ()
    tree = parse(text)
    found: dict[str, KernelSource] = {}
    with suppress(RecursionError):  # namespaces by the hundred
        for kernel in _in(tree, tree.root, ""):
            found.setdefault(kernel.name, kernel)
    ordered = sorted(found.values(), key=lambda kernel: kernel.line)
    places = (place_of(text, kernel.line) for kernel in ordered)
    return tuple(replace(kernel, file=file, line=line) for kernel, (file, line) in zip(ordered, places))


def parameters(text: str, kernel: str, instance: str = "") -> tuple[tuple[str, str], ...]:
    """(C type, name) of the parameters of `kernel` (plain or mangled) in its definition, such as
    (`const float *`, `A`); () if not found, or nothing is there to read the source with.

    instance: the demangled name of a template's instance, `tile<float, 32>`: its arguments are substituted.
    """
    known = kernels(text) if has_parser() else ()
    named = (one for one in known if one.plain == kernel or f"{len(one.plain)}{one.plain}" in kernel)
    found = next(named, None)
    if found is None:
        return ()
    given = template_arguments(text, instance)
    return tuple((substitute_names(one.type, given), one.name) for one in found.parameters)


def template_constants(text: str, instance: str) -> dict[str, int]:
    """The values of the integer parameters, by name, of a template's instance; as `template_arguments`."""
    values = template_arguments(text, instance)
    return {name: int(value) for name, value in values.items() if re.fullmatch(r"\d+", value)}


def template_arguments(text: str, instance: str) -> dict[str, str]:
    """The template arguments, by parameter name, of an instance.

    `instance`: as demangled, `tile<float, 32>`; {} unless it is an instance of a template of the source, and
    in a browser, for which nobody builds the parser.
    """
    name, _, inside = instance.partition("<")
    if not inside or sys.platform == "emscripten":
        return {}
    plain = name.rpartition("::")[2]
    found = next((one for one in kernels(text) if one.plain == plain and one.template), None)
    if found is None:
        return {}
    arguments = split_at_commas(inside[: inside.rfind(">")])
    return {parameter.name: argument.strip() for parameter, argument in zip(found.template, arguments)}


def _in(tree: Tree, node: Node, namespace: str, *, reparse: bool = True) -> Iterator[KernelSource]:
    """The kernels in a node; `reparse`: code that failed to parse is parsed again, piece by piece."""
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
            body, declarator = inner.child_by_field_name("body"), inner.child_by_field_name("declarator")
            if body is not None and declarator is not None:
                head = tree.content[child.start_byte : body.start_byte]
                yield from _kernel(tree, head, declarator, template, namespace)
        elif inner.type == "function_declarator" and node.type == "ERROR":  # its body cannot be parsed
            before = list(takewhile(lambda one: one.type not in _ENDS, _before(inner)))
            start = before[-1].start_byte if before else inner.start_byte
            lists = (one for one in before if one.type == "template_parameter_list")
            head = tree.content[start : inner.start_byte]
            yield from _kernel(tree, head, inner, next(lists, None), namespace)
        elif inner.type == "namespace_definition":
            name = inner.child_by_field_name("name")
            body = inner.child_by_field_name("body")
            inside = f"{namespace}{tree.text(name)}::" if name is not None else namespace
            if body is not None:
                yield from _in(tree, body, inside, reparse=reparse)
        elif inner.type in _FOLDERS or inner.type.startswith("preproc_"):
            yield from _in(tree, inner, namespace, reparse=reparse)


def _before(node: Node) -> Iterator[Node]:
    """The siblings in front of a node, the nearest first."""
    while (before := node.prev_sibling) is not None:
        yield before
        node = before


def _kernel(
    tree: Tree, head: bytes, declarator: Node, template: Node | None, namespace: str
) -> Iterator[KernelSource]:
    """The function, if it is a kernel. head: what is in front of its parameters, or of its body."""
    name = declarator.child_by_field_name("declarator")
    parameters = declarator.child_by_field_name("parameters")
    is_function = declarator.type == "function_declarator"
    is_kernel = is_function and b"__global__" in NO_CODE.sub(b"", head)
    if is_kernel and name is not None and parameters is not None:
        yield KernelSource(
            namespace + tree.text(name),
            tuple(
                parameter_of(tree, child)
                for child in parameters.named_children
                if child.type.endswith("parameter_declaration") and tree.text(child) != "void"
            ),
            template_parameters(template) if template is not None else (),
            name.start_point.row + 1,
        )


def parameter_of(tree: Tree, node: Node) -> SourceParameter:
    """A declaration: `const float *__restrict__ in` has the type `const float *` and the name `in`."""
    kind, called, name = tree.text(node), "", node.child_by_field_name("declarator")
    is_array = name is not None and name.type == "array_declarator" and tree.text(name)[0] != "("
    while name is not None and name.type not in ("identifier", "field_identifier"):
        inside = [one for one in name.named_children if one.type.endswith(("identifier", "declarator"))]
        name = name.child_by_field_name("declarator") or (inside[-1] if inside else None)
    if name is not None:
        kind = tree.masked[node.start_byte : name.start_byte].decode("utf-8", "replace")
        called = tree.text(name)
    kind = re.sub(r"\s+", " ", _KEPT_OUT.sub(" ", kind)).strip() + "*" * is_array
    return SourceParameter(re.sub(r"\s*([*&])\s*(?=[*&]|$)", r" \1", kind).replace("* *", "**"), called)


def template_parameters(node: Node) -> tuple[TemplateParameter, ...]:
    """The parameters in `<typename T, int N = 4>`."""
    found = []
    for child in (one for one in node.named_children if one.type.endswith("declaration")):
        declared, _, default = (child.text or b"").decode("utf-8", "replace").partition("=")
        words = declared.split()
        name = re.sub(r"\W", "", words[-1]) if words else ""
        found.append(TemplateParameter(" ".join(words[:-1]), name, default.strip() or None))
    return tuple(found)
