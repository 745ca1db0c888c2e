"""A function made ready to run: registers and constants as numbered slots, instructions as steps.

In: a kernel (calls inlined), the memory of a launch, and which instructions to execute.
Out: `Plan`: basic blocks of Python closures `step(machine)`, and the table of access sites.
Left out: the order in which threads run them (machine.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from memsim.ptx.flow import CARRY, Flow, defs, uses
from memsim.ptx.program import (
    CallTarget,
    Function,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Parameter,
    Register,
    Special,
    Symbol,
    Vector,
)
from memsim.ptx.slice import MEMORY, Roots
from memsim.ptx.uniform import Uniformity
from memsim.simt.registry import Compute, Unsupported, build
from memsim.state.memory import Memory
from memsim.state.registers import Part, Poison, Poisoned, both, from_bools, invert, predicate, wrap_int

if TYPE_CHECKING:
    from memsim.simt.machine import Machine

Step = Callable[["Machine"], None]
StepBuilder = Callable[["Plan", Instruction, bool], Step]

#: Opcodes that need more than register values: memory, other lanes, addresses.
STEPS: dict[str, StepBuilder] = {}


def step(*opcodes: str) -> Callable[[StepBuilder], StepBuilder]:
    """Register a builder `(plan, instruction, data) -> step`.

    `data` is False where only the addresses of a memory instruction are wanted.
    """

    def register(builder: StepBuilder) -> StepBuilder:
        for opcode in opcodes:
            STEPS[opcode] = builder
        return builder

    return register


#: Instructions that decide where threads go next; machine.py executes them.
CONTROL = frozenset(("bra", "brx", "ret", "exit", "trap", "bar", "barrier"))

#: Functions of the CUDA runtime on the device: they touch no memory that a kernel's arrays are in.
SYSTEM_CALLS = frozenset(("vprintf", "malloc", "free"))

#: Instructions without an effect on values or addresses.
SILENT = frozenset(
    {"membar", "fence", "nanosleep", "pmevent", "brkpt", "discard", "prefetch", "prefetchu"}
    | {"applypriority", "griddepcontrol", "setmaxnreg", "createpolicy"}
)


@dataclass(frozen=True)
class Site:
    """A place in the program that accesses shared or global memory."""

    index: int
    instruction: Instruction
    op: str
    space: str
    width: int


@dataclass
class Plan:
    """What a launch executes. `slots` is the register file of a fresh chunk.

    `names`: what the source calls the parameters.
    """

    function: Function
    memory: Memory
    parameters: dict[str, bytes]
    names: Mapping[str, str] = field(default_factory=dict)
    slots: list[Any] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)
    specials: dict[int, str] = field(default_factory=dict)
    steps: dict[int, Step] = field(default_factory=dict)
    lost: dict[str, Poison] = field(default_factory=dict)
    _registers: dict[str, int] = field(default_factory=dict)
    _constants: dict[Any, int] = field(default_factory=dict)
    _sites: dict[tuple[int, str, str], Site] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in (*self.function.registers, CARRY):  # the order of flow.register_bits
            self._registers[name] = len(self.slots)
            self.slots.append(None)
        self.sink = self.constant_slot("sink", None)
        for instruction in self.function.instructions:
            if instruction.opcode == "call":
                self.lose_results(instruction)

    def lose_results(self, instruction: Instruction) -> None:
        """What a call gives back that was not spliced in is not known."""
        target = instruction.operands[0]
        assert isinstance(target, CallTarget)
        poison = Poison("the function called here is not executed by the emulator", instruction)
        self.lost.update({item.name: poison for item in target.returns if isinstance(item, Symbol)})

    @cached_property
    def flow(self) -> Flow:
        """How control runs through the function."""
        return Flow(self.function)

    @cached_property
    def roots(self) -> Roots:
        """Which parameters and variables addresses start from."""
        return Roots(self.function, {})

    @cached_property
    def uniformity(self) -> Uniformity:
        """Which registers ptxas knows to be the same in all lanes of a warp; worked out if asked for."""
        return Uniformity(self.function, self.flow)

    # --- operands -----------------------------------------------------------------------

    def constant_slot(self, key: Any, value: Any) -> int:
        """A slot that holds a constant; equal keys share one."""
        if key not in self._constants:
            self._constants[key] = len(self.slots)
            self.slots.append(value)
        return self._constants[key]

    def source(self, operand: Operand, kind: str) -> int:
        """The slot that an operand is read from; `kind` is the type it is read as."""
        if isinstance(operand, Register):
            return self._registers[operand.name]
        if isinstance(operand, Immediate):
            return self.constant_slot((kind, operand), constant(operand.value, kind))
        if isinstance(operand, Special):
            slot = self.constant_slot(operand, None)
            self.specials[slot] = operand.name
            return slot
        if isinstance(operand, Symbol) and operand.name in self.memory.symbols:
            _, address = self.memory.symbols[operand.name]
            return self.constant_slot(operand, address + operand.offset)
        raise Unsupported(f"operand {operand}")

    def destination(self, operand: Operand) -> int:
        """The slot that a register operand is written to."""
        if isinstance(operand, Register) and operand.name == "_":
            return self.sink
        if isinstance(operand, Register):
            return self._registers[operand.name]
        raise Unsupported(f"destination {operand}")

    def destinations(self, operand: Operand) -> list[int]:
        """The slots of a register, a vector or a pair."""
        if isinstance(operand, Vector):
            return [self.destination(item) for item in operand.items]
        if isinstance(operand, Pair):
            return [self.destination(operand.first), self.destination(operand.second)]
        return [self.destination(operand)]

    def width(self, operand: Operand) -> int:
        """Bits of a register; 0 for a predicate, the sink, or what is no register."""
        kind = self.function.registers.get(operand.name, "") if isinstance(operand, Register) else ""
        return 32 if kind.endswith("x2") else int(kind[1:]) if kind[1:].isdigit() else 0

    def guard(self, instruction: Instruction) -> Callable[[Machine], bool | Part] | None:
        """Reads the guard predicate; None without one."""
        if instruction.guard is None:
            return None
        slot, negated = self._registers[instruction.guard.name], instruction.negated

        def read(machine: Machine) -> bool | Part:
            value = predicate(machine.slots[slot])
            return invert(value) if negated else value

        return read

    def parameter_bytes(self, name: str) -> tuple[Parameter, bytes] | None:
        """A kernel parameter and its value, None if the name is not one."""
        for parameter in self.function.parameters:
            if parameter.name == name:
                return parameter, self.parameters[name]
        return None

    def site(self, instruction: Instruction, op: str, space: str, width: int) -> Site:
        """The access site of an instruction in a state space, made on first sight."""
        key = (id(instruction), op, space)
        if key not in self._sites:
            self._sites[key] = Site(len(self.sites), instruction, op, space, width)
            self.sites.append(self._sites[key])
        return self._sites[key]

    # --- steps --------------------------------------------------------------------------

    def prepare(self, index: int, data: bool) -> None:
        """Make the step of an instruction; a poisoning one where it is not known."""
        instruction = self.function.instructions[index]
        if instruction.opcode in SILENT or instruction.opcode in CONTROL:
            return
        seen = instruction.opcode in MEMORY and not is_private(instruction)
        if not data and not seen and instruction.opcode != "call":
            return
        try:
            if instruction.opcode in STEPS:
                made = STEPS[instruction.opcode](self, instruction, data)
            else:
                made = self.alu_step(instruction, build(instruction))
        except (Unsupported, KeyError, IndexError, ValueError) as problem:
            made = self.poison_step(instruction, problem)
        self.steps[index] = made

    def alu_step(self, instruction: Instruction, compute: Compute) -> Step:
        """A step that computes from registers (and the carry bit) and writes the results."""
        kinds = source_kinds(instruction)
        target, *sources = instruction.operands
        slots = [self.operand_reader(operand, kind) for operand, kind in zip(sources, kinds)]
        slots += [self._registers[CARRY]] if CARRY in uses(instruction) else []
        written = self.destinations(target)
        written += [self._registers[CARRY]] if CARRY in defs(instruction) else []
        guard = self.guard(instruction)
        if guard is None and len(written) == 1 and all(isinstance(slot, int) for slot in slots):
            return simple_step(instruction, compute, written[0], slots)

        def run(machine: Machine) -> None:
            active: bool | Part = True
            try:
                if guard is not None:
                    active = guard(machine)
                    if active is False:
                        return
                values = [machine.slots[s] if isinstance(s, int) else s(machine) for s in slots]
                result = compute(*values)
            except Poisoned as unknown:
                result = unknown.poison.through(instruction)
            if len(written) == 1:
                machine.write(written[0], result, active)
                return
            pair = (result, result) if isinstance(result, Poison) else result
            for slot, value in zip(written, pair):
                machine.write(slot, value, active)

        return run

    def operand_reader(self, operand: Operand, kind: str) -> int | Callable[[Machine], Any]:
        """A slot, or for `!%p` a function that reads it."""
        if not isinstance(operand, Negated):
            return self.source(operand, kind)
        if not isinstance(operand.register, Register):
            raise Unsupported(f"operand {operand}")
        slot = self._registers[operand.register.name]
        return lambda machine: invert(predicate(machine.slots[slot]))

    def poison_step(self, instruction: Instruction, problem: Exception) -> Step:
        """An instruction that is not executed: everything it writes is unknown from here on."""
        poison = unexecuted(instruction)
        written = [self._registers[name] for name in defs(instruction) if name in self._registers]
        touches = touched_spaces(instruction)

        def run(machine: Machine) -> None:
            for slot in written:
                machine.write(slot, poison, True)
            for op, space in touches:
                machine.unknown_access(self.site(instruction, op, space, 0), poison, machine.mask)
                if op == "store":
                    machine.memory.space(space).poison = poison

        return run


def unexecuted(instruction: Instruction) -> Poison:
    """What an instruction gives that the emulator does not execute."""
    return Poison(f"{instruction.name} is not executed by the emulator", instruction)


def is_private(instruction: Instruction) -> bool:
    """Does it access only what no listener hears of: parameters and constants?"""
    spaces = {modifier.split("::")[0] for modifier in instruction.modifiers}
    return bool(spaces & {"param", "const"})


def touched_spaces(instruction: Instruction) -> list[tuple[str, str]]:
    """(op, space) of what an unknown instruction reads or writes in shared and global memory.

    A call that was not spliced in (through a pointer, or of itself) may do anything.
    """
    if instruction.opcode == "call":
        target = instruction.operands[0]
        assert isinstance(target, CallTarget)
        if isinstance(target.target, Symbol) and target.target.name in SYSTEM_CALLS:
            return []
        return [(op, space) for op in ("load", "store") for space in ("shared", "global")]
    if instruction.opcode in ("mbarrier", "tensormap"):
        return []
    spaces = [m.split("::")[0] for m in instruction.modifiers]
    stores = instruction.opcode in ("st", "stmatrix", "red", "sust") or "store" in instruction.modifiers
    return [("store" if stores else "load", space) for space in ("shared", "global") if space in spaces]


def constant(value: int | float, kind: str) -> Any:
    """An immediate as a register of type `kind` holds it."""
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}.get(kind)
    if kind == "pred":
        return bool(value)
    if dtype is not None and isinstance(value, float):
        return np.array([[value]], dtype)
    bits = int(kind[1:]) if kind[1:].isdigit() else 64
    if isinstance(value, float):
        packed = np.array([value], {16: np.float16, 32: np.float32}.get(bits, np.float64))
        return int(packed.view({16: np.int16, 32: np.int32}.get(bits, np.int64))[0])
    if dtype is not None:
        return np.array([[value]], np.int64).astype(f"i{np.dtype(dtype).itemsize}").view(dtype)
    return wrap_int(value, bits)


def source_kinds(instruction: Instruction) -> list[str]:
    """The type that each source operand of an arithmetic instruction is read as."""
    count = len(instruction.operands) - 1
    kind = instruction.modifiers[-1] if instruction.modifiers else "b64"
    opcode = instruction.opcode
    kinds = [kind] * count
    if opcode in ("shl", "shr") and count == 2:
        kinds[1] = "b32"
    elif opcode == "bfe":
        kinds[1:] = ["b32"] * (count - 1)
    elif opcode == "bfi":
        kinds[2:] = ["b32"] * (count - 2)
    elif opcode in ("mad", "mul") and "wide" in instruction.modifiers and count == 3:
        kinds[2] = f"{kind[0]}{int(kind[1:]) * 2}"
    elif opcode in ("setp", "set") and count == 3:
        kinds[2] = "pred"
    elif opcode == "selp":
        kinds[-1] = "pred"
    elif opcode == "slct" and len(instruction.modifiers) > 1:
        kinds[:2] = [instruction.modifiers[-2]] * 2
    elif opcode in ("lop3", "prmt", "shf"):
        kinds = ["b32"] * count
    return kinds


def simple_step(
    instruction: Instruction, compute: Callable[..., Any], target: int, slots: Sequence[Any]
) -> Step:
    """The common case, one destination and no guard, without any looping over operands."""
    bit = 1 << target
    count = len(slots)
    a, b, c = (*slots, 0, 0, 0)[:3]
    if count > 3:
        read: Callable[[list[Any]], Any] = lambda r: compute(*(r[slot] for slot in slots))  # noqa: E731
    elif count == 3:
        read = lambda r: compute(r[a], r[b], r[c])  # noqa: E731
    elif count == 2:
        read = lambda r: compute(r[a], r[b])  # noqa: E731
    else:
        read = lambda r: compute(r[a])  # noqa: E731

    def run(machine: Machine) -> None:
        registers = machine.slots
        try:
            value = read(registers)
        except Poisoned as unknown:
            value = unknown.poison.through(instruction)
        if machine.protected & bit:
            machine.write(target, value, True)
        else:
            registers[target] = value

    return run


def where_in_source(instruction: Instruction) -> dict[str, Any]:
    """The place of an instruction, for errors."""
    if instruction.source is not None:
        return {"file": instruction.source.file, "line": instruction.source.line}
    return {"file": "PTX", "line": instruction.line}


def lanes_below(count: int, machine: Machine) -> bool | Part:
    """The first `count` lanes of every warp."""
    if count >= 32:
        return True
    return from_bools((np.arange(machine.threads) % 32 < count)[None, :])


def active_lanes(machine: Machine, guard: Callable[[Machine], bool | Part] | None) -> bool | Part:
    """The lanes that execute an instruction: the current mask and the guard.

    Raises:
        Poisoned: the guard is not known.
    """
    return machine.mask if guard is None else both(machine.mask, guard(machine))
