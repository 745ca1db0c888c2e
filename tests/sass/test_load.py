"""What `memsim.load` reads: machine code from source, PTX and binaries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import memsim
from memsim.compile.cuda_source import compile_cubin
from memsim.errors import MemsimError
from memsim.trace.trace import Trace
from studies.kernel_ptx import compile_cuda
from tests.assembler import needs_assembler
from tests.ptx_front.loading import load_cuda

MERGED = """
extern "C" __global__ void merged(const float *in, float *out)
{
    __shared__ float s[1024];
    for (int i = threadIdx.x; i < 1024; i += 128)
        s[i] = in[i];
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < 8; i++)
        sum += s[threadIdx.x * 8 + i] * (i + 1);
    out[threadIdx.x] = sum;
}
"""
LOADS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
ARGUMENTS = (memsim.ArrayArg((1024,)), memsim.ArrayArg((128,)))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "merged.cu"
    path.write_text(MERGED)
    return path


@pytest.mark.slow
def test_neighbouring_reads_that_the_compiler_merges_are_one_request(source: Path) -> None:
    """As an H200 counts: 64 wavefronts a block, 32 of them conflicts; PTX has 8 reads of 4 bytes instead."""
    analysis = memsim.analyze(memsim.load(source)["merged"], 1, 128, ARGUMENTS)
    assert (analysis.totals[LOADS], analysis.totals[CONFLICTS]) == (64, 32)
    estimate = memsim.analyze(load_cuda(MERGED)["merged"], 1, 128, ARGUMENTS)
    assert (estimate.totals[LOADS], estimate.totals[CONFLICTS]) == (256, 224)


@pytest.mark.slow
def test_the_trace_says_what_was_read_and_keeps_it(source: Path, tmp_path: Path) -> None:
    kernel = memsim.load(source)["merged"]
    trace = memsim.api.running.trace(kernel, 1, 128, ARGUMENTS)
    assert trace.origin == kernel.origin
    assert (trace.origin.form, trace.origin.arch) == ("machine code", "sm_90")
    assert trace.origin.compiler.startswith("NVRTC ")
    trace.save(tmp_path / "t.npz")
    assert Trace.load(tmp_path / "t.npz").origin == trace.origin
    other = memsim.load(source, ["-DUNUSED"])["merged"]
    assert other.origin.digest == kernel.origin.digest  # the same instructions
    source.write_text(MERGED.replace("i + 1", "i + 2"))
    assert memsim.load(source)["merged"].origin.digest != kernel.origin.digest


def test_a_cubin_is_read_as_it_is(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "merged.cubin"
    path.write_bytes(compile_cubin(source).cubin)
    analysis = memsim.analyze(memsim.load(path)["merged"], 1, 128, ARGUMENTS)
    assert (analysis.totals[LOADS], analysis.totals[CONFLICTS]) == (64, 32)
    assert [site.source for site in analysis.sites][-1] == "out[threadIdx.x] = sum;"
    with pytest.raises(
        MemsimError, match=r"is already compiled; compiler options \['-DN=1'\] have no effect"
    ):
        memsim.load(path, ["-DN=1"])


@pytest.mark.slow
@needs_assembler
def test_ptx_is_assembled(source: Path, tmp_path: Path) -> None:
    ptx = tmp_path / "merged.ptx"
    ptx.write_text(compile_cuda(source))
    kernel = memsim.load(ptx)["merged"]
    assert kernel.origin.form == "machine code"
    analysis = memsim.analyze(kernel, 1, 128, ARGUMENTS)
    assert kernel.origin.compiler.startswith("ptxas")
    found = analysis.totals[LOADS], analysis.totals[CONFLICTS]
    assert found == (64, 32)
    assert [site.source for site in analysis.sites][-1] == "out[threadIdx.x] = sum;"
    assert {site.array for site in analysis.sites} == {"in", "s", "out"}
    # The assembler reads what compilers do not write.
    ptx.write_text(ptx.read_text().replace(".address_size 64", ".address_size 64\n.const .u32 six = 2 * 3;"))
    assert memsim.load(ptx)["merged"].origin.form == "machine code"


def test_without_an_assembler_ptx_is_refused_with_what_to_install(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = compile_cuda(source)
    monkeypatch.setattr("memsim.compile.assemble.find_tools", lambda name, wheels_first: [])
    monkeypatch.setattr("memsim.compile.compile_cache.find_tool", lambda *arguments, **how: None)
    with pytest.raises(MemsimError, match="there is no ptxas") as caught:
        memsim.load(text)
    assert caught.value.hint == "pip install nvidia-cuda-nvcc-cu12 (Linux and Windows)"
    assert memsim.load(source)["merged"]  # NVRTC makes machine code itself


def test_without_a_disassembler_source_is_refused_with_what_to_install(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memsim.sass.disassemble.find_tool", lambda *arguments, **how: None)
    with pytest.raises(MemsimError, match="nvdisasm") as caught:
        memsim.load(source)
    assert "pip install" in (caught.value.hint or "")


def test_code_of_another_chip_is_refused(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "merged.cubin"
    path.write_bytes(compile_cubin(source, arch="sm_80").cubin)
    with pytest.raises(MemsimError, match="holds machine code for sm_80, but not for sm_90"):
        memsim.load(path, arch="sm_90")
    assert memsim.load(path)["merged"].origin.arch == "sm_80"
    assert memsim.load(path, arch="sm_86")["merged"].origin.arch == "sm_80"  # of its generation, and older


def test_machine_code_computes_what_its_ptx_does(source: Path) -> None:
    data = np.arange(1024, dtype=np.float32)
    expected = (data.reshape(128, 8) * np.arange(1, 9)).sum(1)
    for module in (memsim.load(source), load_cuda(MERGED)):
        out = np.zeros(128, np.float32)
        memsim.run(module["merged"], 1, 128, [data, out])
        assert np.array_equal(out, expected)


@pytest.mark.slow
@pytest.mark.parametrize("apart", [1 << 18, 1 << 20])
def test_an_offset_of_megabytes_is_an_offset(apart: int, tmp_path: Path) -> None:
    """`desc[UR4][R2.64+0x400000]` is no entry of a constant bank, which would be beyond its end."""
    file = tmp_path / "far.cu"
    file.write_text(
        f'extern "C" __global__ void far(int *x) {{ x[threadIdx.x] = x[threadIdx.x + {apart}]; }}'
    )
    data = np.arange(apart + 32, dtype=np.int32)
    memsim.run(memsim.load(file)["far"], 1, 32, [data])
    assert np.array_equal(data[:32], np.arange(apart, apart + 32))


def test_code_that_is_to_be_linked_says_so(tmp_path: Path) -> None:
    text = 'extern "C" __global__ void one(float *out) { out[threadIdx.x] = 1; }\n'
    path, linked = tmp_path / "one.o", compile_cubin(text).cubin
    path.write_bytes(linked)
    assert memsim.load(path).notes == ()
    path.write_bytes(linked[:16] + b"\1" + linked[17:])  # ET_REL in place of ET_EXEC
    (note,) = memsim.load(path).notes
    assert note == "one.o is to be linked (nvcc -dc): addresses that the linker fills in are unknown"
