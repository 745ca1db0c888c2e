"""CUDA C++ to machine code: what is compiled, what files are called, and who compiled it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from memsim.compile import library_calls
from memsim.compile.cuda_source import compile_cubin
from memsim.compile.prepare import Compiled
from memsim.errors import MemsimError
from memsim.sass.cubin import read_cubin
from memsim.sass.disassemble import disassemble
from tests.compile.samples import GOOD, HOST, INCLUDING, SCALE, TWICE, write

needs_nvcc = pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")


def code(compiled: Compiled) -> bytes:
    return read_cubin(compiled.cubin).kernels["scale"].code


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_90a"])
def test_the_chip_is_the_one_asked_for(arch: str) -> None:
    compiled = compile_cubin(GOOD, arch=arch)
    assert compiled.arch == arch
    assert compiled.compiler.startswith("NVRTC 1")
    assert read_cubin(compiled.cubin).arch == arch


OF_90A = """
__global__ void k(float *x) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    x[threadIdx.x] = 1;
}
"""


@pytest.mark.parametrize(
    ("text", "options", "chip"),
    [
        (GOOD, [], "sm_90"),
        (OF_90A, [], "sm_90a"),
        (GOOD, ["-arch=sm_90a"], "sm_90a"),
        (GOOD, ["-gencode", "arch=compute_90a,code=sm_90a"], "sm_90a"),
        (GOOD, ["--generate-code=arch=compute_80,code=[compute_80,sm_80]"], "sm_90"),
        (OF_90A, ["-arch", "sm_80"], "sm_90a"),
    ],
)
@pytest.mark.parametrize("with_nvcc", [False, pytest.param(True, marks=[needs_nvcc, pytest.mark.slow])])
def test_instructions_of_one_chip_are_compiled_for_it(
    text: str, options: list[str], chip: str, with_nvcc: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not with_nvcc:
        monkeypatch.setattr("memsim.compile.cuda_source.find_nvcc", lambda: None)
    compiled = compile_cubin(text, options, compiler="nvcc" if with_nvcc else "nvrtc")
    assert (compiled.arch, read_cubin(compiled.cubin).arch) == (chip, chip)
    assert not any("ignored" in note for note in compiled.notes)


def test_instructions_of_another_chip_do_not_compile() -> None:
    with pytest.raises(MemsimError, match="does not compile") as caught:
        compile_cubin(OF_90A, arch="sm_80")
    assert "wgmma" in str(caught.value)


def test_what_is_no_chip_is_told() -> None:
    for arch in ("compute_90", "90", "sm_90 -G"):
        with pytest.raises(MemsimError, match="for a chip such as sm_90"):
            compile_cubin(GOOD, arch=arch)


@pytest.mark.parametrize("with_nvcc", [False, pytest.param(True, marks=needs_nvcc)])
def test_a_chip_that_no_compiler_knows_is_told(with_nvcc: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not with_nvcc:
        monkeypatch.setattr("memsim.compile.cuda_source.find_nvcc", lambda: None)
    compiler = "nvcc" if with_nvcc else "NVRTC"
    with pytest.raises(MemsimError, match=f"the installed {compiler} does not support sm_12") as caught:
        compile_cubin(GOOD, arch="sm_12")
    assert "install a release that supports the chip" in str(caught.value)
    assert compile_cubin(GOOD, arch="sm_90")


@pytest.mark.slow
def test_macros_reach_the_code() -> None:
    two, three = (code(compile_cubin(SCALE, [f"-DFACTOR={value}"])) for value in ("2.0f", "3.0f"))
    assert two == code(compile_cubin(GOOD)) != three


@pytest.mark.slow
def test_the_same_source_makes_the_same_bytes(tmp_path: Path) -> None:
    source = write(tmp_path / "scale.cu")
    assert compile_cubin(source).cubin == compile_cubin(source).cubin


@pytest.mark.slow
def test_code_does_not_depend_on_the_folder(tmp_path: Path) -> None:
    here, there = (
        compile_cubin(write(tmp_path / folder / "scale.cu")) for folder in ("here", "there/and/deeper")
    )
    assert code(here) == code(there)
    assert here.cubin != there.cubin  # the line tables say where the header is


@pytest.mark.some(1)
@pytest.mark.parametrize("text", [GOOD, HOST], ids=["device code", "host code set aside"])
def test_a_file_without_headers_of_its_own_makes_the_same_cubin_in_every_folder(
    tmp_path: Path, text: str
) -> None:
    made = []
    for folder in (tmp_path / "here", tmp_path / "there" / "and" / "deeper"):
        folder.mkdir(parents=True)
        (folder / "scale.cu").write_text(text)
        made.append(compile_cubin(folder / "scale.cu", compiler="nvrtc"))
    assert made[0].cubin == made[1].cubin
    listing = disassemble(made[0].cubin)
    (file,) = set(re.findall(r'//## File "([^"]+)"', listing))
    assert [compiled.names.name_of(file) for compiled in made] == [
        (tmp_path / "here" / "scale.cu").as_posix(),
        (tmp_path / "there" / "and" / "deeper" / "scale.cu").as_posix(),
    ]


def test_inlined_functions_of_a_header_compile(tmp_path: Path) -> None:
    """NVRTC 12.0 overflows the stack over them, unless it leaves out who inlined them."""
    assert len(code(compile_cubin(write(tmp_path / "scale.cu"), arch="sm_90"))) > 0


def test_only_the_release_that_needs_it_leaves_out_who_inlined(monkeypatch: pytest.MonkeyPatch) -> None:
    def options(release: tuple[int, int], chip: str) -> list[bytes]:
        class Library:
            @staticmethod
            def nvrtcVersion(major: object, minor: object) -> None:  # noqa: N802
                major._obj.value, minor._obj.value = release  # type: ignore[attr-defined]

        return library_calls._workarounds(Library(), chip.encode())  # type: ignore[arg-type]

    assert options((12, 0), "sm_90a") == [b"-no-lineinfo-ia"]
    assert options((12, 0), "sm_80") == options((12, 1), "sm_90") == []


def test_files_have_names(tmp_path: Path) -> None:
    source = write(tmp_path / "scale.cu")
    names = compile_cubin(source, name="kernels/scale.cu").names
    assert names.name_of(source.as_posix()) == "kernels/scale.cu"
    assert names.name_of((tmp_path / "twice.cuh").as_posix()) == "kernels/twice.cuh"
    assert names.name_of("/usr/include/cuda_fp16.h") == "/usr/include/cuda_fp16.h"
    assert names.name_of("/anywhere/__nv_nvrtc_builtin_header.h") == "__nv_nvrtc_builtin_header.h"
    assert compile_cubin(GOOD).names.name_of((Path.cwd() / "kernel.cu").as_posix()) == "kernel.cu"


def test_true_places_of_headers_are_in_the_line_tables(tmp_path: Path) -> None:
    source = write(tmp_path / "scale.cu")
    made = compile_cubin(source, name="kernels/scale.cu").cubin
    assert str(tmp_path).encode() in made
    assert str(source).encode() not in made


def test_headers_come_along(tmp_path: Path) -> None:
    source = write(tmp_path / "src" / "scale.cu")
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "deep.cuh").write_text('#include "deeper.cuh"\n#include <absent.h>\n')
    (tmp_path / "include" / "deeper.cuh").write_text("#pragma once\n#include <deep.cuh>\n")
    text = "#include <deep.cuh>\n#include <cstdint>\n" + INCLUDING
    (tmp_path / "include" / "deep.cuh").write_text('#pragma once\n#include "deeper.cuh"\n')
    source.write_text(text)
    for options in ([f"-I{tmp_path / 'include'}"], ["-I", str(tmp_path / "include")]):
        headers = compile_cubin(source, options, name="src/scale.cu").headers
        assert headers["src/twice.cuh"] == TWICE
        assert set(headers) == {"src/twice.cuh", "include/deep.cuh", "include/deeper.cuh"}


def test_an_error_has_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MemsimError) as caught:
        compile_cubin(SCALE, name="mine/scale.cu")
    error = caught.value
    assert (error.file, error.line, error.column) == ("mine/scale.cu", 4, 24)
    assert error.message == 'does not compile: identifier "FACTOR" is undefined'
    monkeypatch.setattr("memsim.compile.cuda_source.find_nvcc", lambda: None)
    with pytest.raises(MemsimError, match="nvcc is not installed"):
        compile_cubin(GOOD, compiler="nvcc")


def test_warnings_are_kept() -> None:
    assert "never referenced" in compile_cubin(GOOD.replace("{\n", "{\n    int unused;\n", 1)).log


@pytest.mark.slow
@needs_nvcc
def test_nvcc_takes_host_code() -> None:
    compiled = compile_cubin(HOST, name="mine/host.cu", compiler="nvcc")
    assert compiled.compiler.startswith("nvcc 1")
    assert "scale" in read_cubin(compiled.cubin).kernels


@pytest.mark.slow
@needs_nvcc
def test_nvcc_compiles_a_file_where_it_is(tmp_path: Path) -> None:
    source = write(tmp_path / "scale.cu")
    first, second = (compile_cubin(source, name="src/scale.cu", compiler="nvcc") for _ in range(2))
    assert first.cubin == second.cubin
    assert first.names.name_of(source.as_posix()) == "src/scale.cu"
    assert first.names.name_of((tmp_path / "twice.cuh").as_posix()) == "src/twice.cuh"
    with pytest.raises(MemsimError) as caught:
        compile_cubin(SCALE, name="mine/scale.cu", compiler="nvcc")
    assert (caught.value.file, caught.value.line) == ("mine/scale.cu", 4)
