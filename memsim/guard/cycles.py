"""Budgets of a whole launch: its lower bound in cycles, and that of each unit.

    bound(shared) <= bound(fma)        shared memory bounds the kernel no more than its arithmetic
    bound(shared) <= 80%               of the launch's bound
    cycles <= baseline                 the launch's bound, against the baseline's

The measured time of a launch plays no part here.
"""

from __future__ import annotations

from fractions import Fraction

from memsim.bound import UNITS, Bound
from memsim.errors import MemsimError
from memsim.guard.select import Scanner

WHOLE = "cycles"


def read_figure(scanner: Scanner) -> str | None:
    """`cycles`, or the unit of `bound(UNIT)`; None if neither follows.

    Raises:
        MemsimError: unknown unit.
    """
    if scanner.take(rf"{WHOLE}\b"):
        return WHOLE
    if scanner.take(r"bound\s*\(") is None:
        return None
    unit = scanner.one_of(UNITS, "unit")
    scanner.expect(r"\)", "')'")
    return unit


def shown(figure: str) -> str:
    """Its spelling in a budget."""
    return figure if figure == WHOLE else f"bound({figure})"


def cycles_of(bound: Bound, figure: str) -> Fraction:
    """The bound of a launch, or of one unit."""
    return Fraction(bound.cycles if figure == WHOLE else bound.cycles_of(figure))


def check_certain(kernel: str, bound: Bound) -> None:
    """Raise unless it is a bound of the whole launch and not an estimate."""
    reasons = list(bound.lacks)
    if bound.unknown:
        reasons.append(f"not measured: {', '.join(bound.unknown)}")
    if reasons:
        raise MemsimError(
            f"the bound of {kernel} in cycles is an estimate: {'; '.join(reasons)}",
            hint="it needs all blocks, machine code for a measured chip, and no unresolved access",
        )


def why_it_cannot_fail(figure: str, relation: str, other: str | None) -> str | None:
    """None if some launch can break it; `other` is the quantity on the right, None for a number."""
    if other is None:
        return None
    larger = {(WHOLE, unit) for unit in UNITS} | {("l1_data", "shared")}
    if figure == other and relation in ("<=", "==", ">="):
        return f"both sides are {shown(figure)}"
    if ((other, figure) in larger and relation == "<=") or ((figure, other) in larger and relation == ">="):
        return f"{shown(min(figure, other, key=lambda one: (one == WHOLE, one != 'shared')))} is a part of it"
    return None
