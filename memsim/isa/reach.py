"""Which state spaces an instruction may read and write.

An access that is not listed here as read-only or write-only does both; this is the only rule by which
memory becomes unknown.
"""

from __future__ import annotations

from memsim.isa.definitions import Touches
from memsim.isa.program import Op

SHARED, GLOBAL, LOCAL = "shared", "global", "local"
ALL_SPACES = frozenset((SHARED, GLOBAL, LOCAL))
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
