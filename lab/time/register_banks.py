"""Cubins in which a loop of 128 instructions reads registers as a pattern says, and the clock around it.

Compilers choose registers, so the compiled kernel `banks` (banks.cu) gets others into its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

from memsim.isa.op import Register
from memsim.sass.machine_code import read_module
from memsim.time.timed_instructions import SHIFT, SIZE

KERNEL = "banks"
#: Lower and upper eight bytes without registers; the latter without control bits.
FORMS = {
    "F": (0x7223, 0),  # FFMA
    "I": (0x7224, 0x078E0200),  # IMAD
    "A": (0x7210, 0x07FFE000),  # IADD3
}
ZERO = 255
#: Patterns: instructions separated by blanks. Each is a form, its three sources (e, f, g: even registers; o,
#: p, q: odd ones; z: none), * after a source that the reuse cache shall keep, and maybe its stall count.
PATTERNS = (
    "Fzzz", "Fezz", "Fozz", "Feez", "Fefz", "Feoz", "Feee", "Fefg", "Fefo", "Feop", "Fopq", "Fefz Fopz",
    "Fefg Fopq", "Fefg Fzzz", "Fefg Fzzz Fzzz", "Fefg Fzzz Fzzz Fzzz", "Fefg Fefg Fzzz Fzzz Fzzz Fzzz",
    "Fefg Fefg Fefg Fzzz Fzzz Fzzz Fzzz Fzzz Fzzz", "Fefg Fozz", "Fefg Fopz", "Fefo Fope", "Fefo Feop",
    "Fefz Fzzz", "Fefz Fefz Fzzz Fzzz", "Fefz Fefz Fefz Fefz Fzzz Fzzz Fzzz Fzzz", "Fe*fg", "Fe*f*g",
    "Fe*f*g*", "Fe*fo", "Fef*o", "Fe*fg Ffeg", "Fe*fg Fezz", "Fe*fg Fzzz Fefg", "Fe*fg Fpzz",
    "Fe*fg Azzz Fefg", "Fefg2", "Fefg3", "Fefz2", "Fzzz2", "Fefo2", "Fefg2 Fzzz1", "Izzz", "Iefo",
    "Iefg", "Izzz Fzzz", "Iefo Fefo", "Izzz Fzzz Fzzz", "Azzz", "Aefg", "Aefo", "Azzz Fzzz", "Aefo Fefo",
    "Aefg Fefg", "Azzz Fzzz Fzzz", "Azzz Izzz", "Azzz Izzz Fzzz", "Azzz Izzz Fzzz Fzzz", "Aeoz Fefz",
    "Aefz Fefz", "Aefz Fopz",
)  # fmt: skip


def patched(content: bytes) -> Iterator[tuple[str, bytes]]:
    """(pattern, cubin) of each pattern. content: the compiled cubin of banks.cu."""
    kernel = read_module(content).kernels[KERNEL]
    code = kernel.image.code
    start = content.index(code)
    ops = kernel.program.ops
    places = [op.index for op in ops if op.form.opcode == "FFMA"]
    assert len(places) == 128
    others = [op for op in ops if places[0] - 6 < op.index and op.form.opcode not in ("FFMA", "FADD")]
    taken = {
        operand.slot + span
        for op in others
        for operand in op.form.operands
        if isinstance(operand, Register) and operand.slot is not None
        for span in (0, 1)
    }
    written = (op.form.operands[0] for op in ops if op.form.opcode == "FFMA")
    most = max(one.slot or 0 for one in written if isinstance(one, Register))
    free = [number for number in range(most) if number not in taken and number != 1]
    even, odd = [n for n in free if n % 2 == 0], [n for n in free if n % 2]
    named = {**dict(zip("efg", even)), **dict(zip("opq", odd)), "z": ZERO}
    results = [even[3], odd[3], even[4], odd[4]]
    for pattern in PATTERNS:
        made = bytearray(content)
        for place, text, to in zip(places, cycle(pattern.split()), cycle(results)):
            made[start + place * SIZE : start + (place + 1) * SIZE] = _encoded(text, to, named)
        yield pattern, bytes(made)


def _encoded(text: str, to: int, named: dict[str, int]) -> bytes:
    lower, upper = FORMS[text[0]]
    sources: list[int] = []
    reuse, stall = 0, 1
    for letter in text[1:]:
        if letter == "*":
            reuse |= 1 << len(sources) - 1
        elif letter.isdigit():
            stall = int(letter)
        else:
            sources.append(named[letter])
    a, b, c = sources
    lower |= to << 16 | a << 24 | b << 32
    control = stall | 1 << 4 | 7 << 5 | 7 << 8 | reuse << 17
    return lower.to_bytes(8, "little") + (upper | c | control << SHIFT).to_bytes(8, "little")
