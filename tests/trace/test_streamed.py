"""Long traces of other tools: what is held does not grow with the file, and every request is counted."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsim.access import Site, SiteRequests
from memsim.analysis import analyze_trace
from memsim.api.running import trace_job
from memsim.arch import SM_90
from memsim.instruction import Instruction
from memsim.model.alike import SameCost
from memsim.targets.target import read_job
from memsim.trace import record, site_records
from memsim.trace.foreign import collect
from memsim.trace.foreign.formats import read_foreign
from memsim.trace.record import Recorder
from memsim.trace.trace import Trace

HEADER = """\
-kernel name = k
-grid dim = (4,1,1)
-block dim = (256,1,1)
-shmem = 4096
-shmem base_addr = 0x00007f0000000000
-local mem base_addr = 0x00007f0002000000
-accelsim tracer version = 4

#BEGIN_TB
thread block = 0,0,0
warp = 0
"""
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}


def scattered(requests: int) -> str:
    """Loads of 32 places each, no two requests alike, half of them to shared memory."""
    random = np.random.default_rng(7)
    lines = []
    for number in range(requests):
        words = random.integers(0, 1024, 32) * 4
        opcode, base = ("LDG.E", 0x10000) if number % 2 else ("LDS", 0x7F0000000000)
        addresses = " ".join(hex(base + word) for word in words.tolist())
        lines.append(f"{16 * (number % 2):04x} ffffffff 1 R4 {opcode} 1 R2 4 0 {addresses}")
    return HEADER + "\n".join(lines) + "\n#END_TB\n"


@pytest.mark.some(1)
@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_what_is_held_does_not_grow_and_the_counts_are_the_same(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"k.traceg{suffix}"
    with OPENERS.get(suffix, open)(path, "wt") as file:
        file.write(scattered(3000))
    every = Trace.load(path)
    monkeypatch.setattr(record, "MANY_ROWS", 64)
    monkeypatch.setattr(site_records, "MANY_OF_SITE", 16)
    monkeypatch.setattr(collect, "BATCH", 100)
    folded = trace_job(read_job(str(path), {}))
    assert len(every.count) == 3000
    assert len(folded.count) < 300  # one of each kind that costs the same
    assert int(folded.count.sum()) == 3000
    one, other = analyze_trace(every), analyze_trace(folded)
    assert one.totals == other.totals
    assert one.sites == other.sites
    assert "too many (instructions:1, instructions:2)" in " ".join(folded.notes)


@pytest.mark.parametrize(("instructions", "rounds"), [(2, 50), (40, 5)])
def test_many_instructions_are_counted_several_requests_at_once(
    instructions: int, rounds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many they are: a batch holds several requests of each, unless few fill it."""
    path = tmp_path / "k.traceg"
    line = "{:04x} ffffffff 1 R4 LDG.E 1 R2 4 1 {:#x} 4\n"
    lines = [line.format(16 * i, 0x10000 + 4 * i * r) for r in range(rounds) for i in range(instructions)]
    path.write_text(HEADER + "".join(lines) + "#END_TB\n")
    monkeypatch.setattr(collect, "BATCH", 20)
    sizes: list[int] = []
    requests = collect.Batch.requests

    def counted(batch: collect.Batch) -> Any:
        sizes.append(len(batch))
        return requests(batch)

    monkeypatch.setattr(collect.Batch, "requests", counted)
    trace = Trace.load(path)
    assert int(trace.count.sum()) == sum(sizes) == instructions * rounds
    assert len(trace.sites) == instructions
    assert min(sizes) >= min(collect.OF_EACH, rounds)


def test_room_is_made_once_for_sites_that_need_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left after folding is not looked through again for each request."""
    monkeypatch.setattr(record, "MOST_ROWS", 8)
    made: list[int] = []
    make_room = Recorder.make_room

    def counted(recorder: Recorder) -> None:
        made.append(recorder.kept_rows)
        make_room(recorder)

    monkeypatch.setattr(Recorder, "make_room", counted)
    recorder = Recorder(SameCost(SM_90))
    lanes = np.ones((1, 32), np.bool_)
    for index in range(200):
        site = Site(index, Instruction("LDG"), "load", "global", 4)
        addresses = np.arange(32)[None, :] * 4 * (1 + index % 5)
        recorder.requests(site, SiteRequests(addresses, lanes, None, *np.zeros((2, 1), np.int64)))
    assert recorder.kept_rows == 200
    assert len(made) < 10
    assert int(recorder.columns()[1]["count"].sum()) == 200


def test_nothing_is_remembered_of_a_batch_that_was_counted(tmp_path: Path) -> None:
    """One request again and again: a row, and no list that grows by the batch."""
    path = tmp_path / "k.traceg"
    line = "0000 ffffffff 1 R4 LDG.E 1 R2 4 1 0x10000 4\n"
    path.write_text(HEADER + line * 40_000 + "#END_TB\n")
    recorders: list[Recorder] = []

    def new() -> Recorder:
        recorders.append(Recorder(SameCost(SM_90)))
        return recorders[-1]

    trace = read_foreign(path, None, new)
    assert trace.count.tolist() == [40_000]
    assert all(recorder.tallies == [] and recorder.remembered == 0 for recorder in recorders)


def test_a_suggestion_needs_requests_apart_and_gets_them(tmp_path: Path) -> None:
    """Columns 512 bytes apart are one row of a trace, unless they are asked for one by one."""
    path = tmp_path / "k.traceg"
    lines = [f"0000 ffffffff 1 R4 LDS 1 R2 4 1 {0x7F0000000000 + 512 * row:#x} 4\n" for row in range(4)]
    path.write_text(HEADER + "".join(lines) + "#END_TB\n")
    job = read_job(str(path), {})
    together, apart = trace_job(job), trace_job(job, apart=True)
    assert (together.count.tolist(), apart.count.tolist()) == ([4], [1, 1, 1, 1])
    assert (together.apart, apart.apart) == (False, True)
