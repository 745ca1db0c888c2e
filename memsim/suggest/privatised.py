"""Histograms whose threads add to copies of the array first, which are then added to it: an edit.

`atomicAdd(&bins[value], 1)` on global memory goes to a copy in the block's shared memory, of which each
element is added to the array once, by one thread. On shared memory, where lanes that add to one bank wait for
each other, there is a copy for each lane, as far as there is room. Only integers are added in another order.
What is beyond the elements that were accessed is added to the array itself: so that it is right for any size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from memsim.analysis import BADLY_COALESCED, Analysis, SiteCounts
from memsim.arch.units import WARP
from memsim.job import Job
from memsim.source.syntax import Node, arguments_of, walk
from memsim.source.values import constants
from memsim.suggest.c_text import names_in
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.kernel_tree import KernelTree
from memsim.suggest.threads import Remapped, replay_edit

MOST = 4096  # elements of which there are copies
_WIDTHS: Mapping[str, int] = {
    "int": 4,
    "unsigned int": 4,
    "unsigned": 4,
    "uint32_t": 4,
    "uint": 4,
    "unsigned long long": 8,
}
_TARGET = re.compile(r"&\s*\(?\s*(\w+)\s*\[(.*)\]\s*\)?", re.DOTALL)
_BARRIER = re.compile(r"__syncthreads\s*\(\s*\)\s*;")
_RETURNS = re.compile(r"if\s*(\(.*\))\s*\{?\s*return\s*;\s*\}?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Addition:
    """`atomicAdd(&array[index], value);`, a part of the statement `of_body` of the kernel's body."""

    node: Node
    of_body: Node
    array: str
    index: str
    value: str


def privatised_arrays(job: Job, before: Analysis) -> tuple[Remapped, ...]:
    """What halves the sectors of global atomics, or saves a quarter of the bank conflicts of shared ones."""
    sites = [each for each in before.sites if _is_atomic(each) and "|" not in each.array]
    found = []
    for array, space in {(each.array, each.space): None for each in sites}:
        whose = "each block" if space == "global" else "each lane"
        edit = _Privatised(before, job).privatised(array, space)
        done = replay_edit(f"{array} added up in a copy of {whose}", job, before, edit, helping=False)
        if done is not None and done.is_known and _pays(before, done.analysis, space):
            found.append(done)
    return tuple(found)


def _is_atomic(site: SiteCounts) -> bool:
    return site.op.startswith(("atomic", "reduction")) and bool(site.requests)


def atomic_sectors(analysis: Analysis) -> int:
    """The sectors of all atomics on global memory."""
    return sum(each.sectors or 0 for each in analysis.sites if each.space == "global" and _is_atomic(each))


def _pays(before: Analysis, after: Analysis, space: str) -> bool:
    if space == "global":
        return 2 * atomic_sectors(after) <= atomic_sectors(before)
    was, now = (sum(site.wavefronts_of_conflicts for site in each.sites) for each in (before, after))
    return was - now >= max(BADLY_COALESCED * was, 1)


class _Privatised(KernelTree):
    def privatised(self, array: str, space: str) -> Edit | None:
        """The kernel with copies of an array; None if they cannot be written."""
        body = self.body
        if self.definition is None or body is None or re.search(rf"\b{array}_(?:copy|at)\b", self.code):
            return None
        additions = [one for one in self._additions(body) if one.array == array]
        kind = self._kind(array, space)
        size = next((each[3] for each in self.before.trace.arrays if each[:2] == (array, space)), 0)
        count = size // _WIDTHS.get(kind, 8)
        room = self.before.arch.static_shared_bytes - self.before.trace.shared_end
        if not additions or kind not in _WIDTHS or not 0 < count <= min(MOST, room // _WIDTHS[kind]):
            return None
        copies = 1
        while space == "shared" and copies < WARP and 2 * copies * count * _WIDTHS[kind] <= room:
            copies *= 2
        added = self._added(body, additions, space)
        if added is None or (space == "shared" and copies == 1):
            return None
        known = constants(self.code).items()
        code = self.code[body.start_byte : body.end_byte]
        named = (name for name, value in known if value == count and re.search(rf"\b{name}\b", code))
        bins = next(named, str(count))
        copy, bin_ = f"{array}_copy", f"{array}_at"
        every = f"for (int {bin_} = THREAD; {bin_} < {{}}; {bin_} += THREADS)"
        in_all = bins if copies == 1 else f"{bins} * {copies}"
        opened = [
            f"__shared__ {kind} {copy}[{in_all}];",
            f"{every.format(in_all)}",
            f"    {copy}[{bin_}] = 0;",
            "__syncthreads();",
        ]
        if space == "global":
            closed = ["__syncthreads();", every.format(bins), f"    if ({copy}[{bin_}] != 0)"]
            closed.append(f"        atomicAdd(&{array}[{bin_}], {copy}[{bin_}]);")
        else:
            turned = f"{copy}[{bin_} * {copies} + ({bin_} + lane) % {copies}]"
            closed = [every.format(bins), f"    for (int lane = 0; lane < {copies}; ++lane)"]
            closed += [f"        {array}[{bin_}] += {turned};", "__syncthreads();"]
        place, replacements = added
        start = self.opening(self.definition)
        replacements += [Replacement(start, start, self._lines(["", *opened], start + 1))]
        replacements += [Replacement(place, place, self._lines(["", *closed], start + 1))]
        for one in additions:
            at = bin_ if copies == 1 else f"{bin_} * {copies} + THREAD % {copies}"
            own = f"atomicAdd(&{copy}[{at}], {one.value});"
            if space == "global":
                own = f"if ((size_t){bin_} < {bins}) {own} else atomicAdd(&{array}[{bin_}], {one.value});"
            new = self._lines([f"{{ const auto {bin_} = {one.index}; {own} }}"], start)
            replacements.append(Replacement(one.node.start_byte, one.node.end_byte, new))
        names = [name for name in names_in(bins, *(one.index for one in additions)) if name in self.types]
        return self.edit(replacements, ("blockDim.x", bins, *names))

    def _lines(self, lines: list[str], place: int) -> str:
        block = "yz" if "threadIdx.y" in self.code or "threadIdx.z" in self.code else ""
        thread, threads = "threadIdx.x", "blockDim.x"
        if block:
            thread = "((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x)"
            threads = "blockDim.x * blockDim.y * blockDim.z"
        text = "\n    ".join(lines)
        return re.sub(r"\bTHREAD\b", thread, re.sub(r"\bTHREADS\b", threads, text))

    def _additions(self, body: Node) -> Iterator[_Addition]:
        """All additions whose results are not used."""
        for node in walk(body):
            if node.type != "expression_statement" or not node.named_children:
                continue
            call = node.named_children[0]
            if call.type != "call_expression" or self.tree.text(call.children[0]) != "atomicAdd":
                continue
            parts = [self.tree.text(one) for one in arguments_of(call)]
            target = _TARGET.fullmatch(parts[0]) if len(parts) == 2 else None
            of_body: Node | None = node
            while of_body is not None and of_body.parent != body:
                of_body = of_body.parent
            if target is not None and of_body is not None and "][" not in target[2]:
                yield _Addition(node, of_body, target[1], target[2].strip(), parts[1])

    def _kind(self, array: str, space: str) -> str:
        """The type of an array's elements, "" if it is not known."""
        declared = self.types.get(array, "").replace("*", "")
        if space == "shared":
            match = re.search(
                rf"__shared__\s+((?:unsigned\s+|long\s+)*\w+)\s+{array}\s*\[[^][]*\]\s*;", self.code
            )
            declared = "" if match is None else match[1]
        return " ".join(re.sub(r"\b(?:const|__restrict(?:__)?)\b", "", declared).split())

    def _added(
        self, body: Node, additions: list[_Addition], space: str
    ) -> tuple[int, list[Replacement]] | None:
        """Where copies are added to the array, and what changes for all threads to come there; else None."""
        inside = [one for one in body.named_children if one.type != "comment"]
        first, last = (pick(inside.index(one.of_body) for one in additions) for pick in (min, max))
        array = re.compile(rf"\b{additions[0].array}\b")
        if space == "shared":
            barriers = (one for one in inside[last + 1 :] if _BARRIER.fullmatch(self.tree.text(one)))
            barrier = next(barriers, None)
            if barrier is None or re.search(r"\breturn\b", self.code[body.start_byte : body.end_byte]):
                return None
            span, place = (inside[first].start_byte, barrier.start_byte), barrier.end_byte
            found: list[Replacement] = []
        else:
            span, place = (body.start_byte, body.end_byte), body.end_byte - 1
            leaving = ((one, _RETURNS.fullmatch(self.tree.text(one))) for one in inside)
            found = [
                Replacement(*one.byte_range, f"if (!{leaves[1]}) {{") for one, leaves in leaving if leaves
            ]
            if len(re.findall(r"\breturn\b", self.code[slice(*span)])) != len(found):
                return None
            if self.code[:place].rstrip(" \t").endswith("\n"):
                place = self.code.rindex("\n", 0, place)
            if found:
                found.append(Replacement(place, place, "\n    " + "}" * len(found)))
        return (place, found) if len(array.findall(self.code[slice(*span)])) == len(additions) else None
