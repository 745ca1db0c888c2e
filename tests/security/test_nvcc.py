"""nvcc hands file names and options to a shell; none of them becomes a command."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from memsim.compile.cuda_source import compile_cubin
from memsim.errors import MemsimError
from tests.security.conftest import Place

SOURCE = 'extern "C" __global__ void k(float *o) { o[threadIdx.x] = 1; }\n'
pytestmark = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["k$(touch owned).cu", 'k";touch owned;".cu', "k`touch owned`.cu", "k.cu"])
def test_a_file_name_is_no_command(place: Place, name: str) -> None:
    """A pull request chooses the names of its files; each is compiled."""
    Path(name).write_text(SOURCE)
    assert compile_cubin(Path(name), compiler="nvcc").compiler.startswith("nvcc")
    assert not Path("owned").exists()


@pytest.mark.parametrize("option", ["-DX=$(touch owned)", "-I`touch owned`", "-DX=\n touch owned"])
def test_an_option_is_no_command(place: Place, option: str) -> None:
    """Also the folder of the source, which is an option."""
    Path("k.cu").write_text(SOURCE)
    with pytest.raises(MemsimError, match="nvcc has a shell read"):
        compile_cubin(Path("k.cu"), [option], compiler="nvcc")
    assert not Path("owned").exists()


def test_a_folder_is_no_command(place: Place) -> None:
    """NVRTC, which has no shell, compiles what lies in it."""
    source = Path("$(touch owned)", "k.cu")
    source.parent.mkdir()
    source.write_text(SOURCE)
    with pytest.raises(MemsimError, match="nvcc has a shell read"):
        compile_cubin(source, compiler="nvcc")
    assert compile_cubin(source, compiler="nvrtc").cubin
    assert not Path("owned").exists()
