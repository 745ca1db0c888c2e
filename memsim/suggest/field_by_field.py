"""Arrays in another layout, which the kernel's caller has to keep: an edit where no other removes the waste.

Of records of which threads need a field, `p[3 * i]`, `pts[i].x`, every sector has others that nobody asks
for. With the fields of 32 records side by side each sector is of one field; where neighbouring threads need
other fields, as of diagonals, those in use are kept together, ahead of the others. The kernel gets a class
around the pointer, which finds elements where they are now: each use of the array goes through it, or does
not compile, and so does each caller that passes a plain pointer. Of numbers of 64 bits that are converted to
32 where they are read, `const int n = p[i];`, the kernel gets an array of the low halves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from memsim.analysis import Analysis
from memsim.job import Job
from memsim.source.syntax import part_around, walk
from memsim.suggest.c_text import EFFECT, names_in
from memsim.suggest.caller_layout import CallerLayout, array_of, is_given_once
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.global_accesses import is_badly_coalesced, stride
from memsim.suggest.kernel_tree import KernelTree
from memsim.suggest.prove import is_the_same
from memsim.suggest.threads import Remapped, replay_edit

MOST_FIELDS = 256
MOST_TOGETHER = 64  # fields, a bit for each
MOST_LANES = 8  # of which the elements may be at different distances, and those of the next ones alike
_WIDE = re.compile(
    r"(?:std::)?(?P<u>u)?int64_t|(?:std::)?(?P<size>size_t)|(?P<un>unsigned )?long(?: long)?(?: int)?"
)
#: What makes 32 bits of a number: `int x = `, `(int)`.
_CONVERTED = (
    r"(?:\b(?:int|unsigned(?: int)?|u?int32_t)\s+\w+\s*=\s*|\(\s*(?:int|unsigned(?: int)?|u?int32_t)\s*\)\s*)"
)
#: Calls that access the element whose address they get.
_OF_ELEMENT = r"\b(?:atomic\w+|__ld\w+|__st\w+)\s*\(\s*"


def kept_by_caller(job: Job, before: Analysis) -> tuple[Remapped, ...]:
    """All such arrays in another layout, else each: what helps and has the same results of data in it."""
    asked = [*_Kept(job, before).layouts()]
    joint = _replayed(job, before, asked)
    if joint is not None or len(asked) < 2:
        return () if joint is None else (joint,)
    alone = [(each, done) for each in asked if (done := _replayed(job, before, [each])) is not None]
    joint = _replayed(job, before, [each for each, _ in alone]) if 1 < len(alone) < len(asked) else None
    return tuple(done for _, done in alone) if joint is None else (joint,)


def _replayed(job: Job, before: Analysis, asked: Sequence[tuple[Edit, CallerLayout]]) -> Remapped | None:
    edit, layouts = None, tuple(layout for _, layout in asked)
    for each, _ in asked:
        edit = each if edit is None else edit.joined(each)
        if edit is None:
            return None
    by_field = " and ".join(each.array for each in layouts if not each.together)
    together = (
        f"{each.array} with {len(each.together)} of {each.fields} fields together"
        for each in layouts
        if each.together
    )
    ways = [*([f"{by_field} field by field"] if by_field else []), *together]
    name = f"{' and '.join(ways)}, kept so by the caller"
    done = replay_edit(name, job, before, edit, asks=layouts)
    return done if done is not None and done.helps and is_the_same(job, done.job, layouts) else None


class _Kept(KernelTree):
    def __init__(self, job: Job, before: Analysis) -> None:
        super().__init__(before, job)
        self.job = job

    def layouts(self) -> Iterator[tuple[Edit, CallerLayout]]:
        """An edit for each array that may be kept otherwise."""
        names = self.job.loaded.argument_names
        for number, name in enumerate(names):
            pairs = zip(self.before.sites, self.before.requests_of_sites, strict=True)
            accesses = [
                (one, rows) for one, rows in pairs if one.space == "global" and name in one.array.split("|")
            ]
            badly = [rows for one, rows in accesses if is_badly_coalesced(one)]
            known = all(
                one.array == name and not one.unresolved and not one.operation.is_copy for one, _ in accesses
            )
            if not badly or not known or not is_given_once(self.job.values, number):
                continue
            if array_of(self.job.values[number]) is None:
                continue
            least = min(one.width for one, _ in accesses)
            found = self._narrow(name, number) or self._grouped(name, number, np.concatenate(badly), least)
            if found is not None:
                replacements, layout = found
                indices = re.findall(rf"\b{name}\s*\[([^\[\]]*)\]", self.own_code)
                used = ["blockDim.x", *self.sizes, *names_in(*indices)]
                yield self.edit(replacements, used), layout

    def _declared(self, name: str) -> re.Match[str] | None:
        """The declaration of a parameter that is a pointer, without its qualifiers behind the `*`."""
        if self.definition is None or self.body is None:
            return None
        kind = r"(?<=[(,])\s*(?P<type>(?:[\w:]+\s+)*?[\w:]+(?:<[^<>]*>)?(?:\s+const)?)"
        pattern = rf"{kind}\s*\*\s*(?P<marks>(?:(?:const|__restrict__|__restrict)\s+)*){name}\s*(?=[,)])"
        return re.compile(pattern).search(self.code, self.definition.start_byte, self.body.start_byte)

    def _narrow(self, name: str, number: int) -> tuple[list[Replacement], CallerLayout] | None:
        """An array of the low 32 bits; None unless each number is converted to 32 bits as it is read."""
        declared, code = self._declared(name), self.own_code
        kind = None if declared is None else " ".join(declared["type"].replace("const ", "").split())
        wide = None if kind is None else _WIDE.fullmatch(kind)
        if declared is None or kind is None or wide is None or self.body is None:
            return None
        uses = len(re.findall(rf"(?<![\w.]){name}\b", self.code[slice(*self.body.byte_range)]))
        if uses != len(re.findall(rf"{_CONVERTED}{name}\s*\[[^\[\]]*\]\s*[;,)]", code)):
            return None
        narrow = "unsigned" if wide["u"] or wide["un"] or wide["size"] else "int"
        new = re.sub(re.escape(kind).replace(r"\ ", r"\s+"), narrow, declared["type"])
        return [Replacement(*declared.span("type"), new)], CallerLayout(name, number, 2, 4, grouped=False)

    def _grouped(
        self, name: str, number: int, rows: np.ndarray, least: int
    ) -> tuple[list[Replacement], CallerLayout] | None:
        """Fields side by side. rows: of the trace, that waste sectors; least: bytes of an access."""
        declared, found = self._declared(name), self._record(rows)
        if declared is None or self.definition is None or found is None or self._is_pointed_to(name):
            return None
        record, neighbours = found
        kind, uses = declared["type"], list(self._field_uses(name))
        unit = least if uses else self.element_bytes(name, self.definition) or least
        fields = record // unit
        if record % unit or not 2 <= fields <= MOST_FIELDS:
            return None
        by_field = "records_by_field" if uses else "elements_by_field"
        if by_field in self.text:
            return None
        end = declared.end("marks")
        together: tuple[int, ...] = ()
        if neighbours > 1 and not uses and fields <= MOST_TOGETHER:
            together = self._fields(rows, name, record, unit)
        bits = f", {sum(1 << one for one in together):#x}" if together else ""
        replacements = [
            self.added(by_field, [self.definition]),
            Replacement(declared.start("type"), end, f"{by_field}<{kind}, {fields}{bits}> "),
            *(uses or (Replacement(*one.span("type"), "const auto ") for one in self._parts(name))),
        ]
        return replacements, CallerLayout(name, number, fields, unit, True, together)

    def _fields(self, rows: np.ndarray, name: str, record: int, unit: int) -> tuple[int, ...]:
        """The fields that are accessed; () for all."""
        trace = self.before.trace
        (start,) = (first for each, space, first, _ in trace.arrays if (each, space) == (name, "global"))
        offsets = trace.addresses[rows][trace.active[rows]] - start
        found = tuple(np.unique(offsets % record // unit).tolist())
        return found if len(found) < record // unit else ()

    def _record(self, rows: np.ndarray) -> tuple[int, int] | None:
        """After how many bytes what lanes access comes again, and of how many neighbours that is."""
        found = ((stride(self.before, rows, apart), apart) for apart in range(1, MOST_LANES + 1))
        return next(((step, apart) for step, apart in found if step > 0), None)

    def _is_pointed_to(self, name: str) -> bool:
        """Whether the address of an element is taken, but by what accesses this element alone."""
        code = re.sub(rf"{_OF_ELEMENT}&", "(", self.own_code)
        names = "|".join((name, *(one["name"] for one in self._parts(name))))
        return re.search(rf"(?<![\w\]\s&])\s*&\s*(?:{names})\b", code) is not None

    def _parts(self, name: str) -> Iterator[re.Match[str]]:
        """The declarations of pointers into the array, which become parts of it."""
        assert self.body is not None
        kind = r"(?P<type>(?:const\s+)?[\w:]+(?:\s+const)?\s*\*\s*(?:(?:const|__restrict__)\s+)*)"
        declared = re.compile(rf"(?<=[;{{}}])\s*{kind}(?P<name>\w+)\s*=\s*{name}\s*\+[^,;]*;")
        yield from declared.finditer(self.code, self.body.start_byte, self.body.end_byte)

    def _field_uses(self, name: str) -> Iterator[Replacement]:
        """`p[i].x` as `p.field(i, p.data[i].x)`, `p[i][c]` alike."""
        for node in walk(self.body) if self.body is not None else ():
            if node.type != "subscript_expression" or self.tree.text(node.children[0]) != name:
                continue
            whole = part_around(node)
            text, index = self.tree.text(whole), self.tree.text(node)[len(name) :].strip()[1:-1].strip()
            if whole != node and not EFFECT.search(index):
                within = text[len(self.tree.text(node)) :]
                yield Replacement(*whole.byte_range, f"{name}.field({index}, {name}.data[{index}]{within})")
