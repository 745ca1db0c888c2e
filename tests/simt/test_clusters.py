"""Clusters: who is where, barriers of a cluster, and shared memory of other blocks."""

# ruff: noqa: E501 (lines of PTX)
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsim import MemsimError
from memsim.api.running import run
from memsim.argument_types import ArrayArg
from memsim.captured.analyze_any import analyze
from memsim.cli import main
from memsim.targets.target import read_job
from tests.simt.cuda import HOPPER, machine_kernel

REMOTE = """
__device__ void put(u32 a, int v) { asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(a), "r"(v) : "memory"); }
__device__ int get(u32 a) {
    int v; asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(a) : "memory"); return v; }
"""


def kernel(body: str) -> Any:
    return machine_kernel(HOPPER + REMOTE + body)


RING = """
extern "C" __global__ void __cluster_dims__(4, 1, 1) k(int *out) {
    __shared__ int s[32]; __shared__ u64 b; u32 r = rank();
    if (threadIdx.x == 0) init(at(&b), 32);
    s[threadIdx.x] = 0;
    meet();
    put(of(at(s + threadIdx.x), (r + 1) & 3), 100 * r + threadIdx.x);
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(of(at(&b), (r + 1) & 3)));
    wait(at(&b));
    int v; asm volatile("atom.shared::cluster.add.u32 %0, [%1], 1;" : "=r"(v) : "r"(of(at(s), (r + 2) & 3)));
    meet();
    out[threadIdx.x + 32 * blockIdx.x] = get(of(at(s + 31 - threadIdx.x), (r + 3) & 3));
    meet();
}"""


def test_blocks_reach_each_others_shared_memory() -> None:
    out = np.zeros((8, 32), np.int32)
    run(kernel(RING), 8, 32, [out])
    for block in range(8):
        held = 100 * ((block + 2) % 4) + np.arange(32)  # by the neighbour before, from the one before that
        held[0] += 32
        assert (out[block] == held[::-1]).all()


def test_requests_to_other_blocks_have_rows_of_their_own() -> None:
    analysis = analyze(kernel(RING), 8, 32, [ArrayArg((8, 32), "int32")])
    rows = {site.op: site for site in analysis.sites if site.op.startswith("cluster")}
    assert {site.space for site in rows.values()} == {"shared"}
    for op in ("cluster_load", "cluster_store"):
        assert (rows[op].requests, rows[op].sectors, rows[op].lines) == (8, 32, 8)
        assert rows[op].wavefronts is None
    atomic = rows["cluster_atomic"]  # one lane does it for all
    assert (atomic.requests, atomic.sectors, atomic.lines) == (8, 8, 8)
    dshared = "l1tex__t_{}_pipe_lsu_mem_dshared_op_{}.sum"
    for end, counts in (("ld", [8, 32, 8]), ("st", [8, 32, 8]), ("atom", [8, 8, 8])):
        found = [
            analysis.totals[dshared.format(name, end)] for name in ("requests", "sectors", "set_accesses")
        ]
        assert found == counts
    assert analysis.totals["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum"] is None
    assert analysis.totals["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] == 0


SPREAD = """
extern "C" __global__ void __cluster_dims__(4, 1, 1) k(int *out) {
    __shared__ int s[64]; __shared__ u64 b;
    u32 lane = threadIdx.x, to = lane & 3;
    if (lane == 0) { init(at(&b)); expect(at(&b), 128); }
    meet();
    put(of(at(s + rank() * 8 + lane / 4), to), lane);
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];"
                 :: "r"(of(at(s + 32 + rank() * 8 + lane / 4), to)), "r"(lane), "r"(of(at(&b), to)) : "memory");
    wait(at(&b));
    meet();
    out[lane + 32 * blockIdx.x] = s[lane] + 1000 * s[32 + lane];
}"""


@pytest.mark.slow
def test_lanes_of_one_request_reach_several_blocks() -> None:
    """Each block's memory has lines of its own. Asynchronous stores to the own block count with the others."""
    k, out = kernel(SPREAD), np.zeros((4, 32), np.int32)
    run(k, 4, 32, [out])
    lanes = np.arange(32) % 8 * 4 + np.arange(4)[:, None]
    assert (out == 1001 * lanes).all()
    rows = {site.op: site for site in analyze(k, 4, 32, [out]).sites if "cluster" in site.op}
    assert (rows["cluster_store"].requests, rows["cluster_store"].lines) == (4, 4 * 3)
    assert rows["cluster_store"].sectors == 4 * 3
    assert (rows["cluster_async_store"].requests, rows["cluster_async_store"].lines) == (4, 4 * 4)
    assert "async_store" not in rows


@pytest.mark.slow
def test_own_memory_by_an_address_of_the_cluster_is_shared_memory() -> None:
    body = """
extern "C" __global__ void __cluster_dims__(2, 1, 1) k(int *out) {
    __shared__ int s[32 * 33];
    put(of(at(s + threadIdx.x * 2), rank()), threadIdx.x);
    meet();
    out[threadIdx.x + 32 * blockIdx.x] = s[threadIdx.x * 2];
}"""
    k = kernel(body)
    out = np.zeros((2, 32), np.int32)
    run(k, 2, 32, [out])
    assert (out == np.arange(32)).all()
    analysis = analyze(k, 2, 32, [out])
    assert analysis.totals["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"] == 4
    assert not [site for site in analysis.sites if site.op.startswith("cluster") or site.unresolved]


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("grid", "cluster"), [((4, 4, 2), (2, 2, 1)), ((6, 6, 1), (3, 2, 1)), ((4, 2, 2), (1, 2, 2))]
)
def test_special_registers(grid: Any, cluster: Any) -> None:
    names = ["cluster_ctarank", "cluster_nctarank", *(f"{name}.{axis}" for name in (
        "cluster_ctaid", "cluster_nctaid", "clusterid", "nclusterid") for axis in "xyz")]  # fmt: skip
    reads = "".join(f'asm volatile("mov.u32 %0, %%{name};" : "=r"(r)); out[b * 14 + {i}] = r;\n' for i, name in
                    enumerate(names))  # fmt: skip
    body = f"""
extern "C" __global__ void __cluster_dims__{cluster} k(u32 *out) {{
    u32 r, b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    {reads}
}}"""
    out = np.zeros((grid[0] * grid[1] * grid[2], 14), np.uint32)
    run(kernel(body), grid, 1, [out])
    for number, found in enumerate(out.tolist()):
        at = number % grid[0], number // grid[0] % grid[1], number // (grid[0] * grid[1])
        inside = [a % c for a, c in zip(at, cluster)]
        rank = inside[0] + cluster[0] * (inside[1] + cluster[1] * inside[2])
        assert found == [rank, cluster[0] * cluster[1] * cluster[2], *inside, *cluster,
                         *(a // c for a, c in zip(at, cluster)), *(g // c for g, c in zip(grid, cluster))]  # fmt: skip


def test_a_barrier_that_some_threads_never_reach_is_an_error() -> None:
    body = """
extern "C" __global__ void __cluster_dims__(2, 1, 1) k(int *out) {
    if (rank() == 0) asm volatile("barrier.cluster.arrive;\\nbarrier.cluster.wait;" ::: "memory");
    else { __shared__ u64 b; if (threadIdx.x == 0) init(at(&b), 33);
        __syncthreads();
        wait(at(&b)); }
    out[0] = 1;
}"""
    with pytest.raises(MemsimError, match=r"never completes|never reach"):
        run(kernel(body), 2, 32, [np.zeros(1, np.int32)])


@pytest.mark.parametrize(("offset", "block"), [(0, 2), (128, 1), (2, 1)])
def test_addresses_that_no_block_has_are_errors(offset: int, block: int) -> None:
    body = """
extern "C" __global__ void __cluster_dims__(2, 1, 1) k(int *out, int offset, int block) {
    __shared__ int s[32];
    s[threadIdx.x] = 0; meet(); put(of(at(s) + offset, block), 1); meet(); out[0] = s[threadIdx.x];
}"""
    made = kernel(body)
    run(made, 2, 32, [np.zeros(1, np.int32), 0, 1])
    with pytest.raises(MemsimError):
        run(made, 2, 32, [np.zeros(1, np.int32), offset, block])


@pytest.mark.slow
def test_a_launch_chooses_the_cluster_where_the_code_does_not(tmp_path: Path) -> None:
    chosen = kernel(RING.replace("__cluster_dims__(4, 1, 1) ", ""))
    out, fixed = np.zeros((8, 32), np.int32), np.zeros((8, 32), np.int32)
    run(chosen, 8, 32, [out], cluster=4)
    compiled = kernel(RING)
    run(compiled, 8, 32, [fixed])
    assert out.any()
    assert (out == fixed).all()
    shape = ["--grid", "8", "--block", "32", "--arg", "i32[8,32]"]
    launch = ["analyze", str(tmp_path / "k.cu"), "--kernel", "k", *shape]
    (tmp_path / "k.cu").write_text(HOPPER + REMOTE + RING.replace("__cluster_dims__(4, 1, 1) ", ""))
    assert main([*launch, "--cluster", "4", "--no-cache"]) == 0
    assert main([*launch, "--cluster", "3", "--no-cache"]) == 2
    by_code = analyze(compiled, 8, 32, [ArrayArg((8, 32), "int32")])
    assert analyze(chosen, 8, 32, [ArrayArg((8, 32), "int32")], cluster=4).totals == by_code.totals
    target = {"kernel": "k", "grid": [8], "block": [32], "args": ["i32[8,32]"], "cluster": [4]}
    assert read_job("k.cu", target, folder=tmp_path).launch.cluster == (4, 1, 1)
    for cluster, message in ((3, "multiple of its cluster"), (32, "at most 16")):
        with pytest.raises(MemsimError, match=message):
            run(chosen, 8, 32, [out], cluster=cluster)
    with pytest.raises(MemsimError, match="is compiled for clusters"):
        run(compiled, 8, 32, [out], cluster=2)
