"""The assembler: PTX operands as operands of machine instructions.

What an instruction becomes is in the modules of this folder, where lanes reconverge in
`tests.ptx_front.post_dominators`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from memsim.isa.op import (
    Barrier,
    Constant,
    Form,
    Immediate,
    Operand,
    Predicate,
    Register,
    Special,
    Unsupported,
    operand_of_kind,
    require,
)
from memsim.state.registers import wrap_int
from tests.ptx_front import program as ptx
from tests.ptx_front.lowering.slots import Slots, bits_of
from tests.ptx_front.program import Function, PtxInstruction

RZ, PT = Register(None), Predicate(None)
#: Constant bank of the kernel's parameters and their offset; bank of `__constant__` variables; of addresses.
PARAMETERS, PARAMETER_BASE, CONSTANTS, ADDRESSES = 0, 0x210, 3, 4

_SPECIALS = {
    **{f"lanemask_{name}": f"SR_{name.upper()}MASK" for name in ("eq", "lt", "le", "gt", "ge")},
    **{f"cluster{name}": f"SR_CLUSTER{name.upper()}" for name in ("id", "_ctaid")},
    **{name: f"SR_{name.upper()}" for name in ("tid", "ntid", "ctaid", "nctaid", "nclusterid", "laneid")},
    "cluster_ctarank": "SR_CgaCtaId",
    "cluster_nctarank": "SR_CgaSize",
    "total_smem_size": "SR_SMEMSZ",
}


#: In front of the parameters: bytes of dynamic shared memory, the halves of a cooperative launch's workspace.
_ENVIRONMENT = {"dynamic_smem_size": 0x2C, "envreg1": 0x44, "envreg2": 0x48}


@dataclass(frozen=True, slots=True)
class Emitted:
    """A machine instruction emitted for PTX instruction number `index`.

    label: its branch target, by name or by instruction number.
    """

    form: Form
    guard: Predicate | None
    source: PtxInstruction
    label: str | int | None
    index: int


@lru_cache(maxsize=4096)
def _parts(name: str) -> tuple[str, tuple[str, ...]]:
    opcode, *modifiers = name.split(".")
    return opcode, tuple(modifiers)


class Assembler(Slots):
    """Emits the instructions of one function; `source` is the one that is being lowered.

    places: state space and address of each symbol; for a global variable its offset in the bank of addresses.
    """

    def __init__(self, function: Function, places: Mapping[str, tuple[str, int]]) -> None:
        super().__init__(function)
        self.places = places
        self.emitted: list[Emitted] = []
        self.source: PtxInstruction
        self.guard: Predicate | None = None
        self.index = 0
        self.meets: list[Barrier] = []  # barriers at which lanes that this instruction diverges reconverge

    # --- emitting -----------------------------------------------------------------------

    def begin(self, instruction: PtxInstruction) -> None:
        """Attribute what is emitted from here on to this instruction."""
        self.source = instruction
        self.guard = None
        self.meets = []
        if instruction.guard is not None:
            self.guard = Predicate(self.slot(instruction.guard.name), instruction.negated)

    def emit(self, name: str, *operands: Operand, label: str | int | None = None) -> None:
        """Emit one machine instruction under the PTX instruction's guard."""
        opcode, modifiers = _parts(name)
        self.emitted.append(
            Emitted(Form(opcode, modifiers, operands), self.guard, self.source, label, self.index)
        )

    # --- operands -----------------------------------------------------------------------

    def target(self, operand: ptx.Operand) -> Register:
        """A destination register; the first of a pair."""
        name = operand_of_kind(operand, ptx.PtxRegister).name
        return RZ if name == "_" else Register(self.slot(name))

    def target_predicate(self, operand: ptx.Operand) -> Predicate:
        """A destination predicate."""
        if isinstance(operand, ptx.PtxRegister) and operand.name == "_":
            return PT
        return self.predicate(operand)

    def predicate(self, operand: ptx.Operand) -> Predicate:
        """A source predicate."""
        if isinstance(operand, ptx.PtxSpecial) and operand.name == "%is_explicit_cluster":
            return Predicate(None, self.function.cluster is None)
        if isinstance(operand, ptx.PtxImmediate):
            return Predicate(None, not operand.value)
        is_negated = isinstance(operand, ptx.Negated)
        inner = operand_of_kind(
            operand.register if isinstance(operand, ptx.Negated) else operand, ptx.PtxRegister
        )
        require(self.kind(inner) == "pred")
        return Predicate(self.slot(inner.name), is_negated)

    def word(self, operand: ptx.Operand, kind: str = "b32") -> Operand:
        """A source of up to 32 bits; a signed one of 8 or 16 bits is sign-extended."""
        bits = min(bits_of(kind), 32)
        if isinstance(operand, ptx.PtxRegister):
            register = Register(self.slot(operand.name))
            if bits == 32 or kind[0] in "bf":
                return register
            if kind[0] == "u":
                return Register(register.slot, part="H0" if bits == 16 else "B0")
            extended = self.temporary()
            self.emit("SGXT", extended, register, Immediate(bits))
            return extended
        if isinstance(operand, ptx.PtxImmediate):
            return _immediate(operand.value, kind, bits)
        if isinstance(operand, ptx.PtxSpecial):
            return self.special(operand.name)
        if isinstance(operand, ptx.PtxSymbol):
            return self.low_address(operand)
        raise Unsupported

    def register(self, operand: ptx.Operand, kind: str = "b32") -> Register:
        """A source of up to 32 bits, in a register."""
        found = self.word(operand, kind)
        if isinstance(found, Register) and not found.part:
            return found
        if found == Immediate(0):
            return RZ
        moved = self.temporary()
        self.emit("MOV", moved, found)
        return moved

    def registers(self, operand: ptx.Operand, bits: int) -> Register:
        """A source in a register, or of 64 bits in a pair."""
        found = self.pair(operand) if bits == 64 else self.word(operand, f"b{bits}")
        if isinstance(found, Register):
            return found
        moved = self.temporary(bits // 32 or 1)
        if bits == 64:
            self.move_pair(moved, operand)
        else:
            self.emit("MOV", moved, found)
        return moved

    def pair(self, operand: ptx.Operand) -> Operand:
        """A 64-bit source: a register pair or a small immediate."""
        if isinstance(operand, ptx.PtxImmediate) and isinstance(operand.value, int):
            if 0 <= operand.value < 1 << 31:
                return Immediate(operand.value)
        elif isinstance(operand, ptx.PtxRegister) and self.words(operand.name) == 2:
            return Register(self.slot(operand.name))
        moved = self.temporary(2)
        self.move_pair(moved, operand)
        return moved

    def double(self, operand: ptx.Operand) -> Operand:
        """A float64 source."""
        if isinstance(operand, ptx.PtxImmediate) and isinstance(operand.value, float):
            return Immediate(operand.value)
        return self.pair(operand)

    def move_pair(self, to: Register, operand: ptx.Operand) -> None:
        """Move 64 bits into a register pair; a narrower source is zero-extended."""
        if isinstance(operand, ptx.PtxImmediate):
            value = operand.value
            if isinstance(value, float):
                value = struct.unpack("<q", struct.pack("<d", value))[0]
            self.emit("MOV", to, Immediate(wrap_int(value, 32)))
            self.emit("MOV", high(to), Immediate(wrap_int(value >> 32, 32)))
        elif isinstance(operand, ptx.PtxSymbol) and self.place(operand.name)[0] == "global":
            self.load_address(to, operand)
        elif isinstance(operand, ptx.PtxSpecial) and operand.name.lstrip("%") in ("clock64", "globaltimer"):
            self.emit("CS2R", to, Special(_special(operand.name)))
        else:
            found = self.word(operand)
            wide = isinstance(operand, ptx.PtxRegister) and self.words(operand.name) == 2
            self.emit("MOV", to, found)
            self.emit("MOV", high(to), high(found) if wide and isinstance(found, Register) else RZ)

    def special(self, name: str) -> Operand:
        """The value of a special register."""
        base, _, axis = name.lstrip("%").partition(".")
        if axis == "w":
            return Immediate(0)
        if base == "cluster_nctaid":
            return Immediate((self.function.cluster or (1, 1, 1))["xyz".index(axis)])
        found = self.temporary()
        if base in _ENVIRONMENT:
            self.emit("MOV", found, Constant(PARAMETERS, _ENVIRONMENT[base]))
        else:
            self.emit("S2R", found, Special(_special(name)))
        return found

    # --- addresses ----------------------------------------------------------------------

    def place(self, name: str) -> tuple[str, int]:
        """(state space, address) of a symbol."""
        require(name in self.places)
        return self.places[name]

    def low_address(self, symbol: ptx.PtxSymbol) -> Operand:
        """A symbol's address; for global memory its low word."""
        space, address = self.place(symbol.name)
        require(space != "call")
        if space != "global":
            return Immediate(address + symbol.offset)
        pair = self.temporary(2)
        self.load_address(pair, symbol)
        return pair

    def load_address(self, to: Register, symbol: ptx.PtxSymbol) -> None:
        """Load the address of a variable in global memory."""
        _, place = self.place(symbol.name)
        self.emit("LDC.64", to, Constant(ADDRESSES, place))
        if symbol.offset:
            self.emit("IADD3.64", to, to, Immediate(symbol.offset), RZ)


def following(register: Register, words: int) -> Register:
    """The register so many words after another; RZ after RZ."""
    return RZ if register.slot is None else Register(register.slot + words)


def high(register: Register) -> Register:
    """The upper word of a pair."""
    return following(register, 1)


def negated(operand: Operand) -> Operand:
    """A source with its sign flipped."""
    if isinstance(operand, Immediate):
        return Immediate(-operand.value)
    assert isinstance(operand, Register)
    return Register(operand.slot, negated=True, part=operand.part)


def _special(name: str) -> str:
    base, dot, axis = name.lstrip("%").partition(".")
    return _SPECIALS[base] + dot + axis.upper() if base in _SPECIALS else name


def _immediate(value: int | float, kind: str, bits: int) -> Immediate:
    if isinstance(value, float):
        require(kind != "f64")
        return Immediate(value)
    if kind[0] == "u" and bits < 32:
        return Immediate(value & ((1 << bits) - 1))
    return Immediate(wrap_int(value, bits))
