"""Profiles as a GPU would give them if memsim were right: made of its predictions."""

from __future__ import annotations

from collections.abc import Sequence

from memsim.analysis import analyze_trace
from memsim.targets.target import Work
from memsim.validate.code_profile import CodeProfile
from memsim.validate.instructions import accesses_by_address
from memsim.validate.live import CodeLaunch
from memsim.validate.predict import predict
from memsim.validate.report import SOURCE_METRICS, Counted

PADDING = ("NOP", "BRA")


def profiled(launch: CodeLaunch, metrics: Sequence[str] | None = None) -> CodeProfile:
    """The launch's profile with everything, or in one pass with these counters only."""
    analysis = analyze_trace(Work(launch.kernel, launch.launch, launch.args).trace())
    shape = launch.launch
    counters = {name: Counted(value or 0, "") for name, value in analysis.totals.items()}
    if metrics is not None:
        chosen = {name: counters.get(name, Counted(0, "")) for name in metrics}
        return CodeProfile(launch.kernel.name, shape.grid, shape.block, 1, chosen)
    figures = {
        address: predict(accesses, analysis.arch).figures
        for address, accesses in accesses_by_address(analysis.trace).items()
    }
    ops = list(launch.machine.program.ops)
    while ops[-1].form.opcode in PADDING:
        ops.pop()
    return CodeProfile(
        kernel=launch.kernel.name,
        grid=shape.grid,
        block=shape.block,
        passes=9,
        counters=counters,
        addresses=tuple(op.address for op in ops),
        sass=tuple(op.text for op in ops),
        figures={
            name: tuple(figures.get(op.address, {}).get(name, 0 if number < 2 else None) for op in ops)
            for number, name in enumerate(SOURCE_METRICS)
        },
    )
