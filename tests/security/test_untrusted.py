"""`--untrusted`: nothing outside of the project is read, and nothing that the project names is run."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from memsim.boundary import boundary_of, confined_to
from memsim.compile.prepare import prepare
from memsim.errors import MemsimError
from tests.security.conftest import SECRET, Place, Run

KERNEL = 'extern "C" __global__ void k(float *o) {\n    o[threadIdx.x] = 1;\n}\n'
TARGET = """\
[[targets]]
file = "FILE"
grid = 1
block = 32
args = ["f32[32]"]
options = OPTIONS
budgets = ["sectors_per_request <= 4"]
"""
LAUNCH = "--grid 1 --block 32 --arg 'f32[32]'"


def target(file: str, options: list[str] | None = None, more: str = "") -> None:
    """The project's one target, and `k.cu`."""
    said = TARGET.replace("FILE", file).replace("OPTIONS", json.dumps(options or []))
    Path("memsim.toml").write_text(more + said)
    Path("k.cu").write_text(KERNEL)


def test_a_good_project_passes(memsim: Run, place: Place) -> None:
    """Headers, macros and options of code generation are what projects need."""
    Path("inc").mkdir()
    Path("inc/h.h").write_text("#pragma once\n#include <cuda_fp16.h>\n")
    target("k.cu", ["-DN=4", "-I", "inc", "-std=c++17", "--use_fast_math", "-O3", '-DNAME="x"'])
    Path("k.cu").write_text('#include "inc/h.h"\n#include <h.h>\n' + KERNEL)
    assert memsim("check --untrusted --no-cache").fine()[-1].startswith("OK")


@pytest.mark.parametrize(
    "options",
    [
        ["-ccbin", "evil"],
        ["--compiler-bindir=evil"],
        ["-Xcompiler", "-wrapper,evil"],
        ["--options-file", "more"],
        ["@more"],
        ["-o", "k.cu"],
        ["-keep"],
        ["-include", "../elsewhere/secret.txt"],
        ["-I../elsewhere"],
        ["-I", "/etc"],
        ["-DX=$(evil)"],
        ["-Xptxas=-o"],
    ],
)
def test_options_run_no_program_and_open_no_file(memsim: Run, place: Place, options: list[str]) -> None:
    """What is not known to be harmless is refused, whichever compiler it is for."""
    target("k.cu", options)
    done = memsim("check --untrusted --no-cache")
    assert done.code == 2
    assert "is not allowed with --untrusted" in done.out


def test_an_option_is_refused_where_the_same_code_is_kept(
    memsim: Run, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of an option has nothing that the source includes, so that its code is the same."""
    monkeypatch.setenv("MEMSIM_CACHE_DIR", str(place.project.parent / "kept"))
    for options, code in (["-Iinner"], 0), (["-I../elsewhere"], 2), ([], 0):
        target("k.cu", options)
        assert memsim("check --untrusted").code == code


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_the_program_of_an_option_is_not_run(memsim: Run, place: Place) -> None:
    """By trust it is: that is what trusting a configuration means."""
    evil = place.project / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {place.project}/owned\nexit 1\n")
    evil.chmod(0o755)
    target("k.cu", ["-ccbin", str(evil)])
    path = Path("memsim.toml")
    path.write_text(path.read_text() + 'compiler = "nvcc"\n')
    assert memsim("check --untrusted --no-cache").code == 2
    assert not Path("owned").exists()
    assert memsim("check --no-cache").code == 2
    assert Path("owned").exists()


@pytest.mark.parametrize("file", ["l.py:f", "l.py"])
def test_no_python_is_run(memsim: Run, place: Place, file: str) -> None:
    """A function of index math is a program; by trust it runs."""
    Path("l.py").write_text("open('owned', 'w').close()\ndef f(t, o):\n    o[t.x] = 1\n")
    Path("memsim.toml").write_text(f'[[targets]]\nfile = "{file}"\nblock = 32\nbudgets = ["ways <= 1"]\n')
    assert "is a program" in memsim("check --untrusted --no-cache").out
    memsim("analyze --untrusted l.py:f --block 32").refused("is a program")
    assert not Path("owned").exists()
    memsim("check --no-cache")
    assert Path("owned").exists()


def test_a_script_is_not_captured(memsim: Run, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment asks for it on behalf of every verb."""
    Path("l.py").write_text("open('owned', 'w').close()\n")
    monkeypatch.setenv("MEMSIM_UNTRUSTED", "1")
    memsim("capture -o run l.py").refused("a script is a program")
    assert not Path("owned").exists()
    monkeypatch.setenv("MEMSIM_UNTRUSTED", "0")
    assert "a script is a program" not in memsim("capture -o run l.py").err


def test_no_program_is_executed(memsim: Run, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """By trust it runs, and launches nothing."""
    program = Path("program")
    program.write_text("#!/bin/sh\n: > owned\n")
    program.chmod(0o755)
    monkeypatch.setenv("MEMSIM_UNTRUSTED", "1")
    memsim("exec ./program").refused("--untrusted runs no program")
    assert not Path("owned").exists()
    monkeypatch.setenv("MEMSIM_UNTRUSTED", "0")
    assert memsim("exec ./program").code == 0
    assert Path("owned").exists()


def test_nothing_of_the_project_switches_it_off(
    memsim: Run, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a key of the configuration nor the environment."""
    monkeypatch.setenv("MEMSIM_UNTRUSTED", "0")
    target("k.cu", ["-ccbin", "evil"])
    assert "is not allowed with --untrusted" in memsim("check --untrusted --no-cache").out
    target("k.cu", more="untrusted = false\n")
    assert "unknown key 'untrusted'" in memsim("check --untrusted --no-cache").out


def link(name: str, to: Path) -> str:
    """A link in the project."""
    Path(name).symlink_to(to)
    return name


@pytest.mark.parametrize("suffix", ["cu", "ptx", "cubin", "json", "npz", "traceg"])
def test_no_file_elsewhere_is_a_target(memsim: Run, place: Place, suffix: str) -> None:
    """By `..`, by an absolute name and by a link; errors have no line of it."""
    outside = place.secret.with_name(f"secret.{suffix}")
    outside.write_text(f"{SECRET}\n")
    for file in (f"../elsewhere/{outside.name}", str(outside), link(f"linked.{suffix}", outside)):
        Path("memsim.toml").write_text(f'[[targets]]\nfile = "{file}"\ngrid = 1\nblock = 32\n')
        done = memsim("check --untrusted --no-cache")
        assert done.code == 2
        assert "it is not a file of the project" in done.out
        assert "hunter2" not in done.out + done.err


def test_no_baseline_and_no_array_lies_elsewhere(memsim: Run, place: Place) -> None:
    """A baseline is written, too."""
    before = place.secret.read_text()
    target("k.cu", more='baseline = "../elsewhere/secret.txt"\n')
    for verb in ("check", "baseline"):
        done = memsim(f"{verb} --untrusted --no-cache")
        assert done.code == 2
        assert "it is not a file of the project" in done.out + done.err
        assert "hunter2" not in done.out + done.err
    assert place.secret.read_text() == before
    done = memsim("analyze k.cu --untrusted --grid 1 --block 32 --arg @../elsewhere/secret.txt")
    done.refused("it is not a file of the project")


INCLUDES = {
    '#include "../elsewhere/secret.txt"': "which is not a file of the project",
    '#include "SECRET"': "which is not a file of the project",
    '#include "linked.h"': "which is not a file of the project",
    "#include <../../../../../../../../etc/hostname>": "which is not a file of the project",
    '#include ".git/config"': "which is not a file of the project",
    '#include "nested.h"': "which is not a file of the project",
    '#define A "shown.txt"\n#include A': "an #include does not say which file",
    '#inc\\\nlude "shown.txt"': "an #include does not say which file",
    '%:include "shown.txt"': "an #include does not say which file",
}


@pytest.mark.parametrize("line", INCLUDES)
def test_no_file_elsewhere_is_included(place: Place, line: str) -> None:
    """No compiler is started, so that none can print it."""
    link("linked.h", place.secret)
    Path(".git/config").write_text(f"{SECRET}\n")
    Path("nested.h").write_text(f'#include "{place.secret}"\n')
    Path("k.cu").write_text(f"{line.replace('SECRET', str(place.secret))}\n{KERNEL}")
    prepare(Path("k.cu"), (), None)
    with confined_to(boundary_of(place.project)), pytest.raises(MemsimError, match=INCLUDES[line]):
        prepare(Path("k.cu"), (), None)


def test_files_of_the_project_are_included(place: Place) -> None:
    """Also from folders above the source, and from those of -I."""
    for file in ("a/b", "inc"):
        Path(file).mkdir(parents=True)
    Path("a/near.h").write_text("#include <far.h>\n")
    Path("inc/far.h").write_text("")
    Path("a/b/k.cu").write_text(f'#include "../near.h"\n#include <cuda_fp16.h>\n#include <vector>\n{KERNEL}')
    with confined_to(boundary_of(place.project)):
        prepare(Path("a/b/k.cu"), ["-I", "inc"], None)


def test_the_whole_repository_is_the_project(
    memsim: Run, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its configuration may lie in a folder of its own; without a repository that folder is the project."""
    Path("ci").mkdir()
    target("k.cu")
    text = Path("memsim.toml").read_text().replace("k.cu", "../k.cu")
    Path("memsim.toml").unlink()
    monkeypatch.chdir("ci")
    Path("memsim.toml").write_text(text)
    memsim("check --untrusted --no-cache").fine()
    (place.project / ".git").rmdir()
    assert "it is not a file of the project" in memsim("check --untrusted --no-cache").out


@pytest.mark.slow
def test_what_the_command_line_names_is_trusted(memsim: Run, place: Place) -> None:
    """Who types a folder knows it; a link in the project is not typed."""
    source = place.secret.with_name("k.cu")
    source.write_text(f'#include "h.h"\n{KERNEL}')
    source.with_name("h.h").write_text("")
    assert memsim("analyze --untrusted", source, LAUNCH).code == 0
    Path("k.cu").write_text(f"#include <h.h>\n{KERNEL}")
    assert memsim("analyze --untrusted k.cu", LAUNCH, "-I", source.parent).code == 0
    link("inc", source.parent)
    memsim("analyze --untrusted inc/k.cu", LAUNCH).refused("it is not a file of the project")
    memsim("analyze --untrusted k.cu", LAUNCH, "-I inc").refused("is not allowed with --untrusted")


def test_a_verb_after_it_trusts_again(memsim: Run, place: Place) -> None:
    """Also after one that failed: memsim may be called twice in a process."""
    Path("k.cu").write_text(KERNEL)
    memsim("analyze --untrusted k.cu --no-such-option").refused()
    assert memsim("analyze k.cu", LAUNCH, "-D 'X=$'").code == 0


@pytest.mark.slow
def test_what_was_kept_by_trust_is_looked_at_anew(
    memsim: Run, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check that passed, or was compiled, is no answer to one that trusts nothing."""
    monkeypatch.setenv("MEMSIM_CACHE_DIR", str(place.project.parent / "cache"))
    target("k.cu", ["-I../elsewhere"])
    for _ in range(2):
        memsim("check").fine()
    assert "is not allowed with --untrusted" in memsim("check --untrusted").out


@pytest.mark.slow
def test_another_revision_is_of_the_project(memsim: Run, place: Place) -> None:
    """Its files lie in a temporary folder meanwhile."""
    shutil.rmtree(".git")
    target("k.cu")
    for command in ("init -q", "add .", "-c user.name=a -c user.email=a@b commit -q -m a"):
        subprocess.run(["git", *command.split()], check=True)
    assert memsim("check --untrusted --no-cache --against HEAD").code == 0
    assert memsim("compare --untrusted --no-cache HEAD .").code == 0


@pytest.mark.slow
def test_workers_trust_as_little(memsim: Run, place: Place) -> None:
    """Several files are analyzed in processes of their own."""
    target("k.cu")
    Path("bad.cu").write_text(f'#include "../elsewhere/secret.txt"\n{KERNEL}')
    path = Path("memsim.toml")
    path.write_text(path.read_text() + TARGET.replace("FILE", "bad.cu").replace("OPTIONS", "[]"))
    done = memsim("check --untrusted --no-cache -j 2")
    assert "which is not a file of the project" in done.out
