"""A kernel as a front end hands it on: its program, and what a launch must know about it.

In: nothing; `memsim.sass` and `memsim.ptx` fill it. Sizes and offsets are in bytes. Left out on purpose:
addresses of arrays and variables, which whoever lays out memory chooses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memsim.isa.op import Program

Dims = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel or function parameter. `offset` and `size` in bytes within the parameter space.

    `pointer` is the state space named by `.ptr` (`"global"`), "" for a bare `.ptr`, else None.
    """

    name: str
    type: str
    align: int
    size: int
    offset: int
    pointer: str | None = None


@dataclass(frozen=True, slots=True)
class Pointer:
    """8 bytes that hold the address of a symbol, and a number added to it."""

    offset: int
    symbol: str
    addend: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable in global memory; `init` is None if it starts as zeros."""

    name: str
    size: int
    align: int
    init: bytes | None = field(repr=False)
    pointers: tuple[Pointer, ...] = ()


@dataclass(frozen=True, eq=False)
class Executable:
    """One kernel.

    Attributes:
        parameters: in order; they begin at `parameter_base` of constant bank 0 and take `parameter_size`.
        shared: (name, address, size) of static shared arrays; "" as a name where it is not known.
        static_shared: bytes of them all. shared_base: the first byte's address, behind what the system keeps.
        dynamic_name: what the source calls dynamic shared memory; dynamic: it is sure that it uses some.
        local_bytes: stack of a thread; more where a function that is called needs it.
        constants: by bank; pointers: by bank, addresses in it.
        variables: the module's.
        functions: other functions within the code by name, as their offset in it.
        made_for: the chip that it is for; "" where it is for any.
        max_threads, required_threads, cluster: of `__launch_bounds__`, `.reqntid`, `__cluster_dims__`.
    """

    name: str
    program: Program = field(repr=False)
    parameters: tuple[Parameter, ...]
    parameter_base: int
    parameter_size: int
    shared: tuple[tuple[str, int, int], ...]
    static_shared: int
    dynamic_name: str
    local_bytes: int
    constants: Mapping[int, bytes] = field(repr=False)
    pointers: Mapping[int, tuple[Pointer, ...]] = field(repr=False)
    variables: tuple[Variable, ...] = field(repr=False)
    functions: Mapping[str, int]
    max_threads: Dims | None
    required_threads: Dims | None
    cluster: Dims | None
    dynamic: bool = False
    shared_base: int = 0x400
    made_for: str = ""
