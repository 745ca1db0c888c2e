"""The generated parts of the documentation are up to date, and a stale one would be found."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from docs import generate

ROOT = Path(__file__).parents[1]


# These analyze much of the catalogue. The others are made in half a second, and stale after a small change.
PAGES = "bounds catalog claims layouts performance questions suggest tuning tutorial validation"
TIME = "time time-accuracy time-model"
SLOW = {"README.md", *(f"docs/{page}.md" for page in (*PAGES.split(), *TIME.split()))}
DOCUMENTS = [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in generate.FILES]


@pytest.mark.some(1)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_is_what_it_would_be_now(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    assert generate.filled(text) == text


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The documents, somewhere else, with parts made in no time; no pictures, notebook or schemas."""
    for part in generate.PARTS:
        monkeypatch.setitem(generate.PARTS, part, lambda part=part: f"{part}\n")
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate.pictures, "stale_pictures", lambda root, names: [])
    monkeypatch.setattr(generate.notebook, "is_stale", lambda root: False)
    monkeypatch.setattr(generate.schemas, "write_schemas", lambda: None)  # those that ship
    for name in generate.FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_a_stale_document_is_named_and_written(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main([]) == 0
    written = capsys.readouterr().out
    assert written == "".join(f"written: {name}\n" for name in generate.FILES)
    assert generate.main(["--check"]) == 0
    assert capsys.readouterr().out == ""

    page = copy / "docs" / "accuracy.md"
    good = page.read_text("utf-8")
    page.write_text(good.replace("\nprobe\n", "\nprobes\n"), "utf-8")
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().out == "stale: docs/accuracy.md; run python docs/generate.py\n"
    assert generate.main(["--check", "README.md"]) == 0
    assert generate.main(["docs/accuracy.md"]) == 0
    assert page.read_text("utf-8") == good


def test_one_part_is_made_and_no_other(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = next(
        name for name in generate.FILES if len(generate.PART.findall((copy / name).read_text("utf-8"))) > 1
    )
    first, second = (
        found["name"] for found in list(generate.PART.finditer((copy / name).read_text("utf-8")))[:2]
    )
    assert generate.main(["--part", first, name]) == 0
    made = {found["name"]: found[0] for found in generate.PART.finditer((copy / name).read_text("utf-8"))}
    assert f"-->\n{first}\n<!--" in made[first]
    assert f"-->\n{second}\n<!--" not in made[second]
    with pytest.raises(SystemExit):
        generate.main(["--part", "no such part"])
    assert "no such part: no such part" in capsys.readouterr().err


def test_what_is_no_document_is_refused_and_nothing_is_written(copy: Path) -> None:
    before = (copy / "README.md").read_text("utf-8")
    for wrong in ("docs/nothing.md", "--nothing"):
        with pytest.raises(SystemExit):
            generate.main(["README.md", wrong])
    assert (copy / "README.md").read_text("utf-8") == before


def test_every_part_is_in_a_file_and_every_mark_has_its_part() -> None:
    documents = [(ROOT / name).read_text("utf-8") for name in generate.FILES]
    texts = "".join(documents)
    assert {match["name"] for match in generate.PART.finditer(texts)} == set(generate.PARTS)
    assert texts.count("<!-- begin generated") == texts.count("<!-- end generated -->")
    with pytest.raises(KeyError):
        generate.filled("<!-- begin generated: nothing -->\n<!-- end generated -->")
