"""Opcodes that are known but not executed: what they write becomes unknown, and their accesses are listed.

An opcode that is in no table may do anything (`memsim.sass.decode`). Source of the names: CUDA Binary
Utilities, Hopper instruction set.
"""

from __future__ import annotations

import re

from memsim.isa.op import UNIFORM_PREDICATE, Effect, Form, Predicate
from memsim.isa.registry import Touches, not_executed

#: Cache operations of CCTL that do not affect the value of a load: drop, write back, fetch, age.
HARMLESS = frozenset(
    "E U C I IV IVALL IVALLP WB WBALL RS RSLB LTC64B LTC128B PF1 PF1.5 PF2 PML2 DML2".split()
)


def _group_fragment(form: Form) -> dict[int, int]:
    """`64xNxK`: N / 2 words of float32 in each of 128 lanes, half of that for float16."""
    shape = next(
        (re.fullmatch(r"64x(\d+)x\d+", name) for name in form.modifiers if name.startswith("64x")), None
    )
    columns = int(shape[1]) if shape else 256
    words = columns // 4 if "F16" in form.modifiers else columns // 2
    return {0: words, 1: 4, 2: words, 3: words}


def _texels(form: Form) -> dict[int, int]:
    first = 1 if isinstance(form.operands[0], Predicate) else 0
    return {first: 2, first + 1: 2, first + 2: 4}


def _discarded(form: Form) -> Touches:
    """`CCTL.RML2` (PTX: `discard`) leaves undefined memory."""
    return () if HARMLESS.issuperset(form.modifiers) else (("discard", "global"),)


def _effect_of_discarding(form: Form) -> Effect:
    return Effect.MEMORY if _discarded(form) else Effect.NONE


# --- memory ---------------------------------------------------------------------------------

not_executed("BGMMA", results="R", widths=_group_fragment, touches=(("wgmma", "shared"),))
not_executed("LDGMC", results="R", widths={0: 4}, touches=(("load", "global"),))
not_executed("SULD", results="P?R", widths={0: 4, 1: 4}, touches=(("surface_load", "global"),))
not_executed("SUST", touches=(("surface_store", "global"),))
not_executed("SURED", touches=(("surface_reduction", "global"),))
not_executed("SUATOM", results="P?R", widths={0: 2, 1: 2}, touches=(("surface_atomic", "global"),))
not_executed("TMML", results="P?RR", widths=_texels, touches=(("load", "texture"),))
not_executed("CCTL", touches=_discarded, effect=_effect_of_discarding)

# --- registers only ------------------------------------------------------------------------

not_executed("BMMA", "QMMA", "OMMA", results="R", widths={0: 4, 1: 4, 2: 4, 3: 4})
not_executed("TXQ", results="P?RR", widths=_texels)
not_executed("GETLMEMBASE", "AL2P", "ALD", "S2UR_CLUSTER", "IPA", "PIXLD", results="R")
# Of older chips, or found in no compiled kernel.
not_executed("FADD32I", "FMUL32I", "FFMA32I", "FSWZADD", "HADD2_32I", "HMUL2_32I", "HFMA2_32I", results="R")
not_executed("IADD32I", "IMUL", "IMUL32I", "ISCADD", "ISCADD32I", "LOP", "LOP32I", results="P?RP?")
not_executed("SHL", "SHR", "MOV32I", "IDP4A", "I2IP", "R2B", results="R")
not_executed("UCLEA", "UF2FP", "ULOP", "ULOP32I", "USHL", "USHR", results="P?R")
not_executed("ULEPC", results="R", widths={0: 2})
not_executed("PSETP", "UPSETP", results="PP")
not_executed("UR2UP", written=lambda form: list(range(UNIFORM_PREDICATE, UNIFORM_PREDICATE + 7)))
