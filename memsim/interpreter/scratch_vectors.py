"""Intermediate results of an instruction's operations: as few vectors as they need."""

from __future__ import annotations

from collections.abc import Iterator

from memsim.interpreter.lowered_op import NotLowered
from memsim.interpreter.vector_operations import SCRATCH, ScratchPlace, VectorOperation


def without_copies(operations: list[VectorOperation], words: set[str]) -> list[VectorOperation]:
    """The operations for whole warps: results are computed in the registers that they are written to."""
    if any(one.name == "guard" for one in operations):
        return operations
    found, left_out = list(operations), set[int]()
    for at, one in enumerate(operations):
        if one.name != "write" or not isinstance(one.a, ScratchPlace):
            continue
        made = next(i for i, other in enumerate(operations) if other.d == one.a)
        reads = [i for i, other in enumerate(operations) if one.a in (other.a, other.b, other.c)]
        target = found[at].d
        others = (found[i] for i in range(made + 1, len(found)) if i != at)
        if (
            reads == [at]
            and operations[made].name in words
            and not any(target in (other.a, other.b, other.c) for other in others)
        ):
            found[made] = operations[made]._replace(d=target)
            left_out.add(at)
    return [one for at, one in enumerate(found) if at not in left_out]


def reuse_scratch(operations: list[VectorOperation]) -> list[VectorOperation]:
    """The operations with few scratch vectors: one is used again behind its last use.

    Raises:
        NotLowered: too many are needed at once.
    """
    last: dict[ScratchPlace, int] = {}
    for at, one in enumerate(operations):
        for place in scratch(one):
            last[place] = at
    free, taken, count, found = list[int](), dict[ScratchPlace, int](), 0, []
    for at, one in enumerate(operations):
        if isinstance(one.d, ScratchPlace) and one.d not in taken:
            if free:
                taken[one.d] = free.pop()
            else:
                taken[one.d], count = count, count + 1
        d, a, b, c = (
            ScratchPlace(taken[place]) if isinstance(place, ScratchPlace) else place
            for place in (one.d, one.a, one.b, one.c)
        )
        found.append(one._replace(d=d, a=a, b=b, c=c))
        free += [taken[place] for place in set(scratch(one)) if last[place] == at]
    if count > SCRATCH:
        raise NotLowered("too many vectors")
    return found


def scratch(one: VectorOperation) -> Iterator[ScratchPlace]:
    """The intermediate results that an operation reads or writes."""
    return (place for place in (one.d, one.a, one.b, one.c) if isinstance(place, ScratchPlace))
