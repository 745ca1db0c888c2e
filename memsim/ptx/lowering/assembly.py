"""A function's instructions in order, with the barriers at which lanes meet.

In: an assembler. Out: what it has emitted, and where branches lead. At a branch that lanes may part at stands
BSSY, or in front of the loop that they leave, and BSYNC where they meet. An instruction that no table lowers
stays as one that is not executed.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from memsim.isa.op import Barrier, Form, Label
from memsim.ptx.basic_blocks import blocks
from memsim.ptx.convergence import flow_of
from memsim.ptx.lowering.assembler import REFUSED, RZ, Assembler, Emitted, lower_one
from memsim.ptx.program import Instruction


@dataclass
class Gate:
    """What stands in front of a block: barriers that lanes wait at, and set, before they enter a loop here,
    and those that they wait at whenever they come.

    entry, again: where lanes go that come from outside of the loop, and from inside.
    """

    waits: list[tuple[Barrier, bool]] = field(default_factory=list)
    sets: list[Barrier] = field(default_factory=list)
    waits_again: list[tuple[Barrier, bool]] = field(default_factory=list)
    inside: int = 0
    entry: int = 0
    again: int = 0


class Assembly:
    """A function's instructions with the barriers at which lanes meet."""

    def __init__(self, asm: Assembler) -> None:
        self.asm = asm
        self.graph = blocks(asm.function)
        self.starts = [block.start for block in self.graph]
        self.gates: dict[int, Gate] = {}
        self.sets: dict[int, list[Barrier]] = {}
        self._meetings()

    def gate(self, block: int) -> Gate:
        """What stands in front of a block."""
        return self.gates.setdefault(self.graph[block].start, Gate())

    def _meetings(self) -> None:
        """A barrier for each branch at which lanes may part and meet again."""
        flow = flow_of(self.graph)
        for first, inside in flow.loops.items():
            self.gate(first).inside = inside
        for one in flow.partings:
            branch = self.graph[one.told].end - 1
            barrier = self.asm.barrier()
            if one.enters:
                self.gate(one.told).sets.append(barrier)
            else:
                self.sets.setdefault(branch, []).append(barrier)
            place = self.gate(one.place)
            again = place.inside >> one.told & 1
            (place.waits_again if again else place.waits).insert(0, (barrier, one.others))

    def emit(self) -> None:
        """Everything in order."""
        asm, code = self.asm, self.asm.function.instructions
        for barrier, others in (one for gate in self.gates.values() for one in gate.waits + gate.waits_again):
            if others:  # it names nobody for lanes that come without having been told
                asm.begin(code[0])
                asm.guard = None
                asm.emit("BMOV.32", barrier, RZ)
        ends = {block.end - 1: number for number, block in enumerate(self.graph)}
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
            if following.waits + following.sets and following.inside >> ends[index] & 1:
                asm.emit("BRA", Label("", None), label=index + 1)  # round the gate of the loop it is in
        self.gates[len(code)] = Gate(entry=len(asm.emitted), again=len(asm.emitted))
        asm.begin(Instruction("ret", (), (), source=code[-1].source if code else None))
        asm.emit("EXIT")  # of lanes that run off the end

    def _wait(self, waits: list[tuple[Barrier, bool]]) -> None:
        for barrier, others in waits:
            self.asm.emit("BSYNC", barrier)
            if others:
                self.asm.emit("BMOV.32", barrier, RZ)

    def target(self, emitted: Emitted) -> int:
        """Where a branch leads: to the gate of a loop, or round it."""
        label = emitted.label
        index = label if isinstance(label, int) else self.asm.function.labels[label or ""]
        gate = self.gates[index]
        return gate.again if gate.inside >> self.block_of(emitted.index) & 1 else gate.entry

    def block_of(self, index: int) -> int:
        """The block that an instruction is in."""
        return bisect_right(self.starts, index) - 1


def _lower(asm: Assembler, instruction: Instruction) -> None:
    """The machine instructions of one PTX instruction; one that is not executed where none are known."""
    mark, guard = len(asm.emitted), asm.guard
    try:
        lower_one(asm, instruction)
    except REFUSED:
        del asm.emitted[mark:]
        asm.guard, asm.meets = guard, []
        unknown = Form(f"?{instruction.opcode}", instruction.modifiers, ())  # in no table
        asm.emitted.append(Emitted(unknown, guard, instruction, None, asm.index))
