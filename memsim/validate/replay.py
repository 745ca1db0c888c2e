"""Predicts a recorded launch and compares it with the recording."""

from __future__ import annotations

from functools import cache

from memsim.analysis import Analysis
from memsim.errors import MemsimError
from memsim.kernels import catalog
from memsim.validate.code_recording import CodeRecording
from memsim.validate.compare_instructions import CodeComparison, compare_code


def replay(recording: CodeRecording) -> CodeComparison:
    """Predict the recorded launch of a kernel of the catalogue and compare.

    Raises:
        MemsimError: no such kernel, or its machine code is not the recorded one.
    """
    spec = catalog()[recording.name].pick(recording.extents)
    if spec.kernel().origin.digest != recording.code.digest:
        raise _changed(recording.name, recording.date)
    shape, launch = spec.job(recording.extents).launch, recording.launch
    if (shape.grid, shape.block, shape.shared_bytes) != (launch.grid, launch.block, launch.shared_bytes):
        raise _changed(recording.name, recording.date)
    return compare_code(recording.profiles, _analysis(spec.name, recording.extents))


def _changed(kernel: str, date: str) -> MemsimError:
    return MemsimError(
        f"{kernel} has changed since it was recorded on {date}",
        hint=f"memsim validate {kernel} --live --record makes a new recording",
    )


@cache
def _analysis(kernel: str, size: tuple[int, ...]) -> Analysis:
    """Cached, because it is the same for every GPU on which a launch was recorded."""
    return catalog()[kernel].analyze(size)
