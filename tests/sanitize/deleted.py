"""Kernels whose machine code lacks a barrier or fence: what a sanitizer has to find."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from memsim.isa.program import Op
from memsim.job import Job
from memsim.kernel import Kernel


def ordering(kernel: Kernel, begins: tuple[str, ...] = ("BAR.",)) -> Iterator[Op]:
    """The instructions of a kernel that order accesses."""
    for op in kernel.executable.program.ops:
        if op.form.name.startswith(begins):
            yield op


def without(kernel: Kernel, *addresses: int) -> Kernel:
    """A kernel whose instructions at these addresses do nothing, or, if they wait for a phase of an mbarrier,
    find it over.
    """
    texts = {op.address: _instead(op.text) for op in kernel.executable.program.ops if op.address in addresses}
    return changed(kernel, texts)


def changed(kernel: Kernel, texts: Mapping[int, str]) -> Kernel:
    """A kernel with other instructions at some addresses; one of another opcode is executed by all lanes."""
    machine = kernel.machine
    listing = machine.module.listings[machine.name]
    lines = tuple(
        replace(line, guard=line.guard if _opcode(line.text) == _opcode(text) else None, text=text)
        if (text := texts.get(line.address)) is not None
        else line
        for line in listing.lines
    )
    module = replace(machine.module)
    module.__dict__["listings"] = {machine.name: replace(listing, lines=lines)}
    return replace(kernel, machine=replace(machine, module=module))


def _opcode(text: str) -> str:
    return text.split()[0]


def _instead(text: str) -> str:
    over = re.search(r"PHASECHK\S* (P\d)", text)
    return "NOP" if over is None else f"ISETP.EQ.AND {over[1]}, PT, RZ, RZ, PT"


def job_without(job: Job, *addresses: int) -> Job:
    """A job of such a kernel."""
    return replace(job, kernel=without(job.loaded, *addresses), args=job.values)


def job_with(job: Job, texts: Mapping[int, str]) -> Job:
    """A job of a kernel with other instructions."""
    return replace(job, kernel=changed(job.loaded, texts), args=job.values)
