"""An answer is given again, word by word, and only as long as nothing that it came from has changed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from memsim.cli import cli, run
from memsim.cli.options import open_cache
from memsim.simt.prepared_launch import PreparedLaunch
from tests.cli.test_imports import imported
from tests.cli.test_passed import SOURCE

LAUNCH = ("copy.cu", "--grid", "1", "--block", "64", "--arg", "@index.npy", "--arg", "f32[64]")

Asked = Callable[..., tuple[int, str, str]]


@pytest.fixture
def executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The executions of launches, in a folder of the test's own."""
    found: list[object] = []
    real = PreparedLaunch.run

    def counted(self: PreparedLaunch, *given: object, **more: object) -> object:
        found.append(self)
        return real(self, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(PreparedLaunch, "run", counted)
    monkeypatch.setenv("MEMSIM_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr("memsim.cli.launch_options.open_cache", open_cache)
    monkeypatch.chdir(tmp_path)
    Path("stride.cuh").write_text("#define STRIDE 1\n")
    Path("copy.cu").write_text(SOURCE)
    np.save("index.npy", np.arange(64, dtype=np.int32))
    return found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Asked:
    """Runs a command line as that of this process."""

    def ask(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["memsim", *words])
        code = run(cli, None, "memsim")
        said = capsys.readouterr()
        return code, said.out, said.err

    return ask


def new(executed: list[object]) -> int:
    """How often a launch was executed since this was asked last."""
    count = len(executed)
    executed.clear()
    return count


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["analyze", "suggest", "time", "sanitize"])
def test_an_answer_is_given_again(verb: str, asked: Asked, executed: list[object]) -> None:
    first = asked(verb, *LAUNCH)
    assert first[0] == 0 and first[1] and new(executed) > 0
    assert asked(verb, *LAUNCH) == first and new(executed) == 0
    document = asked(verb, *LAUNCH, "--json")
    assert document[1].startswith("{") and asked(verb, *LAUNCH, "--json") == document
    new(executed)
    assert asked(verb, *LAUNCH, "--no-cache")[1] == first[1] and new(executed) > 0
    assert asked(verb, *LAUNCH, "--no-cache")[1] == first[1] and new(executed) > 0


@pytest.mark.parametrize("file", ["stride.cuh", "copy.cu", "index.npy"])
def test_what_has_changed_is_executed(file: str, asked: Asked, executed: list[object]) -> None:
    first = asked("analyze", *LAUNCH)
    assert new(executed) > 0
    before = Path(file).read_bytes()
    changed = before.replace(b"STRIDE 1", b"STRIDE 2").replace(b"% 1024", b"* 2 % 1024")
    if file == "index.npy":
        np.save("index.npy", np.arange(64, dtype=np.int32) * 8)
    else:
        Path(file).write_bytes(changed)
    assert asked("analyze", *LAUNCH)[1] != first[1] and new(executed) > 0
    Path(file).write_bytes(before)
    assert asked("analyze", *LAUNCH) == first and new(executed) == 0


def test_what_a_build_system_says_is_executed_when_it_has_changed(
    asked: Asked, executed: list[object]
) -> None:
    """Whether the answer is kept, or only the trace and the machine code."""
    Path("stride.cuh").write_text("#ifndef STRIDE\n#define STRIDE 1\n#endif\n")
    commands = Path("build", "compile_commands.json")
    said = {}
    for stride in (None, 2, 4, None, 2):
        if stride is None and commands.exists():
            commands.unlink()
        elif stride is not None:
            commands.parent.mkdir(exist_ok=True)
            entry = {"directory": "..", "file": "copy.cu", "command": f"nvcc -DSTRIDE={stride} -c copy.cu"}
            commands.write_text(json.dumps([entry]))
        found, is_new = asked("analyze", *LAUNCH), stride not in said
        assert said.setdefault(stride, found) == found and (new(executed) > 0) == is_new
        assert asked("analyze", *LAUNCH, "--no-cache")[1] == found[1] and new(executed) > 0
    assert len({out for _, out, _ in said.values()}) == 3


def test_how_it_looks_is_asked_too(
    asked: Asked, executed: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = asked("analyze", *LAUNCH)
    monkeypatch.setenv("COLUMNS", "60")
    narrow = asked("analyze", *LAUNCH)
    assert narrow[1] != wide[1] and asked("analyze", *LAUNCH) == narrow
    monkeypatch.delenv("COLUMNS")
    assert asked("analyze", *LAUNCH) == wide


def test_files_are_written_each_time(asked: Asked, executed: list[object]) -> None:
    for _ in range(2):
        assert asked("analyze", *LAUNCH, "--save-trace", "copy.npz")[0] == 0
        Path("copy.npz").unlink()


def test_remarks_are_made_again_and_errors_found_again(asked: Asked, executed: list[object]) -> None:
    Path("own.cu").write_text(
        "__global__ void own(float *x) { x[threadIdx.x] = 1; }\n"
        "int main() { float *x; cudaMalloc(&x, 128); own<<<1, 32>>>(x); }\n"
    )
    first = asked("analyze", "own.cu")
    assert "note: launch taken from the source" in first[2]
    new(executed)
    assert asked("analyze", "own.cu") == first
    wrong = asked("analyze", "copy.cu", *LAUNCH[1:-2])
    assert wrong[0] == 2 and asked("analyze", "copy.cu", *LAUNCH[1:-2]) == wrong


def test_an_answer_that_is_given_again_needs_no_numpy(tmp_path: Path) -> None:
    words = "analyze", "kernel_v4", "--size", "128,128,16"
    assert "numpy" in imported(tmp_path, *words)
    assert "numpy" not in imported(tmp_path, *words)
