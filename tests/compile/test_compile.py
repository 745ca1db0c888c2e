"""CUDA C++ to machine code: what it says of its source, and what a user is told when there is none."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import memsim
from memsim.compile.compilers import release_of
from memsim.compile.cuda_source import compile_cubin
from memsim.compile.failure import compile_error, without_warnings
from memsim.compile.libraries import Library
from memsim.errors import MemsimError
from tests.compile.samples import GOOD, HOST, SCALE, files_of, places_of, ptx_in, write

REFUSED = HOST.replace("2.0f", "FACTOR")


def test_code_has_source_lines_and_its_chip() -> None:
    made = compile_cubin(GOOD)
    assert ".visible .entry scale(" in ptx_in(made)
    assert ".target sm_90" in ptx_in(made)
    assert ("kernel.cu", 4) in places_of(made)


@pytest.mark.slow
def test_another_standard_replaces_the_default() -> None:
    needs_17 = "template <auto N> struct Value {};\n" + GOOD.replace("int n", "Value<3>, int n")
    assert ".entry scale" in ptx_in(compile_cubin(needs_17))
    with pytest.raises(MemsimError, match="does not compile"):
        compile_cubin(needs_17, ["-std=c++14"])


def test_there_is_no_third_compiler() -> None:
    with pytest.raises(MemsimError, match="compilers are nvrtc and nvcc, and not 'gcc'"):
        compile_cubin(GOOD, compiler="gcc")  # type: ignore[arg-type]


def test_the_release_of_a_compiler() -> None:
    assert release_of("// Cuda compilation tools, release 12.0, V12.0.140\n.version 8.0\n") == "12.0.140"
    assert release_of(".version 8.0\n.target sm_90\n") is None


@pytest.mark.slow
def test_a_file_is_named_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "scale.cu").write_text(GOOD)
    monkeypatch.chdir(tmp_path)
    for given in ("mine/scale.cu", Path("mine/scale.cu"), tmp_path / "mine" / "scale.cu"):
        assert files_of(compile_cubin(given)) == [Path(given).as_posix()]


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["plain/k.cu", "é.cu", "jos\u00e9/k.cu", "n\udcff.cu", "a\x1b[2Jb/日本.cu"])
def test_a_name_of_any_characters_is_found_again(name: str, tmp_path: Path) -> None:
    """NVRTC escapes what is not ASCII, and cuts names at the backslashes of that."""
    path = tmp_path / name
    try:
        write(path)
    except OSError:
        pytest.skip("no file can have that name here")
    kernel = memsim.load(path)["scale"]
    sites = memsim.analyze(kernel, 1, 32, [memsim.ArrayArg((32,)), 32]).sites
    assert {site.file for site in sites} <= {path.as_posix(), path.with_name("twice.cuh").as_posix()}
    assert ("x[i] = twice(x + i);", path.as_posix()) in {
        (site.source.strip()[-20:], site.file) for site in sites
    }


@pytest.mark.slow
def test_names_do_not_depend_on_the_folder(tmp_path: Path) -> None:
    for folder in ("here", "there/and/deeper"):
        source = write(tmp_path / folder / "scale.cu")
        found = files_of(compile_cubin(source, name="kernels/scale.cu"))
        assert found == ["kernels/scale.cu", "kernels/twice.cuh"]


@pytest.mark.slow
def test_headers_beside_the_folder_are_named_as_the_file_is(tmp_path: Path) -> None:
    header = tmp_path / "include" / "twice.cuh"
    source = write(tmp_path / "src" / "scale.cu", header)
    options = [f"-I{header.parent}"]
    found = files_of(compile_cubin(source, options, name="src/scale.cu"))
    assert found == ["include/twice.cuh", "src/scale.cu"]
    assert header.as_posix() in files_of(compile_cubin(source, options, name="scale.cu"))


def test_fixed_width_integers_need_no_toolkit(no_nvcc: None) -> None:
    for header in ("cstdint", "stdint.h"):
        assert ".entry scale" in ptx_in(
            compile_cubin(f"#include <{header}>\n" + GOOD.replace("int n", "int32_t n"))
        )


def test_cuda_headers_come_with_their_wheel(no_nvcc: None) -> None:
    pytest.importorskip("nvidia.cuda_runtime")
    text = (
        '#include <cuda_fp16.h>\nextern "C" __global__ void add(__half *x) { x[0] = __hadd(x[1], x[2]); }\n'
    )
    assert "add.f16" in ptx_in(compile_cubin(text))


def test_an_error_has_its_place_the_line_and_the_log(no_nvcc: None) -> None:
    with pytest.raises(MemsimError) as caught:
        compile_cubin(SCALE, name="mine/scale.cu")
    error = caught.value
    assert (error.file, error.line, error.column) == ("mine/scale.cu", 4, 24)
    assert error.message == 'does not compile: identifier "FACTOR" is undefined'
    assert error.source is not None and error.source[23:].startswith("FACTOR")
    assert error.hint is not None and '1 error detected in the compilation of "mine/scale.cu"' in error.hint
    assert error.exit_code == 2


def test_an_error_in_a_header_is_placed_in_the_header(tmp_path: Path, no_nvcc: None) -> None:
    (tmp_path / "part.cuh").write_text("\n__device__ inline float wrong() { return missing; }\n")
    (tmp_path / "whole.cu").write_text('#include "part.cuh"\n' + GOOD.replace("2.0f", "wrong()"))
    with pytest.raises(MemsimError) as caught:
        compile_cubin(tmp_path / "whole.cu", name="whole.cu")
    assert (caught.value.file, caught.value.line) == ("part.cuh", 2)


@pytest.mark.some(1)
@pytest.mark.parametrize("system", [True, False])
def test_a_header_that_is_not_found(tmp_path: Path, no_nvcc: None, system: bool) -> None:
    include = "#include <part.cuh>\n" if system else '#include "part.cuh"\n'
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "part.cuh").write_text("#define FACTOR 2.0f\n")
    assert ".entry scale" in ptx_in(compile_cubin("\n" + include + SCALE, [f"-I{tmp_path / 'parts'}"]))
    with pytest.raises(MemsimError) as caught:
        compile_cubin("\n" + include + SCALE)
    error = caught.value
    assert (error.file, error.line, error.column) == ("kernel.cu", 2, 11)
    assert error.message == 'does not compile: cannot open source file "part.cuh"'
    assert error.hint is not None and error.hint.startswith("Pass the folder of part.cuh with -I DIR.")


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(MemsimError, match=r"does not accept these options.*--no-such-option"):
        compile_cubin(GOOD, ["--no-such-option"])


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(MemsimError, match=r"absent\.cu: there is no such file"):
        compile_cubin(tmp_path / "absent.cu")


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "binary.cu").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(MemsimError, match="not a text file"):
        compile_cubin(tmp_path / "binary.cu")


@pytest.mark.slow
def test_host_code_is_set_aside(no_nvcc: None) -> None:
    assert ".entry scale" in ptx_in(compile_cubin(HOST))
    with pytest.raises(MemsimError, match='identifier "FACTOR" is undefined'):
        compile_cubin(HOST.replace("2.0f", "FACTOR"))


FAKE_NVCC = """\
#!/bin/sh
while [ "$1" != -o ]; do
    case "$1" in -D*) macro=$1 ;; --extended-lambda) flag=$1 ;; esac
    shift
done
if [ "$macro" = -DBROKEN ]; then
    echo "$3(2): error: identifier \\"broken\\" is undefined"
    exit 2
fi
if [ "$macro" = -DMISSING ]; then
    echo "$3:1:10: fatal error: cstdio: No such file or directory"
    exit 2
fi
if [ "$macro" = -DLAMBDA ] && [ -z "$flag" ]; then
    echo "$3(2): error: an annotation on a lambda requires --extended-lambda nvcc flag"
    exit 2
fi
printf '// Cuda compilation tools, release 99.0, V99.0.1\\n.file\\t1 "%s"\\n' "$3" > "$2"
"""


@pytest.fixture
def fake_nvcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An `nvcc` that leaves a file of two lines, or fails if -DBROKEN is given."""
    if sys.platform == "win32":
        pytest.skip("the stand-in is a shell script")
    (tmp_path / "nvcc").write_text(FAKE_NVCC)
    (tmp_path / "nvcc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_what_nvrtc_refuses_goes_to_nvcc(fake_nvcc: None) -> None:
    made = compile_cubin(REFUSED, name="mine/host.cu")
    assert made.compiler.startswith("nvcc") and b"V99.0.1" in made.cubin
    (file,) = re.findall(rb'"(.*)"', made.cubin)
    assert made.names.name_of(file.decode()) == "mine/host.cu"


@pytest.mark.slow
def test_what_nvrtc_takes_does_not_go_to_nvcc(fake_nvcc: None) -> None:
    for text in (GOOD, HOST):
        assert compile_cubin(text).compiler.startswith("NVRTC")


def test_of_two_refusals_that_of_the_device_code_is_told(fake_nvcc: None) -> None:
    with pytest.raises(MemsimError) as caught:
        compile_cubin(REFUSED, ["-DBROKEN"], name="mine/host.cu")
    assert caught.value.message == 'does not compile: identifier "FACTOR" is undefined'
    assert caught.value.file == "mine/host.cu"


def test_the_error_of_nvcc_is_told(fake_nvcc: None) -> None:
    with pytest.raises(MemsimError) as caught:
        compile_cubin(HOST, ["-DBROKEN"], name="mine/host.cu", compiler="nvcc")
    assert caught.value.message == 'does not compile: identifier "broken" is undefined'
    assert (caught.value.file, caught.value.line) == ("mine/host.cu", 2)
    with pytest.raises(MemsimError) as caught:
        compile_cubin(HOST, ["-DMISSING"], name="mine/host.cu", compiler="nvcc")
    assert caught.value.message == "does not compile: cstdio: No such file or directory"
    assert (caught.value.file, caught.value.line, caught.value.column) == ("mine/host.cu", 1, 10)
    assert caught.value.source == "#include <cstdio>"
    assert caught.value.hint is not None and caught.value.hint.startswith("Pass the folder of cstdio")


def test_a_flag_that_nvcc_asks_for_is_given(fake_nvcc: None) -> None:
    made = compile_cubin(REFUSED, ["-DLAMBDA"], name="mine/host.cu")
    assert made.notes == ("compiled with --extended-lambda, which nvcc asked for",)
    assert not compile_cubin(REFUSED, ["-DLAMBDA", "--extended-lambda"], name="mine/host.cu").notes


def test_without_nvrtc_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Library, "candidates", lambda library: iter(["/nowhere/a_library.so"]))
        with pytest.raises(MemsimError, match=r"NVRTC.*not installed") as caught:
            compile_cubin(GOOD)
    assert caught.value.hint is not None and "pip install nvidia-cuda-nvrtc-cu12" in caught.value.hint
    assert caught.value.exit_code == 2
    assert ".entry scale" in ptx_in(compile_cubin(GOOD))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nvrtc_is_given_back() -> None:
    compile_cubin(GOOD)
    assert "libnvrtc" not in Path("/proc/self/maps").read_text()


def test_warnings_do_not_bury_an_error() -> None:
    log = """\
/usr/include/climits(42): warning #47-D: incompatible redefinition of macro "SHRT_MIN"
memsim/standard.h(55): here

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

a.cu(3): error: identifier "x" is undefined
      y = x;
          ^

b.h(7): warning #177-D: variable "z" was declared but never referenced
a.cu(9): error: expected a ";"
          detected during instantiation of "k"
c.cpp:3:5: warning: unused variable
c.cpp:4:6: note: declared here

2 errors detected in the compilation of "a.cu".
"""
    assert (
        without_warnings(log)
        == """\
a.cu(3): error: identifier "x" is undefined
      y = x;
          ^

a.cu(9): error: expected a ";"
          detected during instantiation of "k"

2 errors detected in the compilation of "a.cu"."""
    )
    assert compile_error("", log, "a.cu").hint == f"the compiler's log:\n{without_warnings(log)}"
    assert without_warnings("gcc: fatal: no such thing\n") == "gcc: fatal: no such thing"


@pytest.mark.slow
def test_kernels_that_launch_kernels_are_told_as_such(tmp_path: Path) -> None:
    file = tmp_path / "tree.cu"
    file.write_text(
        "__global__ void leaf(float *m) { m[threadIdx.x] = 1; }\n"
        "__global__ void root(float *m) {\n"
        "#ifndef FLAT\n"
        "    leaf<<<1, 32>>>(m);\n"
        "#endif\n"
        "}\n"
    )
    with pytest.raises(MemsimError, match=r"a kernel launches kernels \(dynamic parallelism\)") as caught:
        memsim.load(file)
    assert caught.value.hint is not None and "-D NAME" in caught.value.hint
    assert memsim.analyze(memsim.load(file, ["-DFLAT"])["leaf"], 1, 32, ["f32[32]"]).sectors == 4
