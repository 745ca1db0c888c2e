"""The table that says how large the rooms are."""

from __future__ import annotations

from pathlib import Path

from docs.rooms import lines_by_room, room_table


def test_lines_of_files_folders_and_what_is_beside_the_package(tmp_path: Path) -> None:
    for path, lines in {
        "memsim/errors.py": 60,
        "memsim/isa/op.py": 120,
        "memsim/isa/deep/er.py": 41,
        "memsim/isa/data.txt": 999,
        "studies/bench/page.py": 149,
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x\n" * lines)
    found = lines_by_room(tmp_path)
    assert {room: count for room, count in found.items() if count} == {
        **{"errors.py": 60, "isa/": 161, "memsim/": 221, "studies/": 149}
    }
    assert room_table(tmp_path).splitlines()[2:6] == [
        "| `isa/` | 161 |",
        "| 1 smaller ones | 60 |",
        "| **memsim/** | 221 |",
        "| **studies/** | 149 |",
    ]
