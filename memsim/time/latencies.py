"""The constants of the model of time: each with its meaning and its source, `?` where it is a guess."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

#: Where a constant comes from.
CHOSEN = "chosen on half of an H200's catalogue (docs/time.md) ?"
GUESS = "a guess ?"
#: As they were before: of a trial that had seen all of an H200's catalogue, and launches of projects.
TRIAL = "a trial on an H200 ?"


def _cycles(default: int, meaning: str, source: str) -> Any:
    return field(default=default, metadata={"meaning": meaning, "source": source})


@dataclass(frozen=True, slots=True)
class Latencies:
    """Constants of a multiprocessor of sm_90, in cycles if nothing else is said."""

    bank_slack: int = _cycles(2, "operand reads that a register bank may be behind", TRIAL)
    queue: int = _cycles(6, "entries of a scheduler's queue to the memory pipe", CHOSEN)
    queue_interval: int = _cycles(2, "between two memory instructions of a scheduler", GUESS)
    to_memory: int = _cycles(4, "from issue to the memory pipe", GUESS)
    operands_read: int = _cycles(20, "until a memory instruction has read its registers", TRIAL)
    shared: int = _cycles(22, "from the last wavefront of a shared load of 4 bytes to its result", CHOSEN)
    shared_wide: int = _cycles(4, "more for a shared load of 16 bytes a lane", GUESS)
    shuffle: int = _cycles(22, "from the wavefront of a shuffle to its result", GUESS)
    atomic_shared: int = _cycles(40, "from the last wavefront of a shared atomic to its result", GUESS)
    l1_hit: int = _cycles(34, "from the data stage to the result of a load that hits L1", GUESS)
    l2: int = _cycles(270, "from the tag stage to the first data of a load that hits L2", TRIAL)
    dram: int = _cycles(900, "the same of a load with a cold L2, whoever serves it", CHOSEN)
    tag_backlog: int = _cycles(16, "for which the tag stage may be behind the data stage", GUESS)
    special: int = _cycles(40, "until S2R, LDC and their like have a result", CHOSEN)
    multi_function: int = _cycles(20, "from the end of an XU instruction to its result", GUESS)
    double: int = _cycles(16, "from the end of an FP64 or tensor instruction to its counter", GUESS)
    barrier: int = _cycles(30, "from the last arrival at a block barrier to the next issue", TRIAL)
    branch: int = _cycles(0, "after a taken branch, beyond its stall count", GUESS)
    code_line: int = _cycles(8, "between 128-byte lines of code that are fetched in order", GUESS)
    code_jump: int = _cycles(60, "until code is there that was not the next line", GUESS)
    start_cold: int = _cycles(1300, "before the first instruction of a launch, with cold caches", CHOSEN)
    start_warm: int = _cycles(500, "the same with warm caches", TRIAL)
    next_block: int = _cycles(300, "from the end of a block to the first instruction of its successor", GUESS)
    launch: int = _cycles(3200, "that a launch is elapsed beyond its active cycles", TRIAL)

    def table(self) -> list[tuple[str, int, str, str]]:
        """(name, value, meaning, source) of each constant."""
        return [
            (one.name, getattr(self, one.name), one.metadata["meaning"], one.metadata["source"])
            for one in fields(self)
        ]
