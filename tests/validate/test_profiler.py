"""Finding ncu and running it, with a program in its place that prints what ncu prints."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from memsim.errors import MemsimError
from memsim.validate import profiler
from memsim.validate.profiler import Profiler, find_profiler, profile

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a program by its first line")

VERSION = """\
NVIDIA (R) Nsight Compute Command Line Profiler
Copyright (c) 2018-2025 NVIDIA Corporation
Version 2025.3.1.0 (build 36398880) (public-release)
"""
MEASURES = """\
import pathlib, subprocess
print("==PROF== Connected to process 749 (/usr/bin/python3.12)")
print('==PROF== Profiling "kernel_v4" - 0: 0%....50%....100% - 7 passes')
print('==PROF== Profiling "transpose_naive" - 1: 0%....50%....100% - 7 passes')
path = sys.argv[sys.argv.index("--export") + 1]
pathlib.Path(path).write_text(" ".join(sys.argv))
"""


def fake_ncu(folder: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = folder / "ncu"
    version = f"if '--version' in sys.argv:\n    print({VERSION!r})\n    sys.exit()\n"
    path.write_text(f"#!{sys.executable}\nimport sys\n{version}{code}")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return path


def test_ncu_is_found_with_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fake_ncu(tmp_path, "", monkeypatch)
    assert find_profiler() == Profiler(path, "2025.3.1.0")


def test_ncu_is_found_where_the_installer_puts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    older, newer = tmp_path / "ncu" / "2024.1.0", tmp_path / "ncu" / "2025.3.1"
    for folder in (older, newer):
        folder.mkdir(parents=True)
        fake_ncu(folder, "", monkeypatch)
        (folder / "extras" / "python").mkdir(parents=True)
        (folder / "extras" / "python" / "ncu_report.py").touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(profiler, "KNOWN_FOLDERS", (f"{tmp_path}/ncu/*",))
    assert find_profiler().path == newer / "ncu"
    assert next(iter(profiler.folders_with("ncu_report.py"))) == newer / "extras" / "python"


def test_no_ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(profiler, "KNOWN_FOLDERS", (f"{tmp_path}/nothing",))
    with pytest.raises(MemsimError, match="ncu, Nsight Compute's command line, was not found") as caught:
        find_profiler()
    assert "https://developer.nvidia.com/nsight-compute" in str(caught.value)


def test_something_else_called_ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fake_ncu(tmp_path, "", monkeypatch)
    path.write_text(f"#!{sys.executable}\nprint('a calculator')\n")
    with pytest.raises(MemsimError, match="does not report its version: a calculator"):
        find_profiler()


def test_a_run_reports_each_launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ncu = Profiler(fake_ncu(tmp_path, MEASURES, monkeypatch), "2025.3.1.0")
    report, launched = tmp_path / "r.ncu-rep", []
    profile(ncu, report, ("--metrics", "m"), ("python", "target"), lambda: launched.append(1))
    assert len(launched) == 2
    options = report.read_text()
    assert "--clock-control none --profile-from-start off" in options
    assert options.endswith(f"--metrics m --export {report} python target")


def test_a_launch_that_ncu_did_not_survive_is_not_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies = MEASURES.replace('transpose_naive" - 1: 0%....50%....100% - 7 passes', 'transpose_naive" - 1: 0%')
    ncu = Profiler(fake_ncu(tmp_path, f"{dies}sys.exit(9)", monkeypatch), "2025.3.1.0")
    launched: list[int] = []
    with pytest.raises(MemsimError, match=r"exit code 9"):
        profile(ncu, tmp_path / "r.ncu-rep", (), ("python",), lambda: launched.append(1))
    assert len(launched) == 1


@pytest.mark.parametrize(
    ("code", "says", "hint"),
    [
        (
            "print('==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
            "Performance Counters on the target device 0.')\nsys.exit(1)",
            "may not read the GPU's performance counters",
            "https://developer.nvidia.com/ERR_NVGPUCTRPERM",
        ),
        (
            "print('==ERROR== Failed to initialize the profiler: LibraryNotLoaded')\nsys.exit(9)",
            r"ncu failed \(exit code 9\): Failed to initialize the profiler: LibraryNotLoaded",
            "",
        ),
        ("print('==WARNING== No kernels were profiled.')", r"\(exit code 0\): .*No kernels", ""),
        ("", "it printed nothing", ""),
    ],
)
def test_what_ncu_complains_of(
    code: str, says: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ncu = Profiler(fake_ncu(tmp_path, code, monkeypatch), "2025.3.1.0")
    with pytest.raises(MemsimError, match=says) as caught:
        profile(ncu, tmp_path / "r.ncu-rep", (), ("python",))
    assert hint in str(caught.value) and caught.value.exit_code == 2


def test_the_program_under_ncu_finds_memsim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    first, second = profiler.child_environment()["PYTHONPATH"].split(os.pathsep)
    assert (Path(first) / "memsim").is_dir() and second == "/somewhere"
