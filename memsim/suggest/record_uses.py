"""Records: elements of a thread that statements access, near each other, and that may be moved at once.

What is read lies between the first and the last element that a thread reads anyway, on each way through the
statements around; what is written is all written anyway. Elements that are structures are records of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, product

import numpy as np

from memsim.source.syntax import Node
from memsim.source.values import changes
from memsim.suggest.c_text import names_in
from memsim.suggest.edit import Replacement
from memsim.suggest.element_uses import (
    MOST,
    SHARED_BY_OTHERS,
    ElementUse,
    ElementUses,
    all_of,
    is_bound,
    may_be,
)
from memsim.suggest.footprints import changes_of
from memsim.suggest.loops import LEAVES


@dataclass(frozen=True, slots=True)
class MovedRecord:
    """Elements of a thread that are moved at once. uses: in order.
    address: of the first one. loaded, stored: how; condition: on which they are loaded, "" for always. call:
    that gets a pointer to the record. shorter: lengths that it has instead, each with the condition on which
    the compiler makes it longer, the longest first. apart: whether each use has its own condition, and
    is of the record where all of them hold.
    """

    uses: tuple[ElementUse, ...]
    address: str
    length: int
    loaded: bool
    stored: bool
    condition: str = ""
    call: Node | None = None
    shorter: tuple[tuple[str, int], ...] = ()
    apart: bool = False

    @property
    def extent(self) -> str:
        """The length in C."""
        lengths = [self.length, *(length for _, length in self.shorter)]
        longer = "".join(
            f"{condition} ? {length} : " for (condition, _), length in zip(self.shorter, lengths)
        )
        return f"({longer}{lengths[-1]})" if longer else f"{self.length}"


class RecordUses(ElementUses):
    """A kernel's source, in which such records are looked for."""

    def records(self, definition: Node) -> Iterator[MovedRecord]:
        """The records in lines that waste sectors: of blocks, then of statements alone in an `if`; of each,
        where some elements are read anyway, then where they are on a condition, then where each is on one of
        its own.
        """
        moved: set[int] = set()
        for alone, guarded in product((False, True), ("no", "alike", "apart")):
            groups: dict[tuple[int, str, bool, str], list[ElementUse]] = {}
            for use in self.uses(definition, alone):
                block = use.statement.parent
                plain = use.node.type != "field_expression" and not use.walks
                if block is not None and use.node.start_byte not in moved and (plain or guarded != "apart"):
                    if use.guard and guarded == "no":
                        use = replace(use, guard="", always=use.guard == use.decided)
                    elif use.guard:
                        use = replace(use, decided="")
                    guard = use.guard if guarded == "alike" else ""
                    key = block.start_byte, use.array, use.stores, guard
                    groups.setdefault(key, []).append(use)
            for waiting in groups.values():
                while waiting:
                    alike, waiting = self._alike(waiting)
                    made = self._record(alike)
                    if made is not None and (made.apart or guarded != "apart"):
                        moved |= {use.node.start_byte for use in made.uses}
                        yield made

    def _alike(self, uses: list[ElementUse]) -> tuple[list[ElementUse], list[ElementUse]]:
        """The uses that are numbers of elements from the first, while nothing of it changes; others."""
        alike, others, first = [uses[0]], [], uses[0]
        block = first.statement.parent
        walked = int(first.walks)  # by how many elements `*p++` has moved the pointer
        for use in uses[1:]:
            step = self.apart(first, use)
            between = self.code[first.statement.end_byte : use.node.start_byte]
            used = names_in(use.index, first.index, use.base, use.guard)
            moved = any(changes(name, between) for name in used if name != use.array)
            if walked:
                between = self.code[first.node.start_byte : use.node.start_byte]
                moved |= changes_of(use.array, between) != walked or not use.always
                step = None if step is None else step + walked
                walked += use.walks
            elif use.node.type != "identifier":
                moved |= changes_of(use.array, between) > 0
            if step is None or abs(step) >= MOST or moved or use.statement.parent != block:
                others.append(use)
            else:
                alike.append(replace(use, number=step))
        return alike, others

    def _record(self, alike: list[ElementUse]) -> MovedRecord | None:
        """The record of uses, in its elements that are accessed always; None if it has one scalar only."""
        if any(use.updates for use in alike):
            return self._updated(alike)
        always = sorted({use.number + more for use in alike if use.always for more in range(use.span)})
        if not alike[0].always or alike[0].statement.parent is None:
            return None
        low, high = always[0], always[-1]
        shorter = _shorter(alike)
        inside = (use for use in alike if low <= use.number <= use.number + use.span - 1 <= high)
        uses = [replace(use, number=use.number - low) for use in inside]
        first, last = uses[0], uses[-1]
        length = high - low + 1
        if length > MOST or (length == 1 and self.is_scalar(first)):
            return None
        whole_code = self.code[first.statement.start_byte : last.statement.end_byte]
        between = whole_code if first.stores else self.held(uses)
        between = between.removeprefix("return ")  # of one statement, with all uses
        if interrupts(between) or not any(use.number == 0 for use in uses):
            return None
        if any(is_bound(use.node) for use in uses):  # and read whoever knows when
            between = self.code[first.function.start_byte : first.function.end_byte]
            if interrupts(between.replace("return", "")):
                return None
        if first.stores:  # all of it, each once, and nothing else of the array meanwhile
            named = len(re.findall(rf"(?<![\w.])(?:{self.names_of(first)})\b", between))
            each = sum(use.span for use in uses)
            whole = len(always) == length == each and named == len(uses)
            whole &= all(use.always for use in uses)
            kept = length - len(shorter)  # elements that are stored in any case, and are ahead of others
            whole &= all(not use.decided or use.number >= kept for use in uses)
            if not whole:
                return None
        elif self.is_stored(first, between) or (shorter and shorter[-1][1] == 0):
            return None
        made = _made(uses, length, loaded=not first.stores, stored=first.stores)
        return replace(made, shorter=shorter)

    def _updated(self, alike: list[ElementUse]) -> MovedRecord | None:
        """The record of a structure of which fields change, or of elements that all do: a thread's own, and
        nobody else's meanwhile.
        """
        first, last = alike[0], alike[-1]
        between = self.code[first.statement.start_byte : last.statement.end_byte]
        named = len(re.findall(rf"(?<![\w.])(?:{self.names_of(first)})\b", between))
        low = min(use.number for use in alike)
        length = max(use.number for use in alike) - low + 1
        changed = {use.number for use in alike if use.updates and use.always and not use.decided}
        whole = len(changed) == length if length > 1 else not self.is_scalar(first)
        alone = named == len(alike) and all(use.span == 1 for use in alike)
        if not whole or not first.always or first.decided or not alone:
            return None
        if interrupts(between) or not self._is_own(first):
            return None
        uses = [replace(use, number=use.number - low) for use in alike]
        return _made(uses, length, loaded=True, stored=True)

    def _is_own(self, use: ElementUse) -> bool:
        """Whether each lane stores to an array of the kernel at an address of its own."""
        trace = self.before.trace
        origin = self.pointers(use.function)[use.array]
        if not origin:
            return False
        pairs = zip(self.before.requests_of_sites, self.before.sites, strict=True)
        stored = (rows for rows, site in pairs if site.op == "store" and may_be(site, origin))
        lanes = (trace.addresses[row][trace.active[row]] for rows in stored for row in rows.tolist())
        return all(len(np.unique(each)) == len(each) for each in lanes)

    def replaced(self, use: ElementUse, new: str) -> Replacement:
        """A use of an element of the record; of `p->x` it is what is before the field."""
        if use.node.type == "field_expression":
            return Replacement(use.node.start_byte, use.node.children[1].end_byte, f"{new}.")
        new = f"({use.base}++, {new})" if use.walks else new
        return Replacement(*use.node.byte_range, new)


def _made(uses: list[ElementUse], length: int, *, loaded: bool, stored: bool) -> MovedRecord:
    first = next(use for use in uses if use.number == 0)
    address = f"&{first.base}[{first.index}]" if first.index else f"&{first.base}"
    address = address[1:] if first.unit > 1 else address
    guards = dict.fromkeys(use.guard for use in uses)
    condition, apart = all_of([one for one in guards if one]), len(guards) > 1
    return MovedRecord(tuple(uses), address, length, loaded, stored, condition, apart=apart)


def _shorter(alike: list[ElementUse]) -> tuple[tuple[str, int], ...]:
    """The lengths of a record without its last elements, where the compiler decides that they are accessed:
    each with the condition on which it is longer, the longest first.
    """
    conditions: dict[int, list[str]] = {}
    for use in alike:
        for more in range(use.span if use.always else 0):
            conditions.setdefault(use.number + more, []).append(use.decided)
    places = sorted(conditions)
    last = max((place for place in places if "" in conditions[place]), default=places[0] - 1)
    found = [
        (" || ".join(dict.fromkeys(conditions[place])), before + 1 - places[0])
        for before, place in pairwise([places[0] - 1, *places])
        if place > last
    ]
    return tuple(reversed(found))


def interrupts(code: str) -> bool:
    """Whether others may see, or change, elements meanwhile, or threads leave the statements around."""
    return bool(SHARED_BY_OTHERS.search(code) or LEAVES.search(code))
