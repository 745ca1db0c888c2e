"""The table of docs/validation.md about Hopper kernels of other projects: products and attention.

docs/validation/hopper.json has how each was launched, and how its figures compare; nothing of the projects
themselves is kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memsim.views.plain import table

COLUMNS = (
    *("kernel", "launch", "compiled by", "memory instructions"),
    *("equal", "arbitration", "not modelled", "different"),
)
MEASURED = Path(__file__).parent / "validation" / "hopper.json"


def measured() -> dict[str, Any]:
    """The file: GPU, tools, commits by project, and kernels."""
    found: dict[str, Any] = json.loads(MEASURED.read_text("utf-8"))
    return found


def section() -> str:
    """A row for each kernel, and what it was measured on."""
    found = measured()
    kernels: list[dict[str, Any]] = found["kernels"]
    figures = sum(kernel["equal"] for kernel in kernels)
    summary = (
        f"**{len(kernels)} kernels of {len(found['projects'])} projects**, {figures:,} figures equal and "
        f"{sum(len(kernel['differ']) for kernel in kernels)} different, on one {found['gpu']} (driver "
        f"{found['driver']}, Nsight Compute {found['ncu']}), {found['date']}:"
    )
    rows = []
    for project, commit in found["projects"].items():
        rows.append([f"**{project}** `{commit[:10]}`", *[""] * (len(COLUMNS) - 1)])
        for kernel in kernels:
            if kernel["project"] == project:
                counts = (kernel[name] for name in ("instructions", "equal", "arbitration", "not_modelled"))
                named = f"`{kernel['name']}`", kernel["launch"], kernel["compiler"]
                rows.append([*named, *map(str, counts), "; ".join(kernel["differ"])])
    return f"{summary}\n\n{table(COLUMNS, rows, 'lllrrrrl')}\n"


PARTS: dict[str, Callable[[], str]] = {"validation: warp-specialised": section}
