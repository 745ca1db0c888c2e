"""Template arguments of host functions, deduced from the calls in a source.

A function such as `template <int D> void launch(...)` launches `kernel<D, D / 8>`; its calls, such as
`launch<64>(...)`, say which kernel that is. The first call that specifies most parameters counts. Arguments
that a compiler would deduce are not handled.
"""

from __future__ import annotations

import re

from memsim.source.kernels import template_parameters
from memsim.source.syntax import Node, Tree, function_name, outside
from memsim.source.text import split

_LEVELS = 4
_DEFINE = re.compile(rb"[ \t]*#[ \t]*define[ \t]+\w+\(([^)]*)\)")


def function_around(node: Node) -> Node | None:
    """The function that contains a node, if any."""
    return next((one for one in (node, *outside(node)) if one.type == "function_definition"), None)


def names_of_templates(function: Node | None) -> set[str]:
    """The names of the template parameters in scope in a function."""
    return {name for node in _templates(function) for name in _parameters(node)}


def template_values(tree: Tree, function: Node | None, levels: int = _LEVELS) -> dict[str, str]:
    """The values of a function's template parameters, by name; without those that no call specifies."""
    templates = _templates(function)
    if function is None or len(templates) != 1 or levels == 0:
        return {}
    parameters = _parameters(templates[0])
    best: dict[str, str] = {}
    for start, end, arguments in _calls(tree, function_name(tree, function).rpartition("::")[2]):
        if templates[0].start_byte <= start and end <= function.end_byte:
            continue  # the function calls itself
        caller = function_around(tree.root.descendant_for_byte_range(start, end) or tree.root)
        outer = template_values(tree, caller, levels - 1)
        unsaid = (names_of_templates(caller) - set(outer)) | _of_macro(tree, start)
        given = {name: substitute_names(value, outer) for name, value in zip(parameters, arguments)}
        said = {name: value for name, value in given.items() if not unsaid & set(re.findall(r"\w+", value))}
        best = max(best, said, key=len)
    for name, default in parameters.items():  # a default may use parameters before it
        if name not in best and default is not None:
            best[name] = substitute_names(default, best)
    return best


def substitute_names(text: str, bound: dict[str, str]) -> str:
    """A text with parameters replaced by their values."""
    return re.sub(r"\b[A-Za-z_]\w*\b", lambda word: bound.get(word[0], word[0]), text)


def _of_macro(tree: Tree, place: int) -> set[str]:
    """The parameters of the macro definition that contains `place`."""
    before = tree.content[:place].replace(b"\\\n", b"  ")
    found = _DEFINE.match(before, before.rfind(b"\n") + 1)
    return set(re.findall(r"\w+", found[1].decode("utf-8", "replace"))) if found else set()


def _templates(function: Node | None) -> list[Node]:
    around = () if function is None else outside(function)
    return [one for one in around if one.type == "template_declaration"]


def _parameters(template: Node) -> dict[str, str | None]:
    """A template's parameters by name, with their defaults."""
    node = template.child_by_field_name("parameters")
    if node is None:
        return {}
    return {parameter.name: parameter.default for parameter in template_parameters(node)}


def _calls(tree: Tree, name: str) -> list[tuple[int, int, list[str]]]:
    """(first byte, last byte, template arguments) of each `name<...>(` in a source."""
    found = []
    for match in re.finditer(rb"\b" + re.escape(name.encode()) + rb"\s*<(?!<)", tree.content) if name else ():
        depth, end = 1, match.end()
        while end < len(tree.content) and depth and tree.content[end : end + 1] not in b";{}":
            depth += {b"<": 1, b">": -1}.get(tree.content[end : end + 1], 0)
            end += 1
        if depth == 0 and re.match(rb"\s*\(", tree.content[end:]):
            inside = tree.content[match.end() : end - 1].decode("utf-8", "replace")
            found.append((match.start(), end, [part.strip() for part in split(inside)]))
    return found
