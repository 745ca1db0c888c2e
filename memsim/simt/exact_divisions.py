"""`MUFU` as the first step of an exact division, reciprocal or root, whatever its last bit.

Compilers begin with an estimate r of 1 / b and correct it before anything else sees it:

    integers    the bits of r plus 0xffffffe (0x1ffffffe for 64 bits) are a float that is made an integer,
                never too large; a remainder is compared with the divisor in the end
    16 bits     r times a power of two, plus 2 units in the last place, as an integer; times the dividend,
                rounded towards zero
    float32     t = 1 - b r,  r + r t
    float64     the same by DFMA on the pair whose high word is r; for a root, 1 - b r r by DMUL and DFMA

Source: cubins of nvcc 12 and 13 for each chip; tests/simt/test_exact_divisions.py compiles such divisions. An
estimate that is read by anything else is an approximation.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from memsim.isa.op import Immediate, Register
from memsim.isa.program import Op
from memsim.simt.control_graph import ControlGraph

#: What integer divisions add to the bits of r: 2**32 or 2**64 times r, less 2 units in the last place.
_SCALES = (Immediate(0x0FFFFFFE), Immediate(0x1FFFFFFE))
#: Instructions that correct an estimate of float64.
_CORRECTS = {"RCP64H": ("DFMA",), "RSQ64H": ("DFMA", "DMUL")}


def begins_exact_division(
    graph: ControlGraph, live: dict[int, int], op: Op, reached: Container[int] | None = None
) -> bool:
    """Is it a `MUFU` whose result is read for nothing but an exact quotient, reciprocal or root of float64?

    live: the live slots at the start of each basic block. reached: the instructions that warps came to; None
    for all. The slow paths of divisions read estimates as they are, where they are infinite or zero.
    """
    function = op.form.modifiers[0] if op.form.opcode == "MUFU" else ""
    result = op.form.operands[0] if op.form.operands else None
    if function not in ("RCP", *_CORRECTS) or not isinstance(result, Register) or result.slot is None:
        return False
    readers = [
        reader
        for reader in _readers(graph, live, op, result.slot)
        if reached is None or reader.index in reached
    ]
    if function != "RCP":
        return bool(readers) and all(reader.form.opcode in _CORRECTS[function] for reader in readers)
    return bool(readers) and all(
        _adds(reader, _SCALES) or _corrects(reader, result) or _begins_16_bits(graph, live, reader)
        for reader in readers
    )


def _readers(graph: ControlGraph, live: dict[int, int], op: Op, slot: int) -> Iterator[Op]:
    """Instructions that may read what `op` leaves in a slot."""
    ends = dict(graph.basic_blocks)
    start = max(first for first in ends if first <= op.index)
    places, seen = [(op.index + 1, start)], set[int]()
    while places:
        at, block = places.pop()
        for other in graph.ops[at : ends[block]]:
            if (other.reads | other.addresses) >> slot & 1:
                yield other
            if other.writes >> slot & 1 and other.guard is None:
                break
        else:
            ways = {way for way in graph.next_basic_blocks[block] if live[way] >> slot & 1} - seen
            seen |= ways
            places += ((way, way) for way in ways)


def _adds(op: Op, numbers: tuple[Immediate, ...]) -> bool:
    """An integer sum with one of these numbers."""
    return op.form.opcode in ("IADD3", "VIADD", "IADD") and any(n in op.form.operands for n in numbers)


def _begins_16_bits(graph: ControlGraph, live: dict[int, int], op: Op) -> bool:
    """An FMUL whose product is read for nothing but 2 units in the last place more."""
    product = op.form.operands[0]
    if op.form.opcode != "FMUL" or not isinstance(product, Register) or product.slot is None:
        return False
    readers = list(_readers(graph, live, op, product.slot))
    return bool(readers) and all(_adds(reader, (Immediate(2),)) for reader in readers)


def _corrects(op: Op, estimate: Register) -> bool:
    """b r - 1 or 1 - b r, or r + r t: an FFMA with the estimate as a factor."""
    if op.form.opcode != "FFMA":
        return False
    _, *factors, addend = op.form.operands
    is_residual = isinstance(addend, Immediate) and addend.value in (1, -1)
    return estimate in factors and (is_residual or addend == estimate)
