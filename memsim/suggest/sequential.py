"""A reduction whose threads stay side by side: an edit for sums of neighbours, then of those, and so on.

In `for (s = 1; s < n; s *= 2) if (t % (2 * s) == 0) x[t] += x[t + s];` threads of every warp stay at work,
and with `i = 2 * s * t` in place of the test they meet in banks. Not so in `for (s = n / 2; s > 0; s /= 2)
if (t < s) x[t] += x[t + s];`. For a power of two the same elements are added up, in another order: sums of
floats are rounded otherwise. The array has to be in shared memory, and only its first element to be used
afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from memsim.analysis import Analysis
from memsim.job import Job
from memsim.source.expressions import evaluate
from memsim.source.kernels import template_constants
from memsim.source.syntax import Node, fields
from memsim.source.values import constants, initializers
from memsim.suggest.c_text import distance, factor, names_in
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.kernel_tree import KernelTree
from memsim.suggest.prove import integer_arguments, is_the_same, macros_of, with_whole_numbers
from memsim.suggest.threads import Remapped, replay_edit

NAME = "threads of a reduction side by side"
_INTEGER = re.compile(r"\b(?:unsigned|signed|char|short|u?int|long|u?int\d+_t|size_t)\b")
_START = re.compile(r"(?:[\w:]+\s+)*(?P<step>\w+)\s*=\s*1\s*;?")
#: What becomes of two elements: by an operator, or by a function.
_DOES = re.compile(
    r"(?P<x>\w+)\[(?P<to>.+?)\](?:(?P<op>[+*&|^])=|=(?P=x)\[(?P=to)\](?P<same>[+*&|^])|"
    r"=(?:\w+::)?f?(?:max|min)f?\((?P=x)\[(?P=to)\],)(?P=x)\[(?P<other>.+?)\]\)?;"
)


def sequential(job: Job, before: Analysis) -> tuple[Remapped, ...]:
    """The kernel with such a reduction, compiled and replayed, if it needs fewer wavefronts.

    With the same results, of whole numbers where sums of floats are in another order.
    """
    if job.launch.block[1:] != (1, 1):
        return ()
    found = _Reductions(job, before).edited()
    if found is None:
        return ()
    edit, reorders = found
    name = f"{NAME}, sums in another order" if reorders else NAME
    done = replay_edit(name, job, before, edit, reorders=reorders)
    if done is None or not done.helps:
        return ()
    both = map(with_whole_numbers, (job, done.job)) if reorders else (job, done.job)
    return (done,) if is_the_same(*both) else ()


class _Reductions(KernelTree):
    def __init__(self, job: Job, before: Analysis) -> None:
        super().__init__(before, job)
        self.known: Mapping[str, int] = {
            **constants(self.text),
            **template_constants(self.text, before.trace.kernel),
            **macros_of(job),
            **integer_arguments(job),
            "blockDim_x": job.launch.block[0],
        }
        fixed = initializers(self.own_code)
        same = (name for name, value in fixed.items() if re.sub(r"\s", "", value) == "threadIdx.x")
        self.threads = ("threadIdx.x", *same)

    def edited(self) -> tuple[Edit, bool] | None:
        """The kernel with its reduction, and whether sums of floats are in another order."""
        for node in [] if self.body is None else self.body.named_children:
            parts = self._parts(node) if node.type == "for_statement" else None
            if parts is None:
                continue
            step, count, test, place, statement = parts
            does = _DOES.fullmatch(self._squeezed(statement))
            value = evaluate(_named(count), self.known)
            if does is None or value is None or int(value) != value or int(value) & (int(value) - 1):
                continue
            thread = self._thread(step, count, test, place, does["to"])
            if thread is None or distance(f"{does['to']} + {step}", does["other"]) != 0:
                continue
            kind = self._shared_type(does["x"], node)
            if kind is None:
                continue
            adds = (does["op"] or does["same"] or "") in ("+", "*")
            names = ["blockDim.x", *names_in(count)]
            edit = self.edit(self._written(node, step, count, thread, place, statement, does["to"]), names)
            return edit, adds and not _INTEGER.search(kind)
        return None

    def _squeezed(self, node: Node) -> str:
        """Its code without blanks and comments."""
        return re.sub(r"\s", "", self.code[slice(*node.byte_range)])

    def _parts(self, loop: Node) -> tuple[str, str, Node, Node | None, Node] | None:
        """The step of a loop over its powers of two, up to what, the test, the place, and what is done."""
        parts = fields(loop, "initializer", "condition", "update", "body")
        if parts is None:
            return None
        start, condition, update, body = parts
        begins = _START.fullmatch(self.tree.text(start))
        step = "" if begins is None else begins["step"]
        ways = "*=2", "<<=1", f"+={step}", f"={step}*2", f"={step}<<1", f"=2*{step}"
        limit = re.fullmatch(rf"\s*{step}\s*<\s*(.+)", self.tree.text(condition))
        if begins is None or limit is None or self._squeezed(update).removeprefix(step) not in ways:
            return None
        inside = [one for one in body.named_children if one.type != "comment"]
        place = inside.pop(0) if len(inside) == 3 and inside[0].type == "declaration" else None
        if len(inside) != 2 or self._squeezed(inside[1]) != "__syncthreads();":
            return None
        asked = fields(inside[0], "condition", "consequence")
        if asked is None or inside[0].child_by_field_name("alternative") is not None:
            return None
        test, then = asked
        inside = [one for one in then.named_children if one.type != "comment"]
        does = [then] if then.type == "expression_statement" else inside
        return (step, limit[1].strip(), test, place, does[0]) if len(does) == 1 else None

    def _thread(self, step: str, count: str, test: Node, place: Node | None, to: str) -> str | None:
        """The number of the thread, whose element is at `to`: of each 2 * step threads the first, or of the
        first ones as many as are left.
        """
        said = self.tree.text(test).strip()
        said = said[1:-1].strip() if said.startswith("(") and said.endswith(")") else said
        if place is None:
            first, _, zero = said.rpartition("==")
            forms = f"{to} % (2 * {step})", f"{to} & (2 * {step} - 1)"
            same = zero.strip() == "0" and any(distance(_named(first), _named(form)) == 0 for form in forms)
            return to if same and to in self.threads else None
        declared = re.fullmatch(rf"(?:[\w:]+\s+)+{to}\s*=\s*([^;,]+);", self.tree.text(place))
        if declared is None or re.sub(r"\s", "", said) != re.sub(r"\s", "", f"{to}<{count}"):
            return None
        at = _named(declared[1])
        return next((one for one in self.threads if distance(at, _named(f"2 * {step} * {one}")) == 0), None)

    def _shared_type(self, array: str, loop: Node) -> str | None:
        """The type of a shared array of which only the first element is used behind a loop."""
        assert self.definition is not None
        declared = re.search(rf"\b__shared__\s+((?:[\w:]+\s+)*[\w:]+)\s+{array}\s*\[", self.own_code)
        behind = self.code[loop.end_byte : self.definition.end_byte]
        others = re.search(rf"(?<![\w.]){array}\b(?!\s*\[\s*0\s*\])", behind)
        passed = re.search(rf"&\s*{array}\b|[=(,]\s*{array}\s*[-+,;)]", self.own_code)
        return None if declared is None or others or passed else declared[1]

    def _written(
        self, loop: Node, step: str, count: str, thread: str, place: Node | None, does: Node, to: str
    ) -> Iterator[Replacement]:
        """The loop with the threads side by side."""
        parts = fields(loop, "initializer", "condition", "update")
        assert parts is not None  # of a loop that is read
        start, condition, update = parts
        begin = start.start_byte + self.tree.text(start).rindex("1")
        yield Replacement(begin, begin + 1, f"{factor(count)} / 2")
        yield Replacement(*condition.byte_range, f"{step} > 0")
        yield Replacement(*update.byte_range, f"{step} /= 2")
        test = does
        while test.type != "if_statement":
            assert test.parent is not None
            test = test.parent
        asked = test.child_by_field_name("condition")
        assert asked is not None
        if place is not None:
            yield Replacement(place.start_byte, test.start_byte, "")
        yield Replacement(*asked.byte_range, f"({thread} < {step})")
        text = self.tree.text(does)
        yield Replacement(*does.byte_range, re.sub(rf"\b{re.escape(to)}(?!\w)", thread, text))


def _named(expression: str) -> str:
    """With `threadIdx.x` and `blockDim.x` as one name each."""
    return re.sub(r"\b(threadIdx|blockDim)\s*\.\s*x\b", r"\1_x", expression)
