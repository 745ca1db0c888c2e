"""A kernel of TileLang, compiled without a GPU: copies by TMA in one warpgroup, products in another."""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memsim
from memsim import ArrayArg, TensorMap

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
