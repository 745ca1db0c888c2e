"""Patterns with instructions one after the other for a unit that takes fewer; as those of `patterns.py`.

They show how many a queue holds, how fast it empties, when results come and registers have been read. What an
H200 took for the loops is in docs/validation/queues.json.
"""

from __future__ import annotations

from collections.abc import Iterator

from lab.time.barriers import HIDING

#: What is repeated, and how often.
REPEATED = """LDS LDSW STS STSW SHFL MUFU S2R S2UR LDC ULDC UMOV IMAD IADD3 ISETP DFMA HMMA VOTE CS2R
MOV""".split()
TIMES = (1, 2, 3, 4, 6, 8, 12, 16, 24)
#: What is waited for, by its result and by its operands.
AWAITED = "LDS LDSW SHFL MUFU S2R S2UR LDC ULDC DFMA HMMA UMOV VOTE".split()
READ = "LDS LDSW STS STSW SHFL MUFU S2R LDC".split()
#: What alternates.
PAIRS = (
    ("LDS", "FFMA"), ("STS", "FFMA"), ("LDS", "STS"), ("LDS", "SHFL"), ("LDS", "MUFU"), ("LDSW", "FFMA"),
    ("SHFL", "FFMA"), ("MUFU", "FFMA"), ("S2R", "LDS"), ("LDS", "IMAD"),
)  # fmt: skip


def patterns() -> Iterator[str]:
    """Each with enough arithmetic behind it that nothing is left in a queue."""
    for pattern in (*_repeated(), *_awaited(), *_alternating()):
        yield f"{pattern} {HIDING}"


def _repeated() -> Iterator[str]:
    for name in REPEATED:
        for times in TIMES:
            yield " ".join([f"{name}1"] * times)


def _awaited() -> Iterator[str]:
    for name in AWAITED:
        yield f"{name}1>0 FFMA4<0"
        for times in (1, 2, 4):
            yield f"{f'{name}2>0 ' * times}FFMA4<0"
    for name in READ:
        for stall, times in ((1, 1), (2, 1), (2, 4), (1, 8)):
            yield f"{f'{name}{stall})0 ' * times}FFMA4<0"


def _alternating() -> Iterator[str]:
    for one, other in PAIRS:
        for times in (2, 4, 8, 16):
            yield " ".join([f"{one}1 {other}1"] * times)
        for more in (2, 3):
            yield " ".join([f"{one}1{f' {other}1' * more}"] * 8)
