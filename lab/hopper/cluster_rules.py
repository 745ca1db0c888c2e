"""What the rules predict of the microbenchmarks of clusters: copies to several blocks, atomics and
asynchronous stores in distributed shared memory, mbarriers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lab.hopper.block_rules import tensor_of
from lab.hopper.hopper_launch import (
    BASE,
    CONFLICTS,
    INSIDE_SECTORS,
    READS,
    REMOTE,
    WAVEFRONTS,
    AddressListener,
    Expected,
    HopperLaunch,
    Parts,
    above,
    of_request,
)
from memsim.access import Stretches
from memsim.isa.bulk_copy import Issue, copies_cut_at_lines, cut_at_lines, multicast
from memsim.isa.tensor_copy import report_boxes
from memsim.model.remote import remote_access

#: Kernels that copy boxes to several blocks, and how many coordinates they take.
BOXES = {"tlm_2d": 2, "m_line": 1, "m_box": 2, "m_cube": 3}


def multicasts(parts: Parts) -> Expected:
    """Each block that receives counts; the one that asks does not."""
    for launch, count in _boxes(parts):
        listener, one = AddressListener(), np.zeros(1, np.int64)
        ranks, corner = np.array([launch.numbers[7]]), np.array([launch.numbers[:count]])
        tensors = [tensor_of(launch.map or {})]
        issue = Issue(one, one, [])
        at = np.array([launch.numbers[5]])
        report_boxes(listener, None, "bulk_load", issue, tensors, corner, at, ranks)  # type: ignore[arg-type]
        yield launch, {READS: listener.sectors}
    for launch, start, place, length in _bulk(parts):
        listener, one = AddressListener(), np.zeros(1, np.int64)
        pieces = cut_at_lines(np.array([start + BASE]), np.array([length]), np.array([place]))
        multicast(listener, None, Issue(one, one, []), pieces, np.array([launch.numbers[7]]))  # type: ignore[arg-type]
        yield launch, {READS: listener.sectors}


def _boxes(parts: Parts) -> Iterator[tuple[HopperLaunch, int]]:
    """Launches that copy a box, and the number of its coordinates."""
    for launch in (*parts.get("tensors", ()), *parts.get("multicast", ())):
        name = launch.kernel if launch.kernel in BOXES else launch.kernel.rstrip("0123456789")
        if name in BOXES:
            yield launch, BOXES[name]


def _bulk(parts: Parts) -> Iterator[tuple[HopperLaunch, int, int, int]]:
    """Launches that copy bytes, and from where, to where, how many."""
    for launch in parts.get("bulk_and_clusters", ()):
        if launch.kernel == "blm":
            start, place, length = launch.numbers[:3]
            yield launch, start, place, length
    for launch in parts.get("multicast", ()):
        if launch.kernel.startswith("m_bulk"):
            yield launch, launch.numbers[0], launch.numbers[5], launch.numbers[6]


#: Operation and counter of copies between blocks, by the kernels' names.
INSIDE = {
    **{"i_copy": ("cluster_bulk_store", "st"), "bss": ("cluster_bulk_store", "st")},
    **{f"i_{name}": ("cluster_bulk_reduction", "red") for name in ("add", "add64", "inc", "min", "and")},
}


def inside(parts: Parts) -> Expected:
    """Copies and reductions from a block's shared memory to another's."""
    for launch in (one for launches in parts.values() for one in launches):
        if launch.kernel in INSIDE:
            op, end = INSIDE[launch.kernel]
            places = (1, 0, 2) if launch.kernel == "bss" else (0, 5, 6)
            source, to, length = (np.array([launch.numbers[place]]) for place in places)
            starts, lengths, _ = copies_cut_at_lines(source, to, length)
            listener = AddressListener()
            nobody = np.zeros_like(starts)
            listener.stretches(None, op, "shared", Stretches(nobody, starts, lengths, nobody))
            yield launch, {metric.format(end): listener.sectors for metric in INSIDE_SECTORS}


def atomics(parts: Parts) -> Expected:
    """Atomics on the other block's shared memory: counts beyond those of an empty kernel."""
    yield from _lanes_apart(parts.get("bulk_and_clusters", ()), "dempty", "atom", 1)
    yield from _lanes_apart(parts.get("remote_atomics", ()), "a_empty", "atom", 1)


def async_stores(parts: Parts) -> Expected:
    """Asynchronous stores, in the own block as well."""
    yield from _lanes_apart(parts.get("bulk_and_clusters", ()), "dempty", "st", 1)
    for rank in (0, 1):
        for end in ("st", "redas"):
            yield from _lanes_apart(parts.get("async_stores", ()), "s_empty", end, rank)


#: Bytes of a lane and operation of the kernels whose lanes count apart.
APART = {
    **{f"a_{name}": (4, "cluster_atomic") for name in ("add", "red", "one", "min", "and", "exch")},
    **{"a_cas": (4, "cluster_atomic_cas"), "a_cas64": (8, "cluster_atomic_cas")},
    "a_exch64": (8, "cluster_atomic"),
    **{"d_atom": (4, "cluster_atomic"), "d_red": (4, "cluster_atomic"), "d_exch64": (8, "cluster_atomic")},
    **{f"s_{name}": (4, "cluster_async_reduction") for name in ("add", "max", "inc", "xor")},
    "s_add64": (8, "cluster_async_reduction"),
    "d_stas": (4, "cluster_async_store"),
    **{f"s_st{8 * width}": (width, "cluster_async_store") for width in (4, 8, 16)},
}


OPS = {"atom": "cluster_atomic", "st": "cluster_async_store", "redas": "cluster_async_reduction"}


def _lanes_apart(launches: Sequence[HopperLaunch], empty: str, end: str, rank: int) -> Expected:
    without = next((one.counters for one in launches if one.kernel == empty and one.numbers[0] == rank), {})
    for launch in launches:
        width, op = APART.get(launch.kernel, (0, ""))
        if launch.numbers[0] != rank or not op.startswith(OPS[end]):
            continue
        addresses, active = launch.lanes
        cost = remote_access(addresses, width, op, active)
        yield launch, above(without, of_request(REMOTE, end, cost))


def objects(parts: Parts) -> Expected:
    """mbarriers: each operation takes as many wavefronts wherever its objects lie, but an initialization one
    for each object; no conflicts.
    """
    launches = parts.get("mbarrier_operations", ())
    misc = WAVEFRONTS.format("misc")
    found = {(one.kernel, one.table.tobytes()): one.counters.get(misc) for one in launches}
    first: dict[str, int] = {}
    for launch in launches:
        empty, own = (found.get((name, launch.table.tobytes())) for name in ("o_empty", launch.kernel))
        if empty is None or own is None:
            continue
        expected = {CONFLICTS.format("misc"): 0}
        if launch.kernel == "o_init":
            addresses, active = launch.lanes
            expected[misc] = empty + len(np.unique(addresses[active]))
        else:
            expected[misc] = empty + first.setdefault(launch.kernel, own - empty)
        yield launch, expected
