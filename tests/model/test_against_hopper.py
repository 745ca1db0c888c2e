"""The rules for Hopper's own instructions against what an H200 counted, one launch for each configuration."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from memsim.isa.bulk_copy import Issue, cut, tell_boxes
from memsim.isa.warpgroup import build_group_product
from memsim.model import global_access, shared_access
from memsim.model.choice import group_wavefronts
from memsim.sass.decode import parse_form
from memsim.state.tensors import Tensor

FILE = Path(__file__).parents[2] / "traces" / "nvidia-h200" / "hopper" / "probe.npz"
RECORDED = dict(np.load(FILE))
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
READS = "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum"
WRITES = "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st.sum"
BASE = 1 << 20  # allocations begin at multiples of 256 bytes


def launches(part: str) -> Iterator[tuple[dict[str, Any], dict[str, int], np.ndarray]]:
    """(launch, ncu's counters, table of addresses) of a part of the recording."""
    metrics = RECORDED[f"{part}_metrics"].tolist()
    described = json.loads(str(RECORDED[f"{part}_launches"]))
    for launch, row, table in zip(
        described, RECORDED[f"{part}_counters"], RECORDED[f"{part}_tables"], strict=True
    ):
        yield launch, dict(zip(metrics, row.tolist(), strict=True)), table


class Told:
    """A machine that only hears."""

    mask = True

    def __init__(self) -> None:
        self.sectors = 0
        self.width = 0

    def stretches(
        self, op: Any, kind: str, space: str, start: Any, length: Any, block: Any, warp: Any
    ) -> None:
        self.sectors += int(((start + length - 1 >> 5) - (start >> 5) + 1).sum())

    def operands(self, op: Any, width: int, active: Any) -> None:
        self.width = width

    def write(self, slot: int, value: Any, active: Any) -> None:
        pass


PRODUCTS = {"f16": "HGMMA.64x{}x16.F32", "bf16": "HGMMA.64x{}x16.F32.BF16", "f16acc": "HGMMA.64x{}x16.F16",
            "tf32": "HGMMA.64x{}x8.F32.TF32", "e4m3": "QGMMA.64x{}x32.F32.E4M3.E4M3",
            "s8": "IGMMA.64x{}x32.S8.S8"}  # fmt: skip


BINDER: Any = SimpleNamespace(predicate=lambda predicate: lambda registers: False)


def test_operands_of_wgmma_take_a_wavefront_for_128_bytes_wherever_they_lie() -> None:
    seen = 0
    for launch, counters, _ in launches("wgmma"):
        source, kind, columns, *_ = (*launch["kernel"].split("_"), "", "", "")
        if source not in ("w", "r"):
            continue
        of_a = "gdesc[UR4]" if source == "w" else "R20, gdesc[UR4]"
        machine = Told()
        form = parse_form(f"{PRODUCTS[kind].format(columns)} R24, {of_a}, RZ, !UPT, gsb0")
        build_group_product(form, BINDER)(machine, None, True, False)  # type: ignore[arg-type]
        assert counters[WAVEFRONTS.format("gmma")] == group_wavefronts(machine.width)
        assert counters[CONFLICTS.format("gmma")] == 0
        seen += 1
    assert seen == 296


def test_sectors_of_boxes_of_tensors() -> None:
    seen = 0
    for launch, counters, _ in launches("tensors"):
        if launch["kernel"][:3] not in ("tl_", "ts_"):
            continue
        given, count = launch["map"], int(launch["kernel"][3])
        tensor = Tensor(BASE + given["base"], tuple(given["dims"]), (given["e"], *given["strides"]),
                        tuple(given["box"]), given["e"], (0, 32, 64, 128)[given["swz"]], b"")  # fmt: skip
        kind, metric = ("bulk_load", READS) if launch["kernel"][1] == "l" else ("bulk_store", WRITES)
        machine, one = Told(), np.zeros(1, np.int64)
        tell_boxes(machine, None, kind, Issue(one, one, []), [tensor], np.array([launch["numbers"][:count]]))  # type: ignore[arg-type]
        assert counters[metric] == machine.sectors, launch
        seen += 1
    assert seen == 267


def test_sectors_of_bulk_copies() -> None:
    seen = 0
    for launch, counters, _ in launches("bulk_and_clusters"):
        metric = {"bl": READS, "bs": WRITES}.get(launch["kernel"])
        if metric is None:
            continue
        start, place, length = (np.array([number]) for number in launch["numbers"][:3])
        starts, lengths, _ = cut(start + BASE, length, place)
        assert lengths.sum() == length
        assert counters[metric] == ((starts + lengths - 1 >> 5) - (starts >> 5) + 1).sum()
        seen += 1
    assert seen == 96


def test_shared_memory_of_other_blocks_is_counted_like_global_memory_and_ones_own_as_shared() -> None:
    harness = {0: {}, 1: {}}  # type: dict[int, dict[str, int]]
    seen = [0, 0]
    for launch, counters, table in launches("bulk_and_clusters"):
        rank = launch["numbers"][0]
        if launch["kernel"] == "dempty":
            harness[rank] = counters
        name = launch["kernel"].removeprefix("d_")
        if launch["kernel"] == name or name[:2] not in ("ld", "st") or name == "stas":
            continue
        addresses = (table[:32] & 0x7FFFFFFF).astype(np.int64)
        active, width = (table[:32] >> 31).astype(bool), int(name[2:]) // 8
        end, op = name[:2], {"ld": "load", "st": "store"}[name[:2]]
        added = {metric: count - harness[rank][metric] for metric, count in counters.items()}
        dshared = [
            added[f"l1tex__t_{what}_pipe_lsu_mem_dshared_op_{end}.sum"]
            for what in ("requests", "sectors", "set_accesses")
        ]
        if rank:
            cost = global_access(addresses, width, op, active)
            assert dshared == [1, int(cost.sectors), int(cost.lines)]
            assert added[WAVEFRONTS.format(end)] == 0
        else:
            assert dshared == [0, 0, 0]
            shared = shared_access(addresses, width, op, active)
            wavefronts, conflicts = int(shared.wavefronts), int(shared.conflicts)
            if name == "ld64":  # of which memsim says that it is not certain
                words = set((addresses[active][:, None] // 4 + (0, 1)).ravel().tolist())
                wavefronts = max(sum(word % 32 == bank for word in words) for bank in range(32))
                conflicts = wavefronts - 1
            assert added[WAVEFRONTS.format(end)] == wavefronts
            assert added[CONFLICTS.format(end)] == conflicts
        seen[rank] += 1
    assert seen == [24, 88]


def test_neither_mbarriers_nor_copies_count_as_loads_stores_or_atomics() -> None:
    seen = 0
    empty: dict[str, int] = {}
    for launch, counters, _ in launches("mbarriers"):
        if launch["kernel"] == "b_empty":
            empty = counters
        if not launch["kernel"].startswith("b_"):
            continue
        assert all(
            counters[WAVEFRONTS.format(end)] == empty[WAVEFRONTS.format(end)] for end in ("ld", "st", "atom")
        )
        assert counters[WAVEFRONTS.format("misc")] >= empty[WAVEFRONTS.format("misc")]
        seen += 1
    assert seen == 62
