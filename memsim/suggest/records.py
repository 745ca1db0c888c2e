"""Records of threads, moved by their warp side by side: an edit where threads have elements of their own.

`x = p[3 * i]; y = p[3 * i + 1]; z = p[3 * i + 2];` moves each sector three times. The edit moves the records
of a warp's lanes through a tile of shared memory: neighbouring lanes access neighbouring elements, and each
sector is moved once. It needs no barrier of the block and no other launch; where a warp's first lane is not
active, or a block has more threads than this launch's, each thread moves its own elements as before.

Of a record that a kernel passes on, `f(p + 5 * i)`, where `f` reads or assigns five elements, `f(p.at(i))`,
where a member function of a parameter's class returns such a pointer, or `T x(p + 5 * i);`, whose constructor
copies them, `f` gets a copy. What is read is moved before the call, or before a loop around it in which the
pointer stays the same, if the loop is entered; what is assigned, behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from memsim.analysis import Analysis
from memsim.arch.units import WARP
from memsim.job import Job
from memsim.source.syntax import LOOPS, Node, arguments_of, outside, walk
from memsim.source.values import changes
from memsim.suggest.c_text import EFFECT, names_in
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.element_uses import SHARED_BY_OTHERS, ElementUse
from memsim.suggest.footprints import AccessedElements, may_be_left_out
from memsim.suggest.kernel_tree import wasting_files, with_pragmas
from memsim.suggest.loops import LEAVES, loop_of
from memsim.suggest.record_uses import MovedRecord, RecordUses
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


class Records(RecordUses):
    """A kernel's source, in which records are moved by warps."""

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


def _given(node: Node) -> list[Node]:
    """What a call by name gives, or an object is made of that a declaration has."""
    if node.type == "call_expression":
        return arguments_of(node) if node.children[0].type in ("identifier", "template_function") else []
    of_object = node.parent is not None and node.parent.type == "declaration" and len(node.children) == 2
    return node.children[1].named_children if of_object else []
