"""The table of docs/validation.md about files of public projects: how many load, and what stops the others.

`tools/load_public.py --save` writes the counts, docs/validation/public_counts.json. The files themselves
are not kept; docs/validation/public_files.txt names them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from memsim.views.plain import table

COUNTS = Path(__file__).parent / "validation" / "public_counts.json"


def counted() -> str:
    """A row for each project, and the sum."""
    projects = json.loads(COUNTS.read_text(encoding="utf-8"))
    files, loaded = (sum(row[column] for row in projects.values()) for column in ("files", "loaded"))
    rows = [
        (name, str(row["files"]), str(row["loaded"]), _reasons(row["reasons"]))
        for name, row in projects.items()
    ]
    rows.append(("**all**", f"**{files}**", f"**{loaded}**", ""))
    headings = ("project", "files", "loaded", "what stands in the way of the others")
    return f"**{loaded} of {files} files load** with nvcc out of reach.\n\n{table(headings, rows, 'lrrl')}\n"


def _reasons(reasons: dict[str, int]) -> str:
    return ", ".join(f"{reason} ({count})" for reason, count in reasons.items())


PARTS: dict[str, Callable[[], str]] = {"public files": counted}
