"""Records of threads, moved by their warp side by side: an edit where threads have elements of their own.

`x = p[3 * i]; y = p[3 * i + 1]; z = p[3 * i + 2];` moves each sector three times. The edit moves the records
of a warp's lanes through a tile of shared memory: neighbouring lanes access neighbouring elements, and each
sector is moved once. It needs no barrier of the block and no other launch; where a warp's first lane is not
active, or a block has more threads than this launch's, each thread moves its own elements as before.

What is read lies between the first and the last element that a thread reads anyway, on each way through the
statements around; what is written is all written anyway. Elements that are structures are records of one.

Of a record that a kernel passes on, `f(p + 5 * i)`, where `f` reads or assigns five elements, `f(p.at(i))`,
where a member function of a parameter's class returns such a pointer, or `T x(p + 5 * i);`, whose constructor
copies them, `f` gets a copy. What is read is moved before the call, or before a loop around it in which the
pointer stays the same, if the loop is entered; what is assigned, behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product

import numpy as np

from memsim.analysis import Analysis
from memsim.arch.units import WARP
from memsim.job import Job
from memsim.source.syntax import LOOPS, Node, arguments_of, outside, walk
from memsim.source.values import changes
from memsim.suggest.c_text import EFFECT, names_in
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.element_uses import (
    MOST,
    SHARED_BY_OTHERS,
    ElementUse,
    ElementUses,
    MovedRecord,
    all_of,
    is_bound,
    may_be,
)
from memsim.suggest.footprints import AccessedElements, changes_of, may_be_left_out
from memsim.suggest.kernel_tree import wasting_files, with_pragmas
from memsim.suggest.loops import LEAVES, loop_of
from memsim.suggest.threads import Remapped, replay_edit

DOUBLE = 8  # bytes of the widest element that is a number
NAME = "records of threads moved by their warp side by side"
PREFIX = "record_of_thread"


def records_of_threads(job: Job, before: Analysis) -> tuple[Remapped, ...]:
    """The edits, compiled and replayed, that save a quarter of the needless sectors or more."""
    tried = (replay_edit(NAME, job, before, edit) for edit in record_edits(job, before))
    return tuple(done for done in tried if done is not None and done.saves)


def record_edits(job: Job, before: Analysis) -> list[Edit]:
    """The edits that move records by warps, each of a file whose accesses waste sectors."""
    edits = dict.fromkeys(Records(job, before, file).moved() for file in wasting_files(before))
    return [edit for edit in edits if edit is not None]


class Records(ElementUses):
    """A kernel's source, in which records are looked for."""

    def __init__(self, job: Job, before: Analysis, file: str) -> None:
        super().__init__(job, before, file)
        self.warps = -(-job.launch.threads // WARP)
        self.is_open = False  # whether lanes take the room of their warp, wherever the others are

    def moved(self) -> Edit | None:
        """The kernel with all its records moved by warps; None if there is none."""
        if PREFIX in self.text:
            return None
        found: list[Replacement] = []
        names = ["blockDim.x"]
        passed = [one for each in self.kernels for one in self.passed(each)]
        self.is_open = any(map(self._needs_room, passed))
        for number, one in enumerate(passed):
            (use,) = one.uses
            found += self._moved(one, f"{use.array}_passed{number}")
            used = set() if one.call is None else self.footprints.constants_of(one.call)
            names += sorted(used | set(names_in(one.address)))
        if self.is_open:
            at = self.opening(self.kernels[0])
            found.append(Replacement(at, at, f"\n    record_room<{self.warps}>::open();"))
        functions = self.kernels if passed else self.functions()
        changed = self.kernels
        for number, one in enumerate(one for each in functions for one in self.records(each)):
            use = one.uses[0]
            found += self._moved(one, f"{use.array}_record{number}")
            changed.append(use.function)
            used = {each for use in one.uses for each in self.footprints.constants_of(use.statement, 0)}
            more = names_in(one.address) if use.function == self.definition else self.sizes
            names += [*more, *sorted(used)]
        if not found:
            return None
        for function in dict.fromkeys(one for one in changed if one != self.definition):
            at, values = self.opening(function), self.footprints.inside(function).parameters
            if values:
                equal = " && ".join(f"{name} == {value}" for name, value in values.items())
                found.append(Replacement(at, at, f'\n    static_assert({equal}, "of these records");'))
        return self.edit([*found, self.added(PREFIX, changed)], names)

    def _moved(self, record: MovedRecord, name: str) -> list[Replacement]:
        """A record that is loaded before its first use, or stored after its last one."""
        uses, address = record.uses, record.address
        start = with_pragmas(self.text, uses[0].statement.start_byte)
        lines, name = f"\n{self.indent(start)}", name.replace(".", "_")
        is_any = not self.pointers(uses[0].function).get(uses[0].array)
        traits = [f"{is_any}".lower(), "true"] if self.is_open else ["true"] if is_any else []
        shape = f"<{', '.join([record.extent, f'{self.warps}', *traits])}>"
        element = f"&{name}[{{}}]" if record.call is not None else f"{name}[{{}}]"
        whole = f"{name}_whole" if record.apart else record.condition
        places = [self.replaced(use, element.format(use.place)) for use in uses]
        if record.apart:
            places = [
                replace(one, new=f"({whole} ? {one.new} : {self.tree.text(use.node)})")
                for one, use in zip(places, uses)
            ]
        given = any(use.node.parent is not None and use.node.parent.type == "argument_list" for use in uses)
        how = f"record_{'at' if record.loaded and not whole else 'for'}{shape}({address})"
        changes_it = record.stored or record.condition or record.call is not None
        opening = f"{'' if changes_it else 'const '}auto {name} = {how};{lines}"
        if record.stored:  # what is not stored has nothing behind it that is
            needs = [f"!({longer}) || ({long})" for (longer, _), (long, _) in pairwise(record.shorter)]
            needs += [longer for longer, length in record.shorter if length == 0]
            opening += "".join(f'static_assert({each}, "of this record");{lines}' for each in needs)
        if record.apart:
            opening += f"const bool {whole} = {record.condition};{lines}"
        if whole:
            opening += f"if ({whole}) {name}.load({address});{lines}"
        if record.condition and given and record.call is None:  # so that no function changes the copy
            opening = opening.replace(name, f"{name}_held") + f"const auto &{name} = {name}_held;{lines}"
        if record.stored and any(use.walks for use in uses):
            opening += f"auto *const {name}_at = {address};{lines}"
            address = f"{name}_at"
        closing = f"{lines}{name}.store({address});" if record.stored else ""
        block, end = uses[0].statement.parent, uses[-1].statement.end_byte
        if block is not None and block.type != "compound_statement":  # a statement that is alone in an `if`
            opening, closing = f"{{ {opening}", f"{closing} }}"
        if places[0].start == start:
            places[0] = replace(places[0], new=opening + places[0].new)
        else:
            places.append(Replacement(start, start, opening))
        return [*places, *([Replacement(end, end, closing)] if closing else [])]

    def passed(self, kernel: Node) -> Iterator[MovedRecord]:
        """The records of arrays that waste sectors."""
        pointers = self.pointers(kernel)
        for call in walk(kernel):
            for place, node in enumerate(_given(call)):
                base = self._member(node) or self._base(node, set(pointers))
                elements = None
                if base is not None and call.type == "call_expression":
                    elements = self.footprints.of_call(call, place)
                elif base is not None:
                    elements = self.footprints.of_object(node)
                if base is None or elements is None or elements.length is None:
                    continue
                placed = self._placed(node, call, elements.stores)
                origin = pointers.get(base, base)
                same = [one for one in pointers if pointers[one] == origin] or [base]
                if placed is None or not self._wastes(origin, elements.stores):
                    continue
                if self._is_alone(kernel, node, placed[0], same, elements):
                    use = ElementUse(kernel, node, placed[0], base, "", True, elements.stores, base)
                    how = elements.loads, elements.stores, placed[1], call
                    yield MovedRecord((use,), self.tree.text(node), elements.length, *how)

    def _base(self, node: Node, pointers: set[str]) -> str | None:
        """The array to which a pointer of a thread's own points; None if it is none, or the same for all."""
        text = self.tree.text(node)
        made = re.match(r"(\w+)\s*\+(?![+=])|&\s*(\w+)\s*\[", text)
        if made is not None:
            name = made[1] or made[2]
            return name if name in pointers and not EFFECT.search(text) else None
        return text if text in pointers and text not in self.types else None

    def _member(self, node: Node) -> str:
        """A parameter whose member function returns a pointer made of numbers; "" of anything else."""
        made = re.match(r"(\w+)\.(\w+)\(", self.tree.text(node)) if node.type == "call_expression" else None
        if made is None or "*" in self.types.get(made[1], "*") or EFFECT.search(self.tree.text(node)):
            return ""
        defined = rf"\b{made[2]}\s*\([^()]*\)\s*(?:const\s*)?\{{([^{{}}]*)\}}"
        bodies = [found[1].strip() for text in self.texts for found in re.finditer(defined, text)]
        simple = [one for one in bodies if re.fullmatch(r"return\s[\w\s:.*+/%<>-]*;", one)]
        named = len(re.findall(rf"(?<![\w.]){made[1]}\b", self.own_code))
        return made[1] if bodies and simple == bodies and named == 2 else ""

    def _wastes(self, array: str, stores: bool) -> bool:
        """Whether accesses to an array do, of whatever file the function is that makes them."""
        op = "store" if stores else "load"
        sites = (one.array.split("|") for one in self.before.sites if one.op == op and self.is_bad(one))
        return any(array in (one, one.partition(".")[0]) for names in sites for one in names)

    def _placed(self, node: Node, call: Node, stores: bool) -> tuple[Node, str] | None:
        """The statement before or behind which elements are moved, and the condition on which."""
        names, condition = names_in(self.tree.text(node)), ""
        inner, outer = call, call.parent
        while outer is not None and outer.type != "function_definition":
            if outer.type == "compound_statement":
                if stores and SHARED_BY_OTHERS.search(self.tree.text(inner)):
                    return None
                entered = None if stores or condition else self._entered(outer.parent, names)
                ahead = self.tree.content[outer.start_byte : inner.start_byte].decode()
                if entered is None or LEAVES.search(ahead):
                    return inner, condition
                condition, outer = entered, outer.parent or outer
            elif may_be_left_out(outer, inner):
                of_loop = outer.type in ("for_statement", "while_statement")
                alone = of_loop and inner.type == "expression_statement"
                return (inner, condition) if alone and inner == outer.child_by_field_name("body") else None
            inner, outer = outer, outer.parent
        return None

    def _entered(self, node: Node | None, names: list[str]) -> str | None:
        """The condition on which a loop is entered in which a pointer stays the same; None if it does not."""
        loop = loop_of(self.tree, node)
        if node is None or loop is None or not loop.start:
            return None
        code = self.tree.text(node)
        if SHARED_BY_OTHERS.search(code) or any(changes(name, code) for name in names):
            return None
        start = loop.start if loop.start.isalnum() else f"({loop.start})"
        return None if "(" in loop.start + loop.end else f"{start} {loop.test} {loop.end}"

    def _is_alone(
        self, kernel: Node, node: Node, statement: Node, same: list[str], elements: AccessedElements
    ) -> bool:
        """Whether nothing else of a kernel concerns the elements: another use of a pointer to what is
        assigned, a store to what is read. same: the pointers to the array.
        """
        code, name = self.tree.text(kernel), self.tree.text(node)
        if name in same and changes(name, code) != 1:
            return False
        once = len(re.findall(rf"(?<![\w.])(?:{'|'.join(same)})\b", self.tree.text(statement))) == 1
        if elements.stores:
            return once
        stored = any(re.search(rf"\b{one}\s*\[[^;]*?\]\s*(?:[-+*/%|&^]|<<|>>)?=(?!=)", code) for one in same)
        return not stored and (once or any("const" in self.types.get(one, "") for one in same))

    def _needs_room(self, record: MovedRecord) -> bool:
        """Whether a record is passed on in a loop, from which some lanes may be gone, and may be one of those
        that have no tile of their own.
        """
        room = self.before.arch.static_shared_bytes // 2
        is_wide = (record.length | 1) * DOUBLE * WARP * self.warps > room
        in_loops = any(one.type in LOOPS for one in outside(record.uses[0].statement))
        return record.call is not None and is_wide and in_loops

    def replaced(self, use: ElementUse, new: str) -> Replacement:
        """A use of an element of the record; of `p->x` it is what is before the field."""
        if use.node.type == "field_expression":
            return Replacement(use.node.start_byte, use.node.children[1].end_byte, f"{new}.")
        new = f"({use.base}++, {new})" if use.walks else new
        return Replacement(*use.node.byte_range, new)

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
            for uses in groups.values():
                waiting = uses
                while waiting:
                    alike, others = self._alike(waiting)
                    made = self._record(alike)
                    if made is not None and (made.apart or guarded != "apart"):
                        moved |= {use.node.start_byte for use in made.uses}
                        yield made
                    waiting = others

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
        block = alike[0].statement.parent
        if not alike[0].always or block is None:
            return None
        low, high = always[0], always[-1]
        shorter = _shorter(alike)
        inside = (use for use in alike if low <= use.number <= use.number + use.span - 1 <= high)
        uses = [replace(use, number=use.number - low) for use in inside]
        first, last = uses[0], uses[-1]
        length = high - low + 1
        if length > MOST or (length == 1 and self.is_scalar(first)):
            return None
        between = self.code[first.statement.start_byte : last.statement.end_byte]
        if not first.stores:
            between = self.held(uses)
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
            made = _made(uses, length, loaded=False, stored=True) if whole else None
        elif self.is_stored(first, between) or (shorter and shorter[-1][1] == 0):
            return None
        else:
            made = _made(uses, length, loaded=True, stored=False)
        return made and replace(made, shorter=shorter)

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


def _given(node: Node) -> list[Node]:
    """What a call by name gives, or an object is made of that a declaration has."""
    if node.type == "call_expression":
        return arguments_of(node) if node.children[0].type in ("identifier", "template_function") else []
    of_object = node.parent is not None and node.parent.type == "declaration" and len(node.children) == 2
    return node.children[1].named_children if of_object else []


def interrupts(code: str) -> bool:
    """Whether others may see, or change, elements meanwhile, or threads leave the statements around."""
    return bool(SHARED_BY_OTHERS.search(code) or LEAVES.search(code))
