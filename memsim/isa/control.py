"""Opcodes of control flow and synchronization, those without a relevant effect, and those that are known but
not executed: what these write becomes unknown, and their accesses are listed.

An opcode that is in no table may do anything (`memsim.sass.decode`). Source: PTX ISA for barriers; for BSSY,
BSYNC, BREAK and WARPSYNC the counters of an H100 and an H200 (docs/model.md); CUDA Binary Utilities, Hopper
instruction set, for the names of what is not executed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from memsim.isa.definitions import BoundForm, Compute, define, executes
from memsim.isa.memory_access import register_count
from memsim.isa.op import UNIFORM_PREDICATE, Barrier, Effect, Flow, Form, Label, Operand, Trait
from memsim.isa.program import Op
from memsim.isa.readers import IntReader

#: Those of `cuda_device_runtime_api.h` by which kernels of Numba wait for their whole grid.
GRID_HANDLE, GRID_SYNCHRONIZE = "cudaCGGetIntrinsicHandle", "cudaCGSynchronize"
#: That of an `assert` that does not hold.
ASSERTION = "__assertfail"
#: Functions of the driver, whose code no file has, or code that needs more of the driver.
DRIVER_FUNCTIONS = frozenset({"vprintf", "malloc", "free", ASSERTION, GRID_HANDLE, GRID_SYNCHRONIZE})


def driver_function(op: Op) -> str | None:
    """The driver's function that a call names, which is in no listing; None if it names none."""
    names = (operand.name for operand in op.form.operands if isinstance(operand, Label))
    return None if op.targets else next((name for name in names if name in DRIVER_FUNCTIONS), None)


def control(
    names: str,
    flow: Flow,
    signature: str = "<-",
    modifiers: str | None = None,
    traits: Mapping[str, Trait] | None = None,
) -> None:
    """Define instructions of control flow."""
    define(names, signature, modifiers, effect=Effect.CONTROL, flow=flow, traits=traits or {})


_OF_BARRIERS = {"RED": Trait.REDUCES, "POPC": Trait.COUNTS, "AND": Trait.ALL_OF, "ARV": Trait.ARRIVES}

control("EXIT", Flow.EXIT)
control("BRA", Flow.BRANCH, modifiers="")
control("BRA.U", Flow.BRANCH, modifiers="", traits={"": Trait.UNANIMOUS})
control("BRA.DIV", Flow.BRANCH_DIVERGED, modifiers="")
control("BRA.CONV", Flow.BRANCH_DIVERGED, modifiers="", traits={"": Trait.CONVERGED})
control("BRA.U.ANY", Flow.BRANCH_ANY, modifiers="")
control("BRX", Flow.INDEXED, "<- R2")
control("CALL", Flow.CALL, "<- R2?", traits={"REL": Trait.RELATIVE, "ABS": Trait.ABSOLUTE})
control("RET", Flow.RETURN, "<- R2", traits={"ABS": Trait.ABSOLUTE})
control("BSSY", Flow.SET_BARRIER, "<- B+L")
control("BSYNC", Flow.WAIT_BARRIER, "<- P?B")
control("BREAK", Flow.LEAVE_BARRIER, "<- P?B+")
control("WARPSYNC", Flow.WARP_SYNC, traits={"EXCLUSIVE": Trait.EXCLUSIVE, "COLLECTIVE": Trait.COLLECTIVE})
control("BAR", Flow.BLOCK_BARRIER, traits=_OF_BARRIERS)
control("UCGABAR_ARV", Flow.ARRIVE_CLUSTER)
control("UCGABAR_WAIT", Flow.WAIT_CLUSTER)
control("BPT.TRAP", Flow.TRAP, modifiers="")
control("BPT", Flow.UNKNOWN)
control("YIELD", Flow.YIELD)
control("ENDCOLLECTIVE", Flow.END_COLLECTIVE)
control("NANOSLEEP", Flow.SLEEP)
control("KILL JMP JMX JMXU BRXU RTT SETLMEMBASE SETCTAID", Flow.UNKNOWN)

# Memory order, caches, time and power: no value, address or branch depends on them here. Only opcodes in this
# list are silent; tests/isa/test_silent.py checks it against NVIDIA's table.
define("PMTRIG PREEXIT SETMAXREG WARPGROUPSET", "<-", None, effect=Effect.NONE)
define("NOP", "<-", None, effect=Effect.NONE, traits={"": Trait.IDLES})
define("ACQBULK", "<-", None, effect=Effect.NONE, traits={"": Trait.WAITS_FOR_LAUNCH})
define("WARPGROUP", "<-", None, effect=Effect.NONE, traits={"ARRIVE": Trait.BEGINS_PRODUCTS})
define("FENCE ERRBAR CGAERRBAR", "<-", None, effect=Effect.NONE)
_OF_FENCES = {**dict.fromkeys(("GPU", "SYS", "VC"), Trait.FENCES), "CTA": Trait.FENCES_BLOCK}
define("MEMBAR", "<-", None, effect=Effect.NONE, traits=_OF_FENCES)
define("CCTLL CCTLT UTMACCTL UTMAPF UBLKPF", "<-", None, effect=Effect.NONE)


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


# --- known and not executed ------------------------------------------------------------------

#: Cache operations of CCTL that do not affect the value of a load: drop, write back, fetch, age.
HARMLESS = "C LDCU DEEP E U C I IV IVALL IVALLP WB WBALL RS RSLB LTC64B LTC128B PF1 PF1.5 PF2 PML2 DML2"


def _group_fragment(form: Form) -> str:
    """`64xNxK`: N / 2 words of float32 in each of 128 lanes, half of that for float16."""
    shape = next(
        (re.fullmatch(r"64x(\d+)x\d+", name) for name in form.modifiers if name.startswith("64x")), None
    )
    columns = int(shape[1]) if shape else 256
    words = columns // 4 if "F16" in form.modifiers else columns // 2
    return f"R{words} <- V4 V{words} V{words}"


def _of_surface(form: Form) -> str:
    """Bytes as they are (`.D`) or the channels of a texel."""
    return f"P?R{register_count(form) if 'D' in form.modifiers else 4} <-"


# --- memory ---------------------------------------------------------------------------------

define("BGMMA", _group_fragment, None, touches=(("wgmma", "shared"),))
define("LDGMC", "R4 <- A", None, touches=(("load", "global"),))
define("SULD", _of_surface, None, touches=(("surface_load", "global"),))
define("SUST", "<-", None, touches=(("surface_store", "global"),))
define("SURED", "<-", None, touches=(("surface_reduction", "global"),))
define("SUATOM", "P?R2 <-", None, touches=(("surface_atomic", "global"),))
define("TMML", "P?R2R2 <- R4", None, touches=(("load", "texture"),))
define("CCTL", "<- a?", HARMLESS, effect=Effect.NONE, traits={"IVALL": Trait.REFRESHES})
define("CCTL", "<- a?", None, touches=(("discard", "global"),))  # `CCTL.RML2` leaves undefined memory

# --- registers only ------------------------------------------------------------------------

define("BMMA QMMA OMMA", "R4 <- V4V4V4", None)
define("TXQ", "P?R2R2 <- R4", None)
define("GETLMEMBASE AL2P ALD S2UR_CLUSTER IPA PIXLD", "R <-", None)
# Of older chips, or found in no compiled kernel.
define("FADD32I FMUL32I FFMA32I FSWZADD HADD2_32I HMUL2_32I HFMA2_32I", "R <-", None)
define("IADD32I IMUL IMUL32I ISCADD ISCADD32I LOP LOP32I", "P?RP? <-", None)
define("SHL SHR MOV32I IDP4A I2IP R2B", "R <-", None)
define("UCLEA UF2FP ULOP ULOP32I USHL USHR", "P?R <-", None)
define("ULEPC", "R2 <-", None)
define("PSETP UPSETP", "PP <-", None)
define("UR2UP", "<-", None, written=lambda form: list(range(UNIFORM_PREDICATE, UNIFORM_PREDICATE + 7)))
