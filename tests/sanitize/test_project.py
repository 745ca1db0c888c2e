"""All targets of a project at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memsim.cli import main
from tests.cli.test_json_documents import SCHEMAS
from tests.schema import validate

KERNEL = """__global__ void k(int *o) { __shared__ int s[64]; int t = threadIdx.x;
s[t] = t;
BARRIER
o[t] = s[t ^ 32]; }
"""
TARGET = """[[targets]]
name = "{0}"
file = "k.cu"
grid = 1
block = 64
args = ["i32[64]"]
options = ["-DBARRIER={1}"]
"""
WITHOUT, WITH = TARGET.format("without", ""), TARGET.format("whole", "__syncthreads()")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a kernel."""
    (tmp_path / "k.cu").write_text(KERNEL.replace("BARRIER", "BARRIER;"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_without_a_target_all_of_the_project_are_looked_at(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "memsim.toml").write_text(WITHOUT + WITH)
    assert main(["sanitize"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "without: 1 race" and said[-2] == "whole: no error found"
    assert said[-1] == "2 targets: findings in 1, not all judged in 0"
    (here / "memsim.toml").write_text(WITH)
    assert main(["sanitize"]) == 0


@pytest.mark.slow
def test_a_target_that_does_not_compile_is_not_judged(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "memsim.toml").write_text(WITH + TARGET.format("broken", "no_such_name"))
    assert main(["sanitize"]) == 2
    said = capsys.readouterr()
    assert "broken: not judged: k.cu:3" in said.err and "whole: no error found" in said.out


def test_without_a_project_a_target_is_asked_for(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sanitize"]) == 2
    assert "there is no TARGET, and no memsim.toml here" in capsys.readouterr().err


LAUNCHES = """
__global__ void k(int *o, int n) { __shared__ int s[64]; int t = threadIdx.x;
s[t] = t;
if (n > 32) __syncthreads();
o[t] = s[t ^ 1]; }
__global__ void copy(int *o, const int *p) { o[threadIdx.x] = p[threadIdx.x]; }
int main(int argc, char **argv) { int *o, *p; cudaMalloc(&o, 256); cudaMalloc(&p, 256);
int m = atoi(argv[1]);
copy<<<1, 64>>>(o, p); copy<<<1, 96>>>(o, p);
copy<<<1, 64>>>(o, p);
copy<<<m, 64>>>(o, p);
k<<<1, 64>>>(o, 64); }
"""


@pytest.mark.slow
def test_each_launch_of_a_file_is_looked_at(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "many.cu").write_text(LAUNCHES)
    assert main(["sanitize", "many.cu", "--let", "m=1"]) == 1
    said = capsys.readouterr().out
    assert "copy<<<1, 64>>>(i32[64], i32[64]): no error found\n" in said
    assert "copy<<<1, 96>>>(i32[64], i32[64]): 2 accesses out of bounds" in said
    assert said.endswith("3 launches: findings in 1, not all judged in 0\n")
    assert main(["sanitize", "many.cu"]) == 1  # findings are worse than what is not judged
    said, not_judged = capsys.readouterr()
    assert "4 launches: findings in 1, not all judged in 1" in said
    assert "copy<<<m, 64>>>(i32[64], i32[64]): not judged" in not_judged and "needs --let m" in not_judged
    assert "hint: memsim sanitize many.cu --kernel copy" in not_judged
    assert main(["sanitize", "many.cu", "--kernel", "k"]) == 0
    assert "launches" not in capsys.readouterr().out
    assert main(["sanitize", "many.cu", "--tool", "race"]) == 2


def test_a_hint_of_why_a_launch_is_not_judged_has_a_line_of_its_own(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "two.cu").write_text(
        "__global__ void k(int *o) { o[threadIdx.x] = 1; }\n"
        "int main() { int *d; cudaMalloc(&d, 256); k<<<1, 64>>>(d); k<<<1, 32>>>(d); }\n"
    )
    assert main(["sanitize", "two.cu", "--unwritten", "q"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0].endswith("not judged: no array in global memory is called 'q'")
    assert said[1] == "hint: there are o"


def test_of_each_launch_it_is_said_what_is_not_followed(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "two.cu").write_text(
        "__global__ void k(int *o) { o[threadIdx.x] = 1; }\n"
        "int main() { int *d; cudaMalloc(&d, 256); k<<<1, 64>>>(d); k<<<1, 32>>>(d); }\n"
    )
    assert main(["sanitize", "two.cu"]) == 0
    assert "Not followed" not in capsys.readouterr().out
    monkeypatch.setattr("memsim.sanitizer.global_races.MOST_LANES", 40)
    assert main(["sanitize", "two.cu"]) == 0
    first, why, second, *_ = capsys.readouterr().out.splitlines()
    assert first.endswith("no error found") and second.endswith("no error found")
    assert why.startswith("   Not followed: races in global memory (more accesses than are compared")


@pytest.mark.slow
def test_several_launches_are_one_document(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "many.cu").write_text(LAUNCHES)
    schema = SCHEMAS["sanitize_launches"]
    assert main(["sanitize", "many.cu", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    validate(document, schema)
    judged = {one["name"]: one["sanitized"] for one in document["launches"] if one["error"] is None}
    assert {name: len(one["findings"]) for name, one in judged.items()} == {
        "copy<<<1, 64>>>(i32[64], i32[64])": 0,
        "copy<<<1, 96>>>(i32[64], i32[64])": 2,
        "k<<<1, 64>>>(i32[64], 64)": 0,
    }
    (unknown,) = [one for one in document["launches"] if one["error"] is not None]
    assert "needs --let m" in unknown["error"] and unknown["sanitized"] is None
    assert main(["sanitize", "many.cu", "--kernel", "k", "--json"]) == 0
    validate(json.loads(capsys.readouterr().out), SCHEMAS["sanitize"])  # one launch, as ever
    (here / "memsim.toml").write_text(WITHOUT + WITH)
    assert main(["sanitize", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    validate(document, schema)
    assert [len(one["sanitized"]["findings"]) for one in document["launches"]] == [1, 0]


@pytest.mark.slow
def test_of_several_kernels_one_is_launched(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unused = "__global__ void unused(int *o) { o[0] = 1; }\n"
    main_of_one = "int main() { int *o; cudaMalloc(&o, 256); k<<<1, 64>>>(o); }"
    (here / "one.cu").write_text(unused + KERNEL.replace("BARRIER", "") + main_of_one)
    assert main(["sanitize", "one.cu"]) == 1
    assert capsys.readouterr().out.startswith("k: 1 race\n")
    (here / "none.cu").write_text(unused + KERNEL.replace("BARRIER", ""))
    assert main(["sanitize", "none.cu"]) == 2
    assert "hint: memsim sanitize none.cu --kernel" in capsys.readouterr().err


@pytest.mark.some(1)
@pytest.mark.parametrize("verb", ["bound", "explain", "time", "suggest"])
def test_a_hint_has_the_verb_that_was_typed(
    here: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "many.cu").write_text(LAUNCHES)
    assert main([verb, "many.cu"]) == 2
    said = capsys.readouterr().err
    assert f"hint: memsim {verb} many.cu --kernel k " in said and "memsim analyze" not in said
    assert main([verb, "many.cu", "--kernel", "k", "--grid", "1", "--block", "64"]) == 0
