"""The part of a kernel that its addresses and branches depend on.

In: a `Function`. Out: the instructions that must be executed to know every address, guard and
branch. The arithmetic of a matrix product is not among them, nor are the loads that feed only
it: of those the addresses are enough.

Data can travel through memory. A load whose value is needed makes every store and atomic that
may write the same place needed too. Two accesses may touch the same place unless their
addresses come from different pointer parameters or variables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from memsim.ptx.flow import defs, uses
from memsim.ptx.program import Address, Function, Instruction, Register, Symbol

MEMORY = frozenset(
    {"ld", "ldu", "st", "atom", "red", "cp", "ldmatrix", "stmatrix", "wmma", "tex", "tld4", "suld", "sust"}
    | {"mbarrier"}
)
_READS = frozenset({"ld", "ldu", "atom", "ldmatrix", "cp"})
_WRITES = frozenset({"st", "atom", "red", "cp", "stmatrix"})
_CONTROL = frozenset({"bra", "brx", "ret", "exit", "trap", "bar", "barrier"})
_SPACES = ("global", "shared", "local", "const", "param")

#: An address that may come from anywhere.
ANYWHERE = "*"


@dataclass(frozen=True, slots=True)
class Place:
    """What a memory operand may touch: a state space ("generic" for any) and the names it starts from."""

    space: str
    roots: frozenset[str]

    def may_touch(self, other: Place) -> bool:
        """Could the two be the same bytes?"""
        spaces = {self.space, other.space}
        if len(spaces) == 2 and "generic" not in spaces:
            return False
        if not self.roots or not other.roots or ANYWHERE in self.roots | other.roots:
            return True
        return bool(self.roots & other.roots)


def address_slice(function: Function, same: Mapping[str, str] | None = None) -> frozenset[int]:
    """Indices of the instructions whose results (or stored data) addresses and branches need.

    `same` maps a pointer parameter to a name it shares with others that may overlap it
    (two arguments that are the same array); parameters that are not in it stand alone.
    """
    code = function.instructions
    roots = Roots(function, same or {})
    stores = [
        (index, place)
        for index, instruction in enumerate(code)
        if instruction.opcode in _WRITES
        for place in roots.written(instruction)
    ]

    wanted: list[str] = []
    for instruction in code:
        if instruction.opcode in _CONTROL:
            wanted.extend(uses(instruction))
        elif instruction.opcode in MEMORY:
            wanted.extend(_address_registers(instruction))
    needed: set[int] = set()
    seen: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        for index in roots.writers[name]:
            _need(index, code, needed, wanted, roots, stores)
    return frozenset(needed)


def _need(
    index: int,
    code: tuple[Instruction, ...],
    needed: set[int],
    wanted: list[str],
    roots: Roots,
    stores: list[tuple[int, Place]],
) -> None:
    """Mark an instruction, what it reads, and the stores that a load may see."""
    pending = [index]
    while pending:
        current = pending.pop()
        if current in needed:
            continue
        needed.add(current)
        instruction = code[current]
        wanted.extend(uses(instruction))
        if instruction.opcode in _READS:
            for place in roots.read(instruction):
                pending.extend(store for store, target in stores if place.may_touch(target))


def _address_registers(instruction: Instruction) -> list[str]:
    """Registers that an access needs for its addresses and its lanes: bases and guard.

    `cp.async` reads its size, or the predicate that drops the copy, too; of an access of
    unknown form all registers count.
    """
    if instruction.opcode in ("cp", "wmma", "tex", "tld4", "suld", "sust"):
        return list(uses(instruction))
    names = [
        operand.base.name
        for operand in instruction.operands
        if isinstance(operand, Address) and isinstance(operand.base, Register)
    ]
    return [*names, instruction.guard.name] if instruction.guard else names


def _of_no_address(instruction: Instruction) -> list[Place]:
    """What an access of unknown form may touch; the commit and wait of `cp.async` groups touch nothing."""
    return [] if instruction.opcode == "cp" else [Place("generic", frozenset({ANYWHERE}))]


def _space(instruction: Instruction) -> str:
    for modifier in instruction.modifiers:
        if modifier.split("::")[0] in _SPACES:
            return modifier.split("::")[0]
    return "generic"


class Roots:
    """Which parameters and variables a pointer may start from, by following its definitions."""

    def __init__(self, function: Function, same: Mapping[str, str]) -> None:
        self.code = function.instructions
        self.parameters = {parameter.name for parameter in function.parameters}
        self.writers: dict[str, list[int]] = defaultdict(list)
        for index, instruction in enumerate(self.code):
            for name in defs(instruction):
                self.writers[name].append(index)
        self.same = same
        self.known: dict[str, frozenset[str]] = {}

    def written(self, instruction: Instruction) -> list[Place]:
        """What a store, an atomic or a copy writes."""
        operands = [operand for operand in instruction.operands if isinstance(operand, Address)]
        if not operands:
            return _of_no_address(instruction)
        if instruction.opcode == "cp":
            return [Place("shared", self.of_operand(operands[0]))]
        return [Place(_space(instruction), self.of_operand(operands[0]))]

    def read(self, instruction: Instruction) -> list[Place]:
        """What a load, an atomic or a copy reads."""
        operands = [operand for operand in instruction.operands if isinstance(operand, Address)]
        if not operands:
            return _of_no_address(instruction)
        if instruction.opcode == "cp":
            return [Place("global", self.of_operand(operand)) for operand in operands[1:]]
        return [Place(_space(instruction), self.of_operand(operands[0]))]

    def of_instruction(self, instruction: Instruction) -> frozenset[str]:
        """Names that any of an instruction's addresses may start from."""
        operands = [operand for operand in instruction.operands if isinstance(operand, Address)]
        return frozenset().union(*map(self.of_operand, operands))

    def of_operand(self, operand: Address) -> frozenset[str]:
        """Names that `[base + offset]` may start from."""
        if isinstance(operand.base, Symbol):
            return frozenset({operand.base.name})
        if isinstance(operand.base, Register):
            return self.of_register(operand.base.name)
        return frozenset({ANYWHERE})

    def of_register(self, name: str) -> frozenset[str]:
        """Names that a register's value may start from; flow-insensitive, loops included."""
        if name in self.known:
            return self.known[name]
        found: set[str] = set()
        pending, seen = [name], {name}
        while pending:
            for index in self.writers[pending.pop()]:
                instruction = self.code[index]
                found |= self._starts(instruction)
                if instruction.opcode in MEMORY:
                    continue
                fresh = [register for register in uses(instruction) if register not in seen]
                seen.update(fresh)
                pending.extend(fresh)
        self.known[name] = frozenset(found)
        return self.known[name]

    def _starts(self, instruction: Instruction) -> set[str]:
        """Names that an instruction brings in by itself."""
        found = {operand.name for operand in instruction.operands if isinstance(operand, Symbol)}
        if instruction.opcode == "ld":
            operand = instruction.operands[1]
            wide = instruction.modifiers[-1][1:] == "64"
            if isinstance(operand, Address) and isinstance(operand.base, Symbol) and wide:
                name = operand.base.name
                found.add(self.same.get(name, name) if name in self.parameters else ANYWHERE)
            elif wide:
                found.add(ANYWHERE)  # a pointer that was itself in memory
        elif instruction.opcode in ("atom", "call", "shfl"):
            found.add(ANYWHERE)
        return found
