"""What each verb prints as JSON is what its schema says."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import memsim as package
from docs.schemas import schema_texts
from memsim.captured.launched import Launched
from memsim.cli import VERBS
from memsim.targets.target import read_job
from tests.cli.conftest import Run
from tests.schema import validate

ROOT = Path(package.__file__).parent
SCHEMAS = {
    path.name.partition(".")[0]: json.loads(path.read_text("utf-8")) for path in ROOT.rglob("*.schema.json")
}
NAIVE = "transpose_naive --size 64,64"

OWN = "layouts.py:f --block 32 -D"
#: Verb, its schema, and commands that show what their documents may have. `run` was saved before.
DOCUMENTS = {
    "list": ("kernels", ["--json", "two.cu --json"]),
    "heatmap": ("heatmap", [f"{NAIVE} --compare transpose_padded --json"]),
    "explain": ("request", [f"{NAIVE} --json", "kernel_v1 --size 64,64,64 --site 0 --json"]),
    "sweep": ("sweep", [f"{OWN} pad=0..1 -j 1 --json"]),
    "prove": ("prove", [f"{OWN} pad=1 --for n=1..3 --json"]),
    "init": ("written", ["two --json"]),
    "report": ("written", [f"{NAIVE} -o page.html --json"]),
    "baseline": ("written", ["--jobs 1 --json"]),
    "probe": ("written", ["--export p.py --json"]),
    "capture": ("script", ["--json script.py", "--analyze --json script.py"]),
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
SOURCES = {
    "memsim.toml": PROJECT,
    "two.cu": "__global__ void k(float *a, int n) { if (n) a[threadIdx.x] = 1; }\n"
    "int main() { float *a; cudaMalloc(&a, 128); k<<<1, 32>>>(a, 32); }\n",
    "layouts.py": "import memsim\n\ndef f(thread, pad, n=32):\n"
    "    memsim.SharedArray('t', 64 * n, 'f32')[thread.x * (1 + pad) % n].load()\n",
}
#: A server, and a page: they answer until they are ended. A program has standard output for itself.
OTHERS = {"serve", "play", "exec"}


def run_script(script: Path, arguments: Sequence[str], keep: Callable[[Launched], None], arch: str) -> None:
    """A script that prints, and launches a kernel; without the packages that could be captured."""
    print("hello")
    keep(Launched.of(read_job("transpose_naive", {"size": "64,64"})))


def test_every_verb_prints_json_by_the_same_options() -> None:
    for verb, (module, command, _) in VERBS.items():
        options = getattr(import_module(f"memsim.cli.{module}"), command).params
        given = {name for option in options for name in option.opts}
        assert {"--json", "--format"} <= given or verb in OTHERS, verb
    assert set(VERBS) == set(DOCUMENTS) | OTHERS
    assert {schema for schema, _ in DOCUMENTS.values()} | {"launches", "sanitize_launches"} == set(SCHEMAS)


@pytest.mark.slow
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


def test_json_is_asked_for_in_both_ways(memsim: Run) -> None:
    assert memsim("list --json").fine() == memsim("list --format json").fine() != memsim("list").fine()
    assert memsim("list --format text").fine() == memsim("list").fine()
    asked = f"compare {NAIVE} transpose_padded"
    assert memsim(asked, "--json").fine() == memsim(asked, "--format json").fine()
    assert memsim(asked, "--format markdown").fine() != memsim(asked).fine()


@pytest.mark.some(2)
@pytest.mark.parametrize("verb", DOCUMENTS)
def test_a_document_fits_its_schema(
    memsim: Run, verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in SOURCES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr("memsim.cli.capture.run_script", run_script)
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "two.cu").write_text(SOURCES["two.cu"])
    if verb in ("analyze", "bound"):
        assert memsim(f"analyze {NAIVE} --save-launch run --save-trace run.npz").code == 0
    name, commands = DOCUMENTS[verb]
    for command in commands:
        done = memsim(f"{verb} {command}")
        document: dict[str, Any] = json.loads(done.out)
        assert (done.code, bool(done.err)) == (0, verb == "capture")  # what the script itself prints
        validate(document, SCHEMAS[name])
        assert (document["schema"], document["memsim"]) == (1, package.__version__)
        with pytest.raises(jsonschema.ValidationError):
            validate({**document, "another": 1}, SCHEMAS[name])
