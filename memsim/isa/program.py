"""A decoded program: instructions with the registers that they read and write, their effects, and the state
spaces that they may read and write; and a kernel: its program, and what a launch needs to know about it.

Front ends produce `Program`, `Op` and `Executable`; dataflow analysis and the emulator look at effects, not
at names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from memsim.argument_types.argument import Parameter as Parameter
from memsim.instruction import Instruction
from memsim.isa.definitions import Builder, Meaning, Touches
from memsim.isa.op import BARRIER, PREDICATE, SLOTS, Effect, Flow, Form, Predicate, Trait


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Op(Instruction):
    """One instruction of a program.

    index: its number in the program. reads, writes: slots, as bit sets. A guarded write leaves the register
    unchanged in lanes whose guard is false. addresses: slots read for an address, a predicate or the guard,
    not as data. targets: indices of the targets of a branch, call or barrier. meaning: what is known of its
    form. spills: the slots of the words of the stack that it loads or stores (`memsim.isa.stack`). unused: of
    each word that it loads, the bytes on which nothing depends, as bits of the word.
    """

    index: int
    guard: Predicate | None
    effect: Effect
    reads: int
    writes: int
    addresses: int
    flow: Flow | None
    targets: tuple[int, ...]
    meaning: Meaning
    spills: tuple[int, ...] = ()
    unused: tuple[int, ...] = ()

    @property
    def form(self) -> Form:
        """Its opcode, modifiers and operands."""
        return self.meaning.form

    @property
    def name(self) -> str:
        """The opcode with its modifiers."""
        return self.form.name

    @property
    def traits(self) -> frozenset[Trait]:
        """What else the emulator asks of it."""
        return self.meaning.traits

    @property
    def is_known(self) -> bool:
        """Is its opcode known? If not, it may do anything."""
        return self.meaning.definition.known

    @property
    def touches(self) -> tuple[tuple[str, str], ...]:
        """(access, state space) of each access that it makes."""
        return self.meaning.definition.touches

    @property
    def accesses(self) -> frozenset[str]:
        """The kinds of access that it makes."""
        return frozenset(access for access, _ in self.touches)

    @property
    def is_atomic(self) -> bool:
        """Does it read, modify and write memory at once?"""
        return not UPDATES.isdisjoint(self.accesses)

    @property
    def is_bulk(self) -> bool:
        """Does TMA perform its accesses?"""
        return any("bulk" in access for access in self.accesses)

    @property
    def is_product(self) -> bool:
        """Is it a product of matrices by a warpgroup?"""
        return "wgmma" in self.accesses

    @property
    def builder(self) -> Builder | None:
        """What makes it executable, by which alike instructions are known; None if nothing does."""
        return self.meaning.definition.build


@dataclass(frozen=True, slots=True)
class Program:
    """A kernel's instructions in order. `functions`: start of device functions in it, by name.

    branches: targets of indexed branches are looked up by address: `at` maps addresses to indices. slots:
    their number; predicates, barriers: which of them hold these, as bit sets.
    """

    name: str
    ops: tuple[Op, ...]
    at: Mapping[int, int]
    functions: Mapping[str, int]
    slots: int = SLOTS
    predicates: int = 0xFFFF << PREDICATE
    barriers: int = 0xFFFF << BARRIER


# --- state spaces ----------------------------------------------------------------------------

SHARED, GLOBAL, LOCAL = "shared", "global", "local"
ALL_SPACES = frozenset((SHARED, GLOBAL, LOCAL))
#: Accesses by atomics.
UPDATES = frozenset(("atomic", "reduction", "async_reduction"))
#: Accesses that only read, and that only write.
ONLY_READ = frozenset(("load", "ldmatrix", "wgmma", "bulk_load", "bulk_multicast", "surface_load"))
ONLY_WRITE = frozenset(
    (
        *("store", "stmatrix", "reduction", "bulk_store", "surface_store", "discard"),
        *("async_store", "async_reduction"),
    )
)


def spaces_read(op: Op) -> frozenset[str]:
    """The state spaces that an instruction may read, for values visible to other threads.

    None if it loads spilled registers, which have slots of their own.
    """
    return frozenset() if op.spills else _spaces(op.touches, ONLY_WRITE, SHARED)


def spaces_written(op: Op) -> frozenset[str]:
    """The state spaces that an instruction may write; none if it stores spilled registers."""
    return frozenset() if op.spills else written_by(op.touches)


def written_by(touches: Touches) -> frozenset[str]:
    """The state spaces that such accesses may write."""
    return _spaces(touches, ONLY_READ, GLOBAL)


def _spaces(touches: Touches, others: frozenset[str], not_of_a_copy: str) -> frozenset[str]:
    found: set[str] = set()
    for access, space in touches:
        if access not in others and not (access == "cp_async" and space == not_of_a_copy):
            found |= ALL_SPACES if space == "generic" else {space}
    return frozenset(found)


# --- kernels ---------------------------------------------------------------------------------
#
# Sizes and offsets are in bytes. Addresses of arrays and variables are assigned when memory is laid out.

Dims = tuple[int, int, int]
#: A variable of modules of tiles (cuTile). Their kernels have a block of their own, whatever a launch says,
#: and as much static shared memory as the chip has.
OF_TILES = "___NV_TILE_LAUNCH_META_DATA___"


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
