"""Elements of a plane numbered along its rows: an edit for threads that each have one.

Blocks of 8 x 8 threads, `if (x >= width || y >= height) return;`, move rows of 8 elements, and rows of any
width begin within a sector. Where the grid covers the plane, thread 0, 1, 2 ... of the grid takes element
0, 1, 2 ... instead: each element is still one thread's, and neighbouring lanes have neighbouring elements
across the ends of rows, too. Grids that do not cover the plane stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from memsim.analysis import BADLY_COALESCED, Analysis
from memsim.job import Job
from memsim.source.syntax import Node, arguments_of, bare, fields, walk
from memsim.source.values import changes
from memsim.suggest.c_text import factor, names_in
from memsim.suggest.edit import Edit, Replacement, apply_replacements
from memsim.suggest.kernel_tree import KernelTree
from memsim.suggest.prove import is_the_same
from memsim.suggest.ranking import total
from memsim.suggest.records import NAME as RECORDS
from memsim.suggest.records import record_edits
from memsim.suggest.threads import Remapped, is_each_alone, is_in_functions, replay_edit

NAME = "elements of the grid numbered along rows"
PREFIX = "numbered"
_NUMBERS = re.compile(r"\b(?:threadIdx|blockIdx|blockDim|gridDim)\b(?!\s*\.\s*z\b)")
#: A vector of x and y, and what else accesses memory or has an effect.
_VECTOR = re.compile(r"make_u?int[234]")
_ACTS = re.compile(r"(?:subscript|pointer|update|assignment|call)_expression")
#: How an element of the plane is told from others, by what joins the tests: the mark, and that turned round.
_MARKS = {"||": (">=", "<="), "&&": ("<", ">")}


def numbered_elements(job: Job, before: Analysis) -> tuple[Remapped, ...]:
    """The edit, and with records moved by warps: what saves a quarter of the needless sectors."""
    sectors, needless = total(before, "sectors"), total(before, "needless_sectors")
    if needless < BADLY_COALESCED * sectors or not is_each_alone(before, job):
        return ()
    done = replay_edit(NAME, job, before, _Plane(before, job).edited(), helping=False)
    if done is None:
        return ()
    edits = [one for one in record_edits(done.job, done.analysis) if one.file == done.edit.file]
    tried = (replay_edit(f"{NAME}; {RECORDS}", done.job, before, one) for one in edits)
    more = [replace(each, edit=done.edit.followed_by(each.edit)) for each in tried if each is not None]
    return tuple(each for each in (done, *more) if each.saves and is_the_same(job, each.job))


class _Plane(KernelTree):
    def edited(self) -> Edit | None:
        """The kernel with other x and y; None if it may use the numbers of its threads for anything else."""
        body = self.body
        if body is None or PREFIX in self.text or is_in_functions(self.code):
            return None
        places = list(self._places(body))
        replaced = [Replacement(*place.byte_range, f"{PREFIX}_{axis}") for place, axis, _ in places]
        rest = apply_replacements(self.code[: body.end_byte], replaced)[body.start_byte :]
        widths = dict(each[1:] for each in places)
        ends = self._ends(body, places) if set(widths) == {"x", "y"} else None
        if ends is None or _NUMBERS.search(rest) or any(widths[axis] != width for _, axis, width in places):
            return None
        used = names_in(*ends.values(), *widths.values())
        if any(changes(name, self.own_code) > (name not in self.types) for name in used):
            return None
        statement = next(one for one in body.named_children if one.end_byte >= places[0][0].end_byte)
        at = statement.start_byte
        lines = _lines(factor(ends["x"]), factor(ends["y"]), widths)
        replaced.append(Replacement(at, at, "".join(f"{line}\n{self.indent(at)}" for line in lines)))
        names = "blockDim.x", "blockDim.y", *names_in(*ends.values())
        return self.edit(replaced, names, among_blocks=True)

    def _places(self, body: Node) -> Iterator[tuple[Node, str, str]]:
        """The places of threads in the grid: the axis of each, and how many threads of it a block has."""
        for node in walk(body):
            terms = re.sub(r"\s", "", self.code[slice(*node.byte_range)]).split("+")
            axis = next((one for one in "xy" if f"threadIdx.{one}" in terms), "")
            if node.type != "binary_expression" or len(terms) != 2 or not axis:
                continue
            terms.remove(f"threadIdx.{axis}")
            factors = terms[0].split("*")
            if len(factors) == 2 and f"blockIdx.{axis}" in factors:
                factors.remove(f"blockIdx.{axis}")
                if re.fullmatch(r"[\w.]+", factors[0]):
                    yield node, axis, factors[0]

    def _ends(self, body: Node, places: list[tuple[Node, str, str]]) -> dict[str, str] | None:
        """Where the plane ends along both axes: threads beyond have no effect; None if that is not known."""
        variables = {name: axis for place, axis, _ in places for name in self._names(place)}
        found: dict[str, str] = {}
        statements = [one for one in body.named_children if one.type != "comment"]
        for node in statements:
            if node.type == "declaration" and not self._acts(node):
                continue
            asked = fields(node, "condition", "consequence") if node.type == "if_statement" else None
            if asked is None:
                return None
            condition, then = asked
            returns = re.fullmatch(r"\{?\s*return\s*;\s*\}?", self.code[slice(*then.byte_range)])
            whole = node == statements[-1] and node.child_by_field_name("alternative") is None
            if not returns and not whole:
                return None
            for term in self._terms(condition, joined := "||" if returns else "&&"):
                test = self._test(term, _MARKS[joined], variables)
                if test is not None:
                    found.setdefault(*test)
                elif len(found) < 2 and self._acts(term):
                    return None
            if len(found) == 2:
                return found
        return None

    def _names(self, place: Node) -> Iterator[str]:
        """What a place is called: `x` of `int x = ...`, `at.x` of `int2 at = make_int2(...)`, and itself."""
        yield self.tree.text(place)
        around, field = place.parent, ""
        call = None if around is None or around.type != "argument_list" else around.parent
        if call is not None and _VECTOR.fullmatch(self.tree.text(call.children[0])):
            field, around = "." + "xyzw"[arguments_of(call).index(place)], call.parent
        if around is not None and around.type == "init_declarator":
            yield self.tree.text(around.children[0]) + field

    def _terms(self, node: Node, joined: str) -> Iterator[Node]:
        """The tests that an operator joins, in order."""
        node = bare(node)
        if node.type == "binary_expression" and self.tree.text(node.children[1]) == joined:
            for part in (node.children[0], node.children[2]):
                yield from self._terms(part, joined)
        else:
            yield node

    def _test(self, term: Node, marks: tuple[str, str], variables: dict[str, str]) -> tuple[str, str] | None:
        """The axis that a test is of, and the end."""
        if term.type != "binary_expression":
            return None
        left, mark, right = (self.tree.text(one) for one in term.children)
        if mark == marks[1]:
            left, mark, right = right, marks[0], left
        known = mark == marks[0] and left in variables and not _NUMBERS.search(right)
        return (variables[left], right) if known and "[" not in right and "(" not in right else None

    def _acts(self, node: Node) -> bool:
        """Whether anything but arithmetic is in it, or a vector of its results."""
        acting = (one for one in walk(node) if _ACTS.fullmatch(one.type))
        return any(not _VECTOR.match(self.tree.text(one)) for one in acting)


def _lines(columns: str, rows: str, widths: dict[str, str]) -> list[str]:
    """What comes before the first use of x and y."""
    ends = (("x", columns), ("y", rows))
    covers = [f"{end} > 0 && {end} <= gridDim.{axis} * blockDim.{axis}" for axis, end in ends]
    equal = [f"{width} == blockDim.{axis}" for axis, width in widths.items() if width != f"blockDim.{axis}"]
    every = "gridDim.x < 1 << 16 && gridDim.x * gridDim.y <= 1 << 22"
    number = "((blockIdx.y * gridDim.x + blockIdx.x) * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x"
    as_it_was = {axis: f"blockIdx.{axis} * {width} + threadIdx.{axis}" for axis, width in widths.items()}
    row = f"{PREFIX}_at / {columns}"
    return [
        f"const bool {PREFIX} = {' && '.join([*covers, *equal])} &&",
        f"    {every}; // elements are numbered along rows, where the grid has them all",
        f"const unsigned {PREFIX}_at = {number};",
        f"const unsigned {PREFIX}_x = {PREFIX} ? {PREFIX}_at % {columns} : {as_it_was['x']};",
        f"const unsigned {PREFIX}_y = !{PREFIX} ? {as_it_was['y']} : {row} < {rows} ? {row} : {rows};",
    ]
