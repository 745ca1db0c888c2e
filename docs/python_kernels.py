"""Captured launches that the documents show: analyses of what Triton launched, recorded in `docs/captured/`.

Triton itself is not needed here; `tests/captured/test_documents.py` launches the kernels again and compares.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docs.capture import fenced
from memsim.captured.saved_launch import read_launch
from memsim.views.plain import table

MEASURED = Path(__file__).parent / "validation" / "captured.json"
RECORDED = Path(__file__).with_name("captured")


def printed(name: str) -> str:
    """What the script `name` prints."""
    return f"{read_launch(RECORDED / name / 'launch.json').analyze()}\n"


def accuracy() -> str:
    """A line for each package: launches whose code is what was measured, and how their counters compare."""
    records = json.loads(MEASURED.read_text("utf-8"))
    rows = []
    for package in dict.fromkeys(record["package"] for record in records):
        mine = [record for record in records if record["package"] == package]
        same = sum(record["same_code"] for record in mine)
        equal = sum(not record["differ"] for record in mine)
        rows.append((package, str(len(mine)), str(same), str(equal), "; ".join(_others(mine))))
    headings = ("", "launches", "same machine code", "all equal", "predicted for measured")
    return table(headings, rows, "lrrrl") + "\n"


def _others(records: Sequence[dict[str, Any]]) -> list[str]:
    found = []
    for record in records:
        if record["differ"]:
            metrics = (
                f"`{name}` {mine:,} for {chip:,}" for name, (mine, chip) in sorted(record["differ"].items())
            )
            found.append(f"`{record['kernel']}` ({record['why']}): {', '.join(metrics)}")
    return found


PARTS = {
    "captured add": lambda: fenced("python add.py", printed("add")),
    "captured launches beside counters": accuracy,
}
