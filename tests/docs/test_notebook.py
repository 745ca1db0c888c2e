"""The notebook runs, shows what its cells give, and a stale output would be found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docs import notebook

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_every_cell_runs_and_its_outputs_are_those_of_now() -> None:
    text = (ROOT / notebook.NOTEBOOK).read_text("utf-8")
    assert notebook.executed(text) == text
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    shown = "".join(line for cell in cells for output in cell["outputs"] for line in output.get("text", ()))
    assert "conflict-free" in shown
    assert "are not contiguous" in shown
    assert len(cells) >= 10


def test_a_stale_output_and_a_broken_cell_are_found(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    path = tmp_path / notebook.NOTEBOOK
    cells = [
        {"cell_type": "code", "source": [source], "outputs": []} for source in ("x = 20", "print(x)\nx + 1")
    ]
    path.write_text(notebook.executed(json.dumps({"cells": cells})), "utf-8")
    good = path.read_text("utf-8")
    assert '"20"' in good and '"21"' in good
    assert not notebook.is_stale(tmp_path)
    path.write_text(good.replace('"21"', '"22"'), "utf-8")
    assert notebook.is_stale(tmp_path)
    notebook.write(tmp_path)
    assert path.read_text("utf-8") == good
    path.write_text(good.replace("x + 1", "x / 0"), "utf-8")
    with pytest.raises(ZeroDivisionError):
        notebook.is_stale(tmp_path)
