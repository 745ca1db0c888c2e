"""Tests the rules for Hopper's own instructions against their microbenchmarks.

For each launch the counters that a rule predicts are compared without tolerance. Launches without a rule
(reductions, multicast copies, atomics on other blocks, `st.async`) are excluded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memsim.isa.bulk_issue import Issue, cut
from memsim.isa.tensor_copy import tell_boxes
from memsim.isa.warpgroup import build_group_product
from memsim.model import global_access, shared_access
from memsim.model.choice import group_wavefronts
from memsim.model.constant import constant_access
from memsim.model.local import local_access
from memsim.sass.decode import parse_form
from memsim.state.tensors import SWIZZLES, Tensor
from memsim.validate.hopper.hopper_recording import HopperLaunch

WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
REMOTE = "l1tex__t_{}_pipe_lsu_mem_dshared_op_{}.sum"
LOCAL = "l1tex__t_{}_pipe_lsu_mem_local_op_{}.sum"
CONSTANTS = "idc__requests.sum"
READS = "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum"
WRITES = "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_{}.sum"
#: Kind of access and counter of copies by the engine, by a letter of the kernel's name.
_OF_ENGINE = {
    "l": ("bulk_load", READS),
    "s": ("bulk_store", WRITES.format("st")),
    "r": ("bulk_reduction", WRITES.format("red")),
}
BASE = 1 << 20  # allocations start at multiples of 256 bytes
TABLE_ADDRESS, ACTIVE_BIT = 0x7FFFFFFF, 31
#: Matrix products by their names in the kernels.
PRODUCTS = {
    **{"f16": "HGMMA.64x{}x16.F32", "bf16": "HGMMA.64x{}x16.F32.BF16", "f16acc": "HGMMA.64x{}x16.F16"},
    **{"tf32": "HGMMA.64x{}x8.F32.TF32", "e4m3": "QGMMA.64x{}x32.F32.E4M3.E4M3"},
    "s8": "IGMMA.64x{}x32.S8.S8",
}
Counters = dict[str, int]


@dataclass(frozen=True, slots=True)
class HopperHeld:
    """One rule: the number of launches that are as predicted.

    different: (kernel, metric, predicted, measured) of the others.
    """

    name: str
    equal: int
    compared: int
    different: tuple[tuple[str, str, int, int], ...]

    @property
    def holds(self) -> bool:
        """Whether all that was compared is equal."""
        return self.equal == self.compared


class _AddressListener:
    """Records the addresses that a memory instruction reports."""

    mask = True

    def __init__(self) -> None:
        self.sectors = 0
        self.width = 0

    def stretches(
        self, op: Any, kind: str, space: str, start: Any, length: Any, block: Any, warp: Any
    ) -> None:
        self.sectors += _sectors(start, length)

    def operands(self, op: Any, width: int, active: Any) -> None:
        self.width = width

    def write(self, slot: int, value: Any, active: Any) -> None:
        """The product is not needed."""


class _NoBinder:
    """Predicates of an instruction: the addend does not matter."""

    def predicate(self, predicate: Any) -> Callable[[Any], bool]:
        return lambda registers: False


#: Launches by topic, as in recordings.
Parts = Mapping[str, Sequence[HopperLaunch]]


def judge_hopper(parts: Parts) -> list[HopperHeld]:
    """The results, rule by rule; rules of which no launch has a counter are omitted."""
    found = [_held(name, expected) for name, expected in _expected(parts)]
    return [held for held in found if held.compared]


def compared_metrics(parts: Parts) -> dict[str, tuple[str, ...]]:
    """The metrics that any rule predicts for a launch of a part."""
    home = {id(launch): part for part, launches in parts.items() for launch in launches}
    found: dict[str, dict[str, None]] = {part: {} for part in parts}
    for _, launches in _expected(parts):
        for launch, expected in launches:
            found[home[id(launch)]].update(dict.fromkeys(expected))
    return {part: tuple(metrics) for part, metrics in found.items()}


def _expected(parts: Parts) -> Iterator[tuple[str, list[tuple[HopperLaunch, Counters]]]]:
    """What each rule predicts."""
    rules: tuple[tuple[str, Callable[[Parts], Iterator[tuple[HopperLaunch, Counters]]]], ...] = (
        ("operands of wgmma", _products),
        ("boxes of tensors", _boxes),
        ("bulk copies", _bulk),
        ("shared memory of other blocks", lambda of: _cluster(of, 1)),
        ("a block's own memory by an address of the cluster", lambda of: _cluster(of, 0)),
        ("mbarriers: no load, store or atomic", _barriers),
        ("local memory", _local),
        ("constants at an index", _constants),
    )
    for name, launches in rules:
        yield name, list(launches(parts))


def _held(name: str, found: list[tuple[HopperLaunch, Counters]]) -> HopperHeld:
    different = []
    equal = 0
    found = [(launch, expected) for launch, expected in found if expected.keys() & launch.counters.keys()]
    for launch, expected in found:
        wrong = [
            (launch.kernel, metric, value, launch.counters[metric])
            for metric, value in expected.items()
            if metric in launch.counters and launch.counters[metric] != value
        ]
        equal += not wrong
        different += wrong
    return HopperHeld(name, equal, len(found), tuple(different))


def _products(parts: Parts) -> Iterator[tuple[HopperLaunch, Counters]]:
    for launch in parts.get("wgmma", ()):
        source, kind, columns, *_ = (*launch.kernel.split("_"), "", "", "")
        if source not in ("w", "r"):
            continue
        of_a = "gdesc[UR4]" if source == "w" else "R20, gdesc[UR4]"
        listener, binder = _AddressListener(), _NoBinder()
        form = parse_form(f"{PRODUCTS[kind].format(columns)} R24, {of_a}, RZ, !UPT, gsb0")
        build_group_product(form, binder)(listener, None, True, False)
        yield (
            launch,
            {WAVEFRONTS.format("gmma"): group_wavefronts(listener.width), CONFLICTS.format("gmma"): 0},
        )


def _boxes(parts: Parts) -> Iterator[tuple[HopperLaunch, Counters]]:
    for launch in parts.get("tensors", ()):
        if launch.kernel[:3] not in ("tl_", "ts_", "tr_") or launch.map is None:
            continue
        given, count = launch.map, int(launch.kernel[3])
        tensor = Tensor(
            base=BASE + given["base"],
            extents=tuple(given["dims"]),
            steps=(given["e"], *given["strides"]),
            box=tuple(given["box"]),
            element=given["e"],
            swizzle=tuple(SWIZZLES)[given["swz"]],
            fills=b"",
        )
        kind, metric = _OF_ENGINE[launch.kernel[1]]
        listener, one = _AddressListener(), np.zeros(1, np.int64)
        corner = np.array([launch.numbers[:count]])
        tell_boxes(listener, None, kind, Issue(one, one, []), [tensor], corner)  # type: ignore[arg-type]
        yield launch, {metric: listener.sectors}


def _bulk(parts: Parts) -> Iterator[tuple[HopperLaunch, Counters]]:
    for launch in parts.get("bulk_and_clusters", ()):
        if launch.kernel in ("bl", "bs", "br"):
            _, metric = _OF_ENGINE[launch.kernel[1]]
            start, place, length = (np.array([number]) for number in launch.numbers[:3])
            starts, lengths, _ = cut(start + BASE, length, place)
            yield launch, {metric: _sectors(starts, lengths)}


def _sectors(start: np.ndarray, length: np.ndarray) -> int:
    return int(((start + length - 1 >> 5) - (start >> 5) + 1).sum())


def _cluster(parts: Parts, rank: int) -> Iterator[tuple[HopperLaunch, Counters]]:
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
        addresses, active = _lanes(launch.table[:32])
        request = addresses, int(width) // 8, {"ld": "load", "st": "store"}[end], active
        added: Counters = {}
        if rank:
            cost = global_access(*request)
            counts = (1, int(cost.sectors), int(cost.lines))
            added = {WAVEFRONTS.format(end): 0}
        else:
            shared = shared_access(*request)
            wavefronts, conflicts = int(shared.wavefronts), int(shared.conflicts)
            if (end, width) == ("ld", "64"):  # which memsim marks as uncertain
                wavefronts = _served_at_once(addresses[active])
                conflicts = wavefronts - 1
            counts = (0, 0, 0)
            added = {WAVEFRONTS.format(end): wavefronts, CONFLICTS.format(end): conflicts}
        for what, number in zip(("requests", "sectors", "set_accesses"), counts):
            added[REMOTE.format(what, end)] = number
        yield launch, _above(empty, added)


def _above(empty: Counters, added: Counters) -> Counters:
    """Counts that are added to those of an empty kernel, as far as they were collected."""
    return {metric: number + empty[metric] for metric, number in added.items() if metric in empty}


def _served_at_once(addresses: np.ndarray) -> int:
    """Wavefronts of 8-byte loads of a whole warp: the most distinct words in one bank."""
    words = np.unique(addresses[:, None] // 4 + np.arange(2))
    return int(np.bincount(words % 32).max())


def _barriers(parts: Parts) -> Iterator[tuple[HopperLaunch, Counters]]:
    empty: Counters = {}
    for launch in parts.get("mbarriers", ()):
        if launch.kernel == "b_empty":
            empty = launch.counters
        if launch.kernel.startswith("b_"):
            yield launch, _above(empty, {WAVEFRONTS.format(end): 0 for end in ("ld", "st", "atom")})


def _local(parts: Parts) -> Iterator[tuple[HopperLaunch, Counters]]:
    """Each kernel stores to one address, and those with loads load from another."""
    for launch in parts.get("constants_and_local_memory", ()):
        kind, _, bits = launch.kernel.removeprefix("l_").partition("t" if "st" in launch.kernel else "d")
        if not launch.kernel.startswith("l_"):
            continue
        _, active = _lanes(launch.table[:32])
        expected: Counters = {}
        for end, row in (("st", launch.table[:32]), ("ld", launch.table[32:])):
            if end == "ld" and kind == "s":
                continue
            op = {"st": "store", "ld": "load"}[end]
            cost = local_access(row.astype(np.int64) & 1023, int(bits) // 8, op, active)
            expected[LOCAL.format("sectors", end)] = int(cost.sectors)
            expected[LOCAL.format("requests", end)] = int(cost.requests)
        yield launch, expected


def _constants(parts: Parts) -> Iterator[tuple[HopperLaunch, Counters]]:
    """Relative to the launch whose lanes have one address; 16 bytes are two loads of 8."""
    alike: dict[str, int] = {}
    found = []
    for launch in parts.get("constants_and_local_memory", ()):
        if launch.kernel.startswith("c_ld"):
            addresses, active = _lanes(launch.table[:32])
            bytes = int(launch.kernel.removeprefix("c_ld")) // 8
            requests = int(constant_access(addresses // bytes * bytes, min(bytes, 8), active=active))
            found.append((launch, (requests - 1) * max(1, bytes // 8)))
            if requests == 1:
                alike[launch.kernel] = launch.counters.get(CONSTANTS, 0)
    for launch, more in found:
        yield launch, {CONSTANTS: alike[launch.kernel] + more}


def _lanes(row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(addresses, active) of 32 words of a table."""
    return (row & TABLE_ADDRESS).astype(np.int64), (row >> ACTIVE_BIT).astype(bool)
