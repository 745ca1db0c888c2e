"""Multiprocessors with programs that are written by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memsim.time.handovers import BlockHandovers
from memsim.time.hardware_units import NEVER, Way
from memsim.time.latencies import Latencies
from memsim.time.multiprocessor import REASONS, Multiprocessor, Setup
from memsim.time.repeated_states import run_to_end
from memsim.time.resident_warps import LaunchedBlocks
from memsim.time.timed_instructions import TimedInstruction, wait_behind_barriers

#: Constants that are easy to reckon with; code is there from the start.
PLAIN = Latencies(
    queue=2,
    shared_queue=1,
    to_memory=3,
    operands_read=6,
    barrier=10,
    arrival=0,
    branch=0,
    code_first=0,
    constant_line=0,
    next_start=0,
    next_block=100,
    successors=0,
)
PLAIN_WAY = Way((200,), (200,), 1.0, 1.0)
PLAINLY = frozenset({"instruction cache"})


def program(*lines: dict[str, object]) -> list[TimedInstruction]:
    """Instructions by what is not as by default. Those of pipes but memory's pass barriers."""
    made = [TimedInstruction(index, **line) for index, line in enumerate(lines)]  # type: ignore[arg-type]
    wait_behind_barriers(made, [one.pipe not in ("", "memory") for one in made])
    return made


def processor(
    instructions: Sequence[TimedInstruction],
    streams: Sequence[Sequence[int]],
    blocks: int = 1,
    resident: int = 1,
    off: frozenset[str] = PLAINLY,
    set_to: Latencies = PLAIN,
    way: Way = PLAIN_WAY,
    spare: bool = False,
    handovers: Sequence[BlockHandovers] = (),
    **first: int,
) -> Multiprocessor:
    """A multiprocessor before its first cycle, whose launch starts at 0. first: more of `Setup`."""
    setup = Setup(set_to, ways=(way,), write_cost=1.0, start=0, off=off, **first)
    arrays = [np.array(stream, np.int32) for stream in streams]
    launched = LaunchedBlocks([arrays], blocks, spare=spare, handovers=handovers)
    return Multiprocessor(setup, instructions, launched, resident)


def ran(*how: object, skips: bool = False, **more: object) -> Multiprocessor:
    """The same, after its last cycle."""
    made = processor(*how, **more)  # type: ignore[arg-type]
    assert run_to_end(made, skips, NEVER)
    return made


def cycles_for(made: Multiprocessor, reason: str) -> int:
    """Cycles of all warps for a reason."""
    return sum(waits[REASONS.index(reason)] for waits in made.waits)
