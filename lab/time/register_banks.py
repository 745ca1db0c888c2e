"""Cubins in which a loop of 128 instructions reads registers as a pattern says, and the clock around it.

Compilers choose registers, so the compiled kernel `banks` (banks.cu) gets others into its bytes. What an H200
took for those with loads and stores is in docs/validation/register_reads.json.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import cycle

from memsim.isa.op import Register
from memsim.sass.machine_code import read_module
from memsim.time.control_codes import SHIFT, SIZE

KERNEL = "banks"
#: Lower and upper eight bytes without registers; the latter without control bits.
FORMS = {
    "F": (0x7223, 0),  # FFMA
    "I": (0x7224, 0x078E0200),  # IMAD
    "A": (0x7210, 0x07FFE000),  # IADD3
}
ZERO = 255
#: Upper eight bytes of a load or a store of shared memory, and its first register, counted from the quad.
WIDTHS = {"1": (0x800, 0), "o": (0x800, 1), "2": (0xA00, 0), "4": (0xC00, 0)}
LOAD, STORE = 0x7984, 0x7388
#: Registers that hold the address 0 in patterns with loads and stores.
ADDRESSES = "gq"
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
#: What an FFMA of such a loop reads, and what stands at the end of 16: L a load, S a store, of 1, 2 or 4
#: registers (o: one odd register), at address 0 or at that in an even (g) or odd (q) register.
AROUND = (
    "Fzzz", "Fezz", "Fozz", "Feoz", "Fefz Fopz", "Fefo", "Fe*oz", "Feoz Fzzz", "Feoz Fezz", "Fe*of* Fpof",
)  # fmt: skip
ACCESSES = (
    "", "L1", "L4", "L1g", "L4g", "L1q", "L4q", "S1", "So", "S4", "S1g", "S1q", "S4g", "L1g L1g", "L1g L1q",
)  # fmt: skip


def loops_with_accesses() -> Iterator[str]:
    """Patterns of 16 instructions."""
    for around in AROUND:
        for accesses in ACCESSES:
            last = accesses.split()
            yield " ".join([*(around.split() * 16)[: 16 - len(last)], *last])


def loop_of(content: bytes) -> tuple[int, list[int], list[int]]:
    """Of the compiled cubin of banks.cu: where its code begins, which instructions are to be replaced, and
    the registers that nothing else uses.
    """
    kernel = read_module(content).kernels[KERNEL]
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
    return content.index(kernel.image.code), places, free


def patched(content: bytes, patterns: Iterable[str] = PATTERNS) -> Iterator[tuple[str, bytes]]:
    """(pattern, cubin) of each pattern. content: the compiled cubin of banks.cu."""
    start, places, free = loop_of(content)
    quad = max(first for first in range(0, max(free) + 1, 4) if {*range(first, first + 4)} <= {*free})
    free = [number for number in free if not quad <= number < quad + 4]
    even, odd = [n for n in free if n % 2 == 0], [n for n in free if n % 2]
    named = {**dict(zip("efg", even)), **dict(zip("opq", odd)), "z": ZERO}
    results = [even[3], odd[3], even[-1], odd[-1]]
    for pattern in patterns:
        made = bytearray(content)
        texts = pattern.split()
        asked = list(zip(places, cycle(texts), cycle(results)))
        if any(text[0] in "LS" for text in texts):
            asked += [(place, "Fzzz", named[name]) for place, name in zip(places, ADDRESSES)]
        for place, text, to in asked:
            is_access = text[0] in "LS"
            code = _encoded_access(text, quad, named) if is_access else _encoded(text, to, named)
            made[start + place * SIZE : start + (place + 1) * SIZE] = code
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


def _encoded_access(text: str, quad: int, named: dict[str, int]) -> bytes:
    upper, first = WIDTHS[text[1]]
    register, address = quad + first, named[text[2:] or "z"]
    lower = (
        LOAD | register << 16 | address << 24 if text[0] == "L" else STORE | address << 24 | register << 32
    )
    control = 1 | 1 << 4 | 7 << 5 | 7 << 8
    return lower.to_bytes(8, "little") + (upper | control << SHIFT).to_bytes(8, "little")
