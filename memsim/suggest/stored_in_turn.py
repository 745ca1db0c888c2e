"""Elements that a thread stores in turn, in a loop: an edit where a warp's lanes fill parts of sectors.

Tensor cores leave each lane pairs of a row's elements. Four lanes store 16 bytes of a row, and the next
iteration the 16 bytes beside: each request has half of its sectors. In the edit the two halves of a warp
exchange one of two iterations' elements: then a request stores both parts of half of the rows. Shared memory
has no part in it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from memsim.analysis import Analysis
from memsim.job import Job
from memsim.source.syntax import Node
from memsim.source.values import changes
from memsim.suggest.c_text import names_in
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.element_uses import ElementUse
from memsim.suggest.kernel_tree import wasting_files, with_pragmas
from memsim.suggest.prove import is_the_same
from memsim.suggest.record_uses import MovedRecord, RecordUses, interrupts
from memsim.suggest.threads import Remapped, replay_edit

NAME = "elements stored in turn, those of two iterations by each half of a warp"
PREFIX = "stored_in_turn"


def stored_in_turn(job: Job, before: Analysis) -> tuple[Remapped, ...]:
    """The edit of each file, replayed, if it saves a quarter of the needless sectors and nothing differs."""
    edits = (_Turns(job, before, file).moved() for file in wasting_files(before))
    tried = (replay_edit(NAME, job, before, edit) for edit in edits)
    return tuple(done for done in tried if done is not None and done.saves and is_the_same(job, done.job))


class _Turns(RecordUses):
    def moved(self) -> Edit | None:
        """The kernel, or functions that it calls, with all such stores in pairs; None if there is none."""
        if PREFIX in self.text or not any(one.op == "store" for one in self.wasting):
            return None
        found = [each for one in self.functions("store") for each in self._turns(one)]
        replacements = [
            one for number, (loop, record) in enumerate(found) for one in self._put(loop, record, number)
        ]
        if not replacements:
            return None
        stored = (record.uses[0].function for _, record in found)
        return self.edit([*replacements, self.added(PREFIX, stored)], self.sizes)

    def is_scalar(self, use: ElementUse) -> bool:
        """A record may be one element."""
        return False

    def _turns(self, function: Node) -> Iterator[tuple[Node, MovedRecord]]:
        """The records that each iteration of a loop stores at another place, and the loop: nothing else of it
        concerns the array, and nobody else sees elements meanwhile.
        """
        of_loops: dict[int, list[tuple[Node, MovedRecord]]] = defaultdict(list)
        for record in self.records(function):
            block = record.uses[0].statement.parent
            loop = None if block is None else block.parent
            if loop is not None and loop.type == "for_statement" and record.stored and not record.loaded:
                of_loops[loop.start_byte].append((loop, record))
        for (loop, record), *others in of_loops.values():
            code, use = self.code[slice(*loop.byte_range)], record.uses[0]
            named = len(re.findall(rf"(?<![\w.])(?:{self.names_of(use)})\b", code))
            whole = not record.shorter and not any(one.walks for one in record.uses)
            moves = any(changes(name, code) for name in names_in(record.address))
            if not others and whole and moves and named == len(record.uses) and not interrupts(code):
                yield loop, record

    def _put(self, loop: Node, record: MovedRecord, number: int) -> Iterator[Replacement]:
        """The record collected, and stored with that of another iteration."""
        name = f"{record.uses[0].array}_in_turn{number}".replace(".", "_")
        start, last = with_pragmas(self.text, loop.start_byte), record.uses[-1].statement.end_byte
        lines = f"\n{self.indent(start)}"
        alone = loop.parent is None or loop.parent.type != "compound_statement"
        opening = f"auto {name} = in_turn<{record.length}>({record.uses[0].base});{lines}"
        closing = f"{lines}{name}.close();"
        yield Replacement(start, start, f"{{ {opening}" if alone else opening)
        for use in record.uses:
            yield self.replaced(use, f"{name}[{use.place}]")
        yield Replacement(last, last, f" {name}.put({record.address});")
        yield Replacement(loop.end_byte, loop.end_byte, f"{closing} }}" if alone else closing)
