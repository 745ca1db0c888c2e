"""A kernel of TileLang, compiled without a GPU: copies by TMA in one warpgroup, products in another."""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memsim
from memsim import ArrayArg, MemsimError, TensorMap

CUBIN = Path(__file__).with_name("corpus") / "tilelang_matmul.cubin.xz"
SIZE, TILE, DEPTH = 256, 128, 32
GRID, BLOCK, SHARED = (SIZE // TILE, SIZE // TILE), 256, 32_768
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum"
READS = "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum"


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("tilelang") / "matmul.cubin"
    path.write_bytes(lzma.decompress(CUBIN.read_bytes()))
    return memsim.load(path)["matmul_kernel"]


def maps(a: Any, b: Any) -> list[TensorMap]:
    """As the host code of TileLang makes them: a row of A is 64 bytes, and of B 128."""
    return [TensorMap(a, (TILE, DEPTH), 64), TensorMap(b, (DEPTH, 64), 128)]


def test_the_product_is_numpys(kernel: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (SIZE, SIZE)).astype(np.float16) for _ in range(2))
    c = np.zeros((SIZE, SIZE), np.float16)
    memsim.run(kernel, GRID, BLOCK, [*maps(a, b), c], SHARED)
    assert (c == (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)).all()


def test_counts(kernel: Any) -> None:
    a, b, c = (ArrayArg((SIZE, SIZE), "float16") for _ in range(3))
    analysis = memsim.analyze(kernel, GRID, BLOCK, [*maps(a, b), c], SHARED)
    blocks, steps = 4, SIZE // DEPTH
    tiles = blocks * steps * 2 * TILE * DEPTH * 2  # bytes of the tiles of A and B that all blocks read
    assert analysis.totals[READS] == tiles // 32
    # A product of 64 x 128 x 16 reads 64 x 16 numbers of A and 16 x 128 of B; two halves of the rows.
    products = blocks * steps * 2 * (DEPTH // 16)
    assert analysis.totals[WAVEFRONTS] == products * (64 * 16 + 16 * 128) * 2 // 128
    assert analysis.totals["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_gmma.sum"] == 0
    stores = analysis.totals["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"]
    assert stores == 2 * SIZE * SIZE * 2 // 32  # each request has rows of 16 bytes


# --- capture ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scale() -> Any:
    """A kernel of TileLang that multiplies rows of an array by a scalar, as users write it."""
    tilelang = pytest.importorskip("tilelang")
    import tilelang.language as T  # noqa: N812

    @tilelang.jit
    def scale(n: int, rows: int = 4) -> Any:
        @T.prim_func
        def main(a: T.Tensor((n, 128), "float32"), factor: T.float32, b: T.Tensor((n, 128), "float32")):  # type: ignore[valid-type]
            with T.Kernel(n // rows, threads=128) as block:
                for i in T.serial(rows):
                    for j in T.Parallel(128):
                        b[block * rows + i, j] = a[block * rows + i, j] * factor

        return main

    return scale


def test_a_launch_is_captured_without_a_gpu(scale: Any) -> None:
    import torch

    a, b = torch.arange(8 * 128, dtype=torch.float32).reshape(8, 128), torch.zeros(8, 128)
    with memsim.capture("sm_90") as launches:
        scale(8)(a, 3.0, b)
    (launch,) = launches
    assert (launch.grid, launch.block) == ((2, 1, 1), (128, 1, 1))
    assert not b.any()  # nothing was executed
    launch.run()
    values = dict(zip(launch.kernel.argument_names, launch.args, strict=True))
    assert values["factor"] == 3 and (values["b"] == 3 * a.numpy()).all()
    analysis = launch.analyze()
    assert analysis.totals["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"] == 8 * 128 * 4 // 32
    assert all("factor" in site.source for site in analysis.sites)  # lines of what TileLang wrote


def test_tensor_maps_are_captured() -> None:
    tilelang = pytest.importorskip("tilelang")
    import torch

    from tests.captured.corpus.tilelang_kernels import matmul

    rng = torch.Generator().manual_seed(0)
    a, b = (torch.randint(-4, 5, (SIZE, SIZE), generator=rng).to(torch.float16) for _ in range(2))
    c = torch.zeros(SIZE, SIZE, dtype=torch.float16)
    with memsim.capture("sm_90") as launches:
        tilelang.compile(matmul)(a, b, c)
    (launch,) = launches
    assert [argument.swizzle for argument in launch.args[:2]] == [64, 128]
    launch.run()
    assert (launch.args[2] == (a.float() @ b.float()).to(torch.float16).numpy()).all()
    assert launch.analyze().totals[WAVEFRONTS] == 6144


def test_a_kernel_that_was_compiled_in_another_capture_is_compiled_again(scale: Any) -> None:
    import torch

    a, b = torch.ones(4, 128), torch.zeros(4, 128)
    for _ in range(2):
        with memsim.capture("sm_80") as launches:
            compiled = scale(4)
            compiled(a, 2.0, b)
        assert len(launches) == 1 and launches[0].kernel.origin.arch == "sm_80"
    with pytest.raises(MemsimError, match="outside of the capture"):
        compiled(a, 2.0, b)


@pytest.fixture(scope="module")
def swap() -> Any:
    """Rows that the two blocks of a cluster exchange."""
    tilelang = pytest.importorskip("tilelang")
    import tilelang.language as T  # noqa: N812

    @tilelang.jit
    def swap(n: int) -> Any:
        @T.prim_func
        def main(a: T.Tensor((n, 128), "float32"), b: T.Tensor((n, 128), "float32")):  # type: ignore[valid-type]
            with T.ClusterKernel(n // 4, threads=128, cluster_dims=2) as block:
                mine = T.alloc_shared((4, 128), "float32")
                theirs = T.alloc_shared((4, 128), "float32")
                rank = T.block_rank_in_cluster()
                for i, j in T.Parallel(4, 128):
                    mine[i, j] = a[block * 4 + i, j]
                T.cluster_sync()
                T.copy_cluster(mine, theirs, dst_block=1 - rank)
                T.cluster_sync()
                for i, j in T.Parallel(4, 128):
                    b[block * 4 + i, j] = theirs[i, j]

        return main

    return swap


def test_a_cluster_is_captured(swap: Any) -> None:
    import torch

    a, b = torch.arange(16 * 128, dtype=torch.float32).reshape(16, 128), torch.zeros(16, 128)
    with memsim.capture("sm_90a") as launches:
        swap(16)(a, b)
    (launch,) = launches
    assert (launch.grid, launch.cluster) == ((4, 1, 1), (2, 1, 1))
    launch.run()
    swapped = a.numpy().reshape(2, 2, 4, 128)[:, ::-1].reshape(16, 128)
    assert (launch.args[1] == swapped).all()
    stores = "l1tex__t_{}_pipe_lsu_mem_dshared_op_st.sum"
    counts = {what: launch.analyze().totals[stores.format(what)] for what in ("requests", "sectors")}
    # 4 warps of 4 blocks store words 16 bytes apart, in 4 steps
    assert counts == {"requests": 4 * 4 * 4, "sectors": 4 * 4 * 4 * 16}


def test_a_kernel_without_clusters_has_none(scale: Any) -> None:
    import torch

    with memsim.capture("sm_90") as launches:
        scale(8)(torch.ones(8, 128), 3.0, torch.zeros(8, 128))
    assert launches[0].cluster is None
