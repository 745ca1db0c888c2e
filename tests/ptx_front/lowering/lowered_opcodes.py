"""The table of PTX opcodes: the function that emits the machine instructions of each."""

from __future__ import annotations

from collections.abc import Callable

from memsim.isa.op import Unsupported
from tests.ptx_front.lowering.assembler import Assembler
from tests.ptx_front.program import PtxInstruction

#: Raised for an instruction that is not lowered: by `require`, by a table without it, or because its operands
#: are none that an assembler would accept.
REFUSED = (Unsupported, ValueError, IndexError, KeyError, AttributeError, TypeError, AssertionError)

Lower = Callable[[Assembler, PtxInstruction], None]
#: (PTX opcode, whether its type is a float) -> the function that emits its machine instructions.
LOWER: dict[tuple[str, bool], Lower] = {}


def lowers(*opcodes: str, floats: bool = False) -> Callable[[Lower], Lower]:
    """Register the function that emits the machine instructions of PTX opcodes, or of their floating-point
    forms.
    """

    def register(lower: Lower) -> Lower:
        for opcode in opcodes:
            LOWER[opcode, floats] = lower
        return lower

    return register


def is_float(kind: str) -> bool:
    """Is it a floating-point type?"""
    return kind.startswith(("f", "bf"))


def lower_one(asm: Assembler, instruction: PtxInstruction) -> None:
    """Emit the machine instructions of one PTX instruction.

    Raises:
        Unsupported, or another of `REFUSED`: none are known.
    """
    kind = instruction.modifiers[-1] if instruction.modifiers else ""
    lower = LOWER.get((instruction.opcode, is_float(kind))) or LOWER.get((instruction.opcode, False))
    if lower is None:
        raise Unsupported
    lower(asm, instruction)
