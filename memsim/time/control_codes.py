"""The schedule of the compiler, in the bytes of each instruction.

The fields are bits 105 to 125 of the 16 bytes of an instruction since Volta; nvdisasm does not print them.
Source: arXiv 2503.20481; Jia et al., arXiv 1804.06826, "Control information".
"""

from __future__ import annotations

from typing import NamedTuple

#: Bytes of an instruction, and where its control bits begin in the upper eight.
SIZE, SHIFT = 16, 41
#: Counters that hold back instructions of a warp; a field of 7 names none.
COUNTERS, NO_COUNTER = 6, 7
#: In place of a counter's number: the barrier of its block at which a warp has arrived.
AT_BARRIER = COUNTERS


class ControlCode(NamedTuple):
    """stall: cycles until the warp may issue its next instruction. yields: another warp is preferred next.
    result, operands: the counter that is released when the result has arrived, or the operands have been
    read; None if there is none. waits: counters that have to be zero. reuse: source slots whose register is
    kept for the warp's next instruction, as bits.
    """

    stall: int
    yields: bool
    result: int | None
    operands: int | None
    waits: tuple[int, ...]
    reuse: int


def control_code(instruction: bytes) -> ControlCode:
    """The control code of the 16 bytes of an instruction."""
    bits = int.from_bytes(instruction[8:SIZE], "little") >> SHIFT
    result, operands, waits = bits >> 5 & 7, bits >> 8 & 7, bits >> 11 & 63
    return ControlCode(
        stall=bits & 15,
        yields=not bits >> 4 & 1,
        result=None if result == NO_COUNTER else result,
        operands=None if operands == NO_COUNTER else operands,
        waits=tuple(number for number in range(COUNTERS) if waits >> number & 1),
        reuse=bits >> 17 & 15,
    )


def control_codes(code: bytes) -> list[ControlCode]:
    """Those of all instructions of a kernel's code."""
    return [control_code(code[at : at + SIZE]) for at in range(0, len(code), SIZE)]
