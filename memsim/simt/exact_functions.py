"""`MUFU` as the first step of an exact division, reciprocal or root, whatever its last bit.

Compilers begin with an estimate r of 1 / b and correct it before anything else sees it:

    integers    the bits of r plus 0xffffffe (0x1ffffffe for 64 bits) are a float that is made an integer,
                never too large; a remainder is compared with the divisor in the end
    16 bits     r times a power of two, plus 2 units in the last place, as an integer; times the dividend,
                rounded towards zero
    float32     t = 1 - b r,  r + r t
    float64     the same by DFMA on the pair whose high word is r; for a root, 1 - b r r by DMUL and DFMA

A root of float32 begins with r near 1 / sqrt(x):

    g = x r,  h = r / 2,  sqrt(x) = g + (x - g g) h

each rounded once. The result is the root rounded to float32, whatever the last bit of r.

Source: cubins of nvcc 12 and 13 for each chip; tests/simt/test_exact_divisions.py compiles such divisions,
tests/simt/test_exact_roots.py tries all mantissas. An estimate that anything else reads is an approximation.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from memsim.isa.op import Immediate, Operand, Register, Trait
from memsim.isa.program import Op
from memsim.simt.control_graph import ControlGraph

#: What integer divisions add to the bits of r: 2**32 or 2**64 times r, less 2 units in the last place.
_SCALES = (Immediate(0x0FFFFFFE), Immediate(0x1FFFFFFE))
#: What corrects an estimate of float64.
_CORRECTS = {
    Trait.RECIPROCAL_64: {Trait.FUSES_64},
    Trait.ROOT_64: {Trait.FUSES_64, Trait.MULTIPLIES_64},
}


def begins_exact_division(
    graph: ControlGraph, live: dict[int, int], op: Op, reached: Container[int] | None = None
) -> bool:
    """Is it an estimate that is read for nothing but an exact quotient, reciprocal or root of float64?

    live: the live slots at the start of each basic block. reached: the instructions that warps came to; None
    for all. The slow paths of divisions read estimates as they are, where they are infinite or zero.
    """
    function = next(iter(op.traits & {Trait.RECIPROCAL, *_CORRECTS}), None)
    result = op.form.operands[0] if op.form.operands else None
    if function is None or not isinstance(result, Register) or result.slot is None:
        return False
    readers = [
        reader
        for reader in readers_of(graph, live, op, result.slot)
        if reached is None or reader.index in reached
    ]
    if function in _CORRECTS:
        return bool(readers) and all(reader.traits & _CORRECTS[function] for reader in readers)
    return bool(readers) and all(
        _adds(reader, _SCALES) or _corrects(reader, result) or _begins_16_bits(graph, live, reader)
        for reader in readers
    )


def readers_of(graph: ControlGraph, live: dict[int, int], op: Op, slot: int) -> Iterator[Op]:
    """Instructions that may read what `op` leaves in a slot."""
    ends = graph.basic_blocks
    places, seen = [(op.index + 1, graph.block_of(op.index))], set[int]()
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
    return Trait.ADDS in op.traits and any(n in op.form.operands for n in numbers)


def _begins_16_bits(graph: ControlGraph, live: dict[int, int], op: Op) -> bool:
    """A product that is read for nothing but 2 units in the last place more."""
    product = op.form.operands[0]
    if Trait.MULTIPLIES not in op.traits or not isinstance(product, Register) or product.slot is None:
        return False
    readers = list(readers_of(graph, live, op, product.slot))
    return bool(readers) and all(_adds(reader, (Immediate(2),)) for reader in readers)


def _corrects(op: Op, estimate: Register) -> bool:
    """b r - 1 or 1 - b r, or r + r t: fused, with the estimate as a factor."""
    if Trait.FUSES not in op.traits:
        return False
    _, *factors, addend = op.form.operands
    is_residual = isinstance(addend, Immediate) and addend.value in (1, -1)
    return estimate in factors and (is_residual or addend == estimate)


# --- exact roots of float32 ------------------------------------------------------------------

#: What an instruction makes of what it reads: its trait and operands -> name.
STEPS = {
    (Trait.MULTIPLIES, "x", "r"): "g",
    (Trait.MULTIPLIES, "r", "x"): "g",
    (Trait.MULTIPLIES, "r", "half"): "h",
    (Trait.MULTIPLIES, "half", "r"): "h",
    (Trait.SUMS, "-g", "-zero"): "n",
    (Trait.FUSES, "-g", "g", "x"): "e",
    (Trait.FUSES, "g", "-g", "x"): "e",
    (Trait.FUSES, "g", "n", "x"): "e",
    (Trait.FUSES, "n", "g", "x"): "e",
    (Trait.FUSES, "e", "h", "g"): "root",
    (Trait.FUSES, "h", "e", "g"): "root",
}


def begins_exact_root(
    graph: ControlGraph, live: dict[int, int], op: Op, reached: Container[int] | None = None
) -> bool:
    """Is it an estimate whose result is read for nothing but an exact root?

    live, reached: as for `begins_exact_division`.
    """
    if Trait.ROOT not in op.traits or Trait.ALTERS in op.traits or op.guard is not None:
        return False
    result, of = op.form.operands
    if not isinstance(of, Register) or of != Register(of.slot) or not isinstance(result, Register):
        return False
    if of.slot is None or result.slot is None or of.slot == result.slot:
        return False
    start = graph.block_of(op.index)
    held = _after(graph.ops[op.index + 1 : graph.basic_blocks[start]], {of.slot: "x", result.slot: "r"})
    if held is None:
        return False
    for way in graph.next_basic_blocks[start]:
        if (reached is None or way in reached) and _is_live(held, live[way]):
            left = _after(graph.block(way), held)
            if left is None or any(_is_live(left, live[behind]) for behind in graph.next_basic_blocks[way]):
                return False
    return True


def _after(ops: tuple[Op, ...], held: dict[int, str]) -> dict[int, str] | None:
    """Which slots hold which values of the computation after some instructions.

    None if one does something else with what depends on the last bit of r.
    """
    held = dict(held)
    for op in ops:
        names = tuple(_name(operand, held) for operand in op.form.operands[1:])
        is_plain = op.guard is None and Trait.ALTERS not in op.traits
        steps = [step for trait in op.traits if (step := STEPS.get((trait, *names)))]
        made = steps[0] if steps and is_plain else None
        if made is None and any((op.reads | op.addresses) >> slot & 1 for slot in _secret(held)):
            return None
        if op.guard is not None and any(op.writes >> slot & 1 for slot in held):
            return None
        held = {slot: name for slot, name in held.items() if not op.writes >> slot & 1}
        target = op.form.operands[0] if op.form.operands else None
        if made is not None and made != "root" and isinstance(target, Register) and target.slot is not None:
            held[target.slot] = made
    return held


def _secret(held: dict[int, str]) -> list[int]:
    """The slots with values that depend on the last bit of r."""
    return [slot for slot, name in held.items() if name != "x"]


def _is_live(held: dict[int, str], live: int) -> bool:
    return any(live >> slot & 1 for slot in _secret(held))


def _name(operand: Operand, held: dict[int, str]) -> str:
    """What an operand is in the computation; "" if it has no part in it."""
    if isinstance(operand, Immediate):
        return "half" if operand.value == 0.5 else ""
    if not isinstance(operand, Register) or operand not in (
        Register(operand.slot),
        Register(operand.slot, negated=True),
    ):
        return ""
    name = "zero" if operand.slot is None else held.get(operand.slot, "")
    return f"-{name}" if operand.negated else name
