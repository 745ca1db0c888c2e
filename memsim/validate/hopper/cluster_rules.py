"""What the rules predict of the microbenchmarks of clusters: copies to several blocks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from memsim.isa.bulk_issue import Issue, cut, multicast
from memsim.isa.tensor_copy import tell_boxes
from memsim.validate.hopper.block_rules import tensor_of
from memsim.validate.hopper.expectations import BASE, READS, AddressListener, Expected, Parts
from memsim.validate.hopper.hopper_recording import HopperLaunch

#: Kernels that copy boxes to several blocks, and how many coordinates they take.
BOXES = {"tlm_2d": 2, "m_line": 1, "m_box": 2, "m_cube": 3}


def multicasts(parts: Parts) -> Expected:
    """Each block that receives counts; the one that asks does not."""
    for launch, count in _boxes(parts):
        listener, one = AddressListener(), np.zeros(1, np.int64)
        ranks, corner = np.array([launch.numbers[7]]), np.array([launch.numbers[:count]])
        tensors = [tensor_of(launch.map or {})]
        tell_boxes(listener, None, "bulk_load", Issue(one, one, []), tensors, corner, ranks)  # type: ignore[arg-type]
        yield launch, {READS: listener.sectors}
    for launch, start, place, length in _bulk(parts):
        listener, one = AddressListener(), np.zeros(1, np.int64)
        pieces = cut(np.array([start + BASE]), np.array([length]), np.array([place]))
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
