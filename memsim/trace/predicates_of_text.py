"""The predicates of an instruction, from its text in machine code."""

from __future__ import annotations

import re

GUARD = re.compile(r"@(!?U?P[0-9])")
CONDITION = re.compile(r"\], !?(U?P[0-9])$")


def guard_of(sass: str) -> str:
    """The predicate that can switch lanes off, `P2` or `!P0`; "" if there is none."""
    found = GUARD.match(sass)
    return found[1] if found else ""


def condition_of(sass: str) -> str:
    """`P0` of `LDGSTS.E.BYPASS.128 [R3], desc[UR4][R2.64], P0`: in which lanes a copy reads; others write
    zeros. "" if all read.
    """
    found = CONDITION.search(sass)
    return found[1] if found else ""
