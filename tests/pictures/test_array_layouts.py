"""Layouts: every word once, in its bank, with its writer; rows as the source declares them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from memsim.analysis import Analysis, analyze_trace
from memsim.kernels import catalog
from memsim.pictures.array_layouts import layouts
from memsim.pictures.worst_request import take_apart
from tests.traces import LANES, Request, make_trace, site


def small(source: str, size: int, writers: list[int] | None = None) -> Analysis:
    return analyze_trace(
        make_trace(
            (site(), [Request(64 + LANES % 4 * 4)]),
            arrays=(("tile", "shared", 64, size), ("other", "shared", 64 + size, 64), ("A", "global", 0, 64)),
            sources={"kernel.cu": source},
            writers=np.array(writers or [], np.int32),
        )
    )


def test_declared_rows_shift_the_banks() -> None:
    (tile,) = layouts(small("__shared__ float tile[3][5];", 60, [-1] * 16 + [7, 8]))
    assert (tile.declared, tile.first) == (True, 64)
    assert tile.word.tolist() == (np.arange(15).reshape(3, 5) + 16).tolist()
    assert tile.bank.tolist() == (tile.word % 32).tolist()
    assert tile.writer.ravel().tolist() == [7, 8] + [-1] * 13


def test_without_a_declaration_a_row_is_a_line_of_banks() -> None:
    (tile,) = layouts(small("// nothing", 40 * 4))
    assert (tile.declared, tile.bank.shape) == (False, (2, 32))
    assert tile.bank[0].tolist() == [(16 + i) % 32 for i in range(32)]
    assert tile.bank[1, 8:].tolist() == [-1] * 24


TEMPLATE = """template <typename T, int TILE, int PAD> __global__ void turn(T *a) {
    __shared__ T tile[TILE][TILE + PAD];
}"""


@pytest.mark.parametrize(
    ("kernel", "columns"), [("turn<float,8,1>", 9), ("turn<float,9,0>", 9), ("turn", 32)]
)
def test_extents_may_be_parameters_of_a_template(kernel: str, columns: int) -> None:
    size = 9 * 9 * 4 if ",9," in kernel else 8 * 9 * 4
    analysis = small(TEMPLATE, size)
    named = dataclasses.replace(analysis, trace=dataclasses.replace(analysis.trace, kernel=kernel))
    (tile,) = layouts(named)
    assert tile.bank.shape[1] == columns
    array = take_apart(named, 0).origin.array
    assert array is not None and (array.shape is None) == (columns == 32)


def test_bytes_and_halves_keep_whole_words() -> None:
    (tile,) = layouts(small("__shared__ half tile[4][10];", 80))
    assert tile.bank.shape == (4, 5)
    (odd,) = layouts(small("__shared__ char tile[4][7];", 28))
    assert (odd.declared, odd.bank.shape) == (False, (1, 32))


def test_padding_in_a_real_kernel() -> None:
    naive, padded = (
        layouts(catalog()[f"transpose_{kind}"].analyze(size=(32, 32)))[0] for kind in ("naive", "padded")
    )
    assert [len(set(array.bank[:, 0].tolist())) for array in (naive, padded)] == [1, 32]
    assert (naive.bank.shape, padded.bank.shape) == ((32, 32), (32, 33))
    assert naive.writer.ravel().tolist() == list(range(1024))
    assert (padded.writer[:, 32] == -1).all()
