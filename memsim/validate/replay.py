"""Predicts a recorded launch and compares it with the recording."""

from __future__ import annotations

from collections import defaultdict
from functools import cache

from memsim.analysis import Analysis, analyze_trace
from memsim.errors import MemsimError
from memsim.kernel import PtxKernel
from memsim.kernels import Spec, catalog
from memsim.ptx.program import Function, SourceLine
from memsim.validate.code_recording import CodeRecording
from memsim.validate.compare_instructions import CodeComparison, compare_code
from memsim.validate.compare_lines import Calls, RecordingComparison, compare
from memsim.validate.live import digest
from memsim.validate.recording import Recording


def replay(recording: Recording) -> RecordingComparison:
    """Predict the recorded launch and compare.

    Raises:
        MemsimError: no such kernel, or its PTX is not the recorded one.
    """
    spec = catalog()[recording.kernel].pick(recording.size)
    if digest(spec.ptx()) != recording.ptx:
        raise _changed(recording.kernel, recording.date)
    return compare(recording, _analysis(spec.name, recording.size), calls_of(_function(spec)))


def replay_code(recording: CodeRecording) -> CodeComparison:
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
    return compare_code(recording.profiles, _code_analysis(spec.name, recording.extents))


def _changed(kernel: str, date: str) -> MemsimError:
    return MemsimError(
        f"{kernel} has changed since it was recorded on {date}",
        hint=f"memsim validate {kernel} --live --record makes a new recording",
    )


@cache
def _code_analysis(kernel: str, size: tuple[int, ...]) -> Analysis:
    """Cached, because it is the same for every GPU on which a launch was recorded."""
    return catalog()[kernel].analyze(size)


@cache
def _analysis(kernel: str, size: tuple[int, ...]) -> Analysis:
    """Cached, because it is the same for every GPU on which a launch was recorded."""
    return analyze_trace(catalog()[kernel].trace(size, code="ptx"))


def _function(spec: Spec) -> Function:
    """The kernel as PTX, which the driver compiled for the recording."""
    code = spec.kernel("ptx").code
    assert isinstance(code, PtxKernel)
    return code.function


def calls_of(function: Function) -> Calls:
    """For each line of an inlined function, the lines that call it, directly or indirectly."""
    calls: dict[tuple[str, int], set[tuple[str, int]]] = defaultdict(set)
    for instruction in function.instructions:
        line = instruction.source
        caller: SourceLine | None = line.inlined_at if line else None
        while line is not None and caller is not None:
            calls[line.file, line.line].add((caller.file, caller.line))
            caller = caller.inlined_at
    return calls
