"""`MUFU.RSQ` as the first step of an exact root: of x, with r near 1 / sqrt(x), compilers compute

    g = x r,  h = r / 2,  sqrt(x) = g + (x - g g) h

each rounded once. The result is the root rounded to float32, whatever the last bit of r. Source: cubins of
nvcc 12 and 13 (`sqrtf`, also its slow path); all mantissas in tests/simt/test_exact_roots.py.
"""

from __future__ import annotations

from memsim.isa.op import Immediate, Operand, Register
from memsim.isa.program import Op
from memsim.simt.control_graph import ControlGraph

#: What an instruction makes of what it reads: opcode and operands -> name.
STEPS = {
    ("FMUL", "x", "r"): "g",
    ("FMUL", "r", "x"): "g",
    ("FMUL", "r", "half"): "h",
    ("FMUL", "half", "r"): "h",
    ("FADD", "-g", "-zero"): "n",
    ("FFMA", "-g", "g", "x"): "e",
    ("FFMA", "g", "-g", "x"): "e",
    ("FFMA", "g", "n", "x"): "e",
    ("FFMA", "n", "g", "x"): "e",
    ("FFMA", "e", "h", "g"): "root",
    ("FFMA", "h", "e", "g"): "root",
}


def begins_exact_root(graph: ControlGraph, live: dict[int, int], op: Op) -> bool:
    """Is it a `MUFU.RSQ` whose result is read for nothing but an exact root?

    live: the live slots at the start of each basic block.
    """
    if op.form.opcode != "MUFU" or op.form.modifiers != ("RSQ",) or op.guard is not None:
        return False
    result, of = op.form.operands
    if not isinstance(of, Register) or of != Register(of.slot) or not isinstance(result, Register):
        return False
    if of.slot is None or result.slot is None or of.slot == result.slot:
        return False
    ends = dict(graph.basic_blocks)
    start = max(first for first in ends if first <= op.index)
    held = _after(graph.ops[op.index + 1 : ends[start]], {of.slot: "x", result.slot: "r"})
    if held is None:
        return False
    for way in graph.next_basic_blocks[start]:
        if _is_live(held, live[way]):
            left = _after(graph.ops[way : ends[way]], held)
            if left is None or any(_is_live(left, live[behind]) for behind in graph.next_basic_blocks[way]):
                return False
    return True


def _after(ops: tuple[Op, ...], held: dict[int, str]) -> dict[int, str] | None:
    """Which slots hold which values of the computation after some instructions.

    None if one does something else with what depends on the last bit of r.
    """
    held = dict(held)
    for op in ops:
        names = (op.form.opcode, *(_name(operand, held) for operand in op.form.operands[1:]))
        made = STEPS.get(names) if op.guard is None and set(op.form.modifiers) <= {"FTZ"} else None
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
