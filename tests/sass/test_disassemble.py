"""The listing of a cubin, and the listings that are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from memsim.compile.cuda_source import compile_cubin
from memsim.errors import MemsimError
from memsim.sass import disassemble as module
from memsim.sass.disassemble import disassemble, version

SOURCE = """\
__device__ inline float twice(const float *x) { return *x * 2.0f; }
extern "C" __global__ void scale(float *x) { x[threadIdx.x] = twice(x + 1); }
"""
#: An array whose elements are chosen by data is in local memory.
ON_THE_STACK = """\
extern "C" __global__ void count(int *x) {
    int own[64] = {};
    for (int k = 0; k < 64; k++) own[x[k] & 63] += k;
    x[threadIdx.x] = own[threadIdx.x];
}
"""

try:
    CUBIN = compile_cubin(SOURCE, name="scale.cu").cubin
    version()
except MemsimError as error:
    pytest.skip(error.message, allow_module_level=True)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMSIM_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


@pytest.fixture
def no_tool_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("nvdisasm ran again")

    disassemble(CUBIN)
    monkeypatch.setattr(module, "run_program", refuse)


@pytest.mark.slow
def test_a_listing_has_code_and_lines() -> None:
    text = disassemble(CUBIN)
    assert "\t.section\t.text.scale" in text
    assert "EXIT ;" in text and "/*0010*/" in text
    assert 'scale.cu", line 2' in text and "\r" not in text


def test_a_listing_is_kept(no_tool_runs: None, folder: Path) -> None:
    assert len([*folder.iterdir()]) == 1
    assert "EXIT ;" in disassemble(CUBIN)


@pytest.mark.slow
def test_a_damaged_file_is_made_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = disassemble(CUBIN)
    monkeypatch.setattr(module, "_run", lambda *arguments: text)
    (kept,) = folder.iterdir()
    for damage in (b"", b"no entry", kept.read_bytes()[:-20]):
        kept.write_bytes(damage)
        assert disassemble(CUBIN) == text


@pytest.mark.slow
def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MEMSIM_CACHE_DIR", str(tmp_path / "file"))
    assert "EXIT ;" in disassemble(CUBIN)


@pytest.mark.slow
def test_another_release_of_the_tool_is_another_listing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disassemble(CUBIN)
    monkeypatch.setattr(module, "version", lambda: "99.0")
    disassemble(CUBIN)
    assert len(list(folder.iterdir())) == 2


def test_a_cubin_that_nvdisasm_refuses(folder: Path) -> None:
    with pytest.raises(MemsimError, match=r"nvdisasm \S+ cannot read it") as caught:
        disassemble(CUBIN[:2000], file="x.cubin")
    assert caught.value.file == "x.cubin" and caught.value.exit_code == 2
    assert caught.value.hint is not None and "x.cubin" in caught.value.hint
    assert not folder.exists()


def test_without_nvdisasm_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_tool", lambda name: None)
    with pytest.raises(MemsimError, match=r"nvdisasm.*not installed") as caught:
        disassemble(CUBIN)
    assert caught.value.hint is not None and "pip install nvidia-cuda-nvdisasm" in caught.value.hint


@pytest.mark.parametrize(("source", "runs"), [(SOURCE, 1), (ON_THE_STACK, 2)])
def test_its_data_flow_is_analyzed_where_that_says_more(
    source: str, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cubin, ran, run = compile_cubin(source, name="k.cu").cubin, [], module._run
    whole = run(module._tool(), cubin, None, module.OPTIONS)
    monkeypatch.setattr(module, "_run", lambda *how: ran.append(how) or run(*how))
    assert disassemble(cubin) == whole
    assert len(ran) == runs


@pytest.mark.parametrize("text", ["BRX R2 -0x10 ;", "CALL.REL.NOINC R4 ;", "JMX UR4 ;", "STL.64 [R1], R2 ;"])
def test_what_the_analysis_says_more_of(text: str) -> None:
    assert module._ANALYZED.search(text)
    assert not module._ANALYZED.search("CALL.REL.NOINC `($slow_path) ;\n BRA `(.L_x_1) ; LDG.E R2, [R4] ;")
