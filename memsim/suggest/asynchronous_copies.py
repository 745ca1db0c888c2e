"""Copies to shared memory that a thread does not wait for (`cp.async`): an edit for tiles of global memory.

In `tile[i] = in[j]; __syncthreads();` each thread waits for what it loads, to store it. In the edit the copy
is asynchronous and waited for before the barrier: of vectors, too, of what a local variable has in between
that nothing else uses, and where a condition decides: `tile[i] = inside ? in[j] : 0;` copies if it holds, and
else stores. In a loop over tiles, each copied, used and then given up, the next one is copied to a second
buffer while one is used, and there is one barrier for each. The functions are those of `cuda_pipeline.h`,
which copy as before on chips without such copies.

Left out is what a copy cannot do: conversions, elements of other than 4, 8 or 16 bytes, and arrays that are
read, or stored to otherwise, before the barrier, and what might change in global memory until then.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from memsim.analysis import Analysis
from memsim.api.sanitizing import sanitize_job
from memsim.estimated_time import EstimatedTime
from memsim.job import Job
from memsim.sanitizer.hazards import RACE
from memsim.source.expressions import ELEMENT_BYTES
from memsim.source.kernels import parameter_of
from memsim.source.syntax import (
    NOTHING,
    Node,
    arguments_of,
    assignment_parts,
    bare,
    outside,
    parameters_of,
    walk,
)
from memsim.source.values import changes
from memsim.suggest.c_text import EFFECT, names_in
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.kernel_tree import KernelTree, with_pragmas
from memsim.suggest.proposals import LEAST_SAVED, fits
from memsim.suggest.prove import is_the_same
from memsim.suggest.ranking import MARGIN, Verdict, verdict
from memsim.suggest.threads import Remapped, replay_edit
from memsim.time.behind_l1 import WARM
from memsim.time.quick_estimate import estimate

SIZES = (4, 8, 16)  # of a copy, in bytes
#: What is not moved, and nothing over it, and what leaves a loop.
STAYS = re.compile(
    r"\b(?:asm|volatile|atomic\w*|__sync\w+|__threadfence\w*|return|goto|break|continue)\b|\bsync\s*\("
)
_LOOPS = re.compile(r"\b(?:for|while|do)\b")
_NO_TYPE = re.compile(
    r"\b(?:(?:__align__|alignas)\s*\((?:[^()]|\([^()]*\))*\)|extern|static|const|__shared__)|\w*restrict\w*|\*"
)
_DECLARATORS = ("init_declarator", "array_declarator", "pointer_declarator", "identifier")


@dataclass(frozen=True, slots=True)
class Pointed:
    """What a pointer points to. space: `shared`, `global` or ""; of: elements; array: of shared memory."""

    space: str = ""
    of: str = ""
    array: str = ""


def declarators(node: Node) -> Iterator[Node]:
    """Of a declaration; none of anything else."""
    inside = node.named_children if node.type == "declaration" else ()
    yield from (one for one in inside if one.type in _DECLARATORS)


def element_type(declared: str) -> str:
    """The type of elements, as declared, without what says where they are."""
    return " ".join(_NO_TYPE.sub(" ", declared).split())


@dataclass(frozen=True, slots=True)
class TileStore:
    """Stores to a shared array. copy: what is instead, "" if it stays; without: what goes with it."""

    statement: Node
    array: str
    copy: str = ""
    without: tuple[Node, ...] = ()


class TileCopies(KernelTree):
    """A kernel's source, in which elements go from global to shared memory.

    nodes: all of the kernel. arrays: declarators of shared arrays, by name. pointers: what these and pointers
    point to; of variables in shared memory that is not known. conditions: that types have to meet, in C.
    """

    def __init__(self, before: Analysis, job: Job) -> None:
        super().__init__(before, job)
        blocks = "|".join(re.findall(r"\bthread_block\s+(\w+)\s*[=(]", self.own_code)) or "$."
        waits = r"__syncthreads\(\)", rf"(?:\w+::)*sync\((?:{blocks})\)", rf"(?:{blocks})\.sync\(\)"
        self._barrier = re.compile(f"(?:{'|'.join(waits)});")
        self.conditions = set[str]()
        self.nodes = [node for one in self.kernels for node in walk(one)]
        self.arrays: dict[str, Node] = {}
        self.pointers: dict[str, Pointed] = {}
        for one in (parameter for each in self.kernels for parameter in parameters_of(each)):
            declared = parameter_of(self.tree, one)
            if declared.type.endswith("*"):
                self.pointers[declared.name] = Pointed("global", element_type(declared.type[:-1]))
        for node in self.nodes:
            self._find(node)
        for left, mark, right in map(assignment_parts, self.nodes):
            name = "" if left is None or mark != "=" else self.tree.text(left)
            made = Pointed() if right is None else self.pointed(right) or Pointed()
            if name in self.pointers and replace(made, of=self.pointers[name].of) != self.pointers[name]:
                self.pointers[name] = Pointed()

    def _find(self, node: Node) -> None:
        text = self.tree.text(node) if node.type == "declaration" else ""
        of = element_type(re.split(r"\*|\b\w+\s*[\[=]", text)[0])
        for one in walk(node) if "__shared__" in text else ():
            if one.type == "array_declarator" and one.children[0].type == "identifier":
                name = self.tree.text(one.children[0])
                self.arrays[name], self.pointers[name] = one, Pointed("shared", of, name)
        for one in declarators(node):
            if one.type == "identifier" and "__shared__" in text:
                self.pointers[self.tree.text(one)] = Pointed()
            if one.type == "init_declarator" and one.children[0].type == "pointer_declarator":
                made = self.pointed(one.children[2]) or Pointed()
                self.pointers[self.name(one)] = replace(made, of=of)

    def pointed(self, node: Node) -> Pointed | None:
        """What an expression points to; None if that is not known."""
        node = bare(node)
        first = node.children[0] if node.children else node
        if node.type == "identifier":
            return self.pointers.get(self.tree.text(node))
        if node.type == "pointer_expression" and first.type == "&":
            return self.element(node.children[1])
        moved = node.type == "binary_expression" and node.children[1].type in ("+", "-")
        if moved or node.type == "subscript_expression":
            return self.pointed(first)
        cast = self.cast(node)
        made = None if cast is None else self.pointed(cast[1])
        return made and cast and replace(made, of=element_type(cast[0]))

    def cast(self, node: Node) -> tuple[str, Node] | None:
        """To which pointer an expression casts, `float4 *`, and what; None of any other."""
        to, inside = "", arguments_of(node)
        if node.type == "cast_expression":
            to, inside = self.tree.text(node.children[1]), node.children[-1:]
        elif by_name := re.match(r"reinterpret_cast\s*<([^<>]*)>", self.tree.text(node)):
            to = by_name[1]
        return (to, inside[0]) if to.count("*") == 1 and len(inside) == 1 else None

    def address(self, node: Node) -> str:
        """The address of an element, without casts: `&s[i]` of `*(float4 *)&s[i]`."""
        node = bare(node)
        of_pointer = node.type == "pointer_expression"
        inside = bare(node.children[of_pointer])
        cast = self.cast(inside)
        if not of_pointer and (cast is None or self.tree.text(node.children[1]) != "[0]"):
            return f"&{self.tree.text(node)}"
        while cast is not None:
            inside = bare(cast[1])
            cast = self.cast(inside)
        if inside.type == "pointer_expression" and inside.children[0].type == "&":
            return f"&{self.tree.text(bare(inside.children[1]))}"
        return self.tree.text(inside)

    def element(self, node: Node) -> Pointed | None:
        """What an expression is an element of; None of anything else."""
        node = bare(node)
        of_pointer = node.type == "pointer_expression" and node.children[0].type == "*"
        if node.type == "subscript_expression" or of_pointer:
            return self.pointed(node.children[of_pointer])
        return None

    def is_own(self, left: Node) -> bool:
        """Whether what is assigned to is a variable, or in an array, of the thread."""
        known = self.pointers.get(self.name(left))
        if bare(left).type == "identifier":
            return known is None or known.space != ""
        return known is None and "->" not in self.tree.text(left)

    def name(self, node: Node) -> str:
        """The first name in a declarator or an expression."""
        names = (self.tree.text(one) for one in walk(node) if one.type == "identifier")
        return next((one for one in names if one != "reinterpret_cast"), "")

    def stores(self) -> Iterator[TileStore]:
        """The statements that store to shared memory, with what copies instead."""
        for node in self.nodes:
            left, mark, right = assignment_parts(node)
            element, statement = None if left is None or mark != "=" else self.element(left), node.parent
            if element is None or element.space != "shared" or left is None or right is None:
                continue
            if statement is not None and statement.type == "expression_statement":
                copied = self._copied(left, element.of, right, statement)
                yield TileStore(statement, element.array, *(copied or ()))

    def _copied(
        self, to: Node, kind: str, value: Node, statement: Node
    ) -> tuple[str, tuple[Node, ...]] | None:
        """What copies a value to an element, and what goes for that; None if the value is no such element."""
        value = bare(value)
        element, left, right = self.element(value), self.tree.text(to), self.tree.text(value)
        if element is not None and element.space == "global":
            if element.of != kind or EFFECT.search(left + right) or not self._can_be_copied(kind):
                return None
            places = f"{self.address(to)}, {self.address(value)}"
            return f"__pipeline_memcpy_async({places}, sizeof({kind}));", ()
        if value.type == "conditional_expression":
            condition, ways = self.tree.text(bare(value.children[0])), (value.children[2], value.children[4])
            copies = [self._copied(to, kind, one, statement) for one in ways]
            if not any(copies) or any(one is not None and one[1] for one in copies):
                return None
            one, two = (
                f"{left} = {self.tree.text(way)};" if copy is None else copy[0]
                for way, copy in zip(ways, copies)
            )
            return f"if ({condition}) {one} else {two}", ()
        return self._held(to, kind, right, statement) if value.type == "identifier" else None

    def _can_be_copied(self, kind: str) -> bool:
        """Whether a type has the size of a copy; asserted, if that is not known here."""
        sizes = {ELEMENT_BYTES[word] for word in kind.split() if word in ELEMENT_BYTES}
        if sizes or not kind or "long" in kind:
            return kind.startswith("long long") or ("long" not in kind and max(sizes, default=0) in SIZES)
        size = " || ".join(f"sizeof({kind}) == {one}" for one in SIZES)
        self.conditions.add(f"({size}) && alignof({kind}) == sizeof({kind})")
        return True

    def _held(self, to: Node, kind: str, name: str, statement: Node) -> tuple[str, tuple[Node, ...]] | None:
        """What copies an element that a local variable, which nothing else uses, has in between."""
        block = statement.parent
        inside = block.named_children if block is not None and block.type == "compound_statement" else []
        ahead = [one for one in inside if one.end_byte <= statement.start_byte]
        found = [each for one in ahead for each in declarators(one) if self.name(each) == name]
        uses = self._uses(name, block) if block is not None and len(found) == 1 else []
        places = [one for one in ahead if any(is_in(use, one) for use in uses)]
        if not 2 <= len(uses) == len(places) + 1 <= 3:
            return None
        load, value, when, other = places[-1], found[0].child_by_field_name("value"), "", ""
        if len(places) == 2:
            then = load
            if load.type == "if_statement" and value is not None and len(load.named_children) == 2:
                condition, then = load.named_children
                when, other = f"if {self.tree.text(condition)} ", self.tree.text(value)
                then = then.named_children[0] if len(then.named_children) == 1 else then
            then = then.named_children[0] if then.type == "expression_statement" else then
            left, mark, value = assignment_parts(then)
            if left is None or self.tree.text(left) != name or mark != "=" or names_in(other):
                return None
        copied = None if value is None else self._copied(to, kind, value, statement)
        names = (one for one in names_in(self.tree.text(load)) if one != name)
        if copied is None or copied[1] or self._type_of(found[0]) not in (kind, "auto"):
            return None
        other = f" else {self.tree.text(to)} = {other};" if when else ""
        still = self._is_still(load.end_byte, statement.start_byte, names)
        return (f"{when}{copied[0]}{other}", (found[0], *places[1:])) if still else None

    def _type_of(self, declarator: Node) -> str:
        declared = declarator.parent or declarator
        first = next(declarators(declared), declarator)
        return element_type(self.tree.text(declared)[: first.start_byte - declared.start_byte])

    def _is_still(self, start: int, end: int, names: Iterable[str]) -> bool:
        """Whether what is loaded at a place may be loaded at another one behind it."""
        code = self.code[start:end]
        moves = STAYS.search(code) or _LOOPS.search(code) or any(changes(name, code) for name in names)
        return not moves and not self.may_store(start, end)

    def may_store(self, start: int, end: int, given: Container[str] = ()) -> bool:
        """Whether code may store to global memory, or a function with pointers to more than `given`."""
        for one in self.nodes:
            left = assignment_parts(one)[0] if start <= one.start_byte < end else None
            if left is not None and not self.is_own(left):
                element = self.element(left)
                if element is None or element.space != "shared":
                    return True
            called = start <= one.start_byte < end and self.cast(one) is None
            passed = arguments_of(one) if called else []
            pointers = (self.pointed(each) for each in passed if self.element(each) is None)
            if any(each is not None and each.array not in given for each in pointers):
                return True
        return False

    def declared(self, nodes: Iterable[Node]) -> set[str]:
        """The names that are declared in statements."""
        return {self.name(one) for node in nodes for each in walk(node) for one in declarators(each)}

    def _uses(self, name: str, block: Node) -> list[Node]:
        """Where a block names a variable of its own, and no other one of that name inside."""
        inside = [one for one in walk(block) if one.type == "declaration" and one.parent != block]
        hidden = [one.parent for one in inside if one.parent and name in self.declared([one])]
        found = (one for one in walk(block) if one.type == "identifier" and self.tree.text(one) == name)
        return [use for use in found if not any(is_in(use, one) for one in hidden)]

    def groups(self) -> dict[Node, list[TileStore]]:
        """The barriers behind stores of which some become copies, each with its stores."""
        found: dict[Node, list[TileStore]] = defaultdict(list)
        for store in self.stores():
            barrier = self._barrier_behind(store.statement)
            if barrier is not None:
                found[barrier].append(store)
        sound = {barrier: list(self._sound(barrier, some)) for barrier, some in found.items()}
        return {barrier: some for barrier, some in sound.items() if any(one.copy for one in some)}

    def is_barrier(self, node: Node) -> bool:
        """Whether all threads of a block wait for each other in a statement."""
        return self._barrier.fullmatch("".join(self.code[slice(*node.byte_range)].split())) is not None

    def _barrier_behind(self, node: Node | None) -> Node | None:
        """The barrier that all threads come to next; None if something else may be before it."""
        while node is not None and node.parent is not None and node != self.definition:
            if node.parent.type == "compound_statement":
                for one in (each for each in node.parent.named_children if each.start_byte >= node.end_byte):
                    if self.is_barrier(one):
                        return one
                    if STAYS.search(self.code[slice(*one.byte_range)]):
                        return None
            node = node.parent
        return None

    def _sound(self, barrier: Node, some: list[TileStore]) -> Iterator[TileStore]:
        """The stores before a barrier, copies to arrays of which nothing else is read or stored."""
        outer = [_child_of(barrier.parent, one.statement) for one in some if one.copy]
        start = min((one.start_byte for one in outer), default=barrier.start_byte)
        near = {name: one for name, one in self.pointers.items() if one.space != "global"}
        named = [one for one in self.nodes if one.type == "identifier" and self.tree.text(one) in near]
        stored = [next(each for each in walk(one.statement) if each in named) for one in some]
        between = (one for one in named if start <= one.start_byte < barrier.start_byte)
        read = {near[self.tree.text(one)].array for one in between if one not in stored}
        leaves = STAYS.search(self.code[start : barrier.start_byte]) is not None
        leaves = leaves or self.may_store(start, barrier.start_byte)
        for one in some:
            plain = (each for each in some if each.array == one.array and not each.copy)
            alone = all(_is_instead(each.statement, one.statement) for each in plain)
            stays = leaves or not alone or one.array in read or "" in read
            yield TileStore(one.statement, one.array) if stays else one


def is_in(node: Node, outer: Node) -> bool:
    """Whether a node is in another one, or is it."""
    return outer.start_byte <= node.start_byte and node.end_byte <= outer.end_byte


def _child_of(block: Node | None, node: Node) -> Node:
    """The statement of a block that a node is in."""
    while node.parent is not None and node.parent != block:
        node = node.parent
    return node


def _is_instead(one: Node, two: Node) -> bool:
    """Whether of two statements never both are executed: in branches of one `if`."""
    around = one.parent
    while around is not None and not (around.type == "if_statement" and is_in(two, around)):
        around = around.parent
    other = None if around is None else around.child_by_field_name("alternative")
    return other is not None and is_in(one, other) != is_in(two, other)


COPIED = "asynchronous copies to shared memory"
AHEAD = "the next tile copied while one is used"
HEADER = "cuda_pipeline.h"
#: Why warps wait, where copies may gain: for what they load, and for those that do.
WAITS = ("long_scoreboard", "barrier")
#: What may read or write an array where no statement shows it.
_HIDDEN = ("reference_declarator", "lambda_expression")
#: What tensor cores get from shared memory, and make of it: nothing else is read or written.
_PRODUCTS = re.compile(r'\basm\s+volatile\s*\(\s*"(?:ldmatrix|mma)\.sync\b[^;]*;[^";]*"')


def asynchronous_copies(job: Job, before: Analysis) -> tuple[Remapped, ...]:
    """The kernel with such copies, compiled and replayed, if it is worth an edit and has the same results.

    With two buffers where a loop allows them, else with copies that are waited for at once. Of the estimated
    time one of `LEAST_SAVED` parts has to be saved: such code is harder to read. With a warm L2 cache, where
    there is less to wait for, nothing may be lost.
    """
    if not before.arch.widths("global", "cp_async"):
        return ()
    waits = () if before.estimate is None else before.estimate.waiting
    if waits and sum(one.share for one in waits if one.reason in WAITS) < MARGIN:
        return ()
    found = Asynchronous(before, job).edited()
    done = None if found is None else replay_edit(found[0], job, before, found[1], helping=False)
    if done is None or not done.is_known or verdict(before, done.analysis) is not Verdict.WORTH:
        return ()
    if not _is_less(before.estimate, done.analysis.estimate, 1 / LEAST_SAVED):
        return ()
    warm = [estimate(one, made.trace, l2=WARM) for one, made in ((job, before), (done.job, done.analysis))]
    if not _is_less(warm[0], warm[1], 0):
        return ()
    unordered = sanitize_job(done.job, tools=(RACE,)).findings  # as copies that nothing waits for
    return (done,) if not unordered and is_the_same(job, done.job) else ()


def _is_less(before: EstimatedTime | None, after: EstimatedTime | None, share: float) -> bool:
    """Whether a time is less by such a share, as far as it is known."""
    if before is None or after is None or before.elapsed is None or after.elapsed is None:
        return True
    return before.elapsed - after.elapsed >= share * before.elapsed


class Asynchronous(TileCopies):
    """A kernel's source, in which asynchronous copies take the place of loads and stores."""

    def edited(self) -> tuple[str, Edit] | None:
        """What becomes of the kernel, and the edit; None if there is nothing to copy."""
        hidden = any(one.type in _HIDDEN for one in self.nodes)
        groups = {} if hidden or re.search("pipeline|memcpy_async", self.own_code) else self.groups()
        loops = [list(self._two_buffers(*one, number)) for number, one in enumerate(groups.items())]
        made = [one for one in loops if one] or [list(self._waited_for(*one)) for one in groups.items()]
        if not made:
            return None
        stored = (one.statement for some in groups.values() for one in some)
        named = names_in(*map(self.tree.text, [*stored, *map(_with_extents, self.arrays.values())]))
        edit = self.edit([self._header(), *chain.from_iterable(made)], [*self.sizes, *named])
        for condition in sorted(self.conditions):
            edit = edit.asserting(condition)
        return AHEAD if any(loops) else COPIED, edit

    def _header(self) -> Replacement:
        """The header's line: before the first one that is always included, else where code begins."""
        blank = re.match(r"(?:\s*\n|[ \t]*#[ \t]*pragma once[^\n]*\n)*", self.code)
        place, depth = 0 if blank is None else blank.end(), 0
        for found in re.finditer(r"^[ \t]*#[ \t]*(if|endif|include)", self.code, re.MULTILINE):
            depth += {"if": 1, "endif": -1, "include": 0}[found[1]]
            if found[1] == "include" and not depth:
                place = found.start()
                break
        return Replacement(place, place, "" if HEADER in self.code else f"#include <{HEADER}>\n")

    def _waited_for(self, barrier: Node, some: list[TileStore]) -> Iterator[Replacement]:
        """Copies in place of stores, waited for before the barrier."""
        yield from self._replaced(some)
        waits = "__pipeline_commit();", "__pipeline_wait_prior(0);", self.tree.text(barrier)
        yield Replacement(*barrier.byte_range, f"\n{self.indent(barrier.start_byte)}".join(waits))

    def _replaced(self, some: Iterable[TileStore], more: str = "", which: str = "") -> Iterator[Replacement]:
        """Copies in place of stores, without what these were for. more: indentation; which: of buffers."""
        without = [node for one in some for node in one.without]
        for one in some:
            place, text = one.statement, re.sub(rf"(?<![\w.]){one.array}\b", f"{one.array}{which}", one.copy)
            if text.startswith("if "):
                in_block = place.parent is not None and place.parent.type == "compound_statement"
                line = f"\n{self.indent(place.start_byte)}{more}else "
                text = text.replace(" else ", line) if in_block else f"{{ {text} }}"
            if text:
                yield Replacement(*place.byte_range, text)
        declarations = {one.parent for one in without if one.parent and one in declarators(one.parent)}
        yield from (self._gone(one) for one in without if one.parent not in declarations)
        for declaration in declarations:
            every = list(declarators(declaration))
            left = ", ".join(self.tree.text(one) for one in every if one not in without)
            shorter = Replacement(every[0].start_byte, every[-1].end_byte, left)
            yield shorter if left else self._gone(declaration)

    def _gone(self, node: Node) -> Replacement:
        """Without a statement, and its line if nothing else is in it."""
        start, end = self.text.rfind("\n", 0, node.start_byte), self.text.find("\n", node.end_byte)
        alone = not (self.code[start : node.start_byte] + self.code[node.end_byte : end]).strip()
        return Replacement(start, end, "") if alone else Replacement(*node.byte_range, "")

    def _two_buffers(self, barrier: Node, some: list[TileStore], number: int) -> Iterator[Replacement]:
        """A loop in which tiles are copied while others are used; nothing where one cannot be that."""
        body, loop, around, *_ = (*outside(barrier), None, None, None)
        if body is None or loop is None or around is None or around.type != "compound_statement":
            return
        condition, update = (loop.child_by_field_name(name) for name in ("condition", "update"))
        if loop.type != "for_statement" or condition is None:
            return
        statements = [one for one in body.named_children if one.type != "comment"]
        ahead = [one for one in statements if one.start_byte < barrier.start_byte]
        ahead = [one for one in ahead if "__shared__" not in self.tree.text(one)]
        behind = [one for one in statements if one.start_byte > barrier.start_byte]
        others = [one for one in (*ahead[:1], *behind) if self.is_barrier(one)]
        ahead = [one for one in ahead if one not in others]
        asks = [one for one in (condition, update) if one is not None]
        steps = self._steps(names_in(*self._codes([*ahead, *asks])), behind)
        used = [one for one in behind if one not in (*others, *steps)]
        end = used[-1].start_byte if used else 0
        early = [one for one in others if barrier.start_byte < one.start_byte < end]
        if not used or not others or early or not self._are_apart(loop, ahead, used, some):
            return
        tile, more = (self._free(name, number) for name in ("tile", "more"))
        line, arrays = f"\n{self.indent(barrier.start_byte)}", {one.array for one in some}
        deeper = self.indent(barrier.start_byte).removeprefix(self.indent(loop.start_byte)) or "    "
        start, end = (len(self.text[:place].rstrip()) for place in (ahead[0].start_byte, body.end_byte - 1))
        asked, waits = self.tree.text(condition), self.tree.text(barrier)
        moved = "".join(f"\n{deeper}{self.tree.text(one)}" for one in steps)
        texts = (
            f"\n__pipeline_wait_prior(0);\n{waits}\nconst bool {more} = {asked};\nif ({more}) {{",
            f"__pipeline_commit();{moved}\n}}\nif ({tile} > 0) {{",
            f"\n}}\nif (!{more}) break;",
        )
        opening, between, closing = (one.replace("\n", line) for one in texts)
        blank = re.compile(r"(?:[ \t]*\n(?=[ \t]*\n))*").match(self.text, barrier.end_byte)
        changed = [
            *self._replaced(some, deeper, f"[{tile} % 2]"),
            *map(self._gone, [*others, *steps]),
            *self._named(arrays, [one.statement for one in some if not one.copy], f"[{tile} % 2]"),
            *self._named(arrays, used, f"[({tile} + 1) % 2]"),
            Replacement(barrier.start_byte, blank.end() if blank else barrier.end_byte, between),
        ]
        for found in re.finditer(r"\n(?=[^\n#])", self.text[start:end]):
            place = start + found.end()
            if not any(one.start < place < one.end for one in changed):
                changed.append(Replacement(place, place, deeper))
        place = with_pragmas(self.text, loop.start_byte)
        indent = self.indent(loop.start_byte).removeprefix(self.indent(place))
        yield Replacement(place, place, f"{indent}unsigned {tile} = 0;\n{self.indent(place)}")
        yield Replacement(*condition.byte_range, "")
        place = next(one.start_byte for one in reversed(loop.children) if one.type == ")")
        yield Replacement(place, place, f"{',' if update else ''} ++{tile}")
        for place in {self.arrays[one].children[0].end_byte for one in arrays}:
            yield Replacement(place, place, "[2]")
        yield Replacement(start, start, opening)
        yield from changed
        yield Replacement(end, end, closing)

    def _free(self, name: str, number: int) -> str:
        """A name that the kernel does not have."""
        name = f"{name}{number or ''}"
        return f"{name}_of_loop" if re.search(rf"\b{name}\b", self.own_code) else name

    def _named(self, arrays: set[str], statements: Iterable[Node], which: str) -> Iterator[Replacement]:
        """Arrays where statements name them, with which of two buffers it is."""
        for one in chain.from_iterable(map(walk, statements)):
            if one.type == "identifier" and self.tree.text(one) in arrays:
                yield Replacement(one.end_byte, one.end_byte, which)

    def _codes(self, nodes: Iterable[Node]) -> list[str]:
        return [self.code[slice(*one.byte_range)] for one in nodes]

    def _steps(self, names: list[str], behind: list[Node]) -> list[Node]:
        """The statements that only advance to the next tile, `A += BK;`. names: that are used to copy it."""
        found, code = [], ";\n".join(self._codes(behind))
        for one in behind:
            left, _, right = (
                assignment_parts(one.named_children[0]) if one.type == "expression_statement" else NOTHING
            )
            name = "" if left is None or left.type != "identifier" else self.tree.text(left)
            others = names_in(*self._codes(each for each in behind if each != one))
            made = names_in("" if right is None else self.tree.text(right))
            fixed = not any(changes(each, code) for each in made if each != name)
            if fixed and name in names and name not in others:
                found.append(one)
        return found

    def _are_apart(self, loop: Node, ahead: list[Node], used: list[Node], some: list[TileStore]) -> bool:
        """Whether a tile may be copied before the last one is used: none touches the other, and both fit."""
        tiles, trace = {one.array for one in some}, self.before.trace
        sizes = {name: size for name, space, _, size in trace.arrays if space == "shared" and name in tiles}
        more = trace.shared_end + sum(sizes.values())
        if len(sizes) < len(tiles) or not fits(more, trace.launch, self.before.arch):
            return False
        if any("[]" in self.tree.text(self.arrays[one]) for one in tiles):
            return False
        named = [one for one in self.nodes if one.type == "identifier" and self.tree.text(one) in tiles]
        first, then = (sum(is_in(one, each) for one in named for each in part) for part in (ahead, used))
        stored = sum(is_in(one.statement, loop) for one in self.stores())
        if (first, stored) != (len(some), len(some)) or first + then + len(tiles) != len(named):
            return False
        targets = (
            left for one in used for left, _, _ in map(assignment_parts, walk(one)) if left is not None
        )
        if self.may_store(loop.start_byte, loop.end_byte, tiles) or not all(map(self.is_own, targets)):
            return False
        fields = (loop.child_by_field_name(name) for name in ("initializer", "condition", "update"))
        parts = [one for one in fields if one is not None]
        copied, using = ";\n".join(self._codes([*ahead, *parts])), ";\n".join(self._codes(used))
        own, theirs = self.declared([*parts, *ahead]), self.declared(used)
        both = {*names_in(copied)} - theirs - tiles
        changed = {name for name in both if name in own or changes(name, copied)}
        return not (
            STAYS.search(_PRODUCTS.sub("", f"{copied}\n{using}"))
            or changed & {*names_in(using)}
            or any(changes(name, using) for name in both - own)
        )


def _with_extents(declarator: Node) -> Node:
    around = declarator.parent
    return _with_extents(around) if around is not None and around.type == "array_declarator" else declarator
