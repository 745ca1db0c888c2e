"""Accesses of public programs changed in turn in the machine code: is the error found?

A load or store goes one element further, or a store is dropped. `tools/changed_in_programs.py` tries those of
launches that programs made, and writes `changed_in_programs.json`, of which docs/sanitize.md has its table.
"""

from __future__ import annotations

import json
import random
import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np

from docs.deleted_barriers import FOUND, NOT_NEEDED, NOT_RUN, some_blocks, verdict
from docs.deleted_reasons import UNCHECKED, Graph
from memsim.api.running import execute_job, trace_job
from memsim.api.sanitizing import sanitize_job
from memsim.errors import MemsimError
from memsim.isa.program import GLOBAL, SHARED, Op
from memsim.job import Job
from memsim.sanitizer.hazards import TOOLS
from tests.sanitize.deleted import job_with

FILE = Path(__file__).with_name("changed_in_programs.json")
NOT_JUDGED = "not judged"
FURTHER, DROPPED = "one element further", "dropped"
#: Accesses of a launch that go further, and stores that are dropped, at most.
MOST = {FURTHER: 4, DROPPED: 3}
#: What warps access in the blocks that are compared.
MOST_ACCESSES = 12_000
NAMES = {"LDS": "load of shared memory", "STS": "store to shared memory"}
NAMES |= {"LDG": "load of global memory", "STG": "store to global memory"}
INSIDE = "it stays in its array; what it reads is written, and all pairs of accesses to one place are ordered"
REPLACED = "what is read in its place is written before by another one, or nobody reads it"
KNOWN = "it reads words that nobody wrote on a line that does so, and is named, as the launch is"
PLACE = re.compile(r"\[([^\[\]]+)\](?!.*\])")


def further(op: Op) -> str | None:
    """The text of an access that goes one element further; None if its address is no sum of a register."""
    whole = op.text if op.guard is None else op.text.partition(" ")[2]
    found = PLACE.search(whole)
    if found is None or "R" not in found[1]:
        return None
    place, offset = found[1], 0
    if ends := re.search(r"\+?(-?)0x([0-9a-f]+)$", place):
        place, offset = place[: ends.start()], int(ends[1] + ends[2], 16)
    offset += width(op)
    sign = "-" if offset < 0 else ""
    return whole[: found.start(1)] + f"{place}+{sign}{abs(offset):#x}" + whole[found.end(1) :]


def width(op: Op) -> int:
    """The bytes of an element that an access has, by the name of the instruction."""
    sizes = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
    return next((size for part, size in sizes.items() if part in op.name.split(".")), 4)


def changes(job: Job, seed: int) -> Iterator[tuple[Op, str, str]]:
    """Accesses of a launch, drawn by a seed: the instruction, what is changed, and the text in its place."""
    ops = [op for op in job.loaded.executable.program.ops if op.form.opcode in NAMES]
    random.Random(seed).shuffle(ops)
    moved = [(op, FURTHER, text) for op in ops if (text := further(op)) is not None]
    dropped = [(op, DROPPED, "NOP") for op in ops if op.form.opcode in ("STS", "STG")]
    for each, most in ((moved, MOST[FURTHER]), (dropped, MOST[DROPPED])):
        yield from each[:most]


class Accesses(Graph):
    """A graph of accesses, with those that one instruction makes outside of the array that it is meant for.

    index: of the instruction; by: how many bytes further it goes than it should.
    """

    def __init__(self, index: int, by: int) -> None:
        super().__init__()
        self.index, self.by, self.is_outside = index, by, False

    def start_chunk(self, threads: Any, memory: Any = None) -> None:
        """Keeps where the arrays are, too."""
        super().start_chunk(threads, memory)
        if memory is not None:
            self._arrays = sorted((one.start, one.end) for one in memory.layouts[GLOBAL].buffers)

    def _note(self, node: int, op: int, does: str, where: tuple[Any, ...], start: int, length: int) -> None:
        super()._note(node, op, does, where, start, length)
        if op == self.index and where == (GLOBAL,):
            number = bisect(self._arrays, (start - self.by, 1 << 64)) - 1
            self.is_outside |= number < 0 or start + length > self._arrays[number][1]

    def unwritten(self) -> set[tuple[Any, ...]]:
        """Words of shared memory that are read, by which instruction, and not written before."""
        return {
            (*where, op)
            for where, accesses in self._accesses.items()
            for node, does, op in accesses
            if where[0] == SHARED
            and does == "reads"
            and not any(then != "reads" and self._before[node] >> other & 1 for other, then, _ in accesses)
        }


def reason(
    job: Job, changed: Job, op: Op, what: str, blocks: np.ndarray, known: Set[int] = frozenset()
) -> str:
    """Why nothing is wrong with a changed launch, by other means than the sanitizer's, in some blocks.

    known: the numbers of the instructions of lines that errors of the launch as it is name.
    """
    before, after = Accesses(op.index, 0), Accesses(op.index, width(op) if what == FURTHER else 0)
    try:
        for one, graph in ((job, before), (changed, after)):
            execute_job(one, graph, None, order=graph, everything=False, judges_order=False, blocks=blocks)
    except MemsimError:
        return UNCHECKED  # the launch fails
    read_unwritten = {one[-1] for one in after.unwritten() - before.unwritten()}
    if after.is_outside or not after.unordered() <= before.unordered() or not read_unwritten <= known:
        return UNCHECKED
    if read_unwritten:
        return KNOWN
    return INSIDE if what == FURTHER else REPLACED


def compared(job: Job, executed: Sequence[int]) -> np.ndarray | None:
    """The blocks whose accesses are compared pair by pair; None if two of them have too many.

    executed: how many warps execute each instruction.
    """
    ops = job.loaded.executable.program.ops
    accesses = sum(times for op, times in zip(ops, executed) if op.touches)
    of_one = max(1, int(accesses) // job.launch.blocks)
    most = MOST_ACCESSES // of_one
    return None if most < min(2, job.launch.blocks) else some_blocks(job, most)


def tried(job: Job, seed: int) -> list[dict[str, Any]] | None:
    """What becomes of each change; None if the launch has too many accesses."""
    counts = trace_job(job).executed
    blocks = compared(job, counts)
    if blocks is None:
        return None
    whole = sanitize_job(job, tools=TOOLS).errors
    named = {access.instruction.where for one in whole for access in one.accesses}
    known = {op.index for op in job.loaded.executable.program.ops if op.where in named}
    found = []
    for op, what, text in changes(job, seed):
        changed = job_with(job, {op.address: text})
        says = verdict(changed, int(counts[op.index]), TOOLS, whole)
        row = {"opcode": op.form.opcode, "what": what, "address": op.address}
        if says == NOT_NEEDED:
            row["reason"] = reason(job, changed, op, what, blocks, known)
        found.append({**row, "verdict": says if says in (FOUND, NOT_RUN, NOT_NEEDED) else NOT_JUDGED})
    return found


def page() -> str:
    """The table, and how many launches it is of."""
    every = [one for one in json.loads(FILE.read_text("utf-8")) if one.get("changed")]
    rows = [row for one in every for row in one["changed"]]
    heads = ["changed", "of all", FOUND, NOT_RUN, "no error", "known", "not checked", NOT_JUDGED]
    lines = [f"| {' | '.join(heads)} |", f"|---{'|---:' * (len(heads) - 1)}|"]
    for what in MOST:
        for opcode, name in NAMES.items():
            own = [row for row in rows if (row["opcode"], row["what"]) == (opcode, what)]
            counts = Counter(row.get("reason", row["verdict"]) for row in own)
            each = [len(own), *(counts[one] for one in (FOUND, NOT_RUN))]
            each += [
                sum(counts[one] for one in (INSIDE, REPLACED)),
                counts[KNOWN],
                counts[UNCHECKED],
                counts[NOT_JUDGED],
            ]
            if own:
                lines.append(f"| a {name}, {what} | {' | '.join(map(str, each))} |")
    said = f"{len(every)} launches of {len({(one['suite'], one['program']) for one in every})} programs."
    return "\n".join([*lines, "", said]) + "\n"


PARTS = {"changed in programs": page}
