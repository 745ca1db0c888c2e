"""Opcodes that are known but not executed: what they write becomes unknown, and their accesses are listed.

An opcode that is in no table may do anything (`memsim.sass.decode`). Source of the names: CUDA Binary
Utilities, Hopper instruction set.
"""

from __future__ import annotations

import re

from memsim.isa.definitions import define
from memsim.isa.op import UNIFORM_PREDICATE, Effect, Form

#: Cache operations of CCTL that do not affect the value of a load: drop, write back, fetch, age.
HARMLESS = "E U C I IV IVALL IVALLP WB WBALL RS RSLB LTC64B LTC128B PF1 PF1.5 PF2 PML2 DML2"


def _group_fragment(form: Form) -> str:
    """`64xNxK`: N / 2 words of float32 in each of 128 lanes, half of that for float16."""
    shape = next(
        (re.fullmatch(r"64x(\d+)x\d+", name) for name in form.modifiers if name.startswith("64x")), None
    )
    columns = int(shape[1]) if shape else 256
    words = columns // 4 if "F16" in form.modifiers else columns // 2
    return f"R{words} <- V4 V{words} V{words}"


# --- memory ---------------------------------------------------------------------------------

define("BGMMA", _group_fragment, None, touches=(("wgmma", "shared"),))
define("LDGMC", "R4 <- A", None, touches=(("load", "global"),))
define("SULD", "P?R4 <-", None, touches=(("surface_load", "global"),))
define("SUST", "<-", None, touches=(("surface_store", "global"),))
define("SURED", "<-", None, touches=(("surface_reduction", "global"),))
define("SUATOM", "P?R2 <-", None, touches=(("surface_atomic", "global"),))
define("TMML", "P?R2R2 <- R4", None, touches=(("load", "texture"),))
define("CCTL", "<- a?", HARMLESS, effect=Effect.NONE)
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
