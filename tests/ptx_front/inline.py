"""Inlining of device functions into the kernel that calls them.

Recursive calls, indirect calls and calls of functions without a body are not inlined; they stay `call`
instructions.

Names of the callee get the call's number after an `@`, so that every call has its own registers, labels and
local variables. Its parameters become the `.param` variables that the caller stores to and loads from (PTX
ISA, "Abstracting the ABI").
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from tests.ptx_front.operand_parser import SINK
from tests.ptx_front.program import (
    CallTarget,
    Function,
    Operand,
    Parameter,
    PtxAddress,
    PtxInstruction,
    PtxModule,
    PtxRegister,
    PtxSymbol,
    PtxVariable,
)

# Spaces whose variables are per thread or call; those of other spaces are shared by all calls.
_PRIVATE_SPACES = {"local", "param"}


def inline_calls(module: PtxModule, entry_name: str) -> Function:
    """The kernel with all called functions inlined; unchanged if it calls none that has a body."""
    return _Inliner(module).expand(entry_name, ())


class _Inliner:
    def __init__(self, module: PtxModule) -> None:
        self.module = module
        self.calls = 0

    def expand(self, name: str, callers: tuple[str, ...]) -> Function:
        """The function with its calls inlined. `callers`: functions that are being expanded already."""
        function = self.module.functions[name]
        callers = (*callers, name)
        targets = {
            index: target
            for index, instruction in enumerate(function.instructions)
            if (target := self._callee(instruction, callers)) is not None
        }
        if not targets:
            return function
        result = _Result(function)
        for index, instruction in enumerate(function.instructions):
            result.moved.append(len(result.instructions))
            if index in targets:
                self.calls += 1
                number = self.calls
                result.splice(instruction, self.expand(targets[index], callers), number)
            else:
                result.instructions.append(instruction)
        return result.function()

    def _callee(self, instruction: PtxInstruction, callers: tuple[str, ...]) -> str | None:
        """The function to inline in place of this instruction, if any."""
        if instruction.opcode != "call":
            return None
        call = instruction.operands[0]
        assert isinstance(call, CallTarget)
        if not isinstance(call.target, PtxSymbol) or call.target.name in callers:
            return None
        callee = self.module.functions.get(call.target.name)
        if callee is None or callee.is_entry:
            return None
        fits = len(callee.returns) == len(call.returns) and len(callee.parameters) == len(call.arguments)
        return callee.name if fits else None


@dataclass
class _Result:
    """The caller while callees are inlined. `moved[i]`: the new index of its instruction i."""

    caller: Function
    instructions: list[PtxInstruction] = field(default_factory=list)
    moved: list[int] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)
    variables: dict[str, PtxVariable] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def splice(self, instruction: PtxInstruction, callee: Function, number: int) -> None:
        """Replace a call by the body of `callee`."""
        call = instruction.operands[0]
        assert isinstance(call, CallTarget)
        back, end = f"{callee.name}@{number}", f"{callee.name}@{number}.end"
        if instruction.guard:  # lanes that do not call branch around the body
            self._add(
                instruction, "bra", PtxSymbol(end), guard=instruction.guard, negated=not instruction.negated
            )
        names = self._declare(callee, number)
        arguments = self._bind(callee.parameters, call.arguments, names, number)
        returns = self._bind(callee.returns, call.returns, names, number)
        for inner, outer, kind in arguments:
            self._copy(instruction, inner, outer, kind)
        self._body(callee, names, back)
        self.labels[back] = len(self.instructions)
        for inner, outer, kind in returns:
            self._copy(instruction, outer, inner, kind)
        if instruction.guard:
            self.labels[end] = len(self.instructions)

    def _bind(
        self, formal: tuple[Parameter, ...], actual: tuple[Operand, ...], names: dict[str, str], number: int
    ) -> list[tuple[Operand, Operand, str]]:
        """Map parameters to the caller's variables; returns (inside, outside, type) of those that have to be
        copied.
        """
        copies: list[tuple[Operand, Operand, str]] = []
        for parameter, outer in zip(formal, actual):
            if parameter.name in names:  # declared as a register
                copies.append((PtxRegister(names[parameter.name]), outer, parameter.type))
            elif isinstance(outer, PtxSymbol):
                names[parameter.name] = outer.name
            else:
                inner = names[parameter.name] = f"{parameter.name}@{number}"
                variable = PtxVariable(inner, parameter.size, parameter.align, None, space="param")
                self.variables[inner] = variable
                copies.append((PtxSymbol(inner), outer, parameter.type))
        return copies

    def _copy(self, call: PtxInstruction, target: Operand, source: Operand, kind: str) -> None:
        """Copy one value between a register and a `.param` variable, or between two registers."""
        if target == SINK:
            return
        if isinstance(target, PtxSymbol):
            self._add(call, f"st.param.{kind}", PtxAddress(target), source)
        elif isinstance(source, PtxSymbol):
            self._add(call, f"ld.param.{kind}", target, PtxAddress(source))
        else:
            self._add(call, f"mov.{kind}", target, source)

    def _add(
        self,
        call: PtxInstruction,
        name: str,
        *operands: Operand,
        guard: PtxRegister | None = None,
        negated: bool = False,
    ) -> None:
        opcode, *modifiers = name.split(".")
        self.instructions.append(
            replace(
                call,
                opcode=opcode,
                modifiers=tuple(modifiers),
                operands=operands,
                guard=guard,
                negated=negated,
            )
        )

    def _body(self, callee: Function, names: dict[str, str], back: str) -> None:
        """The callee's instructions under their new names; `ret` becomes a branch to the label `back`."""
        start = len(self.instructions)
        self.labels.update({names[label]: start + index for label, index in callee.labels.items()})
        renamed: dict[Operand, Operand] = {}
        for copied in callee.instructions:
            if copied.opcode == "ret":
                copied = replace(copied, opcode="bra", modifiers=(), operands=(PtxSymbol(back),))
            else:
                for value in copied.operands:
                    if value not in renamed:
                        renamed[value] = _renamed(value, names)
                copied = replace(copied, operands=tuple(renamed[value] for value in copied.operands))
            if copied.guard:
                copied = replace(copied, guard=PtxRegister(names[copied.guard.name]))
            self.instructions.append(copied)

    def _declare(self, callee: Function, number: int) -> dict[str, str]:
        """Add the callee's declarations; returns the new name of each."""
        private = [name for name, variable in callee.variables.items() if variable.space in _PRIVATE_SPACES]
        own = (*callee.registers, *callee.labels, *callee.tables, *private)
        names = {name: f"{name}@{number}" for name in own}
        # The others belong to the function that declares them, not to a call.
        shared = callee.variables.keys() - set(private)
        names |= {name: name if "@" in name else f"{name}@{callee.name}" for name in shared}
        for name, kind in callee.registers.items():
            self.registers[names[name]] = kind
        for name, variable in callee.variables.items():
            self.variables[names[name]] = replace(variable, name=names[name])
        for name, targets in callee.tables.items():
            self.tables[names[name]] = tuple(names[target] for target in targets)
        return names

    def function(self) -> Function:
        """The caller with everything inlined so far."""
        caller = self.caller
        moved = [*self.moved, len(self.instructions)]
        return replace(
            caller,
            registers=caller.registers | self.registers,
            variables=caller.variables | self.variables,
            instructions=tuple(self.instructions),
            labels={name: moved[index] for name, index in caller.labels.items()} | self.labels,
            tables=caller.tables | self.tables,
        )


def _renamed(value: Any, names: dict[str, str]) -> Any:
    """An operand of any form with every register and symbol in it renamed."""
    if isinstance(value, (PtxRegister, PtxSymbol)):
        new = names.get(value.name)
        return replace(value, name=new) if new else value
    if isinstance(value, tuple):
        return tuple(_renamed(item, names) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {part.name: _renamed(getattr(value, part.name), names) for part in fields(value)}
        return replace(value, **parts)
    return value
