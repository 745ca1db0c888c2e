"""`memsim init`: a memsim.toml that works."""

from __future__ import annotations

from pathlib import Path

import pytest

from memsim.cli import main
from memsim.targets.project import read_project
from tests.cli.conftest import Run


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_there_stays(memsim: Run, project: Path) -> None:
    (project / "memsim.toml").write_text("# mine\n")
    memsim("init").refused("the file already exists")
    assert (project / "memsim.toml").read_text() == "# mine\n"


def test_captured_launches_are_targets(memsim: Run, project: Path) -> None:
    """Other programs have files of that name, too."""
    for folder in ("run/000_a", "run/001_a"):
        memsim(f"analyze transpose_naive --size 32,32 --save-launch {folder}").fine()
    (project / ".vscode").mkdir()
    (project / ".vscode" / "launch.json").write_text('{"version": "0.2.0", "configurations": []}')
    (project / "src" / "launch.json").write_text("{ // of an editor\n")
    assert memsim("init").fine()[0] == "wrote memsim.toml: 2 targets"
    written = (project / "memsim.toml").read_text()
    assert '[[targets]]\nname = "run/001_a"\nfile = "run/001_a/launch.json"\n' in written
    assert memsim("baseline --jobs 1").code == 0
    assert memsim("check --jobs 1").out.splitlines()[0].startswith("OK: 2 kernels")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("_MEMSIM_COMPLETE", f"{shell}_source")
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 0 and f"_MEMSIM_COMPLETE={shell}_complete" in capsys.readouterr().out


def test_without_a_saved_launch_it_says_how_targets_are_written(memsim: Run, project: Path) -> None:
    done = memsim("init")
    assert done.out.splitlines() == [
        "wrote memsim.toml: 0 targets",
        "next: write a target in memsim.toml, and run memsim baseline",
    ]
    (project / "src" / "scale.cu").write_text(
        "__global__ void scale(float *data, float by) { data[blockIdx.x * 128 + threadIdx.x] *= by; }\n"
    )
    path = project / "memsim.toml"
    example = path.read_text().partition("#   [[targets]]\n#   file")[2].partition("\n\n")[0]
    lines = [line.removeprefix("#   ") for line in f"file{example}".splitlines()]
    path.write_text(path.read_text() + "\n".join(["[[targets]]", *lines]) + "\n")
    (target,) = read_project(path).targets
    assert (target.name, target.launch.grid, target.launch.block) == ("scale", (8, 1, 1), (128, 1, 1))
