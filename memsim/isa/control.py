"""Opcodes of control flow and synchronization, and those without a relevant effect.

Source: PTX ISA for barriers; for BSSY, BSYNC, BREAK and WARPSYNC the counters of an H100 and an H200
(docs/model.md).
"""

from __future__ import annotations

from memsim.isa.definitions import BoundForm, Compute, executes
from memsim.isa.mbarrier import is_wait
from memsim.isa.op import Barrier, Effect, Flow, Form, Op, Operand
from memsim.isa.readers import IntReader
from memsim.isa.registry import control, silent

#: Functions of the driver, whose code no file has.
DRIVER_FUNCTIONS = frozenset({"vprintf", "malloc", "free", "__assertfail"})

control("EXIT", flow=Flow.EXIT)
control("BRA", flow=Flow.BRANCH)
control("BRX", flow=Flow.INDEXED, widths={0: 2})
control("CALL", flow=Flow.CALL, widths={0: 2})
control("RET", flow=Flow.RETURN, widths={0: 2})
control("BSSY", flow=Flow.SET_BARRIER)
control("BSYNC", flow=Flow.WAIT_BARRIER)
control("BREAK", flow=Flow.LEAVE_BARRIER)
control("WARPSYNC", flow=Flow.WARP_SYNC)
control("BAR", flow=Flow.BLOCK_BARRIER)
control("UCGABAR_ARV", flow=Flow.ARRIVE_CLUSTER)
control("UCGABAR_WAIT", flow=Flow.WAIT_CLUSTER)
control("BPT", flow=Flow.TRAP)
control("YIELD", flow=Flow.YIELD)
control("ENDCOLLECTIVE", flow=Flow.END_COLLECTIVE)
control("NANOSLEEP", flow=Flow.SLEEP)
control("KILL", "JMP", "JMX", "JMXU", "BRXU", "RTT", "SETLMEMBASE", "SETCTAID", flow=Flow.UNKNOWN)


def flow_of(form: Form, flow: Flow) -> Flow | None:
    """What a control-flow instruction does, by its modifiers; None if this form has no effect."""
    modifiers = form.modifiers
    if flow is Flow.WAIT_PHASE:
        return flow if is_wait(form) else None
    if form.opcode == "BRA":
        if modifiers == ("DIV",):
            return Flow.BRANCH_DIVERGED
        if modifiers == ("U", "ANY"):
            return Flow.BRANCH_ANY
        return Flow.BRANCH if modifiers in ((), ("U",)) else Flow.UNKNOWN
    if form.opcode == "BPT" and modifiers != ("TRAP",):
        return Flow.UNKNOWN
    return flow


# Memory order, caches, time and power: no value, address or branch depends on them here. Only opcodes in this
# list are silent; tests/isa/test_silent.py checks it against NVIDIA's table.
silent("NOP", "PMTRIG", "PREEXIT", "ACQBULK", "SETMAXREG", "WARPGROUP", "WARPGROUPSET")
silent("MEMBAR", "FENCE", "ERRBAR", "CGAERRBAR")
silent("CCTLL", "CCTLT", "UTMACCTL", "UTMACMDFLUSH", "UTMAPF", "UBLKPF")


def is_fence_of_system(op: Op) -> bool:
    """Is it a fence for the whole system? On some machines a warp also makes a store for it."""
    return op.form.opcode == "MEMBAR" and "SYS" in op.form.modifiers


@executes("USETMAXREG.TRY_ALLOC.CTAPOOL USETMAXREG.DEALLOC.CTAPOOL", "P? <- V")
def set_registers(form: BoundForm, count: Operand) -> Compute:
    """A warp releases registers, or waits until more are available: here they always are."""
    return lambda r: True


@executes("B2R", "WP? <-", None, effect=Effect.LANES)
def barrier_result(form: BoundForm) -> Compute:
    """The result of the last block barrier with a reduction: a count, and whether it is not zero."""
    return lambda r, warps: warps.barrier_result()


@executes("BMOV", "W <- W", "32 64 CLEAR PQUAD", effect=Effect.LANES)
def move_to_barrier(form: BoundForm, read: IntReader) -> Compute:
    """A mask of lanes becomes those of a convergence barrier."""
    return lambda r, warps: read(r)


@executes("BMOV", "W <- B", "32 64 CLEAR PQUAD", effect=Effect.LANES)
def move_barrier(form: BoundForm, source: Barrier) -> Compute:
    """The lanes of a convergence barrier."""
    slot = source.slot
    return lambda r, warps: warps.barrier_members(slot)
