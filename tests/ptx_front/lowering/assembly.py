"""A function's instructions in order, with the convergence barriers at which lanes reconverge.

BSSY is placed at the divergent branch, or in front of the loop that lanes leave, and BSYNC where they
reconverge. An instruction that no table lowers is kept as one that is not executed.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from memsim.isa.op import Barrier, Form, Label
from tests.ptx_front.basic_blocks import basic_blocks
from tests.ptx_front.lowering.assembler import RZ, Assembler, Emitted
from tests.ptx_front.lowering.lowered_opcodes import REFUSED, lower_one
from tests.ptx_front.post_dominators import flow_of
from tests.ptx_front.program import PtxInstruction


@dataclass
class Gate:
    """What is inserted in front of a block: barriers that lanes wait at, and barriers that they set before
    entering a loop here; `waits_again` are those that they wait at in every iteration.

    entry, again: branch targets for lanes from outside of the loop, and from inside.
    """

    waits: list[tuple[Barrier, bool]] = field(default_factory=list)
    sets: list[Barrier] = field(default_factory=list)
    waits_again: list[tuple[Barrier, bool]] = field(default_factory=list)
    inside: frozenset[int] = frozenset()
    entry: int = 0
    again: int = 0


class Assembly:
    """A function's instructions with its convergence barriers."""

    def __init__(self, asm: Assembler) -> None:
        self.asm = asm
        self.graph = basic_blocks(asm.function)
        self.starts = [node.start for node in self.graph]
        self.gates: dict[int, Gate] = {}
        self.sets: dict[int, list[Barrier]] = {}
        self._barriers()

    def gate(self, number: int) -> Gate:
        """What is inserted in front of a basic block."""
        return self.gates.setdefault(self.graph[number].start, Gate())

    def _barriers(self) -> None:
        """A barrier for each branch at which lanes may diverge and later reconverge."""
        flow = flow_of(self.graph)
        for first, inside in flow.loops.items():
            self.gate(first).inside = inside
        for one in flow.divergences:
            branch = self.graph[one.setter].end - 1
            barrier = self.asm.barrier()
            if one.enters:
                self.gate(one.setter).sets.append(barrier)
            else:
                self.sets.setdefault(branch, []).append(barrier)
            point = self.gate(one.point)
            again = one.setter in point.inside
            (point.waits_again if again else point.waits).insert(0, (barrier, one.others))

    def emit(self) -> None:
        """Emit everything in order."""
        asm, code = self.asm, self.asm.function.instructions
        for barrier, others in (one for gate in self.gates.values() for one in gate.waits + gate.waits_again):
            if others:  # empty for lanes that reach it without having set it
                asm.begin(code[0])
                asm.guard = None
                asm.emit("BMOV.32", barrier, RZ)
        ends = {node.end - 1: number for number, node in enumerate(self.graph)}
        for index, instruction in enumerate(code):
            gate = self.gates.setdefault(index, Gate())
            asm.begin(instruction)
            guard, asm.guard = asm.guard, None
            gate.entry = len(asm.emitted)
            self._wait(gate.waits)
            for barrier in gate.sets:
                asm.emit("BSSY", barrier)
            gate.again = len(asm.emitted)
            self._wait(gate.waits_again)
            for barrier in self.sets.get(index, ()):
                asm.emit("BSSY", barrier)
            asm.guard, asm.index = guard, index
            _lower(asm, instruction)
            asm.guard = None
            for barrier in asm.meets:
                asm.emit("BSYNC", barrier)
            following = self.gates.get(index + 1, Gate())
            if following.waits + following.sets and ends[index] in following.inside:
                asm.emit("BRA", Label("", None), label=index + 1)  # skip the gate of the loop it is in
        self.gates[len(code)] = Gate(entry=len(asm.emitted), again=len(asm.emitted))
        asm.begin(PtxInstruction("ret", (), (), source=code[-1].source if code else None))
        asm.emit("EXIT")  # lanes that run off the end

    def _wait(self, waits: list[tuple[Barrier, bool]]) -> None:
        for barrier, others in waits:
            self.asm.emit("BSYNC", barrier)
            if others:
                self.asm.emit("BMOV.32", barrier, RZ)

    def target(self, emitted: Emitted) -> int:
        """A branch's target: the gate of a loop, or behind it for a branch from inside."""
        label = emitted.label
        index = label if isinstance(label, int) else self.asm.function.labels[label or ""]
        gate = self.gates[index]
        return gate.again if self._number_of(emitted.index) in gate.inside else gate.entry

    def _number_of(self, index: int) -> int:
        """The number of the basic block that an instruction is in."""
        return bisect_right(self.starts, index) - 1


def _lower(asm: Assembler, instruction: PtxInstruction) -> None:
    """Emit the machine instructions of one PTX instruction, or a placeholder that is not executed if none are
    known.
    """
    mark, guard = len(asm.emitted), asm.guard
    try:
        lower_one(asm, instruction)
    except REFUSED:
        del asm.emitted[mark:]
        asm.guard, asm.meets = guard, []
        unknown = Form(f"?{instruction.opcode}", instruction.modifiers, ())  # in no table
        asm.emitted.append(Emitted(unknown, guard, instruction, None, asm.index))
