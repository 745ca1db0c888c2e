"""Opcodes that are known and not executed: what they write becomes unknown, and what they access is listed.

In: nothing. Out: records. An opcode that is in no table at all is treated worse (`memsim.sass.decode`): it
may have written any memory.
"""

from __future__ import annotations

import re

from memsim.isa.op import Form, Predicate
from memsim.isa.registry import not_executed

SHARED_READ = (("load", "shared"),)
INTO_SHARED = (("store", "shared"), ("load", "global"))
OUT_OF_SHARED = (("load", "shared"), ("store", "global"))


def _whole_fragment(form: Form) -> dict[int, int]:
    return {0: 4, 1: 4, 2: 4, 3: 4, 4: 1}


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


not_executed("BMMA", "QMMA", "OMMA", results="R", widths=_whole_fragment)
not_executed(
    "HGMMA", "QGMMA", "IGMMA", "BGMMA", results="R", widths=_group_fragment, touches=(("wgmma", "shared"),)
)
not_executed("TEX", "TLD4", "TXQ", "TMML", "TXD", results="P?RR", widths=_texels)
not_executed("SULD", results="P?R", widths=lambda form: {0: 4, 1: 4}, touches=(("load", "surface"),))
not_executed("SUST", "SURED", "SUATOM", touches=(("store", "surface"),))
not_executed("UBLKCP", "UBLKRED", touches=(("bulk", "shared"), ("bulk", "global")))
not_executed("UTMALDG", "UTMASTG", "UTMAREDG", touches=(("bulk", "shared"), ("bulk", "global")))
not_executed("GETLMEMBASE", "AL2P", "ALD", "AST", "S2UR_CLUSTER", "IPA", "PIXLD", results="R")
