"""The assembler: PTX registers as numbered slots, PTX operands as operands of machine instructions.

There are as many registers as the function has; a 64-bit register takes two consecutive ones, and the
elements of a vector are consecutive where possible. What an instruction becomes is in the tables of this
folder, where lanes reconverge in `memsim.ptx.post_dominators`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from memsim.isa.op import SLOTS, Barrier, Constant, Form, Immediate, Operand, Predicate, Register, Special
from memsim.ptx import program as ptx
from memsim.ptx.program import Function, PtxInstruction
from memsim.ptx.used_registers import uses

RZ, PT = Register(None), Predicate(None)
#: After the registers of machine code and the two slots of block barriers with a reduction.
FIRST_SLOT = SLOTS + 2
#: Constant bank of the kernel's parameters and their offset; bank of `__constant__` variables; of addresses.
PARAMETERS, PARAMETER_BASE, CONSTANTS, ADDRESSES = 0, 0x210, 3, 4

_SPECIALS = {
    **{f"lanemask_{name}": f"SR_{name.upper()}MASK" for name in ("eq", "lt", "le", "gt", "ge")},
    **{f"cluster{name}": f"SR_CLUSTER{name.upper()}" for name in ("id", "_ctaid")},
    **{name: f"SR_{name.upper()}" for name in ("tid", "ntid", "ctaid", "nctaid", "nclusterid", "laneid")},
    "cluster_ctarank": "SR_CgaCtaId",
    "cluster_nctarank": "SR_CgaSize",
    "total_smem_size": "SR_SMEMSZ",
    "dynamic_smem_size": "SR_DYNAMICSMEMSZ",
}


#: The workspace of a cooperative launch in front of the parameters: the upper and the lower half.
_ENVIRONMENT = {"envreg1": 0x44, "envreg2": 0x48}


class NotLowered(Exception):
    """No machine instruction is known for this form of a PTX instruction."""


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


def bits_of(kind: str) -> int:
    """Bits of a PTX type: 32 for `f32` and `f16x2`."""
    if kind.endswith("x2"):
        return 32
    digits = kind.lstrip("bsufe")
    if not digits.isdigit():
        raise NotLowered(kind)
    return int(digits)


class Assembler:
    """Emits the instructions of one function; `source` is the one that is being lowered.

    places: state space and address of each symbol; for a global variable its offset in the bank of addresses.
    """

    def __init__(self, function: Function, places: Mapping[str, tuple[str, int]]) -> None:
        self.function = function
        self.places = places
        self.emitted: list[Emitted] = []
        self.slots: dict[str, int] = {}
        self.next_slot = FIRST_SLOT
        self.predicates = self.barriers = 0
        self.source: PtxInstruction
        self.read = {name for instruction in function.instructions for name in uses(instruction)}
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

    # --- registers ----------------------------------------------------------------------

    def kind(self, operand: ptx.Operand) -> str:
        """The declared type of a register; "" of anything else."""
        return self.function.registers.get(operand.name, "") if isinstance(operand, ptx.PtxRegister) else ""

    def words(self, name: str) -> int:
        """32-bit registers that a PTX register occupies."""
        kind = self.function.registers.get(name, "b32")
        return 1 if kind == "pred" else max(1, bits_of(kind) // 32)

    def _new(self, words: int = 1) -> int:
        """The first of so many fresh slots."""
        self.next_slot += words
        return self.next_slot - words

    def _named(self, name: str, words: int = 1) -> int:
        """The first slot of what has this name."""
        if name not in self.slots:
            self.slots[name] = self._new(words)
        return self.slots[name]

    def _predicate(self, slot: int) -> Predicate:
        self.predicates |= 1 << slot
        return Predicate(slot)

    def slot(self, name: str) -> int:
        """The first slot of a PTX register."""
        if name not in self.slots:
            found = self._named(name, self.words(name))
            if self.function.registers.get(name) == "pred":
                self._predicate(found)
        return self.slots[name]

    def carry(self, name: str) -> Predicate:
        """The carry bit of sums, or that of differences: they are separate because they mean different
        things.
        """
        return self._predicate(self._named(name))

    def is_read(self, operand: ptx.Operand) -> bool:
        """Does any instruction read this register?"""
        return isinstance(operand, ptx.PtxRegister) and operand.name in self.read

    def temporary(self, words: int = 1) -> Register:
        """Registers that belong to no PTX register."""
        return Register(self._new(words))

    def temporary_predicate(self) -> Predicate:
        """A predicate that belongs to no PTX register."""
        return self._predicate(self._new())

    def cell(self, offset: int) -> Register:
        """The register that stands for a word of the `.param` variables of calls."""
        return Register(self._named(f".param {offset}"))

    def barrier(self) -> Barrier:
        """A new convergence barrier."""
        slot = self._new()
        self.barriers |= 1 << slot
        return Barrier(slot)

    def in_a_row(self, items: Sequence[ptx.Operand], words: int) -> Register | None:
        """The first register of a vector if its elements, of `words` words each, are consecutive."""
        names = [item.name for item in items if isinstance(item, ptx.PtxRegister) and item.name != "_"]
        if len(names) != len(items) or len(set(names)) != len(names):
            return None
        if any(self.words(name) != words for name in names):
            return None
        if not any(name in self.slots for name in names):
            for name in names:
                self.slot(name)
        first = self.slot(names[0])
        fits = all(self.slot(name) == first + i * words for i, name in enumerate(names))
        return Register(first) if fits else None

    # --- operands -----------------------------------------------------------------------

    def target(self, operand: ptx.Operand) -> Register:
        """A destination register; the first of a pair."""
        if not isinstance(operand, ptx.PtxRegister):
            raise NotLowered(self.source.name)
        return RZ if operand.name == "_" else Register(self.slot(operand.name))

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
        inner = operand.register if isinstance(operand, ptx.Negated) else operand
        if not isinstance(inner, ptx.PtxRegister) or self.kind(inner) != "pred":
            raise NotLowered(self.source.name)
        return Predicate(self.slot(inner.name), isinstance(operand, ptx.Negated))

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
        raise NotLowered(self.source.name)

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

    def pair(self, operand: ptx.Operand, kind: str = "b64") -> Operand:
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
            self.emit("MOV", to, Immediate(_signed(value, 32)))
            self.emit("MOV", high(to), Immediate(_signed(value >> 32, 32)))
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
        if name not in self.places:
            raise NotLowered(f"the address of {name}")
        return self.places[name]

    def low_address(self, symbol: ptx.PtxSymbol) -> Operand:
        """A symbol's address; for global memory its low word."""
        space, address = self.place(symbol.name)
        if space == "call":
            raise NotLowered(f"the address of {symbol.name}")
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


def _signed(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


def _immediate(value: int | float, kind: str, bits: int) -> Immediate:
    if isinstance(value, float):
        if kind == "f64":
            raise NotLowered("a float64 in one word")
        return Immediate(value)
    if kind[0] == "u" and bits < 32:
        return Immediate(value & ((1 << bits) - 1))
    return Immediate(_signed(value, bits))
