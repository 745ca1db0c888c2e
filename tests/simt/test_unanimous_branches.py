"""`BRA.U` is taken where all running lanes of a warp take it.

An H200 has counted that (traces/nvidia-h200/random/32.json): of 186 threads that come to an `@!P0 BRA.U`,
whose predicate holds for 92, all 186 execute what is behind it; the 92 leave at a `@!P0 BRA` of the same P0.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import memsim
from memsim.kernel import Kernel
from tests.simt.cuda import machine_kernel

TEXT = """__global__ void k(int *o, int n) { int t = threadIdx.x;
if (t < n) {
  #pragma unroll 1
  for (int i = 0; i < n; i++) atomicAdd(o + t, 1);
} }"""


def unanimous(kernel: Kernel) -> Kernel:
    """The same kernel, whose first branch or exit with a guard is a `BRA.U` to its end."""
    machine = kernel.machine
    listing = machine.module.listings[machine.name]
    first = next(at for at, one in enumerate(listing.lines) if one.guard and "EXIT" in one.text)
    end = next(one.address for one in listing.lines[first + 1 :] if one.text == "EXIT" and not one.guard)
    lines = list(listing.lines)
    lines[first] = replace(lines[first], text="BRA.U `(.end)")
    changed = {"lines": tuple(lines), "labels": {**listing.labels, ".end": end}}
    module = replace(machine.module)
    module.__dict__["listings"] = {machine.name: replace(listing, **changed)}
    return replace(kernel, machine=replace(machine, module=module))


@pytest.mark.parametrize(
    ("n", "threads", "of_unanimous"), [(15, 15, 32), (32, 32, 32), (33, 33, 64), (64, 64, 64), (0, 0, 0)]
)
def test_lanes_branch_together_or_not_at_all(n: int, threads: int, of_unanimous: int) -> None:
    kernel = machine_kernel(TEXT)
    for one, count in ((kernel, threads), (unanimous(kernel), of_unanimous)):
        found = np.zeros(64, np.int32)
        memsim.run(one, 1, 64, [found, n])
        assert (found == np.where(np.arange(64) < count, n, 0)).all()
