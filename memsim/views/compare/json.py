"""Two analyses side by side as JSON, as `comparison.schema.json` beside this file describes it."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from memsim.guard.comparison import ComparedAccess, Comparison, Comparisons, Side
from memsim.version import __version__
from memsim.views.labels import json_number

SCHEMA = 1


def render(comparisons: Comparisons) -> str:
    """Indented JSON, as `comparison.schema.json` beside this file describes it."""
    document = {
        "schema": SCHEMA,
        "memsim": __version__,
        "verdict": comparisons.verdict,
        "only_a": list(comparisons.only_a),
        "only_b": list(comparisons.only_b),
        "not_compared": list(comparisons.failed),
        "kernels": [_pair(pair) for pair in comparisons.pairs],
    }
    return json.dumps(document, indent=2)


def _pair(pair: Comparison) -> dict[str, Any]:
    return {
        "a": _side(pair.a),
        "b": _side(pair.b),
        "verdict": pair.verdict,
        "differs": pair.differs,
        "lines": [_line(line) for line in pair.lines],
        "totals": [{"metric": total.metric, "a": total.before, "b": total.now} for total in pair.totals],
    }


def _side(side: Side) -> dict[str, str]:
    return {"name": side.name, "launch": side.launch}


def _line(line: ComparedAccess) -> dict[str, Any]:
    before, now, change = line.pair.before, line.pair.now, line.change
    return {
        "change": change.kind if change else None,
        "reason": change.reason if change else "",
        "a": None if before is None else dataclasses.asdict(before),
        "b": None if now is None else dataclasses.asdict(now),
        "differences": [
            {"quantity": figure.quantity, "a": json_number(figure.was), "b": json_number(figure.now)}
            for figure in (change.figures if change else ())
        ],
    }
