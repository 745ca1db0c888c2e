"""Records of threads, moved by their warp side by side: an edit where threads have elements of their own.

`x = p[3 * i]; y = p[3 * i + 1]; z = p[3 * i + 2];` moves each sector three times. The edit moves the records
of a warp's lanes through a tile of shared memory: neighbouring lanes access neighbouring elements, and each
sector is moved once. It needs no barrier of the block and no other launch; where a warp's first lane is not
active, or a block has more threads than this launch's, each thread moves its own elements as before.

What is read lies between the first and the last element that a thread reads anyway, on each way through the
statements around; what is written is all written anyway. Elements that are structures are records of one.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from memsim.analysis import BADLY_COALESCED, Analysis
from memsim.arch.units import WARP
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.source.expressions import ELEMENT_BYTES, evaluate, open_names
from memsim.source.kernels import template_constants
from memsim.source.values import changes, constants
from memsim.suggest.c_text import names_in, plus
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.footprints import Footprints, may_be_left_out, parameters_of
from memsim.suggest.global_accesses import is_badly_coalesced
from memsim.suggest.kernel_tree import KernelTree, walk, with_pragmas
from memsim.suggest.passed_records import passed_records
from memsim.suggest.prove import edit_job, replay_job, source_of
from memsim.suggest.record_text import TEXT
from memsim.suggest.threads import Remapped, total

if TYPE_CHECKING:
    from tree_sitter import Node

NAME = "records of threads moved by their warp side by side"
PREFIX = "record_of_thread"
MOST = 32  # elements of a record
#: What lets others see, or change, elements while a thread holds them; or leaves the statements around.
_INTERRUPTS = re.compile(
    r"\b(?:return|break|continue|goto|asm|volatile|atomic\w+|__sync\w+|__threadfence\w*)\b"
)
#: `T *name = array + i`, of another type perhaps, and `auto name = array + i`.
_POINTER = re.compile(
    r"(?:\*\s*(?:(?:const|__restrict__)\s+)*|\bauto\s+(?=\w+\s*=\s*\w+\s*[+;]))(\w+)\s*=\s*"
    r"(?:\([\w\s]+\*\s*\)\s*|reinterpret_cast\s*<[\w\s:]+\*\s*>\s*\(\s*)?&?\s*(\w+)"
)
_ADDRESS_OR_MORE = ("pointer_expression", "update_expression", "subscript_expression")
_PARTS = ("field_expression", "subscript_expression")
_CHANGES = ("assignment_expression", "update_expression")


@dataclass(frozen=True, slots=True)
class _Use:
    """`array[index]` in a statement of a block. always: whether each way through the block makes it. stores:
    whether it is assigned; updates: whether a field of it is. span: of how many elements, from that of the
    index on, in a loop over them; variable: the loop's, from how many on. function: the kernel, or one that
    it calls.
    """

    function: Node
    node: Node
    statement: Node
    array: str
    index: str
    always: bool
    stores: bool
    updates: bool = False
    span: int = 1
    variable: tuple[str, int] = ("", 0)

    def place(self, number: int) -> str:
        """Which element of a record it is, where `number` is that of the index."""
        variable, start = self.variable
        if not variable:
            return f"{number}"
        return variable if number == start else plus(variable, number - start).replace("+ -", "- ")

    @property
    def op(self) -> str:
        """As sites have it."""
        return "store" if self.stores or self.updates else "load"


@dataclass(frozen=True, slots=True)
class _MovedRecord:
    """Elements of a thread. uses: in order, each with the number of its element. loaded, stored: how."""

    uses: tuple[tuple[int, _Use], ...]
    length: int
    loaded: bool
    stored: bool

    @property
    def first(self) -> _Use:
        """A use of its first element."""
        return next(use for place, use in self.uses if place == 0)


def records_of_threads(job: Job, before: Analysis) -> tuple[Remapped, ...]:
    """The kernel with its records moved by warps, compiled and replayed.

    If that saves a quarter of the needless sectors or more.
    """
    edit = _Records(job, before).edit() if source_of(job) is not None else None
    if edit is None:
        return ()
    changed = edit_job(job, edit, job.launch)
    try:
        done = Remapped(NAME, before, edit, changed, replay_job(changed))
    except MemsimError:
        return ()  # a change that does not compile or run is not proposed
    saved = total(before, "sectors") - total(done.analysis, "sectors")
    enough = saved >= BADLY_COALESCED * sum(site.needless_sectors for site in before.sites)
    known = not any(site.unresolved for site in done.analysis.sites)
    return (done,) if enough and known else ()


class _Records(KernelTree):
    """A kernel's source, in which records are looked for."""

    def __init__(self, job: Job, before: Analysis) -> None:
        super().__init__(before, job)
        self.warps = -(-job.launch.threads // WARP)
        known = {**constants(self.text), **template_constants(self.text, before.trace.kernel)}
        self.footprints = Footprints(self.tree, known)

    def edit(self) -> Edit | None:
        """The kernel with all its records moved by warps; None if there is none."""
        if self.definition is None or PREFIX in self.text:
            return None
        found: list[Replacement] = []
        names = ["blockDim.x"]
        passed = list(passed_records(self, self.definition, self._pointers(self.definition), self.footprints))
        for number, each in enumerate(passed):
            found += each.moved(self, f"{each.base}_passed{number}", self.warps)
            names += [one for one in names_in(self.tree.text(each.node)) if one not in names]
        bad = {site.line for site in self.before.sites if is_badly_coalesced(site) and site.file == self.file}
        functions = [self.definition, *(() if passed else self.called(bad))]
        changed = [self.definition]
        for number, one in enumerate(one for each in functions for one in self._records(each)):
            found += self._moved(one, f"{one.first.array}_record{number}")
            changed.append(one.first.function)
            more = names_in(one.first.index) if one.first.function == self.definition else self.sizes
            names += [each for each in more if each not in names]
        if not found:
            return None
        head = min(map(self.head, changed))
        found.append(Replacement(head, head, TEXT))
        in_order = tuple(sorted(found, key=lambda each: (each.start, each.end)))
        inside = self.opening(self.definition)
        return Edit(self.file, self.text, in_order, names=tuple(names), declared=inside)

    def _moved(self, record: _MovedRecord, name: str) -> list[Replacement]:
        """A record that is loaded before its first use, or stored after its last one."""
        uses = record.uses
        address = f"&{record.first.array}[{record.first.index}]"
        start = with_pragmas(self.text, uses[0][1].statement.start_byte)
        lines = f"\n{self.indent(start)}"
        of_any = "" if record.first.function == self.definition else ", true"
        shape = f"<{record.length}, {self.warps}{of_any}>"
        places = [Replacement(*self.span(use.node), f"{name}[{use.place(number)}]") for number, use in uses]
        how = f"record_at{shape}({address})" if record.loaded else f"record_for{shape}({record.first.array})"
        opening = f"{'' if record.stored else 'const '}auto {name} = {how};{lines}"
        closing = f"{lines}{name}.store({address});" if record.stored else ""
        block, end = uses[0][1].statement.parent, uses[-1][1].statement.end_byte
        if block is not None and block.type != "compound_statement":  # a statement that is alone in an `if`
            opening, closing = f"{{ {opening}", f"{closing} }}"
        if places[0].start == start:
            places[0] = replace(places[0], new=opening + places[0].new)
        else:
            places.append(Replacement(start, start, opening))
        return [*places, *([Replacement(end, end, closing)] if closing else [])]

    def _records(self, definition: Node) -> Iterator[_MovedRecord]:
        """The records in lines that waste sectors: of blocks, then of statements alone in an `if`."""
        moved: set[int] = set()
        for alone in (False, True):
            groups: dict[tuple[int, str, bool], list[_Use]] = {}
            for use in self._uses(definition, alone):
                block = use.statement.parent
                if block is not None and use.node.start_byte not in moved:
                    groups.setdefault((block.start_byte, use.array, use.stores), []).append(use)
            for uses in groups.values():
                waiting = uses
                while waiting:
                    alike, others = self._alike(waiting)
                    made = self._record(alike)
                    if made is not None:
                        moved |= {use.node.start_byte for _, use in made.uses}
                        yield made
                    waiting = others

    def _uses(self, definition: Node, alone: bool) -> Iterable[_Use]:
        """The accesses to arrays of global memory of which some waste sectors. alone: in statements that are
        alone in an `if`.
        """
        bad = [site for site in self.before.sites if is_badly_coalesced(site) and site.file == self.file]
        known = self._pointers(definition)
        found, wasted = [], set()
        for node in walk(definition):
            if node.type != "subscript_expression" or self.tree.text(node.children[0]) not in known:
                continue
            use = self._use(definition, node, self.tree.text(node.children[0]), alone)
            if use is None:
                continue
            found.append(use)
            first, last = (point[0] + 1 for point in (node.start_point, node.end_point))
            for site in bad:
                named = not known[use.array] or known[use.array] in site.array.split("|")
                if first <= site.line <= last and site.op == use.op and named:
                    wasted.add((use.array, use.op))
        return (use for use in found if (use.array, use.op) in wasted)

    def _pointers(self, definition: Node) -> dict[str, str]:
        """The pointers to global memory, each with its parameter: these, and variables made of them. Those of
        a function that a kernel calls may point anywhere: to what is said as "".
        """
        code, is_kernel = self.tree.text(definition), definition == self.definition
        types = self._types(definition)
        known = {name: name if is_kernel else "" for name, kind in types.items() if "*" in kind}
        for match in _POINTER.finditer(code):
            if match[2] in known and changes(match[1], code) == 1:
                known[match[1]] = known[match[2]]
        others = set(self.not_of_global_memory(definition))
        return {name: origin for name, origin in known.items() if name not in others}

    def _use(self, function: Node, node: Node, array: str, alone: bool) -> _Use | None:
        """A use of an element; None where its address is taken, or it is changed by what it was."""
        stores, updates, always, around = False, False, True, node.parent
        if around is None or around.type in _ADDRESS_OR_MORE:
            return None
        if around.type == "assignment_expression" and around.children[0] == node:
            stores = True
            whole = around.parent is not None and around.parent.type == "expression_statement"
            if around.children[1].type != "=" or not whole:
                return None
        elif around.type == "field_expression":
            part = around  # `p[i].v.x`, `p[i].at[0]`
            while part.parent is not None and part.parent.type in (
                "field_expression",
                "subscript_expression",
            ):
                if part.parent.children[0] != part:
                    break
                part = part.parent
            if part.parent is None or part.parent.type == "pointer_expression":
                return None
            updates = part.parent.type in _CHANGES and (
                part.parent.type == "update_expression" or part.parent.children[0] == part
            )
        text = self.tree.text(node)
        index, span, variable = text[text.index("[") + 1 : text.rindex("]")].strip(), 1, ("", 0)
        inner, outer = node, node.parent
        while outer is not None and not self._is_block(outer, index if always and span == 1 else ""):
            if outer.type in ("function_definition", "lambda_expression"):
                return None
            branch = alone and outer.type in ("if_statement", "else_clause")
            if branch and inner.type == "expression_statement":
                break
            counted = self._counted(outer) if outer.type == "for_statement" and span == 1 else None
            if counted is not None and always and _grows_by_one(index, counted[0]):
                name, start, span = counted
                index, variable = with_value(index, name, start), (name, start)
            elif counted is None or stores or not self._is_same_in(outer, index):
                always &= not may_be_left_out(outer, inner)
            inner, outer = outer, outer.parent
        if outer is None:
            return None
        ahead = self.text[inner.start_byte : node.start_byte]
        if any(changes(name, ahead) for name in names_in(index)):
            return None
        return _Use(function, node, inner, array, index, always, stores, updates, span, variable)

    def _is_block(self, node: Node, index: str) -> bool:
        """Whether a node is a block of statements, but not that of a loop over the elements of a record."""
        if node.type != "compound_statement":
            return False
        counted = self._counted(node.parent) if node.parent is not None and index else None
        if counted is None or node.parent is None:
            return True
        return not _grows_by_one(index, counted[0]) and not self._is_same_in(node.parent, index)

    def _is_same_in(self, loop: Node, index: str) -> bool:
        """Whether an index is the same in all iterations of a loop."""
        code = self.tree.text(loop)
        return not any(changes(name, code) for name in names_in(index))

    def _counted(self, loop: Node) -> tuple[str, int, int] | None:
        """The variable of a loop that counts by one, where it starts, and how often; None without numbers."""
        name, values = self.footprints.counted(loop) or ("", range(0))
        return (name, values.start, len(values)) if 1 < len(values) <= MOST else None

    def _alike(self, uses: list[_Use]) -> tuple[list[tuple[int, _Use]], list[_Use]]:
        """The uses that are numbers of elements from the first one, before something that they are made of
        changes; and the others.
        """
        alike, others, first = [(0, uses[0])], [], uses[0]
        block = first.statement.parent
        for use in uses[1:]:
            step = distance(first.index, use.index)
            between = self.text[first.statement.end_byte : use.node.start_byte]
            moved = any(changes(name, between) for name in (*names_in(use.index, first.index), use.array))
            if step is None or abs(step) >= MOST or moved or use.statement.parent != block:
                others.append(use)
            else:
                alike.append((step, use))
        return alike, others

    def _record(self, alike: list[tuple[int, _Use]]) -> _MovedRecord | None:
        """The record of uses, in its elements that are accessed always; None if it has one scalar only."""
        if any(use.updates for _, use in alike):
            return self._updated(alike)
        always = sorted({place + more for place, use in alike if use.always for more in range(use.span)})
        block = alike[0][1].statement.parent
        if not alike[0][1].always or block is None:
            return None
        low, high = always[0], always[-1]
        uses = [(place - low, use) for place, use in alike if low <= place <= place + use.span - 1 <= high]
        first, last = uses[0][1], uses[-1][1]
        length = high - low + 1
        if length > MOST or (length == 1 and self._is_scalar(first)):
            return None
        between = self.text[first.statement.start_byte : last.statement.end_byte]
        between = between.removeprefix("return ")  # of one statement, with all uses
        if _INTERRUPTS.search(between) or not any(place == 0 for place, _ in uses):
            return None
        if first.stores:  # all of it, each once, and nothing else of the array meanwhile
            named = len(re.findall(rf"(?<![\w.]){first.array}\b", between))
            each = sum(use.span for _, use in uses)
            whole = (
                len(always) == length == each and named == len(uses) and all(use.always for _, use in uses)
            )
            return _MovedRecord(tuple(uses), length, loaded=False, stored=True) if whole else None
        assigned = r"(?:[-+*/%|&^]|<<|>>)?=(?!=)|\+\+|--"
        stored = re.search(rf"\b{first.array}\s*\[[^;]*?\]\s*(?:(?:\.|->)\s*\w+\s*)*(?:{assigned})", between)
        return None if stored else _MovedRecord(tuple(uses), length, loaded=True, stored=False)

    def _updated(self, alike: list[tuple[int, _Use]]) -> _MovedRecord | None:
        """The record of a structure of which fields change: a thread's own, and nobody else's meanwhile."""
        first, last = alike[0][1], alike[-1][1]
        between = self.text[first.statement.start_byte : last.statement.end_byte]
        named = len(re.findall(rf"(?<![\w.]){first.array}\b", between))
        one = {place for place, _ in alike} == {0} and all(use.span == 1 for _, use in alike)
        if not one or not first.always or named != len(alike) or self._is_scalar(first):
            return None
        if _INTERRUPTS.search(between) or not self._is_own(first):
            return None
        return _MovedRecord(tuple(alike), 1, loaded=True, stored=True)

    def _is_own(self, use: _Use) -> bool:
        """Whether each lane stores to an array of the kernel at an address of its own."""
        trace = self.before.trace
        origin = self._pointers(use.function)[use.array]
        if not origin:
            return False
        for rows, site in zip(self.before.requests_of_sites, self.before.sites, strict=True):
            if site.op != "store" or origin not in site.array.split("|"):
                continue
            for row in rows.tolist():
                lanes = trace.addresses[row][trace.active[row]]
                if len(np.unique(lanes)) < len(lanes):
                    return False
        return True

    def _is_scalar(self, use: _Use) -> bool:
        """Whether an access moves a whole element, as far as its type is known."""
        declared = re.search(rf"(\w+)\s*\*[\s\w]*\b{use.array}\s*=", self.text)
        kind = self._types(use.function).get(use.array, declared[1] if declared else "float")
        words = re.findall(r"\w+", kind)
        return any(word in ELEMENT_BYTES or word in ("long", "signed") for word in words)

    def _types(self, function: Node) -> dict[str, str]:
        """The types of a function's parameters, by name."""
        if function == self.definition:
            return self.types
        found = {}
        for node in parameters_of(function):
            declared = re.fullmatch(r"(.*?)(\w+)\s*(\[[^\]]*\])?", self.tree.text(node), re.DOTALL)
            if declared is not None:
                found[declared[2]] = declared[1] + ("*" if declared[3] else "")
        return found


def with_value(index: str, name: str, value: int) -> str:
    """An index where a variable has a value."""
    return re.sub(rf"(?<![\w.]){name}\b", str(value), index)


def _grows_by_one(index: str, name: str) -> bool:
    """Whether an index is that of the next element where a variable is one more."""
    return distance(with_value(index, name, 0), with_value(index, name, 1)) == 1


def distance(one: str, two: str) -> int | None:
    """How much larger an index is than another, whatever the names in both are; None if that differs."""
    if one == two:
        return 0
    one, two = (re.sub(r"\b(\w+)\s*(?:\.|->)\s*(\w+)", r"\1_\2", text) for text in (one, two))
    names = [open_names(text, {}) for text in (one, two)]
    if names[0] is None or names[1] is None:
        return None
    draw, found = random.Random(1), set()
    for _ in range(3):
        known = {name: draw.randrange(3, 500) for name in {*names[0], *names[1]}}
        values = [evaluate(text, known) for text in (one, two)]
        if values[0] is None or values[1] is None:
            return None
        found.add(values[1] - values[0])
    step = found.pop()
    return int(step) if not found and step == int(step) else None
