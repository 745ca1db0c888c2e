"""The operations on memory: what each is called, how it is served, and where the chip counts it.

In: a space and an operation, as a trace has them. Out: an `Operation`. Rules and sources: docs/model.md.
Left out on purpose: for which widths a rule was measured (`memsim.arch`), and the rules' numbers.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operation:
    """One kind of access to one space.

    Attributes:
        space: "shared", "global", "local" or "constant".
        name: as traces, budgets and JSON call it.
        verb: what its lanes do: "load", "store", "update" or "copy".
        counter: the end of ncu's counters that it is in, `ld` of `..._op_ld.sum`; "" if it is in none.
        opcodes: of machine code. A reduction is an atomic without a result: ptxas turns one into the other.
        shares: whether lanes that want the same word share it; else each active lane counts.
        merges: whether neighbouring groups of lanes can become one, from 8 bytes a lane on.
        passes: how often every wavefront is taken; those of the second time are no conflicts.
        matrix: whether a lane gives the row of a matrix, and all of a warp take part.
        bypass: whether it goes past the L1 cache: in shared memory the chip counts nothing for it.
        remote: whether it is to shared memory of another block, which the chip counts like global memory.
        engine: whether the engine beside the threads (TMA) does it: in shared memory the chip counts nothing.
        grouped: whether four warps read together: a request is theirs, of the first one's lanes.
        why: why it has no rule at any width; "" if it has one.
        counted_as: the operations whose counters it is in, where it has no rule of its own.
    """

    space: str
    name: str
    verb: str
    counter: str = ""
    opcodes: tuple[str, ...] = ()
    shares: bool = True
    merges: bool = False
    passes: int = 1
    matrix: bool = False
    bypass: bool = False
    remote: bool = False
    engine: bool = False
    grouped: bool = False
    why: str = ""
    counted_as: tuple[str, ...] = ()

    @property
    def is_copy(self) -> bool:
        """Whether it is one side of a copy from global to shared memory."""
        return self.verb == "copy"

    @property
    def is_counted(self) -> bool:
        """Whether the chip counts anything for it on this side."""
        return not ((self.bypass or self.engine) and self.space == "shared")

    @property
    def is_of_lanes(self) -> bool:
        """Whether where each lane asks in the banks decides what the chip counts for it on this side."""
        return self.is_counted and not (self.remote or self.grouped)

    @property
    def access(self) -> str:
        """As far as an opcode tells it, which does not tell atomics apart: `shared load`, `cp.async`."""
        if self.is_copy:
            return "cp.async"
        return f"{self.space} {'atomic' if self.verb == 'update' else self.name}"


_LOOP = (
    "this atomic on shared memory is a compare-and-swap loop, whose number of iterations depends on timing"
)
_GENERIC = (
    "this atomic on shared memory through a generic address is another instruction, which was not measured"
)
_REMOTE = (
    "this atomic is on shared memory of another block, where the chip counts lanes at one place by a rule"
    " that is not known"
)

_STORES = ("store", "cluster_store")
_ASYNC = "how this chip counts asynchronous stores to shared memory was not measured"
_REDUCED = "how this chip counts reductions by its copy engine was not measured"

OPERATIONS = {
    (operation.space, operation.name): operation
    for operation in (
        Operation("shared", "load", "load", "ld", ("LDS",), merges=True),
        Operation("shared", "store", "store", "st", ("STS",)),
        Operation("shared", "atomic", "update", "atom", ("ATOMS",), shares=False),
        Operation("shared", "reduction", "update", "atom", ("ATOMS",), shares=False),
        Operation("shared", "ldmatrix", "load", "ld", ("LDSM",), matrix=True),
        Operation("shared", "stmatrix", "store", "st", ("STSM",), matrix=True),
        Operation("shared", "cp_async", "copy", "ldgsts", ("LDGSTS",), shares=False),
        Operation("shared", "cp_async_cg", "copy", opcodes=("LDGSTS",), bypass=True),
        Operation("shared", "atomic_inc", "update", "atom", ("ATOMS",)),
        Operation("shared", "atomic_cas", "update", "atom", ("ATOMS",), shares=False, passes=2),
        Operation("shared", "atomic_loop", "update", why=_LOOP, counted_as=("load", "atomic")),
        Operation("shared", "atomic_generic", "update", why=_GENERIC, counted_as=("atomic",)),
        Operation("shared", "wgmma", "load", "gmma", grouped=True),
        Operation("shared", "cluster_load", "load", "dshared_ld", remote=True),
        Operation("shared", "cluster_store", "store", "dshared_st", remote=True),
        Operation("shared", "cluster_atomic", "update", why=_REMOTE, counted_as=("atomic",)),
        Operation("shared", "async_store", "store", why=_ASYNC, counted_as=_STORES),
        Operation("shared", "async_reduction", "update", why=_ASYNC, counted_as=("atomic", *_STORES)),
        Operation("shared", "cluster_async_store", "store", why=_ASYNC, counted_as=_STORES),
        Operation("shared", "cluster_async_reduction", "update", why=_ASYNC, counted_as=("atomic", *_STORES)),
        Operation("shared", "bulk_load", "load", engine=True),
        Operation("shared", "bulk_store", "store", engine=True),
        Operation("shared", "bulk_reduction", "update", why=_REDUCED),
        Operation("global", "bulk_reduction", "update", why=_REDUCED, counted_as=("bulk_store",)),
        Operation("global", "bulk_load", "load", "tma_ld", engine=True),
        Operation("global", "bulk_store", "store", "tma_st", engine=True),
        Operation("global", "load", "load", "ld", ("LDG",)),
        Operation("global", "store", "store", "st", ("STG",)),
        Operation("global", "atomic", "update", "atom", ("ATOMG",)),
        Operation("global", "reduction", "update", "red", ("RED", "REDG")),
        Operation("global", "cp_async", "copy", "ld", ("LDGSTS",)),
        Operation("global", "cp_async_cg", "copy", "ld", ("LDGSTS",), bypass=True),
        Operation("local", "load", "load", "ld", ("LDL",)),
        Operation("local", "store", "store", "st", ("STL",)),
        Operation("constant", "load", "load", opcodes=("LDC",)),
    )
}


def operation(space: str, name: str) -> Operation:
    """The operation; one that is not in the table is counted nowhere."""
    return OPERATIONS.get((space, name)) or Operation(space, name, "access")


def counted(space: str, counter: str) -> tuple[str, ...]:
    """The names of a space's operations that a counter has, such as `ld`."""
    return tuple(op.name for op in OPERATIONS.values() if (op.space, op.counter) == (space, counter))
