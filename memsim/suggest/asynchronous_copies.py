"""Copies to shared memory that a thread does not wait for (`cp.async`): an edit for tiles of global memory.

In `tile[i] = in[j]; __syncthreads();` each thread waits for what it loads, to store it. In the edit the copy
is asynchronous and waited for before the barrier: of vectors, too, of what a local variable has in between
that nothing else uses, and where a condition decides: `tile[i] = inside ? in[j] : 0;` copies if it holds, and
else stores. In a loop over tiles, each copied, used and then given up, the next one is copied to a second
buffer while one is used, and there is one barrier for each. The functions are those of `cuda_pipeline.h`,
which copy as before on chips without such copies. What can be copied is in `tile_copies`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from memsim.analysis import Analysis
from memsim.api.sanitizing import sanitize_job
from memsim.estimated_time import EstimatedTime
from memsim.job import Job
from memsim.sanitizer.hazards import RACE
from memsim.source.syntax import NOTHING, Node, assignment_parts, outside, walk
from memsim.source.values import changes
from memsim.suggest.c_text import names_in
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.kernel_tree import with_pragmas
from memsim.suggest.proposals import LEAST_SAVED, fits
from memsim.suggest.prove import is_the_same
from memsim.suggest.ranking import MARGIN, Verdict, verdict
from memsim.suggest.threads import Remapped, replay_edit
from memsim.suggest.tile_copies import STAYS, TileCopies, TileStore, declarators, is_in
from memsim.time.behind_l1 import WARM
from memsim.time.quick_estimate import estimate

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
