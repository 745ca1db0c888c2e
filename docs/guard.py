"""The generated parts of docs/ci.md: what a budget can limit, and what `memsim check` says."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from docs.capture import capture
from memsim.guard.quantities import QUANTITIES, Quantity
from memsim.views.plain import table

#: One of its kernels breaks a budget.
COMMAND = "memsim check --config docs/check_example.toml"


def quantity_table() -> str:
    """A row for each quantity of the budget language."""
    rows = [
        (
            f"`{quantity.name}`",
            f"{quantity.meaning} ({' and '.join(quantity.spaces)})",
            _limited(quantity),
            "yes" if quantity.ideal else "",
            _whole(quantity),
        )
        for quantity in QUANTITIES.values()
    ]
    headings = ("quantity", "what it is", "a number limits", "`ideal`", "a percentage is of")
    return table(headings, rows, "lllll") + "\n"


def _limited(quantity: Quantity) -> str:
    if not quantity.adds_up:
        return "each row"
    return "the sum of the kernel's rows" + (", each space by itself" if quantity.apart else "")


def _whole(quantity: Quantity) -> str:
    if quantity.whole is None:
        return ""
    return "the wavefronts, or the sectors" if quantity.apart else "the wavefronts"


PARTS: dict[str, Callable[[], str]] = {
    "quantities of budgets": quantity_table,
    "a check that fails": partial(capture, COMMAND, code=1),
}
