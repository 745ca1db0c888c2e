"""How large the rooms are: a table of docs/architecture.md, in lines of Python to the nearest hundred.

Exact counts would be stale after every commit.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from memsim.views.plain import table

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "memsim"
BESIDE = ("studies", "lab", "tests", "docs", "tools")  # Python that is not in the package
NEAREST = 100


def lines_by_room(root: Path = ROOT) -> dict[str, int]:
    """Lines of Python of each room of the package, of the package, and of the folders beside it."""
    rooms: Counter[str] = Counter()
    for folder in (PACKAGE, *BESIDE):
        rooms[f"{folder}/"] = 0
        for path in (root / folder).rglob("*.py"):
            inside = path.relative_to(root / folder).parts
            lines = len(path.read_text("utf-8").splitlines())
            rooms[f"{folder}/"] += lines
            if folder == PACKAGE:
                rooms[inside[0] + ("/" if len(inside) > 1 else "")] += lines
    return dict(rooms)


def room_table(root: Path = ROOT) -> str:
    """The rooms of the package, the largest first and the small ones together; then whole folders."""
    lines = lines_by_room(root)
    whole = {f"{folder}/": lines.pop(f"{folder}/") for folder in (PACKAGE, *BESIDE)}
    large = {f"`{room}`": count for room, count in lines.items() if count >= NEAREST}
    rows = sorted(large.items(), key=lambda row: (-_rounded(row[1]), row[0]))
    rows.append((f"{len(lines) - len(large)} smaller ones", sum(lines.values()) - sum(large.values())))
    rows += [(f"**{folder}**", count) for folder, count in whole.items()]
    named = [(room, f"{_rounded(count):,}") for room, count in rows]
    return table((f"room of `{PACKAGE}/`, or folder", "lines of Python"), named, "lr") + "\n"


def _rounded(count: int) -> int:
    return round(count / NEAREST) * NEAREST
