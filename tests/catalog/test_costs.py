"""What the comments and stories of the kernels say about their accesses is what memsim counts."""

from __future__ import annotations

import pytest

from memsim.kernels import catalog

LOADS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
STORES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"

# Worst ways of shared loads and of shared stores.
SHARED_WAYS = {
    "kernel_v2": (1, 1),
    "kernel_v3": (2, 1),
    "kernel_v4_colmajor": (1, 2),
    "kernel_v4_padded": (1, 1),
    "kernel_v4": (1, 1),
    "kernel_v5": (1, 1),
    "permuted_write": (1, 32),
    "permuted_write_fixed": (1, 1),
    "transpose_naive": (32, 1),
    "transpose_padded": (1, 1),
    "transpose_xor": (1, 1),
}


@pytest.mark.some(5)
@pytest.mark.parametrize("name", SHARED_WAYS)
def test_shared_accesses_conflict_as_told(name: str) -> None:
    spec = catalog()[name]
    sites = spec.analyze([256] * len(spec.family.sizes)).sites
    ways = {
        op: max(site.max_ways or 0 for site in sites if (site.space, site.op) == ("shared", op))
        for op in ("load", "store")
    }
    assert (ways["load"], ways["store"]) == SHARED_WAYS[name]


def test_every_kernel_with_shared_memory_is_told_about() -> None:
    told = {"The Chase for cuBLAS-like SGEMM Performance (WIP)", "For teaching: the matrix transpose"}
    names = {name for name, spec in catalog().items() if spec.article in told}
    assert set(SHARED_WAYS) == names - {"kernel_v1"}


# Shared wavefronts of whole kernels at 1024 cubed, as an H100 counted them (stores from the source counters).
RECORDED = {
    "kernel_v4_colmajor": (6_291_456, 786_432),
    "kernel_v4_padded": (6_291_456, 524_288),
}


@pytest.mark.parametrize("name", RECORDED)
def test_totals_are_those_of_the_hardware(name: str) -> None:
    totals = catalog()[name].analyze().totals
    assert (totals[LOADS], totals[STORES]) == RECORDED[name]


@pytest.mark.parametrize("name", ["kernel_v4", "kernel_v5"])
def test_xor_costs_what_padding_costs(name: str) -> None:
    totals = catalog()[name].analyze().totals
    assert (totals[LOADS], totals[STORES]) == RECORDED["kernel_v4_padded"]


@pytest.mark.parametrize(
    ("name", "line", "op", "sectors", "ideal"),
    [
        ("kernel_v1", "A[row * K + k]", "load", 32, 4),
        ("kernel_v1", "B[k * N + col]", "load", 1, 1),
        ("kernel_v1", "C[row * N + col] = sum", "store", 32, 4),
        ("kernel_v2", "LOAD4(A[", "load", 16, 16),
        ("kernel_v2", "C[row * N + col] = sum", "store", 4, 4),
        ("kernel_v3", "C[row * N + col] = sum", "store", 32, 4),
        ("kernel_v4", "LOAD4(A[", "load", 16, 16),
        ("kernel_v4", "LOAD4(B[", "load", 16, 16),
        ("kernel_v4", "STORE4(C[", "store", 16, 16),
        ("transpose_naive", "= A[", "load", 4, 4),
        ("transpose_naive", "C[", "store", 4, 4),
    ],
)
def test_global_accesses_are_coalesced_as_told(
    name: str, line: str, op: str, sectors: int, ideal: int
) -> None:
    spec = catalog()[name]
    sites = spec.analyze([128] * len(spec.family.sizes)).sites
    (site,) = [
        site for site in sites if (site.space, site.op) == ("global", op) and line in (site.source or "")
    ]
    assert site.requests
    assert (site.sectors, site.ideal_sectors) == (sectors * site.requests, ideal * site.requests)
