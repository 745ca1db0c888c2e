"""What the rules predict of the microbenchmarks of one source: `wgmma`, TMA copies, loads and stores in other
blocks' memory, mbarriers, local memory and constants.

Launches without a rule are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lab.hopper.hopper_launch import (
    BASE,
    CONFLICTS,
    READS,
    REMOTE,
    WAVEFRONTS,
    WRITES,
    AddressListener,
    Counters,
    Expected,
    Parts,
    above,
    of_request,
    sectors_of,
)
from memsim.isa.bulk_copy import Issue, cut_at_lines
from memsim.isa.readers import Binder
from memsim.isa.tensor_copy import report_boxes
from memsim.model import global_access, shared_access
from memsim.model.choice import group_wavefronts
from memsim.model.coalescing import constant_access, local_access
from memsim.sass.decode import meaning_of_text
from memsim.state.tensors import SWIZZLES, Tensor

LOCAL = "l1tex__t_{}_pipe_lsu_mem_local_op_{}.sum"
CONSTANTS = "idc__requests.sum"
#: Kind of access and counter of copies by the engine, by a letter of the kernel's name.
_OF_ENGINE = {
    "l": ("bulk_load", READS),
    "s": ("bulk_store", WRITES.format("st")),
    "r": ("bulk_reduction", WRITES.format("red")),
}
#: Matrix products by their names in the kernels.
PRODUCTS = {
    **{"f16": "HGMMA.64x{}x16.F32", "bf16": "HGMMA.64x{}x16.F32.BF16", "f16acc": "HGMMA.64x{}x16.F16"},
    **{"tf32": "HGMMA.64x{}x8.F32.TF32", "e4m3": "QGMMA.64x{}x32.F32.E4M3.E4M3"},
    "s8": "IGMMA.64x{}x32.S8.S8",
}


def products(parts: Parts) -> Expected:
    for launch in parts.get("wgmma", ()):
        source, kind, columns, *_ = (*launch.kernel.split("_"), "", "", "")
        if source not in ("w", "r"):
            continue
        of_a = "gdesc[UR4]" if source == "w" else "R20, gdesc[UR4]"
        listener = AddressListener()
        product = meaning_of_text(f"{PRODUCTS[kind].format(columns)} R24, {of_a}, RZ, !UPT, gsb0")
        product.bind(Binder({}))(listener, None, True, False)
        yield (
            launch,
            {WAVEFRONTS.format("gmma"): group_wavefronts(listener.width), CONFLICTS.format("gmma"): 0},
        )


def boxes(parts: Parts) -> Expected:
    for launch in parts.get("tensors", ()):
        if launch.kernel[:3] not in ("tl_", "ts_", "tr_") or launch.map is None:
            continue
        count, tensor = int(launch.kernel[3]), tensor_of(launch.map)
        kind, metric = _OF_ENGINE[launch.kernel[1]]
        listener, one = AddressListener(), np.zeros(1, np.int64)
        corner = np.array([launch.numbers[:count]])
        place = np.array([launch.numbers[5]])
        report_boxes(listener, None, kind, Issue(one, one, []), [tensor], corner, place)  # type: ignore[arg-type]
        yield launch, {metric: listener.sectors}


def tensor_of(given: Mapping[str, Any]) -> Tensor:
    """The tensor of a launch's map."""
    return Tensor(
        base=BASE + given["base"],
        extents=tuple(given["dims"]),
        steps=(given["e"], *given["strides"]),
        box=tuple(given["box"]),
        element=given["e"],
        swizzle=tuple(SWIZZLES)[given["swz"]],
    )


def bulk(parts: Parts) -> Expected:
    for launch in parts.get("bulk_and_clusters", ()):
        if launch.kernel in ("bl", "bs", "br"):
            _, metric = _OF_ENGINE[launch.kernel[1]]
            start, place, length = (np.array([number]) for number in launch.numbers[:3])
            starts, lengths, _ = cut_at_lines(start + BASE, length, place)
            yield launch, {metric: int(sectors_of(starts, lengths).sum())}


def cluster(parts: Parts, rank: int) -> Expected:
    """For another block (rank 1) or its own: counts beyond those of an empty kernel."""
    empty: Counters = {}
    for launch in parts.get("bulk_and_clusters", ()):
        if launch.kernel == "dempty" and launch.numbers[0] == rank:
            empty = launch.counters
        name = launch.kernel.removeprefix("d_")
        end, width = name[:2], name[2:]
        is_access = launch.kernel != name and width.isdecimal() and end in ("ld", "st")
        if not is_access or launch.numbers[0] != rank:
            continue
        addresses, active = launch.lanes
        request = addresses, int(width) // 8, {"ld": "load", "st": "store"}[end], active
        if rank:
            added = {**of_request(REMOTE, end, global_access(*request)), WAVEFRONTS.format(end): 0}
        else:
            shared = shared_access(*request)
            wavefronts, conflicts = int(shared.wavefronts), int(shared.conflicts)
            if (end, width) == ("ld", "64"):  # which memsim marks as uncertain
                wavefronts = _served_at_once(addresses[active])
                conflicts = wavefronts - 1
            added = of_request(REMOTE, end, None)
            added |= {WAVEFRONTS.format(end): wavefronts, CONFLICTS.format(end): conflicts}
        yield launch, above(empty, added)


def _served_at_once(addresses: np.ndarray) -> int:
    """Wavefronts of 8-byte loads of a whole warp: the most distinct words in one bank."""
    words = np.unique(addresses[:, None] // 4 + np.arange(2))
    return int(np.bincount(words % 32).max())


def barriers(parts: Parts) -> Expected:
    empty: Counters = {}
    for launch in parts.get("mbarriers", ()):
        if launch.kernel == "b_empty":
            empty = launch.counters
        if launch.kernel.startswith("b_"):
            yield launch, above(empty, {WAVEFRONTS.format(end): 0 for end in ("ld", "st", "atom")})


def local(parts: Parts) -> Expected:
    """Each kernel stores to one address, and those with loads load from another."""
    for launch in parts.get("constants_and_local_memory", ()):
        kind, _, bits = launch.kernel.removeprefix("l_").partition("t" if "st" in launch.kernel else "d")
        if not launch.kernel.startswith("l_"):
            continue
        _, active = launch.lanes
        expected: Counters = {}
        for end, row in (("st", launch.table[:32]), ("ld", launch.table[32:])):
            if end == "ld" and kind == "s":
                continue
            op = {"st": "store", "ld": "load"}[end]
            cost = local_access(row.astype(np.int64) & 1023, int(bits) // 8, op, active)
            expected[LOCAL.format("sectors", end)] = int(cost.sectors)
            expected[LOCAL.format("requests", end)] = int(cost.requests)
        yield launch, expected


def constants(parts: Parts) -> Expected:
    """Relative to the launch whose lanes have one address; 16 bytes are two loads of 8."""
    alike: dict[str, int] = {}
    found = []
    for launch in parts.get("constants_and_local_memory", ()):
        if launch.kernel.startswith("c_ld"):
            addresses, active = launch.lanes
            bytes = int(launch.kernel.removeprefix("c_ld")) // 8
            requests = int(constant_access(addresses // bytes * bytes, min(bytes, 8), active=active))
            found.append((launch, (requests - 1) * max(1, bytes // 8)))
            if requests == 1:
                alike[launch.kernel] = launch.counters.get(CONSTANTS, 0)
    for launch, more in found:
        yield launch, {CONSTANTS: alike[launch.kernel] + more}
