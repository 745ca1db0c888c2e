"""What the README shows can be typed as it stands there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
MARKED = r"^<!-- command: (\w+) -->\n```sh\n(.*?)```\n<!-- end -->$"


def memsim(folder: Path, command: str) -> str:
    """What a command of memsim prints, which says where it took the launch from."""
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(command)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.partition(":")[0]) == (0, "note")
    return done.stdout


@pytest.mark.slow
def test_a_file_of_ones_own_with_main(tmp_path: Path) -> None:
    (source,) = re.findall(r"```cuda\n(.*?)```", README, re.DOTALL)
    assert "int main()" in source and "<<<" in source
    (tmp_path / "scale.cu").write_text(source)
    assert "$ memsim analyze scale.cu\n" in README
    verdict = memsim(tmp_path, "memsim analyze scale.cu").splitlines()[0]
    assert verdict in README.replace("\n", " ")
    assert "32.0 sectors per request instead of 4.0" in verdict


def test_ci_runs_the_marked_commands() -> None:
    ci = (ROOT / ".ci" / "run").read_text("utf-8")
    marked = re.findall(MARKED, README, re.DOTALL | re.MULTILINE)
    assert [name for name, _ in marked] == ["analyze", "test"]
    for name, command in marked:
        assert f'run "$(command_of README.md {name})"' in ci
        assert command.strip()
    (test,) = (command for name, command in marked if name == "test")
    elsewhere = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert "python -m pytest -n auto\n" in test and test not in elsewhere  # stated once
    assert "(README.md#tests)" in elsewhere and "\n## Tests\n" in README


def test_the_promise_and_the_table_say_the_same() -> None:
    """The first lines promise no more than was measured, and name the place that tells what failed."""
    promise, _, rest = README.partition("![Bank heatmap")
    assert "](docs/validation.md)" in promise and "equals Nsight" not in promise
    table = rest.partition("## How accurate, and on which chips\n")[2].partition("\n#")[0]
    of_others = re.findall(
        r"([\d,]+) wrong, (all reported uncertain|[\d,]+ of them not reported uncertain)", table
    )
    assert len(of_others) == 3


def test_it_is_short_and_narrow() -> None:
    lines = README.splitlines()
    assert len(lines) <= 170
    wide = [line for line in lines if len(line) > 100 and not line.startswith(("![", "x, y, out = "))]
    assert wide == []


def test_every_link_leads_somewhere() -> None:
    prose = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)#]+)\)", prose)
    assert len(targets) >= 8
    assert [target for target in targets if not (ROOT / target).is_file()] == []
