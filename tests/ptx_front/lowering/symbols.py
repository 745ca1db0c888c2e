"""Where a kernel's symbols lie: shared arrays, constants, local arrays and parameters; global variables by
name.

In shared memory, static arrays come first, in the order of the PTX, and dynamic shared memory last, as ptxas
places them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from memsim.isa.program import Pointer
from memsim.state.address_spaces import SHARED_BASE, align
from tests.ptx_front.lowering.assembler import ADDRESSES, CONSTANTS, PARAMETER_BASE
from tests.ptx_front.program import CallTarget, Function, PtxAddress, PtxModule, PtxSymbol, PtxVariable


@dataclass
class Places:
    """State space and address of each symbol, and what a launch needs to know of them.

    A `.param` variable of a call is not in memory: its space is "call". For global variables `at` is the
    offset in the bank of addresses.
    """

    at: dict[str, tuple[str, int]] = field(default_factory=dict)
    shared: list[tuple[str, int, int]] = field(default_factory=list)
    shared_end: int = SHARED_BASE
    dynamic: list[PtxVariable] = field(default_factory=list)
    local_bytes: int = 0
    call_bytes: int = 0
    variables: list[PtxVariable] = field(default_factory=list)
    constants: bytearray = field(default_factory=bytearray)
    pointers: list[Pointer] = field(default_factory=list)

    def add(self, variable: PtxVariable) -> None:
        """Assign an address to a variable."""
        name, size, alignment = variable.name, variable.size, max(variable.align, 1)
        if variable.space == "shared" and size == 0:
            self.dynamic.append(variable)
        elif variable.space == "shared":
            start = SHARED_BASE + align(self.shared_end - SHARED_BASE, alignment)
            self.shared_end = start + size
            self.shared.append((name, start, size))
            self.at[name] = "shared", start
        elif variable.space == "local":
            start = align(self.local_bytes, alignment)
            self.local_bytes = start + size
            self.at[name] = "local", start
        elif variable.space == "param":
            start = align(self.call_bytes, 16)
            self.call_bytes = start + size
            self.at[name] = "call", start
        elif variable.space == "const":
            start = align(len(self.constants), alignment)
            content = (variable.init or b"").ljust(size, b"\0")
            self.constants += bytes(start - len(self.constants)) + content
            self.pointers += [one._replace(offset=start + one.offset) for one in variable.pointers]
            self.at[name] = "const", start
        elif variable.space == "global":
            self.at[name] = "global", 8 * len(self.variables)
            self.variables.append(variable)

    @property
    def all_pointers(self) -> dict[int, tuple[Pointer, ...]]:
        """Addresses stored in constant banks, by bank."""
        addresses = tuple(Pointer(8 * i, variable.name, 0) for i, variable in enumerate(self.variables))
        return {CONSTANTS: tuple(self.pointers), ADDRESSES: addresses}


def places_of(module: PtxModule, function: Function) -> Places:
    """All symbols that a function may use; shared arrays of the module only if it uses them.

    If a call was not inlined, all of them, because what it uses is unknown.
    """
    operands = [operand for instruction in function.instructions for operand in instruction.operands]
    bases = [operand.base if isinstance(operand, PtxAddress) else operand for operand in operands]
    named = {base.name for base in bases if isinstance(base, PtxSymbol)}
    calls = any(isinstance(operand, CallTarget) for operand in operands)
    ours = [v for v in module.variables.values() if v.space != "shared" or calls or v.name in named]
    places = Places()
    for variable in (*ours, *function.variables.values()):
        places.add(variable)
    if places.dynamic:
        alignment = max(16, *(variable.align for variable in places.dynamic))
        places.shared_end = SHARED_BASE + align(places.shared_end - SHARED_BASE, alignment)
        places.at |= {variable.name: ("shared", places.shared_end) for variable in places.dynamic}
    for parameter in function.parameters:
        places.at[parameter.name] = "param", PARAMETER_BASE + parameter.offset
    return places
