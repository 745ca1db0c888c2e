"""The ready pieces of docs/ci.md and action.yml: read as YAML, TOML or Python, and run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from memsim.guard.baseline import parse
from memsim.guard.budget import parse_budget
from memsim.targets.project import BASELINE, read_project
from tests.guard.conftest import Folder

pytest_plugins = ("pytester",)
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ci.md").read_text("utf-8")
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))

TARGETS = '[[targets]]\nkernel = "transpose_padded"\nsize = "64,64"\n'
GOOD, BAD = f'budgets = ["ways <= 1"]\n{TARGETS}', f'budgets = ["ways <= 0"]\n{TARGETS}'


def piece(name: str) -> str:
    match = re.search(rf"<!-- piece: {name} -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    assert match is not None, name
    return match[1]


def shell(folder: Folder, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a script as a step does: bash, and the first failing command ends it."""
    scripts = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", **variables}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder.path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def steps_that_check(steps: list[dict[str, Any]]) -> list[str]:
    return [step["run"] for step in steps if "memsim check" in step.get("run", "")]


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("configuration", "code"), [(GOOD, 0), (BAD, 1), pytest.param("", 2, marks=pytest.mark.slow)]
)
def test_github(folder: Folder, configuration: str, code: int) -> None:
    document = yaml.safe_load(piece("github"))
    (script,) = steps_that_check(document["jobs"]["memsim"]["steps"])
    folder.write("memsim.toml", configuration)
    done = shell(folder, script, GITHUB_STEP_SUMMARY=str(folder.path / "summary.md"))
    assert done.returncode == code
    assert ("::error " in done.stdout) == (code != 0)
    assert ("✅" in folder.read("summary.md")) == (code == 0)


@pytest.mark.slow
@pytest.mark.parametrize(("configuration", "code"), [(GOOD, 0), (BAD, 1), ("", 2)])
def test_gitlab(folder: Folder, configuration: str, code: int) -> None:
    job = yaml.safe_load(piece("gitlab"))["memsim"]
    (script,) = [line for line in job["script"] if "memsim check" in line]
    folder.write("memsim.toml", configuration)
    assert shell(folder, script).returncode == code
    report = job["artifacts"]["reports"]["junit"]
    counts = ElementTree.fromstring(folder.read(report)).attrib
    assert (counts["failures"], counts["errors"]) == (str(int(code == 1)), str(int(code == 2)))


@pytest.mark.slow
def test_pre_commit(folder: Folder) -> None:
    (repository,) = yaml.safe_load(piece("pre-commit"))["repos"]
    (hook,) = repository["hooks"]
    assert hook["pass_filenames"] is False
    for path in ("src/scale.cu", "a.cuh", "k.ptx", "memsim.toml", "memsim-baseline.toml", "pyproject.toml"):
        assert re.search(hook["files"], path)
    assert not re.search(hook["files"], "README.md")
    for configuration, code in ((GOOD, 0), (BAD, 1)):
        folder.write("memsim.toml", configuration)
        assert shell(folder, hook["entry"]).returncode == code


@pytest.mark.slow
def test_pytest(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(piece("pytest"))
    pytester.runpytest_subprocess("-q", "-pno:hypothesispytest").assert_outcomes(passed=3)


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("configuration", "targets", "code"),
    [
        (GOOD, "", 0),
        (BAD, "", 1),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in ((GOOD, "transpose_*", 0), (GOOD, "nothing_*", 2), ("", "", 2))
        ),
    ],
)
def test_the_action(folder: Folder, configuration: str, targets: str, code: int) -> None:
    (script,) = steps_that_check(ACTION["runs"]["steps"])
    folder.write("guard.toml", configuration)
    folder.write("transpose_pad", "a file that a shell could take TARGETS for")
    variables = {
        "CONFIG": "guard.toml",
        "TARGETS": targets,
        "SARIF": "out.sarif",
        "RUNNER_TEMP": str(folder.path),
    }
    done = shell(folder, script, **variables)
    assert done.returncode == code
    (run,) = json.loads(folder.read("out.sarif"))["runs"]
    assert run["invocations"][0]["exitCode"] == code
    assert shell(folder, script, **variables | {"SARIF": ""}).returncode == code


def test_the_action_gives_its_script_all_that_it_reads() -> None:
    (step,) = [step for step in ACTION["runs"]["steps"] if "memsim check" in step.get("run", "")]
    read = set(re.findall(r"\$\{?([A-Z_]+)", step["run"])) - {"RUNNER_TEMP"}
    assert read <= set(step["env"])
    used = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text("utf-8")))
    assert used == set(ACTION["inputs"])
    assert "${{" not in step["run"]  # an input is never pasted into a script
    document = yaml.safe_load(piece("action"))
    (job,) = document["jobs"].values()
    given = next(step["with"] for step in job["steps"] if "memsim" in step["uses"])
    assert set(given) <= set(ACTION["inputs"])
    assert document["permissions"]["pull-requests"] == "write"  # for the comment


CONFLICT = """\
__global__ void turn(const float *a, float *b) {
    __shared__ float tile[32][32];
    tile[threadIdx.y][threadIdx.x] = a[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    b[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
"""
OWN = '[[targets]]\nfile = "turn.cu"\ngrid = 1\nblock = [32, 32]\nargs = ["f32[1024]", "f32[1024]"]\n'
GH = """\
#!/bin/sh
case "$*" in *--jq*) cat ids;; *) echo "$*" >> asked;; esac
"""


@pytest.mark.slow
def test_the_comment_has_table_picture_and_patch_and_there_is_one(folder: Folder) -> None:
    check, comment = (step for step in ACTION["runs"]["steps"] if step.get("name") in ("Check", "Comment"))
    folder.write("turn.cu", CONFLICT)
    folder.write("memsim.toml", f'budgets = ["ways <= 1"]\n{OWN}')
    variables = dict.fromkeys(check["env"], "") | {"COMMENT": "true", "RUNNER_TEMP": str(folder.path)}
    done = shell(folder, check["run"], **variables)
    assert done.returncode == 1, done.stderr
    text = folder.read("memsim.md")
    assert text.startswith("<!-- memsim -->\n### ❌ memsim: FAILED")
    assert "| turn | turn.cu:5 |" in text  # the table
    assert "Words that collide:" in text  # the picture
    assert "\n```diff\n" in text and "1,056 to 64 wavefronts" in text  # the patch
    assert len(text) < 65_536
    assert "GH_TOKEN" not in check["env"]

    folder.write("gh", GH)
    (folder.path / "gh").chmod(0o755)
    body = f"body=@{folder.path}/memsim.md"
    for ids, asked in (
        ("", "api --silent --method POST repos/o/r/issues/7/comments"),
        ("41\n42\n", "api --silent --method PATCH repos/o/r/issues/comments/41"),
    ):
        folder.write("ids", ids)
        path = f"{folder.path}{os.pathsep}{os.environ['PATH']}"
        given = {
            "RUNNER_TEMP": str(folder.path),
            "ISSUES": "repos/o/r/issues",
            "PULL_REQUEST": "7",
            "PATH": path,
        }
        assert shell(folder, comment["run"], **given).returncode == 0
        assert folder.read("asked").splitlines()[-1] == f"{asked} -F {body}"


def test_the_page_s_configuration_and_budgets_are_right(folder: Folder) -> None:
    first, runs = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    folder.write("src/scale.cu", "")
    assert len(read_project(folder.write("memsim.toml", first)).rules) == 2
    (program,) = read_project(folder.write("memsim.toml", runs)).programs
    assert (program.name, program.words) == ("bench", ("./bench", "--small"))
    (block,) = re.findall(r"```text\n(ways <= 1.*?)```", PAGE, re.DOTALL)
    budgets = [re.split(r"  +", line)[0] for line in block.splitlines()]
    assert len(budgets) == 17
    for budget in budgets:
        assert parse_budget(budget).text == budget


def test_this_repository_guards_all_its_kernels() -> None:
    project = read_project(ROOT / "memsim.toml")
    entries = parse((ROOT / BASELINE).read_text("utf-8"), BASELINE)
    assert {target.name for target in project.targets} == set(entries)
    assert "memsim check" in (ROOT / ".ci" / "run").read_text("utf-8")
