"""Measures a suggested change: the original and the changed kernel, each compared with its prediction."""

from __future__ import annotations

from dataclasses import dataclass

from memsim.analysis import Analysis
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.validate.code_recording import CodeRecording
from memsim.validate.compare_instructions import CodeComparison, compare_code
from memsim.validate.live import measure
from memsim.validate.under_ncu import Progress


@dataclass(frozen=True, slots=True)
class Verified:
    """What a GPU counts before and after a change.

    recordings, comparisons: of the original kernel and of the changed one.
    """

    recordings: tuple[CodeRecording, CodeRecording]
    comparisons: tuple[CodeComparison, CodeComparison]


def verify(job: Job, before: Analysis, changed: Job, after: Analysis, progress: Progress = None) -> Verified:
    """Run both under Nsight Compute and compare.

    Raises:
        MemsimError: as in `memsim.validate.live.measure`; or the prediction is not for the whole grid.
    """
    if before.trace.blocks_replayed < before.trace.launch.blocks:
        raise MemsimError("the GPU runs all blocks, but not all were replayed", hint="omit --blocks")
    one, other = measure([job, changed], progress)
    return Verified((one, other), (compare_code(one.profiles, before), compare_code(other.profiles, after)))
