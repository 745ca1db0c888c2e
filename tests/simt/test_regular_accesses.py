"""Many blocks at once where all accesses are regular: only there, and with the same counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import memsim
from memsim.access import Listener
from memsim.simt import prepared_launch
from memsim.simt.engine import Engine
from memsim.state.address_spaces import CLEAR, GLOBAL_BASE, WRAP, SpaceLayout
from tests.simt.cuda import kernels_of

GIB = 1 << 30
SOURCE = """
#define KERNEL(name) extern "C" __global__ void \\
    name(const float *from, float *to, int rows, int columns, int *where)
#define HERE int row = blockIdx.y * 8 + threadIdx.y, column = blockIdx.x * 8 + threadIdx.x; \\
    int i = row * columns + column;
KERNEL(whole) { HERE if (row < rows && column < columns) to[i] = from[column * rows + row]; }
KERNEL(halo) { HERE to[i] = from[column > 2 ? i - 3 : 5]; }
KERNEL(end) { HERE if (row < rows - 3) to[i] = 2 * from[i]; }
KERNEL(triangle) { HERE if (row > column) to[i] = 0; }
KERNEL(folded) { HERE to[i / 3] = 1; }
KERNEL(gather) { HERE to[where[column]] = from[i]; }
KERNEL(outside) { HERE if (blockIdx.y == 5) i += 1 << 28; to[i] = 1; }
"""
ROWS, COLUMNS = 64, 128
BLOCKS = ROWS * COLUMNS // 64


@pytest.fixture(scope="module")
def kernels() -> Any:
    return kernels_of(SOURCE)


def arguments() -> list[Any]:
    arrays = [memsim.ArrayArg((ROWS * COLUMNS,)) for _ in range(2)]
    return [*arrays, ROWS, COLUMNS, np.arange(COLUMNS, dtype=np.int32) ^ 5]


def analysis_of(kernel: Any) -> memsim.Analysis:
    return memsim.analyze(kernel, (COLUMNS // 8, ROWS // 8), (8, 8), arguments())


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Chunks of four blocks, and who listened to how many blocks at once."""
    monkeypatch.setattr(prepared_launch, "TRACE_THREADS", 256)
    found: list[tuple[str, int]] = []
    run = Engine.run

    def counted(engine: Engine, blocks: np.ndarray) -> None:
        listener: Listener = engine.machine.listener
        found.append((type(listener).__name__, len(blocks)))
        run(engine, blocks)

    monkeypatch.setattr(Engine, "run", counted)
    return found


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("name", "is_regular"),
    [
        ("whole", True),
        ("halo", False),
        ("end", False),
        ("triangle", False),
        ("folded", False),
    ],
)
def test_only_regular_launches_run_at_once_and_all_count_the_same(
    name: str, is_regular: bool, kernels: Any, runs: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = analysis_of(kernels[name])
    chunks = [size for listener, size in runs if listener == "Recorder"]
    assert chunks == ([BLOCKS] if is_regular else [4] * (BLOCKS // 4))
    assert {size for listener, size in runs if listener == "RegularAccesses"} == {4}
    monkeypatch.setattr(prepared_launch, "WORTH_TRYING", BLOCKS)
    runs.clear()
    plain = analysis_of(kernels[name])
    assert {listener for listener, _ in runs} == {"Recorder"}
    assert counts(found) == counts(plain)


def counts(found: memsim.Analysis) -> Any:
    sites = [(site.op, site.requests, site.sectors, site.lines) for site in found.sites]
    return sites, found.bound.units, found.bound.footprint


def test_addresses_from_memory_are_not_tried(kernels: Any, runs: list[tuple[str, int]]) -> None:
    """Each warp runs by itself there."""
    analysis_of(kernels["gather"])
    assert {listener for listener, _ in runs} == {"Recorder"}


def test_few_chunks_are_not_tried(kernels: Any, runs: list[tuple[str, int]]) -> None:
    memsim.analyze(kernels["whole"], (2, 2), (8, 8), arguments())
    assert runs == [("Recorder", 4)]


def test_an_error_names_the_block_that_makes_it(kernels: Any, runs: list[tuple[str, int]]) -> None:
    with pytest.raises(memsim.MemsimError, match=r"block \(0, 5, 0\)"):
        analysis_of(kernels["outside"])


def test_arrays_do_not_cross_where_low_words_wrap_around() -> None:
    layout = SpaceLayout("global", GLOBAL_BASE)
    starts = [layout.place(f"a{i}", GIB, 256, 256) for i in range(6)]
    assert starts == sorted(starts) and all(start % 256 == 0 for start in starts)
    for start in starts:
        assert start // WRAP == (start + GIB) // WRAP
        assert start % WRAP >= CLEAR


def test_small_arrays_are_adjacent_and_large_ones_are_where_they_can_be() -> None:
    layout = SpaceLayout("global", GLOBAL_BASE)
    assert layout.place("a", 1000, 256, 256) == GLOBAL_BASE
    assert layout.place("b", 2 * GIB, 256, 256) == GLOBAL_BASE + 1280
    assert layout.place("c", 8, 256, 256) == GLOBAL_BASE + 1280 + 2 * GIB + 256
