"""The pictures of the documentation show what the code says now, and one that does not would be found."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from PIL import Image

from docs import pictures

ROOT = Path(__file__).parents[1]
PATTERNS = ROOT / "docs" / "patterns"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The pictures, somewhere else."""
    shutil.copytree(ROOT / pictures.FOLDER, tmp_path / pictures.FOLDER)
    return tmp_path


@pytest.mark.slow
def test_no_picture_is_stale() -> None:
    assert pictures.stale_pictures(ROOT) == []


@pytest.mark.slow
def test_other_numbers_and_a_missing_file_are_found(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copy / pictures.FOLDER
    (folder / "flow.png").unlink()
    assert pictures.stale_pictures(copy) == [folder / "flow.png"]
    monkeypatch.setitem(
        pictures.PICTURES, "patterns", pictures.heatmap(lambda: pictures.kernel("transpose_xor"))
    )
    assert pictures.stale_pictures(copy) == [folder / "patterns.png", folder / "flow.png"]
    (folder / pictures.DRAWN).unlink()
    assert len(pictures.stale_pictures(copy)) == len(pictures.PICTURES)


@pytest.mark.slow
def test_a_picture_is_fresh_only_if_it_was_drawn(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copy / pictures.FOLDER
    for name in ("patterns", "wide"):
        other = pictures.heatmap(lambda: pictures.kernel("transpose_xor"))
        monkeypatch.setitem(pictures.PICTURES, name, other)
    assert pictures.stale_pictures(copy, ["wide", "flow"]) == [folder / "wide.png"]
    pictures.write_pictures([folder / "wide.png"], copy)
    assert pictures.stale_pictures(copy) == [folder / "patterns.png"]


def test_the_pictures_of_a_document_are_known() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert pictures.shown_by([readme]) == ["transpose", "report"]
    assert pictures.shown_by(["![a](pictures/flow.png) ![b](pictures/nothing.png)"]) == ["flow"]


@pytest.mark.slow
def test_a_stale_picture_is_drawn_anew(copy: Path) -> None:
    folder = copy / pictures.FOLDER
    before = (folder / pictures.DRAWN).read_text("utf-8")
    (folder / "flow.png").write_bytes(b"")
    pictures.write_pictures([folder / "flow.png"], copy)
    with Image.open(folder / "flow.png") as drawn, Image.open(ROOT / pictures.FOLDER / "flow.png") as shown:
        assert drawn.size == shown.size
    assert (folder / pictures.DRAWN).read_text("utf-8") == before


def test_pictures_are_small_and_all_of_them_are_shown() -> None:
    pages = ("README.md", "docs/reading-the-heatmap.md", "docs/performance.md")
    text = "".join((ROOT / page).read_text("utf-8") for page in pages)
    files = {path.name for path in (ROOT / pictures.FOLDER).iterdir()} - {pictures.DRAWN}
    assert (
        files
        == {f"{name}.png" for name in pictures.shown_by([text])}
        == {f"{name}.png" for name in pictures.PICTURES}
    )
    assert sum((ROOT / pictures.FOLDER / name).stat().st_size for name in files) < 600_000
    assert set(json.loads((ROOT / pictures.FOLDER / pictures.DRAWN).read_text("utf-8"))) == set(
        pictures.PICTURES
    )


def test_the_lines_that_the_text_names_are_what_it_says() -> None:
    ways = {site.line: site.max_ways for site in pictures.patterns().sites if site.space == "shared"}
    waves = {
        site.line: (site.wavefronts or 0) / (site.requests or 1)
        for site in pictures.patterns().sites
        if site.space == "shared"
    }
    assert ways == {11: 1, 12: 1, 14: 1, 15: 2, 16: 32, 17: 1, 18: 1, 19: 1, 20: 1, 22: 1}
    assert (waves[17], waves[20], waves[22]) == (1, 4, 2)
