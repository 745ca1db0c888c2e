"""The generated parts of the documentation are up to date, and a stale one would be found."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs import generate

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_nothing_is_stale() -> None:
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_changed_figure_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in generate.PARTS:
        monkeypatch.setitem(generate.PARTS, part, lambda part=part: f"{part}\n")
    monkeypatch.setitem(generate.PARTS, "probe", lambda: "512 of 512\n")
    for name in generate.FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
        (tmp_path / name).write_text(generate.filled((tmp_path / name).read_text("utf-8")), "utf-8")
    assert generate.stale_files(tmp_path) == []

    page = tmp_path / "docs" / "accuracy.md"
    page.write_text(page.read_text("utf-8").replace("512 of 512", "511 of 512"), "utf-8")
    assert generate.stale_files(tmp_path) == [page]


def test_every_part_is_in_a_file_and_every_mark_has_its_part() -> None:
    texts = "".join((ROOT / name).read_text("utf-8") for name in generate.FILES)
    assert {match["name"] for match in generate.PART.finditer(texts)} == set(generate.PARTS)
    assert texts.count("<!-- begin generated") == texts.count("<!-- end generated -->")
    with pytest.raises(KeyError):
        generate.filled("<!-- begin generated: nothing -->\n<!-- end generated -->")
