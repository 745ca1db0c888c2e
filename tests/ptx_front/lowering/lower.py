"""A PTX kernel as an `Executable`: every instruction lowered to machine instructions, without optimization.

An instruction that no table lowers becomes one that is not executed: what it writes is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

import tests.ptx_front.expanded_floats
import tests.ptx_front.expanded_integers
import tests.ptx_front.expanded_mbarrier
import tests.ptx_front.expanded_video
import tests.ptx_front.lowering.atomics
import tests.ptx_front.lowering.comparisons
import tests.ptx_front.lowering.conversions
import tests.ptx_front.lowering.direct
import tests.ptx_front.lowering.floats
import tests.ptx_front.lowering.integers
import tests.ptx_front.lowering.lanes
import tests.ptx_front.lowering.logic
import tests.ptx_front.lowering.matrices
import tests.ptx_front.lowering.memory
import tests.ptx_front.lowering.moves
import tests.ptx_front.lowering.textures
import tests.ptx_front.lowering.video  # noqa: F401  (registers its opcodes)
from memsim.instruction import Place
from memsim.isa.control import DRIVER_FUNCTIONS
from memsim.isa.definitions import (
    ANY_ACCESS,
    DEFINITIONS,
    Definition,
    Meaning,
    Touches,
    meaning_of,
    not_executed,
)
from memsim.isa.op import Effect, Form
from memsim.isa.program import Executable, Op, Program
from memsim.state.address_spaces import SHARED_BASE
from tests.ptx_front import program as ptx
from tests.ptx_front.lowering.assembler import CONSTANTS, PARAMETER_BASE, Assembler, Emitted
from tests.ptx_front.lowering.assembly import Assembly
from tests.ptx_front.lowering.symbols import places_of
from tests.ptx_front.program import Function, PtxInstruction, PtxModule
from tests.ptx_front.used_registers import defs

#: Functions of the driver that do not access the kernel's arrays.
SYSTEM_CALLS = DRIVER_FUNCTIONS - {"__assertfail"}
_READ_ONLY = frozenset(("ld", "ldu", "ldmatrix"))
_WRITE_ONLY = frozenset(("st", "stmatrix", "red"))
#: What these may access, whatever their modifiers and operands.
_TOUCHES: dict[str, Touches] = {
    **dict.fromkeys(("mbarrier", "tensormap"), ()),
    **dict.fromkeys(("tex", "tld4"), (("load", "texture"),)),
    "suld": (("surface_load", "global"),),
    "sust": (("surface_store", "global"),),
    "sured": (("surface_reduction", "global"),),
    "wgmma": (("wgmma", "shared"),),
    "cp": (("bulk", "shared"), ("bulk", "global")),
}


def lower(module: PtxModule, function: Function) -> Executable:
    """The kernel as a program of machine instructions. `function`: with its device functions inlined."""
    places = places_of(module, function)
    asm = Assembler(function, places.at)
    assembly = Assembly(asm)
    assembly.emit()
    last = max((one.offset + one.size for one in function.parameters), default=0)
    return Executable(
        name=function.name,
        program=_program(asm, assembly, module.path),
        parameters=function.parameters,
        parameter_base=PARAMETER_BASE,
        parameter_size=last,
        shared=tuple(places.shared),
        static_shared=places.shared_end - SHARED_BASE,
        dynamic_name=places.dynamic[0].name if places.dynamic else "dynamic shared memory",
        local_bytes=places.local_bytes,
        constants={CONSTANTS: bytes(places.constants)},
        pointers=places.all_pointers,
        variables=tuple(places.variables),
        functions={},
        max_threads=function.maxntid,
        required_threads=function.reqntid,
        cluster=function.cluster,
        dynamic=bool(places.dynamic),
    )


def _program(asm: Assembler, assembly: Assembly, own: str) -> Program:
    """The program; own: the PTX's path, whose lines stand for those of a source that it does not name."""
    ops = [_op(asm, assembly, index, one, own) for index, one in enumerate(asm.emitted)]
    return Program(
        name=asm.function.name,
        ops=tuple(ops),
        at={},
        functions={},
        slots=asm.next_slot,
        predicates=asm.predicates,
        barriers=asm.barriers,
    )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LoweredOp(Op):
    """A part of an instruction of PTX, by whose name it is called."""

    called: str

    @property
    def name(self) -> str:
        return self.called


def _op(asm: Assembler, assembly: Assembly, index: int, emitted: Emitted, own: str) -> Op:
    form, guard, instruction = emitted.form, emitted.guard, emitted.source
    known = form.opcode in DEFINITIONS
    meaning = meaning_of(form) if known else of_unknown(asm, form, instruction)
    reads, addresses = meaning.reads, meaning.addresses
    if guard is not None and guard.slot is not None:
        reads |= 1 << guard.slot
        addresses |= 1 << guard.slot
    targets = (assembly.target(emitted),) if emitted.label is not None else ()
    return LoweredOp(
        index=index,
        address=-1,
        guard=guard,
        text=_text(instruction),
        # Without line information it is the line of the PTX itself.
        source=instruction.source or Place(own, instruction.line, instruction.column),
        effect=meaning.effect,
        reads=reads,
        writes=meaning.writes,
        addresses=addresses,
        flow=meaning.flow,
        targets=targets,
        meaning=meaning,
        called=instruction.name,
    )


def _text(instruction: PtxInstruction) -> str:
    """The instruction's name; for a barrier with its number."""
    numbers = [str(one.value) for one in instruction.operands if isinstance(one, ptx.PtxImmediate)]
    is_barrier = instruction.opcode in ("bar", "barrier")
    return " ".join((instruction.name, ", ".join(numbers))) if is_barrier and numbers else instruction.name


def of_unknown(asm: Assembler, form: Form, instruction: PtxInstruction) -> Meaning:
    """What is known of an instruction that no table lowers: registers it writes, memory it may access."""
    names = [name for name in defs(instruction) if name in asm.function.registers]
    slots = [asm.slot(name) + i for name in names for i in range(asm.words(name))]
    slots += _returned(asm, instruction)
    touches = touched(instruction)
    effect = Effect.MEMORY if touches else Effect.ALU
    made = Definition("?", (), "<-", effect=effect, written=lambda form: slots, touches=touches)
    return not_executed(form, made)


def _returned(asm: Assembler, instruction: PtxInstruction) -> list[int]:
    """The registers that hold a call's return value."""
    target = instruction.operands[0] if instruction.opcode == "call" else None
    if not isinstance(target, ptx.CallTarget):
        return []
    named = [item.name for item in target.returns if isinstance(item, ptx.PtxSymbol)]
    variables = asm.function.variables
    starts = [(asm.place(name)[1], variables[name].size) for name in named if name in variables]
    cells = [f".param {at}" for start, size in starts for at in range(start, start + size)]
    return [asm.slots[cell] for cell in cells if cell in asm.slots]


def touched(instruction: PtxInstruction) -> Touches:
    """(kind, space) of the accesses that an instruction without lowering may make.

    A call that was not inlined (indirect or recursive) may access anything.
    """
    opcode = instruction.opcode
    if opcode == "call":
        target = instruction.operands[0]
        assert isinstance(target, ptx.CallTarget)
        called = target.target.name if isinstance(target.target, ptx.PtxSymbol) else ""
        return (("call", called.removeprefix("v")),) if called in SYSTEM_CALLS else ANY_ACCESS
    if opcode in _TOUCHES:
        return _TOUCHES[opcode]
    spaces = [name.split("::")[0] for name in instruction.modifiers]
    named: list[str] = [space for space in ("shared", "global", "local") if space in spaces]
    if not named and any(isinstance(operand, ptx.PtxAddress) for operand in instruction.operands):
        named = ["generic"]
    reads = opcode in _READ_ONLY or not {"load", "ld_reduce"}.isdisjoint(instruction.modifiers)
    writes = opcode in _WRITE_ONLY or not {"store", "st", "red"}.isdisjoint(instruction.modifiers)
    kinds = ["load"] if reads else ["store"] if writes else ["load", "store"]
    return tuple((kind, space) for kind in kinds for space in named)
