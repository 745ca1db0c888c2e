"""A kernel as front ends produce it: its program, and what a launch needs to know about it.

Sizes and offsets are in bytes. Addresses of arrays and variables are assigned when memory is laid out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from memsim.argument_types.argument import Parameter as Parameter

if TYPE_CHECKING:
    from memsim.isa.program import Program

Dims = tuple[int, int, int]


class Pointer(NamedTuple):
    """8 bytes that hold the address of a symbol plus an addend."""

    offset: int
    symbol: str
    addend: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable in global memory; `init` is None if it is zero-initialized."""

    name: str
    size: int
    align: int
    init: bytes | None = field(repr=False)
    pointers: tuple[Pointer, ...] = ()


@dataclass(frozen=True, eq=False)
class CompiledKernel:
    """What compiled code says about a kernel.

    Attributes:
        parameters: in order; they start at `parameter_base` of constant bank 0 and take `parameter_size`.
        local_bytes: stack of a thread, as far as it is known; called functions may need more.
        constants: by bank; pointers: by bank, addresses to be filled in.
        functions: other functions in the code: offset by name.
        max_threads, required_threads, cluster: from `__launch_bounds__`, `.reqntid`, `__cluster_dims__`.
    """

    name: str
    parameters: tuple[Parameter, ...]
    parameter_base: int
    parameter_size: int
    local_bytes: int
    constants: Mapping[int, bytes] = field(repr=False)
    pointers: Mapping[int, tuple[Pointer, ...]] = field(repr=False)
    functions: Mapping[str, int]
    max_threads: Dims | None
    required_threads: Dims | None
    cluster: Dims | None


@dataclass(frozen=True, eq=False)
class Executable(CompiledKernel):
    """One kernel with its program.

    Attributes:
        shared: (name, address, size) of static shared arrays; the name is "" if unknown.
        static_shared: bytes of all of them. shared_base: address of the first byte, after the reserved part.
        dynamic_name: name of the dynamic shared array; dynamic: whether it certainly uses one.
        variables: the module's.
        made_for: the chip that it was compiled for; "" if for any.
    """

    program: Program = field(repr=False)
    shared: tuple[tuple[str, int, int], ...]
    static_shared: int
    dynamic_name: str
    variables: tuple[Variable, ...] = field(repr=False)
    dynamic: bool = False
    shared_base: int = 0x400
    made_for: str = ""
