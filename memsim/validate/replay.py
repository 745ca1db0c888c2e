"""The prediction for a recorded launch, set beside the recording.

In: a `Recording` of a kernel of the catalogue. Out: `Comparison`.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache

from memsim.analysis import Analysis
from memsim.errors import MemsimError
from memsim.kernels import catalog
from memsim.ptx.program import Function, SourceLine
from memsim.validate.compare import Calls, Comparison, compare
from memsim.validate.live import digest
from memsim.validate.recording import Recording


def replay(recording: Recording) -> Comparison:
    """Predicts the recorded launch and compares.

    Raises:
        MemsimError: no such kernel, or its PTX is not the one that was recorded.
    """
    spec = catalog()[recording.kernel].pick(recording.size)
    if digest(spec.ptx()) != recording.ptx:
        raise MemsimError(
            f"{recording.kernel} has changed since it was recorded on {recording.date}",
            hint=f"memsim validate {recording.kernel} --live --record makes a new recording",
        )
    return compare(recording, _analysis(spec.name, recording.size), calls_of(spec.kernel().function))


@cache
def _analysis(kernel: str, size: tuple[int, ...]) -> Analysis:
    """The same for every GPU that a launch was recorded on."""
    return catalog()[kernel].analyze(size)


def calls_of(function: Function) -> Calls:
    """For each line of an inlined function, the lines that call it, directly or through others."""
    calls: dict[tuple[str, int], set[tuple[str, int]]] = defaultdict(set)
    for instruction in function.instructions:
        line = instruction.source
        caller: SourceLine | None = line.inlined_at if line else None
        while line is not None and caller is not None:
            calls[line.file, line.line].add((caller.file, caller.line))
            caller = caller.inlined_at
    return calls
