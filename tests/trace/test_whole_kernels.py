"""Whole kernels of the catalogue: the trace against brute force, and the two ways to run against each other.

The recorder shares work between blocks, warps and rounds of a loop. Here nothing is shared: every
execution of every access is written out for all threads and costed request by request.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from math import prod
from typing import Any

import numpy as np
import pytest

from memsim.access import Chunk, SiteAccess
from memsim.analysis import analyze_trace
from memsim.api.running import execute_job, job_of, trace
from memsim.arch import SM_90
from memsim.kernel import Kernel
from memsim.kernels import Spec, catalog
from memsim.model import copy_access, global_access, shared_access
from memsim.model.coalescing import local_access
from memsim.model.texture_fetches import texture_access
from memsim.state.predicates import to_bools
from memsim.state.registers import to_array
from memsim.trace.trace import Trace
from tests.few import few

NAMES = list(catalog())


class BruteForce:
    """A listener that writes every access out and costs it at once; it remembers nothing."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, int, str, str, int], Counter[str]] = defaultdict(Counter)
        self.reasons: list[str] = []

    def start_chunk(self, chunk: Chunk) -> None:
        self.shape = len(chunk.blocks), chunk.threads

    def access(self, made: SiteAccess) -> None:
        site, address, mask, active, _, other = made
        count = self.count_of(site)
        lanes = self.full(mask).reshape(-1, 32)
        count["instructions"] += int(lanes.any(1).sum())
        lanes = self.full(active).reshape(-1, 32)
        used = lanes.any(1)
        if (site.space, site.access) == ("shared", "cp_async_cg"):
            count["requests"] += int(used.sum())
            return  # it costs nothing there
        if site.width not in SM_90.widths(site.space, site.access):
            return  # not measured: the analysis has a row without counts
        addresses = self.written_out(address)[used]
        lanes = lanes[used]
        if site.space == "local":
            spilled = local_access(addresses, site.width, site.access, lanes)
            for name in ("requests", "sectors"):
                count[name] += int(getattr(spilled, name).sum())
            count["ideal"] += int(spilled.ideal_sectors.sum())
            return
        if site.space == "texture":
            fetched = texture_access(addresses, site.width, site.access, lanes)
            count["requests"] += int(fetched.requests.sum())
            count["sectors"] += int(fetched.sectors.sum())
            count["lines"] += int(fetched.tags.sum())
            count["ideal"] += int(fetched.ideal_sectors.sum())
            return
        count["requests"] += len(lanes)
        if site.space == "shared":
            if other is None:
                cost = shared_access(addresses, site.width, site.access, lanes)
            else:
                reads = self.full(other.active).reshape(-1, 32)[used]
                origins = self.written_out(other.address)[used]
                cost = copy_access(addresses, origins, site.width, lanes, reads)
            count["wavefronts"] += int(cost.wavefronts.sum())
            count["conflicts"] += int(cost.conflicts.sum())
            count["ideal"] += int(cost.ideal.sum())
        else:
            self.count_global(count, addresses, site, lanes)

    def count_global(self, count: Counter[str], addresses: Any, site: Any, lanes: Any) -> None:
        wide = global_access(addresses, site.width, site.access, lanes)
        count["sectors"] += int(wide.sectors.sum())
        count["lines"] += int(wide.lines.sum())
        count["ideal"] += int(wide.ideal_sectors.sum())

    def scattered(self, site: Any, address: Any, lanes: Any, warps: int, arrays: Any) -> None:
        count = self.count_of(site)
        count["instructions"] += warps
        if site.width in SM_90.widths(site.space, site.access):
            warps, row = np.unique(lanes.lanes // 32, return_inverse=True)
            count["requests"] += len(warps)
            addresses, active = np.zeros((2, len(warps), 32), np.int64)
            addresses[row, lanes.lanes % 32], active[row, lanes.lanes % 32] = address, 1
            self.count_global(count, addresses, site, active != 0)

    def count_of(self, site: Any) -> Counter[str]:
        source = site.instruction.source
        return self.counts[source.file, source.line, site.access, site.space, site.width]

    def full(self, mask: Any) -> np.ndarray:
        return np.broadcast_to(to_bools(mask), self.shape)

    def written_out(self, address: Any) -> np.ndarray:
        return np.broadcast_to(to_array(address), self.shape).reshape(-1, 32)

    def uncounted(self, *event: Any) -> None:
        pass

    def uncertain(self, what: str) -> None:
        self.reasons.append(what)

    def executed(self, *event: Any) -> None:
        pass

    def unknown(self, *event: Any) -> None:
        raise AssertionError("no address of the catalogue is unknown")


def by_line(found: Trace) -> dict[tuple[str, int, str, str, int], Counter[str]]:
    """An analysis as the brute-force listener counts."""
    counts: dict[tuple[str, int, str, str, int], Counter[str]] = defaultdict(Counter)
    for site in analyze_trace(found).sites:
        count = counts[site.file, site.line, site.op, site.space, site.width]
        count["instructions"] += site.instructions
        if site.unresolved is not None:
            continue
        count["requests"] += site.requests
        for name in ("wavefronts", "conflicts", "sectors", "lines"):
            count[name] += getattr(site, name) or 0
        count["ideal"] += (site.ideal_wavefronts or 0) + (site.ideal_sectors or 0)
    return counts


def launch(spec: Spec, size: Any) -> tuple[Kernel, tuple[Any, ...]]:
    plan = spec.job(size)
    return spec.kernel(), (plan.launch.grid, plan.launch.block, plan.args, plan.launch.shared_bytes)


def size_of(spec: Spec, extent: int) -> list[int]:
    """A size for a kernel, as small and as odd as it may be."""
    sizes = [extent + 3 * i for i in range(len(spec.family.sizes))]
    for i, name in enumerate(spec.family.sizes):
        for required, divisor in spec.requires:
            if required == name:
                sizes[i] = -(-sizes[i] // divisor) * divisor
    return sizes


@pytest.mark.some(1)
@pytest.mark.parametrize("name", few(NAMES))
def test_the_trace_equals_brute_force(name: str) -> None:
    """At 256 cubed, a block at a time for the brute force."""
    spec = catalog()[name]
    kernel, (grid, block, arguments, shared) = launch(spec, [256] * len(spec.family.sizes))
    brute = BruteForce()
    blocks = prod(grid)
    chosen = np.linspace(0, blocks - 1, min(blocks, 16)).round().astype(np.int64)
    found = trace(kernel, grid, block, arguments, shared, blocks=len(chosen))
    how = {"everything": False, "every_branch": True, "blocks": chosen, "chunk_threads": 1}
    execute_job(job_of(kernel, grid, block, arguments, shared), brute, None, **how)
    assert found.blocks_replayed == len(np.unique(chosen))
    assert by_line(found) == brute.counts
    assert set(found.uncertain) == set(brute.reasons)


def columns(found: Trace) -> list[Any]:
    """A trace in an order that does not depend on who came first."""
    rows = [
        (
            found.sites[site].line,
            found.sites[site].instruction,
            int(count),
            (a - a[m].min() // 128 * 128)[m].tolist(),
            m.tolist(),
        )
        for site, count, a, m in zip(found.site, found.count, found.addresses, found.active)
    ]
    return sorted(rows)


def assert_same(one: Trace, other: Trace) -> None:
    assert columns(one) == columns(other)
    assert (one.executed == other.executed).all()
    assert [site.instructions for site in one.sites] == [site.instructions for site in other.sites]
    for name in ("notes", "footprint", "blocks_alike"):
        assert getattr(one, name) == getattr(other, name)


@pytest.mark.some(1)
@pytest.mark.parametrize("name", few(NAMES))
def test_both_ways_to_run_give_the_same_trace(name: str) -> None:
    """Everything executed, and only what addresses and branches depend on; ragged sizes."""
    spec = catalog()[name]
    kernel, (grid, block, arguments, shared) = launch(spec, size_of(spec, 77))
    slim = trace(kernel, grid, block, arguments, shared)
    whole = trace(kernel, grid, block, arguments, shared, everything=True)
    assert columns(slim) == columns(whole)
    assert [(s.line, s.op, s.instructions, s.array) for s in slim.sites] == [
        (s.line, s.op, s.instructions, s.array) for s in whole.sites
    ]
