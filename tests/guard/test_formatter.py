"""What a formatter does to a kernel is no finding: accesses are known by their statements."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.guard.conftest import Folder

Tile = Callable[..., Folder]
LOAD = "tile[y][x] = A[y * n + x];"
STORE = "C[y * n + x] = tile[x][y];"


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (LOAD, "tile[y][x] =\n        A[y * n + x];"),
        (LOAD, "tile[y][x] =  // from A\n        A[y *\n          n + x];"),
        (STORE, "C[y*n+x]=tile\n    [x][y];"),
        (STORE, "{ C[y * n + x] = tile[x][y]; }"),
    ],
)
def test_a_formatter_causes_no_finding(tile: Tile, old: str, new: str) -> None:
    project = tile()
    project.run("baseline")
    project.edit("tile.cu", old, new)
    assert project.run("check").out == "OK: 1 kernel, 1 check passed\n"
    project.edit("tile.cu", new, old)
    assert project.run("check").out == "OK: 1 kernel, 1 check passed\n"


@pytest.mark.slow
def test_and_what_is_worse_in_a_broken_statement_is_found(tile: Tile) -> None:
    project = tile()
    project.run("baseline")
    project.edit("tile.cu", STORE, "C[y * n + x] =\n        tile[0][2 * x + y];")
    done = project.run("check")
    assert done.code == 1
    assert "worse than the baseline" in done.out


SUM = """\
__global__ void k(const float *a, float *c) {
    int i = threadIdx.x;
    float sum = a[i] + a[i + STRIDE];
    if (sum > 0) c[i] = a[2 * i];
}
void run(float *a, float *c) { k<<<1, 32>>>(a, c); }
"""
TARGET = """\
[[targets]]
file = "k.cu"
grid = 1
block = 32
args = ["f32[128]", "f32[32]"]
options = ["-DSTRIDE=32"]
"""


@pytest.mark.slow
def test_accesses_of_one_statement_are_counted_together(folder: Folder) -> None:
    folder.write("k.cu", SUM)
    folder.write("memsim.toml", TARGET)
    folder.run("baseline")
    folder.edit("k.cu", "a[i] + a[i + STRIDE]", "a[i]\n        + a[i + STRIDE]")
    folder.edit("k.cu", "if (sum > 0) c[i]", "if (sum > 0)\n        c[i]")
    assert folder.run("check").out == "OK: 1 kernel, 1 check passed\n"
    folder.edit("memsim.toml", "STRIDE=32", "STRIDE=33")
    worse = folder.run("check")
    assert worse.code == 1
    assert "float sum = a[i] + a[i + STRIDE];" in worse.out
    folder.edit("memsim.toml", "STRIDE=33", "STRIDE=32")
    folder.run("baseline")
    folder.write("k.cu", SUM)
    assert folder.run("check").out == "OK: 1 kernel, 1 check passed\n"
