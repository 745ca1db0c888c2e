"""What a budget can say of a launch as a whole: its lower bound in cycles, and that of each unit.

    bound(shared) <= bound(fma)        shared memory does not bound the kernel more than its arithmetic
    bound(shared) <= 80%               of the launch's bound
    cycles <= baseline                 the launch's bound, against the baseline's

In: a `Bound` and the name of a figure, `cycles` or a unit's. Out: the figure. Left out on purpose: the
measured time of a launch.
"""

from __future__ import annotations

from fractions import Fraction

from memsim.bound import UNITS, Bound
from memsim.errors import MemsimError
from memsim.guard.scanner import Scanner

WHOLE = "cycles"


def read_figure(scanner: Scanner) -> str | None:
    """`cycles`, or the unit of `bound(UNIT)`; None if something else comes.

    Raises:
        MemsimError: there is no such unit.
    """
    if scanner.take(rf"{WHOLE}\b"):
        return WHOLE
    if scanner.take(r"bound\s*\(") is None:
        return None
    unit = scanner.one_of(r"\w+", UNITS, "unit")
    scanner.expect(r"\)", "')'")
    return unit


def shown(figure: str) -> str:
    """As it is written."""
    return figure if figure == WHOLE else f"bound({figure})"


def cycles_of(bound: Bound, figure: str) -> Fraction:
    """The figure of a launch."""
    return Fraction(bound.cycles if figure == WHOLE else bound.cycles_of(figure))


def check_certain(kernel: str, bound: Bound) -> None:
    """Is it a bound of the whole launch, and no estimate?

    Raises:
        MemsimError: it is not.
    """
    reasons = list(bound.lacks)
    if bound.unknown:
        reasons.append(f"not measured: {', '.join(bound.unknown)}")
    if reasons:
        raise MemsimError(
            f"the bound of {kernel} in cycles is an estimate: {'; '.join(reasons)}",
            hint="it needs all blocks, machine code of a chip that was measured, and every access analyzed",
        )


def why_it_cannot_fail(figure: str, relation: str, other: str | None) -> str | None:
    """None if some launch breaks it; `other` is the figure on the right, None for a number."""
    if other is None:
        return None
    larger = {(WHOLE, unit) for unit in UNITS} | {("l1_data", "shared")}
    if figure == other and relation in ("<=", "==", ">="):
        return f"both sides are {shown(figure)}"
    if ((other, figure) in larger and relation == "<=") or ((figure, other) in larger and relation == ">="):
        return f"{shown(min(figure, other, key=lambda one: (one == WHOLE, one != 'shared')))} is a part of it"
    return None
