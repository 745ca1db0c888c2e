"""The basic blocks of a function and their successors.

How the lanes of a warp reconverge is in `tests.ptx_front.post_dominators`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.ptx_front.program import Function, PtxInstruction, PtxSymbol

EXITS = frozenset({"ret", "exit", "trap"})
BRANCHES = frozenset({"bra", "brx"})


@dataclass(frozen=True, slots=True)
class BasicBlock:
    """Instructions `start .. end - 1`, entered only at the first and left only after the last.

    `successors`: indices of basic blocks. `leaves`: lanes may end here (`ret`, `exit`, `trap`, or running off
    the end); all of them do if there are no successors.
    """

    start: int
    end: int
    successors: tuple[int, ...]
    leaves: bool


def basic_blocks(function: Function) -> tuple[BasicBlock, ...]:
    """The basic blocks in program order."""
    code, labels = function.instructions, function.labels
    if not code:
        return ()
    starts = {0, *labels.values()}
    for index, instruction in enumerate(code):
        if instruction.opcode in EXITS | BRANCHES:
            starts.add(index + 1)
    starts.discard(len(code))
    order = sorted(starts)
    number_of = {start: number for number, start in enumerate(order)}
    found = []
    for start, end in zip(order, [*order[1:], len(code)]):
        targets, leaves = _targets(function, end - 1)
        leaves = leaves or len(code) in targets
        successors = tuple(dict.fromkeys(number_of[target] for target in targets if target < len(code)))
        found.append(BasicBlock(start, end, successors, leaves))
    return tuple(found)


def _targets(function: Function, index: int) -> tuple[list[int], bool]:
    """Indices of the instructions that can follow `index`, and whether lanes can exit there."""
    instruction = function.instructions[index]
    following = [index + 1] if instruction.guard else []
    if instruction.opcode in EXITS:
        return following, True
    if instruction.opcode == "bra":
        return [function.labels[_label(instruction)], *following], False
    if instruction.opcode == "brx":
        table = function.tables[_label(instruction)]
        return [*(function.labels[label] for label in table), *following], False
    return [index + 1], False


def _label(instruction: PtxInstruction) -> str:
    target = instruction.operands[-1]
    assert isinstance(target, PtxSymbol)
    return target.name
