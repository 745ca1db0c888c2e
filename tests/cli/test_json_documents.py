"""What each verb prints as JSON is what its schema says."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest

import memsim as package
from docs.schemas import schema_texts
from memsim.cli import VERBS
from tests.cli.conftest import Run
from tests.schema import validate

ROOT = Path(package.__file__).parent
SCHEMAS = {
    path.name.partition(".")[0]: json.loads(path.read_text("utf-8")) for path in ROOT.rglob("*.schema.json")
}
NAIVE = "transpose_naive --size 64,64"

#: Verb, its schema, and commands that show what their documents may have. `run` was saved before.
DOCUMENTS = {
    "analyze": (
        "analysis",
        [f"{NAIVE} --json", f"{NAIVE} --json --sass", "run/launch.json --json"],
    ),
    "bound": ("bound", [f"{NAIVE} --json", "run.npz --json"]),
    "time": ("time", [f"{NAIVE} --json", f"{NAIVE} --l2 warm --without greedy --json"]),
    "sanitize": ("sanitize", [f"{NAIVE} --json", f"{NAIVE} --tool init --json"]),
    "suggest": ("suggestions", [f"{NAIVE} --json", "kernel_v1 --size 64,64,64 --json"]),
    "validate": ("validation", ["transpose_naive --json"]),
    "doctor": ("doctor", ["--json"]),
    "check": ("check", ["--jobs 1 --format json"]),
    "compare": ("comparison", [f"{NAIVE} transpose_padded --format json"]),
}
PROJECT = '[[targets]]\nkernel = "transpose_naive"\nsize = "64,64"\nbudgets = ["sites(store).ways <= 1"]\n'


def test_every_verb_that_prints_json_is_here() -> None:
    able = set()
    for verb, (module, command, _) in VERBS.items():
        parameters = getattr(import_module(f"memsim.cli.{module}"), command).params
        choices = [one.type.choices for one in parameters if isinstance(one.type, click.Choice)]
        if any(one.name == "as_json" for one in parameters) or any("json" in some for some in choices):
            able.add(verb)
    assert able == set(DOCUMENTS)
    assert {schema for schema, _ in DOCUMENTS.values()} == set(SCHEMAS)


def test_the_schemas_that_ship_are_those_of_the_documents() -> None:
    texts = schema_texts()
    assert {path.name for path in texts} == {path.name for path in ROOT.rglob("*.schema.json")}
    assert {path: path.read_text("utf-8") for path in texts} == texts, "run python -m docs.schemas"
    for text in texts.values():
        jsonschema.Draft202012Validator.check_schema(json.loads(text))


def test_the_documents_name_every_schema() -> None:
    told = (ROOT.parent / "docs" / "reading-the-report.md").read_text("utf-8")
    for path in ROOT.rglob("*.schema.json"):
        assert f"`{path.relative_to(ROOT.parent).as_posix()}`" in told


def test_every_schema_has_its_own_name() -> None:
    assert {schema["$id"] for schema in SCHEMAS.values()} == {f"urn:memsim:schema:{one}:1" for one in SCHEMAS}


@pytest.mark.parametrize("verb", DOCUMENTS)
def test_a_document_fits_its_schema(
    memsim: Run, verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "memsim.toml").write_text(PROJECT)
    if verb in ("analyze", "bound"):
        assert memsim(f"analyze {NAIVE} --save-launch run --save-trace run.npz").code == 0
    name, commands = DOCUMENTS[verb]
    for command in commands:
        document: dict[str, Any] = memsim(f"{verb} {command}").document()
        validate(document, SCHEMAS[name])
        assert (document["schema"], document["memsim"]) == (1, package.__version__)
        with pytest.raises(jsonschema.ValidationError):
            validate({**document, "another": 1}, SCHEMAS[name])
