"""A PTX kernel as an `Executable`: every instruction lowered, and told where lanes meet.

In: a module and a kernel with its device functions spliced in. Out: `Executable`. An instruction that no
table lowers becomes one that is not executed: what it writes is unknown. At each branch that lanes may part
at stands BSSY, or in front of the loop that they leave, and BSYNC at the immediate post-dominator, the
textbook's policy. Left out: optimisation of any kind.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

import memsim.ptx.lowering.atomics
import memsim.ptx.lowering.comparisons
import memsim.ptx.lowering.conversions
import memsim.ptx.lowering.floats
import memsim.ptx.lowering.integers
import memsim.ptx.lowering.lanes
import memsim.ptx.lowering.matrices
import memsim.ptx.lowering.memory
import memsim.ptx.lowering.moves  # noqa: F401  (these register what they lower)
from memsim.isa.control import flow_of as control_of
from memsim.isa.executable import Executable
from memsim.isa.op import Barrier, Effect, Form, Label, Op, Place, Program
from memsim.isa.registry import Record, single
from memsim.isa.results import slots_of_form
from memsim.isa.table import ANY_ACCESS, RECORDS
from memsim.ptx import program as ptx
from memsim.ptx.blocks import blocks
from memsim.ptx.convergence import flow_of
from memsim.ptx.lowering.assembler import (
    CONSTANTS,
    PARAMETER_BASE,
    REFUSED,
    RZ,
    Assembler,
    Emitted,
    lower_one,
)
from memsim.ptx.lowering.places import places_of
from memsim.ptx.program import Function, Instruction, Module, SourceLine
from memsim.ptx.registers import defs
from memsim.state.memory import SHARED_BASE

#: Functions of the CUDA runtime on the device: they touch no memory that a kernel's arrays are in.
SYSTEM_CALLS = frozenset(("vprintf", "malloc", "free"))
_READ_ONLY = frozenset(("ld", "ldu", "ldmatrix"))
_WRITE_ONLY = frozenset(("st", "stmatrix", "red"))


def lower(module: Module, function: Function) -> Executable:
    """The kernel as a program of machine instructions."""
    places = places_of(module, function)
    asm = Assembler(function, places.at)
    assembly = Assembly(asm)
    assembly.emit()
    last = max((one.offset + one.size for one in function.parameters), default=0)
    return Executable(
        name=function.name,
        program=_program(asm, assembly),
        parameters=function.parameters,
        parameter_base=PARAMETER_BASE,
        parameter_size=last,
        shared=tuple(places.shared),
        static_shared=places.shared_end - SHARED_BASE,
        dynamic_name=places.dynamic[0].name if places.dynamic else "dynamic shared memory",
        local_bytes=places.local_bytes,
        constants={CONSTANTS: bytes(places.constants)},
        pointers=places.all_pointers,
        variables=places.global_variables,
        functions={},
        max_threads=function.maxntid,
        required_threads=function.reqntid,
        cluster=function.cluster,
        dynamic=bool(places.dynamic),
    )


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
        self.gates: dict[int, Gate] = {}
        self.sets: dict[int, list[Barrier]] = {}
        self._meetings()

    def gate(self, block: int) -> Gate:
        """What stands in front of a block."""
        return self.gates.setdefault(self.graph[block].start, Gate())

    def _meetings(self) -> None:
        """A barrier for each branch at which lanes may part and meet again."""
        flow = flow_of(self.graph)
        code = self.asm.function.instructions
        for first, inside in flow.loops.items():
            self.gate(first).inside = inside
        for one in flow.partings:
            branch = self.graph[one.told].end - 1
            if not one.enters and "uni" in code[branch].modifiers:
                continue
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
        return bisect_right([block.start for block in self.graph], index) - 1


def _lower(asm: Assembler, instruction: Instruction) -> None:
    """The machine instructions of one PTX instruction; one that is not executed where none are known."""
    mark, guard = len(asm.emitted), asm.guard
    try:
        lower_one(asm, instruction)
    except REFUSED:
        del asm.emitted[mark:]
        asm.guard, asm.meets = guard, []
        asm.emitted.append(Emitted(Form(*_head(instruction), ()), guard, instruction, None, asm.index))


def _head(instruction: Instruction) -> tuple[str, tuple[str, ...]]:
    return f"?{instruction.opcode}", instruction.modifiers


# --- the program ----------------------------------------------------------------------------


def _program(asm: Assembler, assembly: Assembly) -> Program:
    lines: dict[SourceLine, Place] = {}
    ops = [_op(asm, assembly, index, one, lines) for index, one in enumerate(asm.emitted)]
    return Program(
        name=asm.function.name,
        ops=tuple(ops),
        at={},
        functions={},
        slots=asm.next_slot,
        predicates=asm.predicates,
        barriers=asm.barriers,
    )


def _op(
    asm: Assembler, assembly: Assembly, index: int, emitted: Emitted, lines: dict[SourceLine, Place]
) -> Op:
    form, guard, instruction = emitted.form, emitted.guard, emitted.source
    record = RECORDS.get(form.opcode) or not_executed(asm, instruction)
    reads, writes, addresses = slots_of_form(form, record)
    if guard is not None and guard.slot is not None:
        reads |= 1 << guard.slot
        addresses |= 1 << guard.slot
    targets = (assembly.target(emitted),) if emitted.label is not None else ()
    return Op(
        index=index,
        address=-1,
        form=form,
        guard=guard,
        text=_text(instruction),
        source=_place(instruction, lines),
        effect=record.effect_of(form) if record.effect_of else record.effect,
        reads=reads,
        writes=writes,
        addresses=addresses,
        flow=control_of(form, record.flow) if record.flow is not None else None,
        targets=targets,
        record=record,
        called=instruction.name,
    )


def _text(instruction: Instruction) -> str:
    """The instruction's name; of barriers with their number."""
    numbers = [str(one.value) for one in instruction.operands if isinstance(one, ptx.Immediate)]
    is_barrier = instruction.opcode in ("bar", "barrier")
    return " ".join((instruction.name, ", ".join(numbers))) if is_barrier and numbers else instruction.name


def _place(instruction: Instruction, lines: dict[SourceLine, Place]) -> Place:
    """The source line; of PTX that names none, its own."""
    line = instruction.source
    if line is None:
        return Place("", instruction.line, instruction.column)
    if line not in lines:
        callers, outer = [], line.inlined_at
        while outer is not None:
            callers.append((outer.file, outer.line))
            outer = outer.inlined_at
        lines[line] = Place(line.file, line.line, line.column, tuple(callers))
    return lines[line]


def not_executed(asm: Assembler, instruction: Instruction) -> Record:
    """What is known of an instruction that no table lowers: what it writes, and what it may access."""
    names = [name for name in defs(instruction) if name in asm.function.registers]
    slots = [asm.slot(name) + i for name in names for i in range(asm.words(name))]
    slots += _returned(asm, instruction)
    touches = tuple(touched(instruction))
    effect = Effect.MEMORY if touches else Effect.ALU
    return Record("?", effect, "", single, None, written=lambda form: slots, touches=touches)


def _returned(asm: Assembler, instruction: Instruction) -> list[int]:
    """The registers that stand for what a call gives back."""
    target = instruction.operands[0] if instruction.opcode == "call" else None
    if not isinstance(target, ptx.CallTarget):
        return []
    named = [item.name for item in target.returns if isinstance(item, ptx.Symbol)]
    variables = asm.function.variables
    starts = [(asm.place(name)[1], variables[name].size) for name in named if name in variables]
    cells = [f".param {at}" for start, size in starts for at in range(start, start + size)]
    return [asm.slots[cell] for cell in cells if cell in asm.slots]


def touched(instruction: Instruction) -> list[tuple[str, str]]:
    """(kind, space) of what an instruction that is not lowered may access.

    A call that was not spliced in (through a pointer, or of itself) may do anything.
    """
    opcode = instruction.opcode
    if opcode == "call":
        target = instruction.operands[0]
        assert isinstance(target, ptx.CallTarget)
        is_system = isinstance(target.target, ptx.Symbol) and target.target.name in SYSTEM_CALLS
        return [] if is_system else list(ANY_ACCESS)
    if opcode in ("mbarrier", "tensormap"):
        return []
    if opcode in ("tex", "tld4", "suld", "sust", "sured"):
        return [("store" if opcode.startswith("su") and opcode != "suld" else "load", "texture")]
    if opcode == "wgmma":
        return [("wgmma", "shared")]
    if opcode == "cp":
        return [("bulk", "shared"), ("bulk", "global")]
    spaces = [name.split("::")[0] for name in instruction.modifiers]
    named: list[str] = [space for space in ("shared", "global", "local") if space in spaces]
    if not named and any(isinstance(operand, ptx.Address) for operand in instruction.operands):
        named = ["generic"]
    reads = opcode in _READ_ONLY or (opcode == "wmma" and "load" in instruction.modifiers)
    writes = opcode in _WRITE_ONLY or "store" in instruction.modifiers
    kinds = ["load"] if reads else ["store"] if writes else ["load", "store"]
    return [(kind, space) for kind in kinds for space in named]
