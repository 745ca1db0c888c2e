"""Where machine code finds its memory: variables, windows of generic addresses, constants of the launch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import memsim
from memsim.analysis import Analysis
from memsim.errors import MemsimError

SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"


def analyzed(folder: Path, source: str, *args: object, grid: int = 1) -> Analysis:
    path = folder / "k.cu"
    path.write_text(source)
    return memsim.analyze(memsim.load(path)["k"], grid, 32, args)


def test_the_driver_places_each_variable_by_itself(tmp_path: Path) -> None:
    """As an H200 counts it: 4 sectors for 128 bytes, wherever the variable lies in its section."""
    source = """
    __device__ double first = 3.0;
    __device__ int table[32] = {1, 2, 3};
    __device__ int *pointer = table;
    extern "C" __global__ void k(int *out) {
        out[threadIdx.x] = table[threadIdx.x] + (int)first + pointer[threadIdx.x ^ 1];
    }"""
    analysis = analyzed(tmp_path, source, memsim.ArrayArg((32,), "int32"))
    assert analysis.totals[SECTORS] == 4 + 1 + 1 + 4
    out = np.zeros(32, np.int32)
    memsim.run(memsim.load(tmp_path / "k.cu")["k"], 1, 32, [out])
    assert out.tolist() == [6, 6, 6, 6] + [3] * 28


@pytest.mark.parametrize("n, counted", [(3, False), (5, True)])
def test_generic_addresses_in_local_memory_are_not_modelled(tmp_path: Path, n: int, counted: bool) -> None:
    source = """
    extern "C" __global__ void k(int *out, int n) {
        __shared__ int shared[64];
        int mine[8];
        for (int i = 0; i < 8; i++) mine[(i * n) & 7] = i, shared[(threadIdx.x + i * n) & 63] = i;
        volatile int *p = n == 3 ? mine : shared;
        out[threadIdx.x] = p[n] + p[n + 1];
    }"""
    analysis = analyzed(tmp_path, source, memsim.ArrayArg((32,), "int32"), n)
    assert (analysis.totals[SECTORS] is not None) == counted


@pytest.mark.parametrize("use, known", [("%nctaid.x", True), ("%gridid", False)])
def test_what_only_the_driver_knows_is_unknown(tmp_path: Path, use: str, known: bool) -> None:
    kind, letter = ("u64", "l") if use == "%gridid" else ("u32", "r")
    source = f"""
    extern "C" __global__ void k(int *out) {{
        unsigned {"long long" if kind == "u64" else ""} x;
        asm("mov.{kind} %0, {use};" : "={letter}"(x));
        out[(threadIdx.x + x) % 32] = 1;
    }}"""
    analysis = analyzed(tmp_path, source, memsim.ArrayArg((32,), "int32"))
    stores = analysis.totals["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"]
    assert stores == (4 if known else None)


def test_words_that_are_not_known_stay_so_alone(tmp_path: Path) -> None:
    """A clock is stored in one word of an array; the others are read as before."""
    source = """
    extern "C" __global__ void k(int *out, int place) {
        __shared__ int s[32];
        s[threadIdx.x] = threadIdx.x;
        __syncwarp();
        if (threadIdx.x == 5) s[5] = clock();
        __syncwarp();
        out[s[threadIdx.x >= 16 ? threadIdx.x : place]] = 1;
    }"""
    stores = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
    array = memsim.ArrayArg((32,), "int32")
    assert analyzed(tmp_path, source, array, 4).totals[stores] == 3
    assert analyzed(tmp_path, source, array, 5).totals[stores] is None


def test_an_unknown_result_is_not_copied_back(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text('extern "C" __global__ void k(int *out, int n) { if (n) out[threadIdx.x] = clock(); }')
    kernel = memsim.load(path)["k"]
    memsim.run(kernel, 1, 32, [np.zeros(32, np.int32), 0])
    with pytest.raises(MemsimError, match="the result is unknown"):
        memsim.run(kernel, 1, 32, [np.zeros(32, np.int32), 1])
