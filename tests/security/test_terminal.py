"""No verb lets a name, a comment or a launch move the cursor, turn text around or begin a line of a log."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from memsim import cli
from memsim.compile.cuda_source import compile_cubin
from tests.security.conftest import Run

HOSTILE = "\x1b[2J\x1b]0;owned\x07 \u202eesrever\u2066 \x9b31m"
COMMAND = "::error::owned"
TAKES_EFFECT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
SOURCE = f"""\
extern "C" __global__ void k(const float *in, float *out) {{
    __shared__ float tile[32][32]; // {HOSTILE}
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x]; // {HOSTILE}
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y]; // {HOSTILE}
}}
"""
ARRAY = {"kind": "array", "dtype": "float32", "shape": [1024]}
NAME = f"k{HOSTILE}\n{COMMAND}\n"
DOCUMENT = {
    "version": 1,
    "kernel": "k",
    "called": NAME,
    "made_by": NAME,
    "note": NAME,
    "code": "k.cubin",
    "sources": ["k.cu"],
    "grid": [1],
    "block": [32, 32],
    "arguments": [{**ARRAY, "name": f"in{NAME}"}, {**ARRAY, "name": f"out{NAME}"}],
}
LAUNCH = "--grid 1 --block 32,32 --arg 'f32[1024]' --arg 'f32[1024]'"
CONFIG = """\
[[targets]]
name = "k"
file = "k.cu"
grid = 1
block = [32, 32]
args = ["f32[1024]", "f32[1024]"]
budgets = ["ways <= 1"]
[[targets]]
name = "launch"
file = "launch.json"
budgets = ["ways <= 1"]
"""
TARGETS = {"source": f"k.cu {LAUNCH}", "launch": "launch.json"}
VERBS = (
    "analyze TARGET --sass --metrics",
    "heatmap TARGET",
    "explain TARGET",
    "bound TARGET",
    "time TARGET",
    "sanitize TARGET",
    "suggest TARGET",
    "report TARGET -o page.html",
    "compare TARGET",
    "compare TARGET --format markdown",
    "sweep TARGET -D N=1..2",
    "prove TARGET --for N=1..2",
)
REFUSED = {("sweep TARGET -D N=1..2", "launch"), ("prove TARGET --for N=1..2", "launch")}
NO_TARGET = {
    "play",
    "serve",
    "exec",
    "capture",
    "validate",
    "probe",
    "init",
    "doctor",
}  # programs, scripts, GPUs, and what is here
WHOLE = (
    "list k.cu",
    "analyze k.cu",
    "analyze k.cu --grid 1 --block 32",
    "analyze launch.json --kernel x",
    "baseline --no-cache",
    *(
        f"check --no-cache --format {form}"
        for form in ("text", "github", "sarif", "junit", "json", "markdown")
    ),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose every text is hostile."""
    found = tmp_path_factory.mktemp("hostile")
    (found / "k.cu").write_text(SOURCE, encoding="utf-8")
    (found / "k.cubin").write_bytes(compile_cubin(SOURCE).cubin)
    (found / "launch.json").write_text(json.dumps(DOCUMENT))
    (found / "memsim.toml").write_text(CONFIG)
    return found


def check_harmless(printed: str) -> None:
    """Nothing in it takes effect, in a terminal or in the log of a job."""
    assert not TAKES_EFFECT.search(printed)
    assert not [line for line in printed.split("\n") if line.strip().startswith(COMMAND)]


@pytest.mark.some(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_with_a_target(
    memsim: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, verb: str, target: str
) -> None:
    """It says what it found of them."""
    monkeypatch.chdir(folder)
    words = TARGETS[target]
    if verb.startswith("compare"):  # it takes analyses that were saved, and no launches
        Path("saved.json").write_text(memsim("analyze launch.json --json").out)
        words = "saved.json saved.json" if target == "launch" else f"k.cu {words}"
    done = memsim(verb.replace("TARGET", words))
    found = 1 if verb.startswith("prove") else 0  # it has conflicts
    assert done.code == (2 if (verb, target) in REFUSED else found)
    check_harmless(done.out + done.err)


@pytest.mark.some(3)
@pytest.mark.parametrize("verb", WHOLE)
def test_a_verb_of_a_project(memsim: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    """Also what fails, and what is written for programs."""
    monkeypatch.chdir(folder)
    done = memsim(verb)
    assert done.out + done.err
    check_harmless(done.out + done.err)


def test_every_verb_is_tried() -> None:
    """A new verb is listed here."""
    tried = {verb.split()[0] for verb in (*VERBS, *WHOLE)}
    assert tried | NO_TARGET == cli.VERBS.keys()


def test_what_is_looked_for_is_there(folder: Path) -> None:
    """The good twin: printed as they are, these texts would be seen."""
    for text in (SOURCE, NAME):
        with pytest.raises(AssertionError):
            check_harmless(text)
    check_harmless("k ::error::owned\n\tå漢\n")


WRITERS = (
    "views/plain.py",
    "views/screen.py",
    "shown.py",
    "cli/output.py",
    "cli/answered.py",  # again what was printed, as it was cleaned
)
ALONE = ("validate/standalone.py",)  # a program of its own for another machine


@pytest.mark.slow
def test_one_place_writes() -> None:
    """Elsewhere nothing is printed: a verb cannot forget to clean."""
    root = Path(__file__).parents[2] / "memsim"
    found = set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in (
                "print",
                "click.echo",
                "click.secho",
                "Console",
                "sys.stdout.write",
                "sys.stderr.write",
                "stream.write",
            ):
                found.add(path.relative_to(root).as_posix())
    assert found <= {*WRITERS, *ALONE}
    assert "cli/output.py" in found
