"""Cubins in which loads bring results while arithmetic writes its own; as those of `register_banks.py`.

They show when what a load brings is written into registers, what holds it up, and when its warp may use it.
What an H200 took is in docs/validation/register_writes.json.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lab.time.register_banks import LOAD, WIDTHS, ZERO, loop_of
from memsim.time.control_codes import NO_COUNTER, SHIFT, SIZE

#: Instructions of the loop, and those before its loads.
LENGTH, BEFORE = 128, 16
#: The banks to which FFMAs write one after the other: even and odd registers, or none.
RESULTS = {"alternating": "eo", "even": "e", "pairs": "eeoo", "zero": "z"}
#: What reckons a lane's address: its number, times the bytes that it loads.
ADDRESS = "NT"
#: Where shared memory begins that a launch asks for, as much as its warps load; and bytes that a lane loads.
SHARED = 0x400
BYTES = {"1": 4, "o": 4, "2": 8, "4": 16}


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of FFMAs with some loads of shared memory in it. results: of `RESULTS`. load: of `WIDTHS`,
    registers that each brings. gap, gaps: which FFMA behind the loads writes nothing, and how many do from it
    on. waiting: the one that waits for the last load. spread: each lane reads its own words, in as many
    wavefronts as a lane has words, and the loop begins by reckoning its address.
    """

    results: str
    load: str
    loads: int
    gap: int | None = None
    gaps: int = 1
    waiting: int | None = None
    spread: bool = False

    def banks(self) -> Iterator[str]:
        """Of each instruction: the bank of an FFMA's result (e, o, z), L for a load, or of `ADDRESS`."""
        written = RESULTS[self.results]
        behind = BEFORE + self.loads
        for place in range(LENGTH):
            if BEFORE <= place < behind:
                yield "L"
            elif self.spread and place < len(ADDRESS):
                yield ADDRESS[place]
            elif self.gap is not None and 0 <= place - behind - self.gap < self.gaps:
                yield "z"
            else:
                yield written[place % len(written)]

    @property
    def waits_at(self) -> int | None:
        """The place of the FFMA that waits."""
        return None if self.waiting is None else BEFORE + self.loads + self.waiting


def loops() -> Iterator[Loop]:
    """Loads alone, with gaps behind them, and with who waits for them."""
    for results in RESULTS:
        for load in WIDTHS:
            for loads in (0, 1, 2, 3, 4, 6, 8):
                if loads or load == "1":
                    yield Loop(results, load, loads)
    for load, results in (("2", "alternating"), ("4", "alternating"), ("1", "even"), ("4", "pairs")):
        for loads in (1, 2, 4):
            for gap in range(8, 72, 3):
                yield Loop(results, load, loads, gap)
        for gaps in (2, 3, 4):
            for gap in (14, 20, 26, 32, 40):
                yield Loop(results, load, 4, gap, gaps)
    for results in ("zero", "alternating", "even"):
        for load in ("1", "2", "4") if results != "even" else ("1",):
            for loads in (1, 2, 4):
                for waiting in (0, 2, *range(4, 20, 4), *range(20, 36, 2), 36, 40, 44, 48, 56, 64, 80):
                    yield Loop(results, load, loads, waiting=waiting)
    for results in ("zero", "alternating"):
        for load in ("1", "2", "4"):
            for loads in (0, 1, 2, 3, 4, 6, 8):
                yield Loop(results, load, loads, spread=True)
            for loads in (1, 2, 4):
                for waiting in (*range(4, 48, 4), 56, 64, 80):
                    yield Loop(results, load, loads, waiting=waiting, spread=True)
    for load in ("2", "4"):
        for loads in (1, 2):
            for gap in range(8, 60, 3):
                yield Loop("alternating", load, loads, gap, spread=True)


def patched(content: bytes, loop: Loop) -> bytes:
    """The cubin of a loop. content: the compiled one of banks.cu."""
    start, places, free = loop_of(content)
    quad = max(first for first in range(0, max(free) + 1, 4) if {*range(first, first + 4)} <= {*free})
    others = [number for number in free if not quad <= number < quad + 4]
    named = {"e": [n for n in others if n % 2 == 0], "o": [n for n in others if n % 2], "z": [ZERO]}
    last, waits_at = BEFORE + loop.loads - 1, loop.waits_at
    address = named["e"].pop(0) if loop.spread else ZERO
    made = bytearray(content)
    for number, (place, bank) in enumerate(zip(places, loop.banks())):
        control = 1 | 1 << 4 | NO_COUNTER << 8 | (1 << 11 if number == waits_at else 0)
        if bank == "L":
            upper, first = WIDTHS[loop.load]
            lower = LOAD | quad + first << 16 | address << 24 | (SHARED if loop.spread else 0) << 40
            control |= (NO_COUNTER if waits_at is None or number != last else 0) << 5
        elif bank == "N":  # S2R, SR_TID.X; a counter is set two cycles later
            lower, upper, control = 0x7919 | address << 16, 0x2100, control & ~15 | 4 | 1 << 5
        elif bank == "T":  # IMAD by an immediate
            lower = 0x7824 | address << 16 | address << 24 | BYTES[loop.load] << 32
            upper, control = 0x078E0200 | ZERO, control & ~15 | 5 | 1 << 12 | NO_COUNTER << 5
        else:
            registers = named[bank]
            lower = 0x7223 | registers[number // 2 % len(registers)] << 16 | ZERO << 24 | ZERO << 32
            upper = ZERO
            control |= NO_COUNTER << 5
        code = lower.to_bytes(8, "little") + (upper | control << SHIFT).to_bytes(8, "little")
        made[start + place * SIZE : start + (place + 1) * SIZE] = code
    return bytes(made)
