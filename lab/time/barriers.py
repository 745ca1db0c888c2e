"""Patterns with barriers of the block, and an instruction behind them; as those of `patterns.py`.

Which instructions a warp still executes before the others have arrived at its barrier shows if each of them
is put behind one, as what follows is long enough to hide the barrier. What an H200 took for the loops is in
docs/validation/barriers.json.
"""

from __future__ import annotations

from collections.abc import Iterator

#: What is put behind a barrier, with its stall count.
BEHIND = (
    "FFMA4", "_FFMA4", "NOP4", "IADD34", "IMAD4", "MOV4", "ISETP4", "MUFU4", "_MUFU4", "DFMA4", "HMMA4",
    "SHFL4", "LDS4", "_LDS4", "STS4", "_LDG4", "LDC4", "ULDC4", "UMOV4", "S2R4", "S2UR4", "CS2R4", "VOTE4",
    "WARPSYNC4", "MEMBAR6", "BRA5", "_BRA5", "BSSY4 BSYNC5", "_EXIT5",
)  # fmt: skip
#: Those before which so many FFMAs are put.
AFTER = ("LDS4", "STS4", "_LDS4", "BRA5", "_BRA5", "BSSY4 BSYNC5", "SHFL4", "S2R4", "_EXIT5")
BETWEEN = (1, 2, 3, 4, 6, 10)
#: Arithmetic that is long enough to hide what is before it.
HIDING = " ".join(["FFMA4"] * 12)


def patterns() -> Iterator[str]:
    """Instructions, separated by blanks, each with its stall count; the same without the barrier, too."""
    for first in ("BAR6", "FFMA6"):
        for behind in BEHIND:
            yield f"{first} {behind} {HIDING}"
    for behind in AFTER:
        for between in BETWEEN:
            yield f"BAR6 {' '.join(['FFMA4'] * between)} {behind} {HIDING}"
    for count in (0, 1, 2, 4, 6, 10, 16, 24):  # nothing but barriers and arithmetic
        yield " ".join(["BAR6", *["FFMA4"] * count])
    for stall in (1, 2, 4, 5, 8):
        yield f"BAR{stall} LDS4 {HIDING}"
        yield f"BAR{stall} BRA5 {HIDING}"
