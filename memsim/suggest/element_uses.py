"""The accesses of a kernel to elements of global arrays, as its source has them: `p[i]`, `p->x`, `*(p + i)`,
by the arrays' parameters, by pointers made of them, and by references to elements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from memsim.analysis import Analysis, SiteCounts
from memsim.job import Job
from memsim.source.expressions import ELEMENT_BYTES
from memsim.source.kernels import template_constants
from memsim.source.syntax import (
    LOOPS,
    Node,
    arguments_of,
    assignment_parts,
    function_name,
    outside,
    part_around,
    walk,
)
from memsim.source.values import changes, constants, initializers
from memsim.suggest.c_text import EFFECT, distance, factor, names_in, plus, substitute_variables
from memsim.suggest.footprints import Footprints, changes_of, may_be_left_out, without_stores
from memsim.suggest.kernel_tree import KernelTree, Vector
from memsim.suggest.prove import source_of

MOST = 32  # elements of a record
#: What lets others see, or change, elements while a thread holds them.
SHARED_BY_OTHERS = re.compile(r"\b(?:asm|volatile|atomic\w+|__sync\w+|__threadfence\w*)\b")
#: `T *name = array + i`, of another type perhaps, and `auto name = array + i`.
_POINTER = re.compile(
    r"(?:\*\s*(?:(?:const|__restrict__)\s+)*|\bauto\s+(?=\w+\s*=\s*\w+\s*[+;]))(\w+)\s*=\s*"
    r"(?:\([\w\s]+\*\s*\)\s*|reinterpret_cast\s*<[\w\s:]+\*\s*>\s*\(\s*)?&?\s*(\w+(?:\.\w+)?)"
)
#: `T *name`, whatever it is initialized with.
_DECLARED = re.compile(
    r"(?:[;{}]\s*(?!return\b)(?:\w+\s+)*[\w:]+\s*\(?|,\s*)\*\s*(?:(?:const|__restrict__)\s+)*(\w+)\s*"
    r"(?:\)\s*\[.*?\]\s*)?(?=[=;,])"
)
#: `T &name = array[i]`, through which fields change.
_REFERENCE = re.compile(r"(?P<const>\bconst\s+)?\b\w+\s*&\s*(?P<name>\w+)\s*=\s*(?P<array>\w+)\s*\[")
#: `*(array + i)`.
_AT = re.compile(r"\*\s*\(\s*(\w+)\s*\+\s*([^?=<>&|^]+)\)")
#: `parameters.array`.
_FIELD = re.compile(r"(?<![\w.>])(\w+)\s*\.\s*(\w+)\b(?!\s*\()")
_ELEMENT = "subscript_expression"
_ADDRESS_OR_MORE = ("pointer_expression", "update_expression", "subscript_expression")
_NAMES = ("reference_declarator", "parameter_declaration")
_CHANGES = ("assignment_expression", "update_expression")
#: What reads memory, or calls a function.
_READS = re.compile(r"\[|->|\w\s*\(|(?:^|[(&|!<>=,?:+-])\s*\*")


@dataclass(frozen=True, slots=True)
class ElementUse:
    """`base[index]` in a statement of a block, of an array, which the base is, casts, or has rows of.

    always: whether each way through the block makes it. stores: whether it is assigned; updates: whether it,
    or a field of it, is changed. span: of how many elements, from that of the index on, in a loop over them;
    variable: the loop's, from how many on, and by how many. unit: of how many elements of the array it is:
    `*(float4 *)&p[i]`, whose base is `(float4 *)&p`, is of four. guard: on what it is read, of conditions of
    the statement, "" for always; decided: on what, of conditions that the compiler decides. walks: whether it
    is `*p++`. function: the kernel, or one that it calls. number: of the element, in its record.
    """

    function: Node
    node: Node
    statement: Node
    array: str
    index: str
    always: bool
    stores: bool
    base: str
    updates: bool = False
    span: int = 1
    variable: tuple[str, int, int] = ("", 0, 1)
    guard: str = ""
    walks: bool = False
    unit: int = 1
    decided: str = ""
    number: int = 0

    @property
    def place(self) -> str:
        """Which element of a record it is, in C."""
        variable, start, step = self.variable
        if not variable:
            return f"{self.number}"
        moved = plus(variable, self.number * step - start).replace("+ -", "- ")
        moved = variable if self.number * step == start else moved
        return moved if step == 1 else f"{factor(moved)} / {step}"

    @property
    def op(self) -> str:
        """As sites have it."""
        return "store" if self.stores or self.updates else "load"


class ElementUses(KernelTree):
    """A kernel's source, in which accesses to elements are looked for."""

    def __init__(self, job: Job, before: Analysis, file: str = "") -> None:
        super().__init__(before, job, file)
        included = source_of(job).included_texts(self.kernel_text)
        self.texts = tuple(dict.fromkeys((self.text, *included)))
        known = {**constants("\n".join(self.texts)), **template_constants(self.text, before.trace.kernel)}
        self.footprints = self.here = Footprints(self.tree, known, self.texts)
        self.pointers: Callable[[Node], dict[str, str]] = cache(self._pointers_of)

    def uses(self, definition: Node, alone: bool) -> Iterable[ElementUse]:
        """Accesses to global arrays that waste sectors. alone: of statements that are alone in an `if`."""
        self.here = self.footprints.inside(definition)
        known, references = self.pointers(definition), self._references(definition)
        found, wasted = [], set()
        for node in walk(definition):
            base, vector = self._accessed(node), self.vector(node, definition)
            array = vector.array if vector is not None else "" if base is None else self._root(base)
            if array not in known or (node.type == "identifier") != (array in references):
                continue
            use = self._use(definition, node, vector or Vector(array), base, alone)
            if use is None:
                continue
            found.append(use)
            behind = range(node.start_point[0] + 1, definition.end_point[0] + 2)
            passed = use.updates and node.parent is not None and node.parent.type == "argument_list"
            sites = self.wasted(behind if is_bound(node) else self.lines_of(node))
            for site in self.wasting if passed else sites:
                if site.op == use.op and may_be(site, known[use.array]):
                    wasted.add((use.array, use.op))
        return (use for use in found if (use.array, use.op) in wasted)

    def _accessed(self, node: Node) -> Node | None:
        """What an expression takes an element of, `p[i]`, `p->x`, `*p`, `*(p + i)`, or the element it is."""
        first = node.children[0] if node.children else node
        if node.type == "pointer_expression" and first.type == "*":
            inside = node.children[1]
            if _AT.fullmatch(self.tree.text(node)):
                inside = inside.named_children[0]
                while inside.type == "binary_expression":
                    inside = inside.children[0]
            return inside
        if node.type == _ELEMENT or (node.type == "field_expression" and node.children[1].type == "->"):
            return first
        return node if node.type == "identifier" else None

    def _root(self, base: Node | None) -> str:
        """The pointer that a base is: `p`, `(p)`, `((T *)p)`, `reinterpret_cast<T *>(p)`, `p[i]` of rows."""
        while base is not None and base.type not in ("identifier", "field_expression"):
            if base.type == "call_expression" and self.tree.text(base).startswith("reinterpret_cast"):
                base = next(iter(arguments_of(base)), None)
            elif base.type in ("parenthesized_expression", "cast_expression", _ELEMENT):
                last = base.type == "cast_expression"
                base = base.named_children[-1 if last else 0] if base.named_children else None
            elif base.type == "update_expression" and self.tree.text(base).endswith("++"):
                base = base.children[0]
            else:
                base = None
        text = "" if base is None else re.sub(r"\s", "", self.tree.text(base))
        return text if re.fullmatch(r"\w+(?:\.\w+)?", text) else ""

    def _pointers_of(self, definition: Node) -> dict[str, str]:
        """The pointers to global memory, each with its parameter: these, and variables made of them. Those of
        a function that a kernel calls may point anywhere: to what is said as "".
        """
        code, is_kernel = self.tree.text(definition), definition == self.definition
        types = self.types_of(definition)
        known = {name: name if is_kernel else "" for name, kind in types.items() if "*" in kind}
        fields = {f"{found[1]}.{found[2]}" for found in _FIELD.finditer(code) if found[1] in types}
        known |= {name: name if is_kernel else "" for name in fields}
        for match in _POINTER.finditer(code):
            if match[2] in known and _is_one_array(match[1], code):
                known[match[1]] = known[match[2]]
        known = dict.fromkeys(_DECLARED.findall(code), "") | known  # that may point anywhere
        references = self._references(definition).items()
        known |= {name: known[array] for name, array in references if array in known}
        others = {*self.not_of_global_memory(definition), *self._given_own_arrays(definition)}
        return {name: origin for name, origin in known.items() if name not in others}

    def _given_own_arrays(self, definition: Node) -> Iterator[str]:
        """The parameters of a function that is called in this file alone, for which each call gives an array
        that the caller declares, in registers or shared memory, and gives once.
        """
        name = function_name(self.tree, definition)
        calls = [one for one in self._calls if re.match(rf"{name}\b", self.tree.text(one[0]))]
        if definition == self.definition or self.file != self.kernel_file or not calls:
            return
        for place, parameter in enumerate(self.types_of(definition)):
            given = [(list(map(self.tree.text, arguments_of(call))), around) for call, around in calls]
            own = (set(self.not_of_global_memory(around)) for _, around in given)
            once = ({one for one in texts[place : place + 1] if texts.count(one) == 1} for texts, _ in given)
            if all(names & arrays for names, arrays in zip(once, own)):
                yield parameter

    @cached_property
    def _calls(self) -> list[tuple[Node, Node]]:
        """The calls of the file, each with the function that it is in."""
        calls = [one for one in walk(self.tree.root) if one.type == "call_expression"]
        around = ((one, each) for one in calls for each in outside(one))
        return [pair for pair in around if pair[1].type == "function_definition"]

    def _references(self, definition: Node) -> dict[str, str]:
        """The references to elements of arrays, each with its array."""
        code = self.code[definition.start_byte : definition.end_byte]
        return {each["name"]: each["array"] for each in _REFERENCE.finditer(code) if not each["const"]}

    def _use(
        self, function: Node, node: Node, vector: Vector, base: Node | None, alone: bool
    ) -> ElementUse | None:
        """A use of an element; None where its address is taken."""
        stores, always, around, array = False, True, node.parent, vector.array
        if node.type == "field_expression":
            around = node  # of `p->x` the element is what is before the field
        whole = node
        while around is not None and around.type == "parenthesized_expression":
            whole, around = around, around.parent
        if around is None or (around.type in (*_ADDRESS_OR_MORE, *_NAMES) and around != node):
            return None
        updates = around.type == "argument_list" and self._may_change(around, whole)
        declared = self.tree.text(around.children[0]).strip("& ")
        if is_bound(node) and declared in self._references(function):
            return None
        if around.type == "assignment_expression" and around.children[0] == whole:
            stores = around.children[1].type == "="
            updates = not stores
            if around.parent is None or around.parent.type != "expression_statement":
                return None
        elif around.type == "field_expression":
            part = part_around(around)
            if part.parent is None or part.parent.type == "pointer_expression":
                return None
            updates = part.parent.type in _CHANGES and (
                part.parent.type == "update_expression" or part.parent.children[0] == part
            )
        text, named = self.tree.text(node), array if base is None else self.tree.text(base)
        walks = named.endswith("++")
        if walks and text != f"*{named}":
            return None
        index = text[len(named) :].strip()[1:-1].strip() if node.type == _ELEMENT else "0"
        at = _AT.fullmatch(text)
        index = "" if node.type == "identifier" else at[2].strip() if at else index
        if vector.unit > 1:
            index, named = vector.index, vector.base
        span, variable, guards, decided = 1, ("", 0, 1), list[str](), list[str]()
        inner = node
        for outer in outside(node):
            if self._is_block(outer, vector, index if always and span == 1 else None):
                break
            if outer.type in ("function_definition", "lambda_expression"):
                return None
            branch = alone and outer.type in ("if_statement", "else_clause")
            if branch and inner.type == "expression_statement":
                break
            counted = self._counted(outer) if span == 1 else None
            if counted is not None and always and self._is_along(outer, vector, index, counted):
                name, values = counted
                index, span = substitute_variables(index, {name: str(values.start)}, 1), len(values)
                variable = name, values.start, values.step
            elif counted is None or stores or not self._is_same_in(outer, array, index):
                holds = self.here.decided(outer, inner)
                guard = "" if stores or updates else self._guard(outer, inner)
                guards += [guard] if guard else []
                decided += [holds] if holds else []
                always &= bool(guard or holds) or not may_be_left_out(outer, inner)
            inner = outer
        else:
            return None
        ahead = self.code[inner.start_byte : node.start_byte]
        guard, known_to_hold = (all_of(list(reversed(each))) for each in (guards, decided))
        if any(changes(name, ahead) for name in names_in(index, guard)):
            return None
        named = named.removesuffix("++").strip()
        how = always, stores, named, updates, span, variable, guard, walks, vector.unit, known_to_hold
        return ElementUse(function, node, inner, array, index, *how)

    def _may_change(self, arguments: Node, argument: Node) -> bool:
        """Whether a function of the file gets an argument by a reference through which it may change it."""
        call, place = arguments.parent, arguments.named_children.index(argument)
        declared = () if call is None else self.footprints.declared(call, place)
        return any("&" in one and not re.search(r"\bconst\b", one) for one in declared)

    def _guard(self, outer: Node, part: Node) -> str:
        """What has to hold for a part of an expression to be evaluated, if it may be asked before."""
        kinds = "binary_expression", "conditional_expression"
        if outer.type not in kinds or part == outer.children[0] or not may_be_left_out(outer, part):
            return ""
        condition, mark = self.tree.text(outer.children[0]), outer.children[1].type
        if outer.children[0].type == "parenthesized_expression":
            condition = condition[1:-1].strip()
        if mark == "||" or _READS.search(condition) or EFFECT.search(condition):
            return ""
        holds = mark == "&&" or part == outer.child_by_field_name("consequence")
        return condition if holds else f"!({condition})"

    def held(self, uses: Sequence[ElementUse]) -> str:
        """The code during which elements that are read are held; what is assigned last is stored later."""
        first, last = uses[0], uses[-1]
        loops = [one for one in outside(last.node, last.statement.parent) if one.type in LOOPS]
        end = loops[-1] if loops else last.node
        made = [value for _, how, value in map(assignment_parts, last.statement.named_children) if how == "="]
        place = made[0].start_byte if made and made[0] is not None else last.statement.start_byte
        until = last.statement.start_byte
        return self.code[first.statement.start_byte : until] + self.code[place : end.end_byte]

    def _is_block(self, node: Node, vector: Vector, index: str | None) -> bool:
        """Whether a node is a block of statements, but not that of a loop over the elements of a record."""
        if node.type != "compound_statement":
            return False
        loop = node.parent
        counted = self._counted(loop) if index is not None else None
        if counted is None or loop is None or index is None:
            return True
        along = self._is_along(loop, vector, index, counted)
        return not along and not self._is_same_in(loop, vector.array, index)

    def _is_along(self, loop: Node, vector: Vector, index: str, counted: tuple[str, range]) -> bool:
        """Whether each iteration of a loop accesses the next element."""
        name, values = counted
        following = substitute_variables(index, {name: f"{name} + {values.step}"}, 1)
        along = distance(index, following) == vector.unit
        return along and not changes_of(vector.array, self.tree.text(loop))

    def _is_same_in(self, loop: Node, array: str, index: str) -> bool:
        """Whether all iterations of a loop access the same element."""
        code = self.tree.text(loop)
        return not changes_of(array, code) and not any(changes(name, code) for name in names_in(index))

    def _counted(self, loop: Node | None) -> tuple[str, range] | None:
        """The variable of a loop that counts up, and its values; None without numbers."""
        name, values = (self.here.counted(loop) if loop is not None else None) or ("", range(0))
        return (name, values) if values.step > 0 and 1 < len(values) <= MOST else None

    def apart(self, one: ElementUse, two: ElementUse) -> int | None:
        """How many elements a use is behind another; None if that is not always the same."""
        if "".join(one.base.split()) != "".join(two.base.split()):
            return None
        found = distance(one.index, two.index)
        found = distance(self._resolved(one), self._resolved(two)) if found is None else found
        return None if found is None or found % one.unit else found // one.unit

    def _resolved(self, use: ElementUse) -> str:
        """The index of a use in terms of what its variables are made of, if that never changes."""
        code = self.code[slice(*use.function.byte_range)]
        index, known = substitute_variables(use.index, initializers(code)), names_in(use.index)
        fixed = all(changes(name, code) <= 1 for name in names_in(index) if name not in known)
        return index if fixed else use.index

    def names_of(self, use: ElementUse) -> str:
        """All names of the array that a use is of, as a pattern."""
        pointers = self.pointers(use.function)
        own = pointers[use.array]
        return "|".join(name for name, origin in pointers.items() if "" in (own, origin) or origin == own)

    def is_stored(self, use: ElementUse, code: str) -> bool:
        """Whether code stores to elements of the array that a use is of."""
        assigned, names = r"(?:[-+*/%|&^]|<<|>>)?=(?!=)|\+\+|--", self.names_of(use)
        part = r"(?:(?:\.|->)\s*\w+\s*|\[[^;]*?\]\s*)"
        stored = rf"\b(?:{names})\s*{part}+(?:{assigned})|(?:^|[;{{}})])\s*\*\s*(?:{names})\s*=(?!=)"
        return re.search(stored, code) is not None

    def is_scalar(self, use: ElementUse) -> bool:
        """Whether an access moves a whole element, as far as its type is known."""
        if use.node.parent is not None and use.node.parent.type == "field_expression":
            return False
        cast = re.search(r"([\w\s:]+?)\s*\*\s*[)>]", use.base)
        words = self.words_of(use.array, use.function) if cast is None else re.findall(r"\w+", cast[1])
        return use.unit > 1 or any(word in ELEMENT_BYTES or word in ("long", "signed") for word in words)


def all_of(conditions: Sequence[str]) -> str:
    """That all of these hold; "" for none."""
    return conditions[0] if len(conditions) == 1 else " && ".join(f"({one})" for one in conditions)


def may_be(site: SiteCounts, origin: str) -> bool:
    """Whether an access may be of the array of a parameter, or of a field of it; "" is of any."""
    return origin.partition(".")[0] in ("", *(each.partition(".")[0] for each in site.array.split("|")))


def is_bound(node: Node) -> bool:
    """Whether a reference is made to an element."""
    around = node.parent
    declares = around is not None and around.type == "init_declarator"
    return around is not None and declares and "reference" in around.children[0].type


def _is_one_array(pointer: str, code: str) -> bool:
    """Whether a pointer points into the array that it is initialized with, wherever it moves."""
    assigned = len(re.findall(rf"(?<![\w.])(?<!->){pointer}\s*=(?!=)", without_stores(pointer, code)))
    return assigned == 1 and not re.search(rf"(?<!&)&(?!&)\s*{pointer}\b(?!\s*[\[-])", code)
