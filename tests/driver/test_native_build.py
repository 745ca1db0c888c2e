"""Programs are linked with memsim's libraries where NVIDIA's driver is, too."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memsim.driver import native_build
from memsim.driver.native_build import libraries

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc"), reason="needs Linux and a C compiler"
)
#: What each library's program calls.
CALLED = {
    **{"libcuda": "cuInit", "libcudart": "cudaGetDeviceCount"},
    **{"libcublas": "cublasCreate_v2", "libcublasLt": "cublasLtCreate"},
}


def names(library: Path, which: str) -> set[str]:
    """Of functions of CUDA and memsim that a library defines, or leaves to others."""
    said = subprocess.run(["nm", "-D", which, library], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"\b((?:cu[A-Z]|memsim_)\w+)", said))


@pytest.mark.skipif(not shutil.which("nm"), reason="needs binutils")
@pytest.mark.parametrize("name", CALLED)
def test_a_program_links_beside_another_driver(name: str, tmp_path: Path) -> None:
    """One that the linker is given first, and that has what a driver has, but nothing of memsim's."""
    driver, library = (next(libraries().glob(f"{one}.so.*"), None) for one in ("libcuda", name))
    if library is None or driver is None:
        pytest.skip("CUDA's headers here have none for it")
    functions = "".join(f"int {one}(void) {{ return 0; }}\n" for one in names(driver, "--defined-only"))
    (tmp_path / "driver.c").write_text(functions)
    called = CALLED[name]
    (tmp_path / "program.c").write_text(f"int {called}(void *); int main(void) {{ return {called}(0); }}\n")
    fake = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "driver.c", "-o", "libcuda.so"]
    subprocess.run(["cc", *fake], cwd=tmp_path, check=True)
    for order in (["-L.", "-lcuda", str(library)], [str(library), "-L.", "-lcuda"]):
        subprocess.run(["cc", "program.c", *order, "-o", "program"], cwd=tmp_path, check=True)


@pytest.mark.skipif(not shutil.which("nm"), reason="needs binutils")
def test_the_driver_has_nothing_of_memsims_own() -> None:
    defined = names(libraries() / "libcuda.so.1", "--defined-only")
    assert "cuInit" in defined and not [one for one in defined if one.startswith("memsim_")]


def test_headers_without_those_that_they_include_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wheel of CUDA 13 lacks `crt`, which another one has; where there is none, a toolkit is taken."""
    for name, files in {"wheel": (), "toolkit": ("crt/host_defines.h",)}.items():
        for file in ("cuda.h", "cuda_runtime_api.h", *files):
            (tmp_path / name / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / file).write_text("#define CUDA_VERSION 99000\n")
    both = tmp_path / "wheel", tmp_path / "toolkit"
    monkeypatch.setattr(native_build, "crt_folders", lambda: [])
    assert native_build.newest_headers(both)[99000] == tmp_path / "toolkit"
    monkeypatch.setattr(native_build, "crt_folders", lambda: [tmp_path])
    assert native_build.newest_headers(both)[99000] == tmp_path / "wheel"
