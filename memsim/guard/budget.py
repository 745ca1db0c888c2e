"""The budget language.

    ways <= 1                          no row of the kernel has a bank conflict
    wavefronts <= ideal                each row reaches its ideal
    sectors_per_request <= 4           each row
    wavefronts <= 6_815_744            sum over the kernel's rows
    excess < 5%                        of the kernel's wavefronts, and of its sectors
    wavefronts <= baseline             each row against the same row in the baseline
    sites(store).conflicts == 0        only stores (see `memsim.guard.select`)
    wavefronts < sites(kernel=old).wavefronts                       the sum, against another kernel's
    sites(load).requests <= 25% of sites(kernel=old, load).requests
    baseline                           every count of every row equals the baseline
    bound(shared) <= bound(fma)        of the launch's lower bound in cycles: shared memory bounds it no
                                       more than its arithmetic
    bound(shared) <= 80%               of the launch's bound
    cycles <= baseline                 the launch's bound, against the baseline's
    time <= 1.05 * baseline            the launch's estimated time, in cycles (docs/time.md); it is estimated
                                       only for kernels that have such a budget

A budget applies to one kernel at a time; only what it is compared with may be of another. One that no count
can break is an error. Errors have a column. Whether a budget holds is decided by `memsim.guard.judge`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from memsim.bound import UNITS, Bound
from memsim.errors import MemsimError
from memsim.guard.quantities import QUANTITIES, Quantity
from memsim.guard.select import EVERYTHING, Scanner, Selector, read_selector

WHOLE, TIME = "cycles", "time"


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


def figure_name(figure: str) -> str:
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
        return f"both sides are {figure_name(figure)}"
    if ((other, figure) in larger and relation == "<=") or ((figure, other) in larger and relation == ">="):
        part = min(figure, other, key=lambda one: (one == WHOLE, one != "shared"))
        return f"{figure_name(part)} is a part of it"
    return None


EVERY_COUNT = "baseline"
RELATIONS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}
IDEAL, BASELINE = "ideal", "baseline"
NUMBER = r"[0-9][0-9_]{0,30}(\.[0-9]{1,30})?(?![\w.])"


@dataclass(frozen=True, slots=True)
class Budget:
    """A parsed budget.

    quantity None is the budget `baseline`: every count. reference: "ideal" or "baseline" if the limit is not
    a number. percent: `limit` is a percentage of the quantity's whole. compared: accesses whose sum, times
    `limit`, is the limit; of the same kernel unless it names others. figure: the quantity of a budget of
    cycles or of time; other: the one that it is compared with, if any. Of time `limit` times the baseline's
    is the limit, if `reference` is "baseline".
    """

    text: str
    selector: Selector = EVERYTHING
    quantity: Quantity | None = None
    relation: str = "<="
    limit: Fraction = Fraction(0)
    percent: bool = False
    reference: str | None = None
    compared: Selector | None = None
    figure: str | None = None
    other: str | None = None

    @property
    def needs_baseline(self) -> bool:
        """Whether it requires a baseline."""
        return (self.quantity is None and self.figure is None) or self.reference == BASELINE

    def holds(self, value: Fraction, limit: Fraction) -> bool:
        """Whether `value` is within `limit`."""
        return RELATIONS[self.relation](value, limit)


def parse_budget(text: str) -> Budget:
    """Parse a budget.

    Raises:
        MemsimError: with the column of the mistake.
    """
    scanner = Scanner(text)
    if scanner.take(rf"{EVERY_COUNT}\s*$"):
        return Budget(text.strip())
    if scanner.take(rf"{TIME}\b"):
        return _of_time(scanner, text.strip())
    figure = read_figure(scanner)
    if figure is not None:
        return _of_cycles(scanner, text.strip(), figure)
    selector = read_selector(scanner)
    if selector is not None:
        scanner.expect(r"\.", "'.' and a quantity")
    name = scanner.one_of((*QUANTITIES, WHOLE, "bound", TIME), "quantity")
    if name not in QUANTITIES:
        said = f"{name} is of the whole launch, not of accesses" if selector else f"{name} needs a unit"
        scanner.fail_last(said, hint="write bound(shared) <= 80%, or cycles <= baseline")
    quantity = QUANTITIES[name]
    relation = _relation(scanner)
    column = scanner.start + 1
    budget = _limit(scanner, text.strip(), selector or EVERYTHING, quantity, relation)
    scanner.end()
    _check_it_can_fail(_why_it_cannot_fail(budget, quantity), text, column)
    return budget


def _check_it_can_fail(reason: str | None, text: str, column: int) -> None:
    if reason is not None:
        said = f"this budget cannot fail: {reason}"
        raise MemsimError(said, column=column, source=text, hint="it guards nothing")


def _number(scanner: Scanner) -> Fraction | None:
    """The number that follows, None if none does."""
    text = scanner.take(NUMBER)
    return None if text is None else Fraction(text.replace("_", ""))  # which Python 3.10 does not accept


def _relation(scanner: Scanner) -> str:
    relation = scanner.take(r"<=|==|>=|<|>")
    if relation is None:
        scanner.fail("expected a comparison", hint=f"known: {', '.join(RELATIONS)}")
    return relation


def _of_time(scanner: Scanner, text: str) -> Budget:
    """A budget of the estimated time, `1.05 * baseline` or cycles with the launch itself."""
    relation = _relation(scanner)
    if relation not in ("<=", "<"):
        scanner.fail_last(f"an estimate has no {relation}", hint="time <= 1.05 * baseline")
    number = _number(scanner)
    limit = Fraction(1) if number is None else number
    times = number is None or scanner.take(r"\*") is not None
    if times:
        scanner.expect(rf"{BASELINE}\b", "baseline, or a number of cycles")
    scanner.end()
    return Budget(text, relation=relation, limit=limit, reference=BASELINE if times else None, figure=TIME)


def _of_cycles(scanner: Scanner, text: str, figure: str) -> Budget:
    """A budget of the launch as a whole."""
    relation = _relation(scanner)
    column = scanner.start + 1
    number = _number(scanner)
    limit, percent, reference, other = Fraction(0), False, None, None
    if number is not None:
        limit, percent = number, scanner.take("%") is not None
    elif scanner.take(rf"{BASELINE}\b"):
        reference = BASELINE
    else:
        other = read_figure(scanner)
        if other is None:
            hint = "a number such as 150_000 or 80%, or bound(fma), cycles or baseline"
            scanner.fail("expected a limit", hint=hint)
    scanner.end()
    reason = why_it_cannot_fail(figure, relation, other)
    if number is not None and relation == ">=" and limit == 0:
        reason = "cycles are never below 0"
    if percent and relation in ("<=", "<") and limit >= 100 + (relation == "<"):
        reason = "no unit exceeds the total"
    _check_it_can_fail(reason, text, column)
    return Budget(
        text, relation=relation, limit=limit, percent=percent, reference=reference, figure=figure, other=other
    )


def _why_it_cannot_fail(budget: Budget, quantity: Quantity) -> str | None:
    """None if some count can break it."""
    upper = budget.relation in ("<=", "<")
    if budget.compared is not None:
        same = sorted(budget.compared.filters) == sorted(budget.selector.filters)
        return "both sides are equal" if same and budget.holds(Fraction(1), budget.limit) else None
    if budget.reference == IDEAL:
        return f"{quantity.name} are never below their ideal" if budget.relation == ">=" else None
    if budget.reference is not None or budget.relation == "==":
        return None
    if budget.percent and upper:
        # Every request has an ideal of at least 1, and one wavefront without conflict.
        return f"{quantity.name} can never be all of the total" if budget.limit >= 100 else None
    if upper and quantity.most is not None and budget.holds(Fraction(quantity.most), budget.limit):
        return f"{quantity.name} are never above {quantity.most}"
    least = 0 if budget.percent else quantity.least
    if not upper and budget.holds(Fraction(least), budget.limit):
        return f"{quantity.name} are never below {least} for an access that is made"
    return None


def _limit(scanner: Scanner, text: str, selector: Selector, quantity: Quantity, relation: str) -> Budget:
    limit = _number(scanner)
    if limit is None:
        compared = _compared(scanner, quantity)
        if compared is not None:
            return Budget(text, selector, quantity, relation, Fraction(1), compared=compared)
        word = scanner.take(r"[A-Za-z]\w*")
        if word not in (IDEAL, BASELINE):
            fail = scanner.fail if word is None else scanner.fail_last
            hint = "a number such as 4, 1_000_000 or 5%, or ideal, or baseline, or sites(...).QUANTITY"
            fail("expected a limit", hint=hint)
        if word == IDEAL and quantity.ideal is None:
            have = ", ".join(name for name, other in QUANTITIES.items() if other.ideal)
            scanner.fail_last(f"{quantity.name} has no ideal", hint=f"these have one: {have}")
        return Budget(text, selector, quantity, relation, reference=word)
    if scanner.take("%") is None:
        return Budget(text, selector, quantity, relation, limit)
    if scanner.take(r"of\b"):
        compared = _compared(scanner, quantity)
        if compared is None:
            scanner.fail("expected sites(...)", hint=f"25% of sites(kernel=old).{quantity.name}")
        return Budget(text, selector, quantity, relation, limit / 100, compared=compared)
    if quantity.whole is None:
        have = ", ".join(name for name, other in QUANTITIES.items() if other.whole)
        scanner.fail_last(f"{quantity.name} cannot be a percentage", hint=f"these can: {have}")
    return Budget(text, selector, quantity, relation, limit, percent=True)


def _compared(scanner: Scanner, quantity: Quantity) -> Selector | None:
    """The accesses of `sites(...).QUANTITY`, whose quantity must be the budget's own; None if none follow."""
    compared = read_selector(scanner)
    if compared is None:
        return None
    if not quantity.adds_up:
        have = ", ".join(name for name, other in QUANTITIES.items() if other.adds_up)
        scanner.fail(f"{quantity.name} of several accesses have no sum", hint=f"these have one: {have}")
    scanner.expect(r"\.", f"'.{quantity.name}'")
    scanner.expect(rf"{quantity.name}\b", f"{quantity.name}, the quantity on the left,")
    return compared
