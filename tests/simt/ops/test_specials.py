"""Special registers of clusters."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.api.running import run
from tests.simt.cuda import kernel

SOURCE = """
extern "C" __global__ void {clusters} k(int *out) {{
    int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    int v[11];
    asm("mov.u32 %0, %%clusterid.x;" : "=r"(v[0]));
    asm("mov.u32 %0, %%clusterid.y;" : "=r"(v[1]));
    asm("mov.u32 %0, %%nclusterid.x;" : "=r"(v[2]));
    asm("mov.u32 %0, %%nclusterid.y;" : "=r"(v[3]));
    asm("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(v[4]));
    asm("mov.u32 %0, %%cluster_ctaid.y;" : "=r"(v[5]));
    asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(v[6]));
    asm("mov.u32 %0, %%cluster_nctaid.z;" : "=r"(v[7]));
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(v[8]));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(v[9]));
    asm("{{.reg .pred p; mov.pred p, %%is_explicit_cluster; selp.b32 %0, 1, 0, p;}}" : "=r"(v[10]));
    for (int i = 0; i < 11; ++i) out[11 * block + i] = v[i];
}}"""


def expected(grid: tuple[int, int, int], cluster: tuple[int, int, int], explicit: bool) -> np.ndarray:
    rows = []
    for z in range(grid[2]):
        for y in range(grid[1]):
            for x in range(grid[0]):
                inside = [at % size for at, size in zip((x, y, z), cluster)]
                rank = inside[0] + cluster[0] * (inside[1] + cluster[1] * inside[2])
                ids = [x // cluster[0], y // cluster[1], grid[0] // cluster[0], grid[1] // cluster[1]]
                sizes = [cluster[0], cluster[2], rank, cluster[0] * cluster[1] * cluster[2], int(explicit)]
                rows.append([*ids, *inside[:2], *sizes])
    return np.array(rows, np.int32)


@pytest.mark.some(1)
@pytest.mark.parametrize("cluster", [(2, 1, 1), (2, 3, 1), (1, 2, 2), None])
def test_clusters(cluster: tuple[int, int, int] | None) -> None:
    clusters = f"__cluster_dims__{cluster}" if cluster else ""
    grid = (4, 6, 2)
    out = np.full((48, 11), -1, np.int32)
    run(kernel(SOURCE.format(clusters=clusters)), grid, 1, [out])
    assert (out == expected(grid, cluster or (1, 1, 1), cluster is not None)).all()
