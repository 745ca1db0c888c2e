"""PTX to machine code, by ptxas, or not at all; and where tools are looked for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from memsim.compile import assemble, toolkit
from memsim.compile.assemble import assemble_ptx
from memsim.compile.toolkit import find_tool, tool_release, wheel_folders
from memsim.errors import MemsimError
from memsim.sass.cubin import read_cubin

PTX = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 p)
{
	.reg .b32 %r<2>;
	.reg .b64 %rd<3>;
	.loc 1 2 0
	ld.param.u64 %rd1, [p];
	cvta.to.global.u64 %rd2, %rd1;
	.loc 1 2 60
	.loc 2 1 49, function_name $L__info_string0, inlined_at 1 2 60
	ld.global.u32 %r1, [%rd2+4];
	.loc 1 2 60
	st.global.u32 [%rd2], %r1;
	ret;
}
	.file 1 "/tmp/copy.cu"
	.file 2 "/tmp/load.cuh"
.section .debug_str
{
$L__info_string0:
.b8 108
.b8 0
}
"""
BROKEN = PTX.replace("ret;", "rot;")

has_ptxas = pytest.mark.skipif(find_tool("ptxas") is None, reason="needs ptxas")
windows = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a shell script")


@pytest.fixture
def no_ptxas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assemble, "find_tools", lambda name, wheels_first: [])


@has_ptxas
def test_ptxas() -> None:
    compiled = assemble_ptx(PTX)
    assert compiled is not None and compiled.compiler.startswith("ptxas 1")
    assert compiled.arch == read_cubin(compiled.cubin).arch == "sm_80"
    newer = assemble_ptx(PTX, "sm_90")
    assert newer is not None and read_cubin(newer.cubin).arch == "sm_90"


@has_ptxas
def test_ptxas_says_what_it_refuses() -> None:
    with pytest.raises(MemsimError, match=r"ptxas \S+ cannot assemble it for sm_80") as caught:
        assemble_ptx(BROKEN, name="mine.ptx")
    assert caught.value.file == "mine.ptx"
    assert caught.value.hint is not None and "mine.ptx, line 16" in caught.value.hint


def test_no_assembler(no_ptxas: None) -> None:
    with pytest.raises(MemsimError, match="there is no ptxas"):
        assemble_ptx(PTX)


def test_ptx_without_a_target() -> None:
    with pytest.raises(MemsimError, match=r"no \.target"):
        assemble_ptx("nothing\n")


FAKE_PTXAS = """\
#!/bin/sh
if [ "$1" = --version ]; then
    echo "Cuda compilation tools, release RELEASE, VRELEASE"
    exit
fi
cat "$3" > "$5"
"""


def fake(folder: Path, release: str) -> Path:
    """A `ptxas` that copies its input."""
    folder.mkdir(parents=True, exist_ok=True)
    tool = folder / "ptxas"
    tool.write_text(FAKE_PTXAS.replace("RELEASE", release))
    tool.chmod(0o755)
    return tool


@windows
@pytest.mark.parametrize("release", ["12.0.140", "12.4.131"])
def test_lines_that_break_ptxas_12_0_are_left_out(
    release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = fake(tmp_path, release)
    monkeypatch.setattr(assemble, "find_tools", lambda name, wheels_first: [tool])
    compiled = assemble_ptx(PTX)
    assert compiled is not None and compiled.compiler == f"ptxas {release}"
    text = compiled.cubin.decode()
    assert ("inlined_at" in text) == (release != "12.0.140")
    assert ".loc 2 1 49" in text


@windows
def test_an_assembler_that_is_too_old_makes_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = fake(tmp_path / "old", "11.0.1"), fake(tmp_path / "new", "13.5.37")
    refuses = "echo \"ptxas fatal : Unsupported .version 8.0; current version is '7.0'\" >&2; exit 255"
    old.write_text(old.read_text().replace('cat "$3" > "$5"', refuses))
    monkeypatch.setattr(assemble, "find_tools", lambda name, wheels_first: [old, new])
    compiled = assemble_ptx(PTX)
    assert compiled is not None and compiled.compiler == "ptxas 13.5.37"
    monkeypatch.setattr(assemble, "find_tools", lambda name, wheels_first: [old])
    with pytest.raises(MemsimError, match=r"ptxas 11\.0\.1 cannot assemble it") as caught:
        assemble_ptx(PTX)
    assert caught.value.hint is not None and "Unsupported .version" in caught.value.hint
    old.write_text(old.read_text().replace("Unsupported .version", "syntax error in .version"))
    monkeypatch.setattr(assemble, "find_tools", lambda name, wheels_first: [old, new])
    with pytest.raises(MemsimError, match=r"ptxas 11\.0\.1 cannot assemble it"):
        assemble_ptx(PTX)  # the text is wrong: no other assembler is asked


@windows
def test_where_tools_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fake(tmp_path / "path", "1.0")
    home = fake(tmp_path / "home" / "bin", "2.0")
    newer = fake(tmp_path / "nvidia" / "cu13" / "bin", "4.0")
    fake(tmp_path / "nvidia" / "cu12" / "bin", "3.0")
    triton = fake(tmp_path / "triton" / "backends" / "nvidia" / "bin", "5.0")
    monkeypatch.setattr(toolkit, "wheel_folders", lambda package: [tmp_path / package])
    monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    order = [path, home, newer, triton]
    assert find_tool("ptxas") == newer
    for tool in order:
        assert find_tool("ptxas", wheels_first=False) == tool
        if tool is newer:
            (tmp_path / "nvidia" / "cu12" / "bin" / "ptxas").unlink()
        tool.unlink()
    assert find_tool("no-such-tool") is None


@windows
def test_the_release_of_a_tool(tmp_path: Path) -> None:
    assert tool_release(fake(tmp_path, "13.5.37")) == "13.5.37"
    assert tool_release(tmp_path / "absent") == ""


def test_packages_that_are_not_there() -> None:
    assert wheel_folders("no_such_package") == wheel_folders("no_such_package.part") == []
