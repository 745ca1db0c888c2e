"""How large the rooms are, in lines of Python: `python docs/rooms.py` prints a table.

It stands in no document: it would be stale after every commit.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from memsim.views.plain import table  # noqa: E402

PACKAGE = "memsim"
BESIDE = ("studies", "lab", "tests", "docs", "tools")  # Python that is not in the package
SMALL = 100  # rooms of fewer lines are shown together


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
    large = {f"`{room}`": count for room, count in lines.items() if count >= SMALL}
    rows = sorted(large.items(), key=lambda row: -row[1])
    rows.append((f"{len(lines) - len(large)} smaller ones", sum(lines.values()) - sum(large.values())))
    rows += [(f"**{folder}**", count) for folder, count in whole.items()]
    named = [(room, f"{count:,}") for room, count in rows]
    return table((f"room of `{PACKAGE}/`, or folder", "lines of Python"), named, "lr") + "\n"


if __name__ == "__main__":
    print(room_table(), end="")
