"""Exit codes, streams, signals and help."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import memsim as package
from memsim import cli
from memsim.arch import ARCHS
from memsim.errors import MemsimError
from memsim.kernels import catalog
from tests.cli.conftest import Done, Run

MEMSIM = (sys.executable, "-m", "memsim")


def test_the_list_has_every_kernel_with_its_story_under_its_article(
    memsim: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    done = memsim("list")
    assert done.code == 0
    groups = [group.splitlines() for group in done.out.split("\n\n")]
    titles = [title for title, *_ in groups]
    assert titles == list(dict.fromkeys(spec.article for spec in catalog().values()))  # each title once
    listed = {line.split()[0]: (title, line) for title, *lines in groups for line in lines}
    assert listed.keys() == catalog().keys()
    for name, spec in catalog().items():
        title, line = listed[name]
        assert title == spec.article
        assert line.endswith(spec.story)
    assert sum(len(group) - 1 for group in groups) == len(catalog())  # and each kernel

    monkeypatch.setenv("COLUMNS", "80")
    stories = [line for line in memsim("list").out.splitlines() if line.startswith(" ")]
    assert max(map(len, stories)) <= 80


def test_the_version_tells_what_counts_depend_on(memsim: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    first, compilers, rules = memsim("--version").out.splitlines()
    assert first == f"memsim, version {package.__version__}"
    assert re.fullmatch(r"compilers: NVRTC [\d.]+(, nvcc [\d.]+)?, nvdisasm [\d.]+", compilers)
    assert rules.startswith("rules: ") and rules.count("sm_") == len(ARCHS)
    assert "sm_90: measured (NVIDIA H200, NVIDIA H100 80GB HBM3)" in rules
    monkeypatch.setattr("memsim.doctor.compilers", lambda: ())
    assert memsim("--version").out.splitlines()[1] == "compilers: none"


def test_help(memsim: Run) -> None:
    assert "memsim analyze kernel_v4" in memsim("--help").out
    assert memsim("analyze --help").out == memsim("analyze -h").out
    for word in ("'f32[1024,1024]'", "=iota", "@matrix.npy", "--save-trace FILE.npz", "--grid X[,Y[,Z]]"):
        assert word in memsim("analyze --help").out


@pytest.mark.parametrize(
    ("error", "code", "printed"),
    [
        (MemsimError("it is wrong", hint="mend it"), 2, "error: it is wrong\nhint: mend it\n"),
        (MemsimError("a check failed", exit_code=1), 1, "error: a check failed\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (RecursionError(), 2, "error: the input is nested too deeply\n"),
        (MemoryError(), 2, "error: out of memory\n"),
        (MemsimError("\x1b[31mred\u202e\r"), 2, "error: ␛[31mred\ufffd␍\n"),
    ],
)
def test_errors_become_exit_codes(
    memsim: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, printed: str
) -> None:
    @click.command("fail")
    def fail() -> None:
        raise error

    monkeypatch.setitem(cli.cli.commands, "fail", fail)
    assert memsim("fail") == Done(code, "", printed)


def test_another_exception_is_a_bug_and_keeps_its_traceback(
    memsim: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    @click.command("fail")
    def fail() -> None:
        raise ZeroDivisionError

    monkeypatch.setitem(cli.cli.commands, "fail", fail)
    with pytest.raises(ZeroDivisionError):
        memsim("fail")


@pytest.mark.slow
def test_the_module_runs_as_a_command() -> None:
    done = subprocess.run([*MEMSIM, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"memsim, version {package.__version__}\n")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="pipes of a shell")
def test_a_closed_pipe_is_no_error() -> None:
    done = subprocess.run(
        ["bash", "-c", '"$@" | head -n 0', "bash", *MEMSIM, "list"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.some(1)
@pytest.mark.skipif(os.name != "posix", reason="streams of a shell")
@pytest.mark.parametrize(
    ("closed", "printed"), [("<&-", True), ("2>&-", True), (">&-", False), ("<&- >&- 2>&-", False)]
)
def test_a_closed_stream_is_no_error(closed: str, printed: bool) -> None:
    command = [*MEMSIM, "analyze", "transpose_padded", "--size", "32,32"]
    shell = ["bash", "-c", f'"$@" {closed}', "bash", *command]
    done = subprocess.run(shell, capture_output=True, text=True, check=True)
    assert (done.stdout.startswith("transpose_padded: conflict-free"), done.stderr) == (printed, "")


def test_progress_only_where_a_person_is_watching(monkeypatch: pytest.MonkeyPatch) -> None:
    from memsim.cli.output import progress_bar

    with progress_bar("title") as report:
        assert report is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_bar("title") as report:
        assert report is not None
        report(0.5)


def test_a_name_that_is_not_exported_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'analyse'"):
        package.analyse  # noqa: B018
    assert all(getattr(package, name) is not None for name in package.__all__)


def test_catalog_is_the_function_whatever_was_imported_before() -> None:
    code = "import memsim.cli, memsim; memsim.catalog()['kernel_v4']; memsim.catalog()"
    subprocess.run([sys.executable, "-c", code], check=True)


KERNEL = 'extern "C" __global__ void k(float *o) { o[threadIdx.x] = 1; /* caf%s */ }\n'


@pytest.mark.some(1)
@pytest.mark.skipif(sys.platform != "linux", reason="names of any bytes")
@pytest.mark.parametrize(
    ("name", "word"), [(b"k.cu", b"\xe9"), (b"caf\xe9.cu", b""), (b"caf\xe9.cu", b"\xe9")]
)
def test_what_is_no_utf8_is_analyzed(
    memsim: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: bytes, word: bytes
) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path(os.fsdecode(name))
    file.write_bytes(KERNEL.encode().replace(b"%s", word))
    done = memsim("analyze", file, "--grid 1 --block 32 --arg 'f32[32]' --save-trace t.npz")
    assert done.code == 0
    assert "4 global sectors" in done.out
    untimed = re.sub(r"^Time: .*\n", "", done.out, flags=re.MULTILINE)  # a trace has no code to be timed
    assert memsim("analyze t.npz").out == untimed


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*MEMSIM, "list"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "error: cannot write the output: No space left on device\n"
