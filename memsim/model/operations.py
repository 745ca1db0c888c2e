"""The memory operations: their names, how they are served, and in which counters they appear.

Rules and sources: docs/model.md. For which widths a rule was measured is in `memsim.arch`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operation:
    """One kind of access to one space.

    Attributes:
        space: "shared", "global", "local", "constant" or "texture".
        name: in traces, budgets and JSON.
        verb: what its lanes do: "load", "store", "update" or "copy".
        counter: suffix of the ncu counters that include it, `ld` of `..._op_ld.sum`; "" if none does.
        opcodes: of machine code. A reduction is an atomic without a result: ptxas turns one into the other.
        shares: whether lanes that access the same word share it; else each active lane counts.
        merges: whether neighbouring groups of lanes can merge, from 8 bytes per lane on.
        passes: how often every wavefront is taken; repeated ones are not conflicts. Of a texture how often
            each lane is served.
        matrix: whether a lane gives the address of a matrix row, and all lanes of a warp take part.
        bypass: whether it bypasses the L1 cache: in shared memory the chip counts nothing for it.
        remote: whether the chip counts it like global memory: it accesses another block's shared memory, is
            an asynchronous store, or a copy between blocks.
        engine: whether TMA performs it: in shared memory the chip counts nothing.
        least: the fewest sectors that the chip counts for a request; in shared memory, of two lanes or more.
        unmade: whether none of its lanes is in that space, yet the chip takes its passes there: recorded as
            a lane of each group at address 0.
        grouped: whether four warps read together: the request is theirs, made by the first one's lanes.
        pairs: whether two lanes of each four are served together, and it is not known which: it has limits.
        why: why it has no rule at any width; "" if it has one.
        counted_as: the operations in whose counters it is, if it has no rule of its own.
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
    least: int = 0
    unmade: bool = False
    grouped: bool = False
    pairs: bool = False
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
        """Whether the lanes' addresses decide what the chip counts for it on this side."""
        return self.is_counted and not (self.remote or self.grouped or self.space == "texture")

    @property
    def access(self) -> str:
        """Its name as far as the opcode tells, which does not distinguish atomics: `shared load`,
        `cp.async`.
        """
        if self.is_copy:
            return "cp.async"
        return f"{self.space} {'atomic' if self.verb == 'update' else self.name}"


_LOOP = (
    "this atomic on shared memory is a compare-and-swap loop, whose number of iterations depends on timing"
)
_GENERIC = (
    "this atomic on shared memory through a generic address is the beginning of a loop of "
    "compare-and-swaps, which was not measured"
)

_PAIRS = (
    "a filtered fetch of three dimensions, or of texels of 16 bytes, is served two lanes at a time; which two"
    " of four was not found out"
)
_UNMEASURED = (
    "a filtered fetch of 2 or 3 channels of texels of 16 bytes, or of three dimensions and texels of 8 or 16"
    " bytes, has no rule"
)

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
        Operation("shared", "load_generic", "load", "ld"),
        Operation("shared", "atomic_unmade", "update", "atom", unmade=True),
        Operation("shared", "atomic_cas_unmade", "update", "atom", passes=2, unmade=True),
        Operation("shared", "atomic_loop", "update", why=_LOOP, counted_as=("load", "atomic")),
        Operation("shared", "atomic_generic", "update", why=_GENERIC, counted_as=("atomic",)),
        Operation("shared", "wgmma", "load", "gmma", grouped=True),
        Operation("shared", "cluster_load", "load", "dshared_ld", remote=True),
        Operation("shared", "cluster_store", "store", "dshared_st", remote=True),
        Operation("shared", "cluster_atomic", "update", "dshared_atom", shares=False, remote=True),
        Operation(
            "shared", "cluster_atomic_cas", "update", "dshared_atom", shares=False, passes=2, remote=True
        ),
        Operation("shared", "async_store", "store", "dshared_st", shares=False, remote=True),
        Operation("shared", "async_reduction", "update", "dshared_redas", shares=False, remote=True),
        Operation("shared", "cluster_async_store", "store", "dshared_st", shares=False, remote=True),
        Operation("shared", "cluster_async_reduction", "update", "dshared_redas", shares=False, remote=True),
        Operation("shared", "bulk_load", "load", engine=True),
        Operation("shared", "bulk_store", "store", engine=True),
        Operation("shared", "cluster_bulk_store", "store", "dshared_tma_st", remote=True, least=2),
        Operation("shared", "cluster_bulk_reduction", "update", "dshared_tma_red", remote=True),
        Operation("global", "bulk_reduction", "update", "tma_red", engine=True),
        Operation("global", "bulk_load", "load", "tma_ld", engine=True),
        Operation("global", "bulk_multicast", "load", "tma_ld", engine=True, least=2),
        Operation("global", "bulk_store", "store", "tma_st", engine=True),
        Operation("global", "load", "load", "ld", ("LDG",)),
        Operation("global", "store", "store", "st", ("STG",)),
        Operation("global", "atomic", "update", "atom", ("ATOMG",)),
        Operation("global", "reduction", "update", "red", ("RED", "REDG")),
        Operation("global", "cp_async", "copy", "ld", ("LDGSTS",)),
        Operation("global", "cp_async_cg", "copy", "ld", ("LDGSTS",), bypass=True),
        Operation("local", "load", "load", "ld", ("LDL",)),
        Operation("local", "store", "store", "st", ("STL",)),
        Operation("local", "atomic", "update"),
        Operation("local", "reduction", "update"),
        Operation("constant", "load", "load", opcodes=("LDC",)),
        Operation("texture", "fetch", "load", "texture"),
        Operation("texture", "point", "load", "texture"),
        Operation("texture", "point_pitched", "load", "texture"),
        Operation("texture", "filtered", "load", "texture"),
        Operation("texture", "filtered_pitched", "load", "texture"),
        Operation("texture", "gather", "load", "texture"),
        Operation("texture", "filtered_3d", "load", pairs=True, why=_PAIRS, counted_as=("filtered",)),
        *(
            Operation("texture", name, "load", passes=2, pairs=True, why=_PAIRS, counted_as=("filtered",))
            for name in ("filtered_wide", "filtered_wide_pitched")
        ),
        Operation("texture", "filtered_wide_one", "load", pairs=True, why=_PAIRS, counted_as=("filtered",)),
        Operation("texture", "filtered_other", "load", why=_UNMEASURED, counted_as=("filtered",)),
    )
}

#: Names of the operations that the chip counts like global memory, though they are on shared memory.
REMOTE = frozenset(each.name for each in OPERATIONS.values() if each.remote)


def operation(space: str, name: str) -> Operation:
    """The operation; an unknown one is in no counter."""
    return OPERATIONS.get((space, name)) or Operation(space, name, "access")


def names_in(space: str, counter: str) -> tuple[str, ...]:
    """The names of a space's operations in a counter, such as `ld`."""
    return tuple(each.name for each in OPERATIONS.values() if (each.space, each.counter) == (space, counter))
