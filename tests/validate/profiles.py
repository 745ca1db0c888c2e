"""Profiles as a GPU would give them if memsim were right: made of its predictions."""

from __future__ import annotations

from collections.abc import Sequence

from memsim.analysis import analyze_trace
from memsim.api.running import trace_job
from memsim.job import Job
from memsim.validate.compare_instructions import accesses_by_address
from memsim.validate.predict import predict
from memsim.validate.profiles import CODE_METRICS, CodeProfile, Counted

PADDING = ("NOP", "BRA")


def profiled(job: Job, metrics: Sequence[str] | None = None) -> CodeProfile:
    """The job's profile with everything, or in one pass with these counters only."""
    analysis = analyze_trace(trace_job(job))
    shape = job.launch
    counters = {name: Counted(value or 0, "") for name, value in analysis.totals.items()}
    if metrics is not None:
        chosen = {name: counters.get(name, Counted(0, "")) for name in metrics}
        return CodeProfile(job.loaded.name, shape.grid, shape.block, 1, chosen)
    figures = {
        address: predict(accesses, analysis.arch)
        for address, accesses in accesses_by_address(analysis.trace).items()
    }
    ops = list(job.loaded.machine.program.ops)
    while ops[-1].form.opcode in PADDING:
        ops.pop()
    return CodeProfile(
        kernel=job.loaded.name,
        grid=shape.grid,
        block=shape.block,
        passes=9,
        counters=counters,
        addresses=tuple(op.address for op in ops),
        sass=tuple(op.text for op in ops),
        figures={
            name: tuple(figures.get(op.address, {}).get(name, 0 if number < 2 else None) for op in ops)
            for number, name in enumerate(CODE_METRICS)
        },
    )
