"""The generated parts of docs/ci.md: what a budget can limit, and what `memsim check` says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from memsim.guard.quantities import QUANTITIES, Quantity

ROOT = Path(__file__).resolve().parents[1]
COMMAND = "memsim check --config docs/check_example.toml"


def quantity_table() -> str:
    """A row for each quantity of the budget language."""
    rows = [
        "| quantity | what it is | a number limits | `ideal` | a percentage is of |",
        "|---|---|---|---|---|",
    ]
    for quantity in QUANTITIES.values():
        cells = (
            f"`{quantity.name}`",
            f"{quantity.meaning} ({' and '.join(quantity.spaces)})",
            _limited(quantity),
            "yes" if quantity.ideal else "",
            _whole(quantity),
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _limited(quantity: Quantity) -> str:
    if not quantity.adds_up:
        return "each row"
    return "the sum of the kernel's rows" + (", each space by itself" if quantity.apart else "")


def _whole(quantity: Quantity) -> str:
    if quantity.whole is None:
        return ""
    return "the wavefronts, or the sectors" if quantity.apart else "the wavefronts"


def check_capture() -> str:
    """What the example's check prints: one of its kernels breaks a budget."""
    done = subprocess.run(
        [sys.executable, "-m", *COMMAND.split()], cwd=ROOT, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 1, done.stderr
    return f"```text\n$ {COMMAND}\n{done.stdout}```\n"


PARTS: dict[str, Callable[[], str]] = {
    "quantities of budgets": quantity_table,
    "a check that fails": check_capture,
}
