"""The launches that a source makes: `k<float><<<dim3(N / 32), dim3(32, 8), bytes>>>(a, b, N)`.

A record has template arguments, grid, block, shared bytes and arguments; values that are only known at run
time stay as text. Launches by `cudaLaunchKernel`, template arguments that a compiler deduces, and values
computed by called functions, are not handled.

A function such as `template <int D> void launch(...)` launches `kernel<D, D / 8>`; its calls, such as
`launch<64>(...)`, say which kernel that is. The first call that specifies most parameters counts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from memsim.source.expressions import Formula, Number, evaluate, open_names
from memsim.source.kernels import kernels, template_parameters
from memsim.source.syntax import (
    Node,
    Tree,
    function_name,
    macro_calls,
    macros,
    outside,
    parse,
    place_of,
    walk,
)
from memsim.source.text import (
    bracket_end,
    split_at_commas,
    substitute_names,
    without_comments,
    without_dead_branches,
)
from memsim.source.values import (
    changes,
    constants,
    functions,
    initializers,
    reference_parameters,
    referred_to,
    scope_at_end,
    types_named,
    value_of,
    variables,
    without_excluded_branches,
)

# Names that are local to a function; PyTorch's macros call any type scalar_t, apex's scalar_t_0.
_LOCAL = re.compile(r"\bauto\s+(\w+)|\b(?:constexpr|const)\b[^;=({]*?\b(\w+)\s*[={]|\b(scalar_t\w*)")
# `BOOL_SWITCH(x > 0, kEven, [&] {` defines kEven.
_SWITCH = re.compile(r"\b[A-Z][A-Z0-9_]+\s*\(([^;{}]*?)\[[&=]?\]")
# `dim3 grid(CEIL_DIV(n, 32), 2), block;`, or a parameter `dim3 block`: declared without its sizes.
_UNSET = r"\bdim3\s+(?:\w+\s*(?:\((?:[^;()]|\([^;()]*\))*\)\s*)?,\s*)*%s\s*[;,)]"
_MEMBER = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)\s*\.\s*([xyz])\b(?!\s*[\w(])")
# After its declaration a variable, or a member of it, is written, or its address taken.
_CHANGED = r"\b%s\s*(?:\.\s*\w+\s*)?(?:(?:[-+*/%%&|^]|<<|>>)?=(?!=)|\+\+|--)|[,(=]\s*&\s*%s\b"

_LEVELS = 4
_DEFINE = re.compile(rb"[ \t]*#[ \t]*define[ \t]+\w+\(([^)]*)\)")


@dataclass(frozen=True, slots=True)
class Size:
    """One dimension of a launch: its text, and its value if known.

    asked: the names whose values decide it; None if it cannot be computed even with them.
    """

    text: str
    value: int | None
    asked: tuple[str, ...] | None = ()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What names mean at a launch: constants, functions, and what variables are initialized with."""

    constants: Mapping[str, Number]
    functions: Mapping[str, Formula]
    initialized: Mapping[str, str]

    def value(self, text: str) -> int | None:
        """The value of an expression as an integer, which it is converted to."""
        value = evaluate(text, self.constants, self.functions)
        return None if value is None else int(value)

    def asked(self, text: str, levels: int = 8) -> tuple[str, ...] | None:
        """The names whose values decide an expression; None if they would not be enough.

        Instead of a variable, the names in what it is initialized with.
        """
        names = open_names(text, self.constants, self.functions)
        if names is None:
            return None
        found: list[str] = []
        for name in names:
            made = self.initialized.get(name) if levels else None
            inside = None if made is None else self.asked(made, levels - 1)
            found += [name] if inside is None else inside
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class LaunchSource:
    """A launch as written in its source.

    Attributes:
        kernel: the kernel with its template arguments as far as known: `k<float, 8>`.
        template: these arguments, constants by value.
        grid, block: one to three sizes.
        shared: bytes of dynamic shared memory; None if not specified.
        arguments: their texts.
        line: of the launch.
        unknown: names in the template arguments that are local to the launching function.
        scope: what names mean where it is launched.
        file: the header that it is in; empty for the source itself.
    """

    kernel: str
    template: tuple[str, ...]
    grid: tuple[Size, ...]
    block: tuple[Size, ...]
    shared: Size | None
    arguments: tuple[str, ...]
    line: int
    unknown: frozenset[str] = frozenset()
    scope: Surroundings = field(default_factory=lambda: Surroundings({}, {}, {}), compare=False)
    file: str = ""

    @property
    def name(self) -> str:
        """The kernel with its template arguments."""
        return f"{self.kernel}<{', '.join(self.template)}>" if self.template else self.kernel

    @property
    def plain(self) -> str:
        """The kernel's name without namespaces and arguments."""
        return self.kernel.rpartition("::")[2]


@dataclass(frozen=True, slots=True)
class _File:
    """What is known in a whole file: kernels' names, constants, functions, which of their parameters are
    references, and the values the user gives.
    """

    kernels: frozenset[str]
    constants: Mapping[str, Number]
    functions: Mapping[str, Formula]
    references: Mapping[str, Collection[int]]
    given: Mapping[str, Number]


@lru_cache(maxsize=64)
def launches(text: str, given: tuple[tuple[str, Number], ...] = ()) -> tuple[LaunchSource, ...]:
    """The launches of a source by line, those in macros at the macro's call.

    given: values of names that the source leaves open, such as the parameters of a launching function.
    """
    text = without_dead_branches(text)
    if "<<<" not in text:
        return ()
    code = without_comments(text)
    values = dict(given)
    file = _File(
        frozenset(kernel.plain for kernel in kernels(text)),
        {**constants(code, values), **values},
        functions(code),
        reference_parameters(code),
        values,
    )
    found = list(_launches_in(parse(text), file, 0))
    for line, around, expansion in macro_calls(text):
        if "<<<" in expansion:
            before = f"void launches() {{ {around} "
            found += _launches_in(parse(f"{before}{expansion}; }}"), file, line, len(before))
    ordered = sorted(dict.fromkeys(found), key=lambda launch: launch.line)
    places = (place_of(text, launch.line) for launch in ordered)
    return tuple(replace(launch, file=file, line=line) for launch, (file, line) in zip(ordered, places))


def instances_of(text: str) -> tuple[str, ...]:
    """The instances of its own templates that a source launches, without duplicates:
    `transpose<float, 8>`.
    """
    templates = {kernel.plain: kernel for kernel in kernels(text) if kernel.template}
    found = []
    for launch in launches(text):
        kernel = templates.get(launch.plain)
        if kernel is not None and launch.template and not launch.unknown:
            found.append(f"{kernel.name}<{', '.join(launch.template)}>")
    return tuple(dict.fromkeys(found))


def _launches_in(tree: Tree, file: _File, line: int, start: int = 0) -> Iterator[LaunchSource]:
    """The launches in a tree after `start`; `line`: where they are, if not as in the tree."""
    for node in walk(tree.root):
        if node.type == "kernel_call_syntax" and node.start_byte >= start and node.parent is not None:
            function = node.parent.child_by_field_name("function")
            arguments = node.parent.child_by_field_name("arguments")
            if function is not None and arguments is not None:
                yield _LaunchReader(tree, file, node).launch(function, arguments, line)


class _LaunchReader:
    """What is known at a launch."""

    def __init__(self, tree: Tree, file: _File, call: Node) -> None:
        self.tree, self.known = tree, file.kernels
        self.members = set[str]()  # variables whose members are being looked up
        self.call = call
        function = _function_around(call)
        # Everything before the launch if the parser finds no function, as for a launch in a macro.
        start, end = (function.start_byte, function.end_byte) if function is not None else (0, call.end_byte)
        defined = macros(tree.content.decode("utf-8", "replace"))
        self.around, whole = (
            without_excluded_branches(without_comments(part.decode("utf-8", "replace")), defined)
            for part in (tree.content[start : call.start_byte], tree.content[start:end])
        )
        self.bound = _template_values(tree, function)
        numbers = {name: value_of(value, file.constants) for name, value in self.bound.items()}
        outside = {**file.constants, **{name: value for name, value in numbers.items() if value is not None}}
        outside.update({**constants(self.around, outside, last=True), **file.given})
        changed = referred_to(whole, file.references)
        kept = {name: made for name, made in initializers(whole).items() if name not in changed}
        self.changed = referred_to(self.around, file.references)
        self.constants = {**outside, **variables(whole, outside, file.functions, changed), **file.given}
        self.scope = Surroundings(self.constants, file.functions, kept)
        names = _names_of_templates(function) | {
            name for found in _LOCAL.findall(self.around) for name in found
        }
        names |= {name for call in _SWITCH.findall(self.around) for name in re.findall(r"\w+", call)}
        self._generic = names - set(self.bound) - set(self.constants)

    def launch(self, function: Node, arguments: Node, line: int) -> LaunchSource:
        name, template = self._split(self._pointed_to(self.tree.text(function)))
        configuration, passed = (
            tuple(self.tree.text(one) for one in node.named_children if one.type != "comment")
            for node in (self.call, arguments)
        )
        return LaunchSource(
            name,
            tuple(template),
            self._dim3(configuration[0]) if configuration else (),
            self._dim3(configuration[1]) if len(configuration) > 1 else (),
            self._size(configuration[2]) if len(configuration) > 2 else None,
            passed,
            line or self.call.start_point.row + 1,
            frozenset(self._generic.intersection(re.findall(r"\w+", " ".join(template)))),
            self.scope,
        )

    def _pointed_to(self, called: str) -> str:
        """The kernel that a variable points to: `auto run = &copy<float>;`, then `run<<<...>>>(...)`."""
        if not re.fullmatch(r"\w+", called) or called in self.known:
            return called
        found = re.findall(rf"\b{called}\s*=\s*&?\s*([A-Za-z_][\w:]*\s*<[^;]*>)\s*;", self.around)
        return str(found[0]) if found else called

    def _split(self, text: str) -> tuple[str, list[str]]:
        """`ns::k<float, N>` -> `ns::k` and its arguments, with constants replaced by their values."""
        text = re.sub(r"\s+", " ", text).strip()
        if not text.endswith(">"):
            return text, []
        name, _, inside = text.partition("<")
        return name.strip(), [self._argument(part.strip()) for part in split_at_commas(inside[:-1])]

    def _argument(self, text: str) -> str:
        number = value_of(text, self.constants)
        if number is not None:
            return str(number)
        other = next(iter(types_named(text, self.around)), None)
        if other is None:
            return substitute_names(text, self.bound)
        numbers = {name: str(value) for name, value in self.constants.items()}
        return substitute_names(other, numbers | self.bound)

    def _dim3(self, text: str) -> tuple[Size, ...]:
        """`dim3(32, 8)`, `{32, 8}`, a number, or a variable declared as one of these."""
        made = re.fullmatch(r"(?:dim3\s*[({]|\{)(.*)[)}]", text, re.DOTALL)
        if made:
            return tuple(self._size(part.strip()) for part in split_at_commas(made[1]) if part.strip())
        if re.fullmatch(r"\w+", text) and text not in self.constants:
            name = re.escape(text)
            opened = (
                rf"\bdim3\s(?:[^;]*?[^\w;])?{name}\s*[({{]|\b(?:dim3|auto)\s+{name}\s*=\s*(?:dim3\s*)?[({{]"
            )
            seen = scope_at_end(self.around)
            declared = [found for found in re.finditer(opened, self.around) if seen(found.start())]
            if declared:
                start = declared[-1].end()
                end = bracket_end(self.around, start, self.around[start - 1]) or len(self.around)
                if text in self.changed or re.search(_CHANGED % (name, name), self.around[end:]):
                    return (Size(text, None, None),)
                inside = self.around[start : end - 1]
                return tuple(self._size(part.strip()) for part in split_at_commas(inside) if part.strip())
            if re.search(_UNSET % name, self.around):
                return (Size(text, None, None),)
        return (self._size(text),)

    def _member(self, found: re.Match[str]) -> str:
        """The value of `block.x`, of a variable that is a `dim3`; the text where it is not known."""
        declared = rf"\bdim3\s(?:[^;]*?[^\w;])?{found[1]}\s*[({{;,=]|\bauto\s+{found[1]}\s*=\s*dim3\b"
        if found[1] in self.members or not re.search(declared, self.around):
            return found[0]
        self.members.add(found[1])
        sizes = self._dim3(found[1])
        self.members.discard(found[1])
        place = "xyz".index(found[2])
        value = sizes[place].value if place < len(sizes) else 1
        return found[0] if value is None or sizes[0].text == found[1] else str(value)

    def _size(self, text: str) -> Size:
        said = text
        if re.fullmatch(r"\w+", text) and text not in self.constants:
            declared = re.findall(rf"\b{re.escape(text)}\s*=\s*([^;,]+)[;,]", self.around)
            is_kept = len(declared) == 1 == changes(text, self.around) and text not in self.changed
            said = declared[0] if is_kept else text
        said = _MEMBER.sub(self._member, substitute_names(said, self.bound))
        value = self.scope.value(said)
        if value is not None:
            return Size(text, value)
        asked = self.scope.asked(said)
        return Size(text, None, self.scope.asked(text) if asked is None else asked)


def _function_around(node: Node) -> Node | None:
    """The function that contains a node, if any."""
    return next((one for one in (node, *outside(node)) if one.type == "function_definition"), None)


def _names_of_templates(function: Node | None) -> set[str]:
    """The names of the template parameters in scope in a function."""
    return {name for node in _templates(function) for name in _parameters(node)}


def _template_values(tree: Tree, function: Node | None, levels: int = _LEVELS) -> dict[str, str]:
    """The values of a function's template parameters, by name; without those that no call specifies."""
    templates = _templates(function)
    if function is None or len(templates) != 1 or levels == 0:
        return {}
    parameters = _parameters(templates[0])
    best: dict[str, str] = {}
    for start, end, arguments in _calls(tree, function_name(tree, function).rpartition("::")[2]):
        if templates[0].start_byte <= start and end <= function.end_byte:
            continue  # the function calls itself
        caller = _function_around(tree.root.descendant_for_byte_range(start, end) or tree.root)
        outer = _template_values(tree, caller, levels - 1)
        unsaid = (_names_of_templates(caller) - set(outer)) | _of_macro(tree, start)
        given = {name: substitute_names(value, outer) for name, value in zip(parameters, arguments)}
        said = {name: value for name, value in given.items() if not unsaid & set(re.findall(r"\w+", value))}
        best = max(best, said, key=len)
    for name, default in parameters.items():  # a default may use parameters before it
        if name not in best and default is not None:
            best[name] = substitute_names(default, best)
    return best


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
            found.append((match.start(), end, [part.strip() for part in split_at_commas(inside)]))
    return found
