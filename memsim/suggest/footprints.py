"""Which elements behind a pointer a function accesses: those that it indexes by numbers, or in loops over
numbers, and those that the functions of its file access which it passes the pointer on to, moved perhaps. Of
templates those of the call's arguments, numbers and functions; specializations, too. An object made of the
pointer accesses what its constructor copies, or, where it keeps the pointer, what its methods return.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import pairwise, product

from memsim.source.kernels import parameter_of, template_parameters
from memsim.source.syntax import (
    LOOPS,
    Node,
    Tree,
    arguments_of,
    bare,
    body_of,
    declarator_of,
    function_name,
    outside,
    parameters_of,
    parse,
    plain_name,
    walk,
)
from memsim.source.values import changes, initializers, value_of
from memsim.suggest.c_text import index_in
from memsim.suggest.classes import Class, class_of
from memsim.suggest.loops import LEAVES, loop_of

MOST = 64  # elements that are told apart
DEPTH = 8  # of calls in calls
_NOT_ALWAYS = (*LOOPS, "if_statement", "lambda_expression", "switch_statement", "case_statement")
_INITIALIZERS = "field_initializer_list"
_NAMES = "identifier", "type_identifier"  # `T x(p);` may declare a function
_BYTES = re.compile(r"(?i)\b(?:char|uchar|u?int8_t|byte|u8)\b")


@dataclass(frozen=True, slots=True)
class AccessedElements:
    """Numbers of elements. always: that each call accesses; every: that one may access.

    loads, stores: whether they are read, and assigned.
    """

    always: frozenset[int]
    every: frozenset[int]
    loads: bool
    stores: bool

    @property
    def length(self) -> int | None:
        """How many elements from the first on may be moved at once: by each call; None if not so."""
        if not self.every or 0 not in self.always or max(self.every) not in self.always:
            return None
        count = max(self.every) + 1
        return None if self.stores and len(self.always) < count else count

    def moved(self, by: frozenset[int]) -> AccessedElements:
        """Of calls that get the pointer moved by each of so many elements."""
        always, every = (frozenset(map(sum, product(by, one))) for one in (self.always, self.every))
        return AccessedElements(always, every, self.loads, self.stores)


_ONE = frozenset({0})
#: Of functions of CUDA's libraries, by name and argument. It is no matter that not each byte is assigned.
KNOWN = {("curand_init", 3): AccessedElements(_ONE, _ONE, loads=True, stores=True)}


class Footprints:
    """Of the functions of a source. known: its constants; parameters: of a function's template. compiled: the
    names of both, whatever the values are. texts: with the classes that it uses.
    """

    def __init__(self, tree: Tree, known: Mapping[str, int], texts: tuple[str, ...] = ()) -> None:
        self.tree, self.known, self.texts = tree, known, texts
        self.parameters: Mapping[str, int] = {}
        self.given_functions: Mapping[str, str] = {}
        self.compiled: frozenset[str] = frozenset()
        self._functions: dict[str, list[Node]] = defaultdict(list)
        for node in walk(tree.root):
            if node.type == "function_definition":
                self._functions[function_name(tree, node)].append(node)

    def of_call(self, call: Node, place: int, depth: int = DEPTH) -> AccessedElements | None:
        """What a call accesses behind the argument at a place; None if that is not known."""
        name = plain_name(self.tree.text(call.children[0]))
        if (name, place) in KNOWN:
            return KNOWN[name, place]
        function = self._function_of(call)
        if depth == 0:
            return None
        if function is None:  # or an object of this name
            made = self._of_object(self.tree.text(call.children[0]), "", call, depth)
            return _joined(list(made)) if len(arguments_of(call)) == 1 else None
        return self._with(*self._template_arguments(call, function))._behind(function, place, depth)

    def _behind(self, function: Node, place: int, depth: int) -> AccessedElements | None:
        """What a function accesses behind the parameter at a place; None if that is not known."""
        body, declared = body_of(function), parameter_of(self.tree, parameters_of(function)[place])
        kind, name = declared.type, declared.name
        if body is None or not name or changes_of(name, self.tree.text(body)):
            return None
        if "*" not in kind and class_of(self.texts, kind, self.known) is not None:
            return _joined(list(self._of_object(kind, name, body, depth)))
        scopes = [*(one for one in function.children if one.type == _INITIALIZERS), body]
        is_bytes = bool(_BYTES.search(kind))
        return _joined([part for one in scopes for part in self._parts(one, name, is_bytes, depth)])

    def of_object(self, pointer: Node) -> AccessedElements | None:
        """What the constructor of an object that is made of a pointer alone copies; None if it does more."""
        kind, _ = self._object_of(pointer)
        return _joined(list(self._of_object(kind, "", pointer, DEPTH))) if kind else None

    def _of_object(self, kind: str, name: str, body: Node, depth: int) -> Iterator[AccessedElements | None]:
        """What an object that is made of a pointer accesses behind it, by its constructor or in a body."""
        made = class_of(self.texts, kind, self.known)
        if made is None:
            yield None
            return
        inside = Footprints(parse(made.text), {**self.known, **made.values}, self.texts)
        ways = {
            inside._member(one, parameter_of(inside.tree, parameter).name)
            or inside._behind(one, 0, depth - 1)
            for one in inside._functions[made.name]
            for parameter in parameters_of(one)
            if len(parameters_of(one)) == 1 and "*" in inside.tree.text(parameter)
        }
        way = ways.pop() if len(ways) == 1 else None
        if not isinstance(way, str):
            yield way
            return
        for node in walk(body):
            declares = node.parent is not None and node.parent.child_by_field_name("declarator") == node
            if self.tree.text(node) == name and node.type == "identifier" and not declares:
                yield self._of_method(made, way, node, body)

    def _member(self, constructor: Node, parameter: str) -> str:
        """The member by which an object keeps the pointer that it is made of, "" if there is none."""
        kept = re.compile(rf"(\w+)\s*[({{]\s*{parameter}\s*[)}}]")
        given = (self.tree.text(one) for one in walk(constructor) if one.type == "field_initializer")
        return next((found[1] for one in given if (found := kept.fullmatch(one))), "")

    def _of_method(self, made: Class, member: str, node: Node, body: Node) -> AccessedElements | None:
        """What a use of an object accesses behind its pointer."""
        access, around = node.parent, node.parent.parent if node.parent is not None else None
        if access is None or around is None or access.children[0] != node:
            return None
        text, method = self.tree.text(access), "operator[]"
        given = [text[text.find("[") + 1 : -1]]
        if access.type == "field_expression" and around.type == "call_expression":
            method, access = self.tree.text(access.children[2]), around
        elif access.type == "call_expression":
            method = "operator()"
        elif access.type != "subscript_expression":
            return None
        if access.type == "call_expression":
            given = [self.tree.text(one) for one in arguments_of(access)]
        index = made.index(method, given, member)
        found = None if index is None else self._element(access, index, body)
        return self._always_or_not(found, access, body)

    def _function_of(self, call: Node) -> Node | None:
        """The definition that a call is of, with its template's arguments; None if that is not known."""
        name, count = plain_name(self.tree.text(call.children[0])), len(arguments_of(call))
        named = self._functions[self.given_functions.get(name, name)]
        fitting = [one for one in named if len(parameters_of(one)) == count]
        special = {one.start_byte: given for one in fitting if (given := self._given(declarator_of(one)))}
        values = self._given(call.children[0])
        exact = [one for one in fitting if special.get(one.start_byte) == values]
        found = exact if values and exact else [one for one in fitting if one.start_byte not in special]
        return found[0] if len(found) == 1 else None

    def _given(self, node: Node | None) -> list[int | str]:
        """The arguments of a template in a call or a declaration: their values, or their texts."""
        if node is None or not re.match(r"[*&\s]*[\w:]+\s*<", self.tree.text(node)):
            return []
        given = next(one for one in walk(node) if one.type == "template_argument_list")
        texts = [self.tree.text(one) for one in given.named_children]
        values = [value_of(text, self.known) for text in texts]
        return [text if value is None else value for text, value in zip(texts, values)]

    def declared(self, call: Node, place: int) -> list[str]:
        """How functions of the name and number of parameters of a call declare the one at a place."""
        name, count = plain_name(self.tree.text(call.children[0])), len(arguments_of(call))
        fitting = (parameters_of(one) for one in self._functions[name])
        return [self.tree.text(one[place]) for one in fitting if len(one) == count]

    def inside(self, function: Node) -> Footprints:
        """Of a function with the values of its template's parameters, where all calls give the same."""
        name = function_name(self.tree, function)
        found: dict[str, set[int]] = defaultdict(set)
        calls = (node for node in walk(self.tree.root) if node.type == "call_expression")
        for call in calls:
            if re.match(rf"(?:\w+::)*{re.escape(name)}\s*<", self.tree.text(call.children[0])):
                for parameter, value in self._template_arguments(call, function)[0].items():
                    found[parameter].add(value)
        other = self._with({name: values.pop() for name, values in found.items() if len(values) == 1})
        parameters = (parameter_of(self.tree, one).name for one in parameters_of(function))
        own = {*parameters, *initializers(self.tree.text(function))}
        of_template = (name for name, _ in self._template_parameters(function))
        other.compiled = frozenset({*self.known, *of_template} - own)
        return other

    def _with(self, parameters: Mapping[str, int], functions: Mapping[str, str] | None = None) -> Footprints:
        other = copy(self)
        other.known, other.parameters = {**self.known, **parameters}, parameters
        other.given_functions = functions or {}
        return other

    def constants_of(self, node: Node, depth: int = DEPTH) -> set[str]:
        """The constants in indices, ends of loops and template arguments, and of functions called there."""
        found: set[str] = set()
        for one in walk(node):
            name = ""
            if one.type == "for_statement":
                one = one.child_by_field_name("condition") or one
            elif one.type == "call_expression":
                one = one.children[0]
                name = plain_name(self.tree.text(one))
            elif one.type != "subscript_expression":
                continue
            found |= set(re.findall(r"\w+", self.tree.text(one))) & set(self.known)
            for function in self._functions.get(name, ()) if depth else ():
                found |= self.constants_of(function, depth - 1)
        return found

    def _template_arguments(self, call: Node, function: Node) -> tuple[dict[str, int], dict[str, str]]:
        """The numbers, and the functions, that a call gives for the parameters of a function's template."""
        declared, given = self._template_parameters(function), self._given(call.children[0])
        given += [value_of(default, self.known) or default for _, default in declared[len(given) :]]
        pairs = list(zip((name for name, _ in declared), given))
        numbers = {name: value for name, value in pairs if isinstance(value, int)}
        named = {name: self.given_functions.get(f"{value}", f"{value}") for name, value in pairs}
        return numbers, {name: value for name, value in named.items() if value in self._functions}

    def _template_parameters(self, function: Node) -> list[tuple[str, str]]:
        """The parameters of a function's template, each with its default."""
        template = function if function.type == "template_declaration" else function.parent
        if template is None or template.type != "template_declaration":
            return []
        return [(one.name, one.default or "") for one in template_parameters(template.children[1])]

    def _parts(self, body: Node, name: str, is_bytes: bool, depth: int) -> Iterator[AccessedElements | None]:
        """What each use of a pointer accesses; None for a use that is not known."""
        for node in walk(body):
            if node.type not in _NAMES or self.tree.text(node) != name or node.parent is None:
                continue
            around, found = node.parent, None
            whole, moved = self._moved(node)
            by, kind, variable = self._numbers(moved, node, body), *self._object_of(whole)
            is_given = whole.parent is not None and whole.parent.type == "argument_list"
            if around.type == "subscript_expression" and around.children[0] == node:
                found = self._element(around, index_in(self.tree.text(around)), body)
            elif around.type == "pointer_expression" and around.children[0].type == "*":
                found = self._element(around, "0", body)
            elif kind:
                found = _joined(list(self._of_object(kind, variable, body, depth)))
                found = None if found is None or by is None else found.moved(by)
            elif is_given and whole.parent is not None and whole.parent.parent is not None:
                place, call = whole.parent.named_children.index(whole), whole.parent.parent
                found = self._copied(call, place) if is_bytes and whole == node else None
                found = found or self.of_call(call, place, depth - 1)
                found = None if found is None or by is None else found.moved(by)
            yield self._always_or_not(found, node, body)

    def _object_of(self, pointer: Node) -> tuple[str, str]:
        """The type and the name of an object that is declared and made of a pointer alone; "" for none."""
        around = pointer.parent
        if around is not None and around.type == "parameter_declaration":
            around = around.parent
        if around is None or around.parent is None or len(around.named_children) != 1:
            return "", ""
        declarator, declaration = around.parent, around.parent.parent
        is_one = declarator.type in ("function_declarator", "init_declarator")
        if not is_one or declaration is None or declaration.type != "declaration":
            return "", ""
        kind = declaration.child_by_field_name("type")
        return "" if kind is None else self.tree.text(kind), self.tree.text(declarator.children[0])

    def _always_or_not(
        self, found: AccessedElements | None, node: Node, body: Node
    ) -> AccessedElements | None:
        """What a part of a body accesses, of which no call need come there."""
        if found is None or self._is_always(node, body):
            return found
        return AccessedElements(frozenset(), found.every, found.loads, found.stores)

    def _moved(self, node: Node) -> tuple[Node, str]:
        """`p + i` around a pointer, and by how many elements it is moved."""
        moved = "0"
        while node.parent is not None and node.parent.type == "binary_expression":
            left, mark, right = node.parent.children
            if left != node or mark.type != "+":
                break
            node, moved = node.parent, f"{moved} + {self.tree.text(right)}"
        return node, moved

    def _copied(self, call: Node, place: int) -> AccessedElements | None:
        """The bytes that a `memcpy` of a number of them copies."""
        given = arguments_of(call)
        if self.tree.text(call.children[0]) != "memcpy" or len(given) != 3:
            return None
        count = value_of(self.tree.text(given[2]), self.known)
        if count is None or not 0 < count <= MOST or place > 1:
            return None
        every = frozenset(range(count))
        return AccessedElements(every, every, place == 1, place == 0)

    def _element(self, node: Node, index: str, body: Node) -> AccessedElements | None:
        """The elements that an access with an index has; None if these are no numbers."""
        around = node.parent
        if around is None or around.type in ("pointer_expression", "field_expression"):
            return None
        assigned = around.type == "assignment_expression" and around.children[0] == node
        stores = assigned or around.type == "update_expression"
        loads = not stores or around.children[1].type != "="
        found = self._numbers(index, node, body)
        return None if found is None else AccessedElements(found, found, loads, stores)

    def _numbers(self, index: str, node: Node, body: Node) -> frozenset[int] | None:
        """The values of an index in the loops around a node of a function; None without numbers."""
        used = re.findall(r"\w+", index)
        counted = (self.counted(one) for one in outside(node, body))
        ranges = {one[0]: one[1] for one in counted if one is not None and one[0] in used}
        found = set()
        for values in product(*ranges.values()):
            number = value_of(index, {**self.known, **dict(zip(ranges, values))})
            if number is None or not 0 <= number < MOST:
                return None
            found.add(number)
        return frozenset(found)

    def counted(self, node: Node) -> tuple[str, range] | None:
        """The variable of a loop, and its values; None without numbers."""
        loop = loop_of(self.tree, node)
        values = None if loop is None else loop.values(self.known, MOST)
        return None if loop is None or values is None else (loop.variable, values)

    def decided(self, node: Node, part: Node) -> str:
        """On what of constants and parameters of the template a part is executed; "" for nothing."""
        kinds = "if_statement", "binary_expression", "conditional_expression"
        if node.type not in kinds or not may_be_left_out(node, part):
            return ""
        condition = self.tree.text(bare(node.child_by_field_name("condition") or node.children[0]))
        names = set(re.findall(r"[A-Za-z_]\w*", condition))
        if not names or not names <= self.compiled:
            return ""
        negated = part == node.child_by_field_name("alternative") or node.children[1].type == "||"
        return f"!({condition})" if negated else condition

    def _is_always(self, node: Node, body: Node) -> bool:
        """Whether each call of a function comes to a node of its body."""
        before = self.tree.content[body.start_byte : node.start_byte].decode("utf-8", "replace")
        *_, statement = re.split(r"[;{}]", before)
        if re.search(r"\breturn\b", before[: len(before) - len(statement)]):
            return False
        return all(
            self.counted(outer) is not None and not LEAVES.search(self.tree.text(outer))
            for inner, outer in pairwise([node, *outside(node, body), body])
            if may_be_left_out(outer, inner)
        )


def _joined(parts: Sequence[AccessedElements | None]) -> AccessedElements | None:
    """What all these access; None if that is not known."""
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    stored = [part for part in known if part.stores] or known
    return AccessedElements(
        frozenset().union(*(part.always for part in stored)),
        frozenset().union(*(part.every for part in known)),
        any(part.loads for part in known),
        any(part.stores for part in known),
    )


def may_be_left_out(node: Node, part: Node) -> bool:
    """Whether a part of a statement or expression is not always executed."""
    if node.type == "binary_expression":
        return node.children[1].type in ("&&", "||") and part != node.children[0]
    if node.type == "if_statement":
        return part != node.child_by_field_name("condition")
    return node.type in _NOT_ALWAYS or (node.type == "conditional_expression" and part != node.children[0])


def changes_of(pointer: str, code: str) -> int:
    """How often code may change a pointer; `&pointer[i]` does not, nor does `*pointer = x;`."""
    code = without_stores(pointer, code)
    return changes(pointer, re.sub(rf"(?<!&)&(?!&)\s*(?={pointer}\s*(?:\[|->))", "", code))


def without_stores(pointer: str, code: str) -> str:
    """The code without `*pointer` in front of `= x;`."""
    return re.sub(rf"([;{{}})]\s*)\*\s*{pointer}\s*(?=(?:[-+*/%&|^]|<<|>>)?=(?!=))", r"\1", code)
