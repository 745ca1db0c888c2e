"""Traces of other tools: fixtures by hand from the formats' documentation, round trips, and damaged files."""

from __future__ import annotations

import gzip
import lzma
import re
import tracemalloc
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import memsim
from memsim.analysis import analyze_trace
from memsim.launch import Launch
from memsim.shown import ShownAnalysis
from memsim.trace.foreign.collect import Batch, BlocksSeen, Opcode, read_opcode
from memsim.trace.foreign.formats import MATRICES, NAMES, write_accelsim
from memsim.trace.suffixes import is_foreign
from memsim.trace.trace import Trace
from memsim.views.analyze.terminal import render
from tests.traces import LANES, Request, make_trace, site, traces

FIXTURES = Path(__file__).parent / "foreign"
ACCELSIM, NVBIT = FIXTURES / "transpose.traceg", FIXTURES / "two_launches.txt"


def rows(trace: Trace) -> list[tuple[Any, ...]]:
    names = ("requests", "wavefronts", "conflicts", "ideal_wavefronts", "max_ways", "sectors", "lines")
    return [
        (s.space, s.op, s.width, *(getattr(s, name) for name in names)) for s in analyze_trace(trace).sites
    ]


def test_an_accelsim_trace() -> None:
    trace = Trace.load(ACCELSIM)
    assert trace.kernel == "transpose"
    assert (trace.launch.grid, trace.launch.block, trace.launch.shared_bytes) == ((2, 1, 1), (32, 2, 1), 4224)
    assert trace.blocks_replayed == 2
    analysis = analyze_trace(trace)
    assert [(s.line, s.source) for s in analysis.sites] == [
        (1, "/*0010*/ LDG.E.SYS"),
        (2, "/*0020*/ STS"),
        (3, "/*0040*/ LDS.U"),
        (4, "/*0050*/ STG.E.64.SYS"),
        (5, "/*0070*/ LD.E"),
    ]
    load, store, column, wide, generic = analysis.sites
    assert (load.requests, load.sectors, load.lines) == (4, 16, 4)
    assert (store.wavefronts, store.max_ways) == (4, 1)
    assert (column.wavefronts, column.conflicts, column.max_ways) == (4, 0, 1)
    assert (wide.width, wide.requests, wide.sectors, wide.ideal_sectors) == (8, 4, 32, 16)
    assert (generic.space, generic.requests, generic.wavefronts) == ("shared", 4, 4)
    assert analysis.trace.uncounted == {"local memory request": 4}
    assert analysis.verdict.split(": ")[1].startswith("4 local memory requests are not counted; ")
    assert [i.address for row in analysis.instructions for i in row] == [0x10, 0x20, 0x40, 0x50, 0x70]


@pytest.mark.parametrize(("said", "bytes"), [("1024", 1024), ("dynamic", 0)])
def test_shared_memory_of_an_accelsim_trace(said: str, bytes: int, tmp_path: Path) -> None:
    path = tmp_path / "t.traceg"
    path.write_text(re.sub("-shmem = .*", f"-shmem = {said}", ACCELSIM.read_text()))
    assert Trace.load(path).launch.shared_bytes == bytes


def test_what_a_trace_lacks_is_said() -> None:
    text = render(analyze_trace(Trace.load(ACCELSIM)))
    assert "Code: Accel-Sim trace transpose.traceg" in text
    assert "Not in the trace: names of arrays; source lines; how much of its shared memory" in text
    text = render(analyze_trace(Trace.load(NVBIT, "add")))
    assert "which lanes are active" in text
    analysis = analyze_trace(Trace.load(ACCELSIM))
    assert analysis.to_dict()["code"]["lacks"]


def test_it_takes_pictures_and_explanations() -> None:
    analysis = ShownAnalysis.of(analyze_trace(Trace.load(ACCELSIM)))
    assert "/*0040*/ LDS.U" in str(analysis.heatmap())
    assert "No bank conflict" in str(analysis.explain(line=3))
    assert "<svg" in analysis._repr_html_() or "<table" in analysis._repr_html_()


ONE_WARP = (
    "-kernel name = k\n-grid dim = (1,1,1)\n-block dim = (32,1,1)\n"
    "#BEGIN_TB\nthread block = 0,0,0\nwarp = 0\n"
)


def test_lists_strides_and_differences_are_three_ways_to_say_the_same(tmp_path: Path) -> None:
    texts = {
        "0": " ".join(f"{0x1000 + 8 * lane:#x}" for lane in range(4, 12)),
        "1": "0x1020 8",
        "2": "0x1020 " + " ".join(["8"] * 7),
    }
    for mode, text in texts.items():
        path = tmp_path / f"{mode}.traceg"
        path.write_text(f"{ONE_WARP}0010 00000ff0 1 R1 LDG.E 1 R2 4 {mode} {text}\n#END_TB\n")
        trace = Trace.load(path)
        assert trace.active[0].nonzero()[0].tolist() == list(range(4, 12))
        assert trace.addresses[0, 4:12].tolist() == [0x1020 + 8 * i for i in range(8)]


@pytest.mark.parametrize(("suffix", "lanes"), [("", 8), (".2", 16), (".4", 32)])
@pytest.mark.parametrize("name", ["LDSM", "STSM"])
def test_only_the_lanes_that_supply_addresses_of_matrices_are_active(
    name: str, suffix: str, lanes: int, tmp_path: Path
) -> None:
    path = tmp_path / "t.traceg"
    path.write_text(
        f"{ONE_WARP}0010 ffffffff 1 R1 {name}.16.M88{suffix} 1 R2 16 1 0x7f0000000000 16\n#END_TB\n"
    )
    assert Trace.load(path).active.tolist() == [[lane < lanes for lane in range(32)]]


def test_old_versions_have_places_and_new_ones_line_numbers(tmp_path: Path) -> None:
    head = "-kernel name = k\n-grid dim = (4,2,1)\n-block dim = (64,1,1)\n"
    old = tmp_path / "old.traceg"
    old.write_text(
        f"{head}-accelsim tracer version = 2\n#BEGIN_TB\n3 1 0 1 0010 ffffffff 0 STG.E 2 R2 R4 4 1 0x100 4\n"
    )
    trace = Trace.load(old)
    assert (trace.block.tolist(), trace.warp.tolist(), trace.blocks_replayed) == ([7], [1], 1)
    new = tmp_path / "new.traceg"
    new.write_text(
        f"{head}-accelsim tracer version = 5\n-enable lineinfo = 1\n"
        "#BEGIN_TB\nthread block = 3,1,0\nwarp = 1\ninsts = 1\n"
        "42 0010 ffffffff 0 STG.E 2 R2 R4 4 1 0x100 4 0\n"
    )
    trace = Trace.load(new)
    assert (trace.block.tolist(), trace.warp.tolist()) == ([7], [1])
    assert trace.sources["instructions"] == "/*0010*/ STG.E (line 42)\n"


def test_a_copy_has_both_its_sides(tmp_path: Path) -> None:
    path = tmp_path / "copy.traceg"
    base = 0x7F0E8E000000
    pairs = [f"{base:#x} 16", "0x7e0000000400 16"]
    for order in (pairs, pairs[::-1]):
        text = "".join(f"0010 ffffffff 0 LDGSTS.E.BYPASS.128 2 R2 R4 16 1 {each}\n" for each in order)
        path.write_text(
            f"-kernel name = k\n-grid dim = (1,1,1)\n-block dim = (32,1,1)\n-shmem base_addr = {base:#x}\n"
            "-local mem base_addr = 0x7f0e8c000000\n"
            f"#BEGIN_TB\nthread block = 0,0,0\nwarp = 0\n{text}#END_TB\n"
        )
        trace = Trace.load(path)
        wide, shared = sorted(analyze_trace(trace).sites, key=lambda s: s.space)
        assert (shared.op, shared.wavefronts) == ("cp_async_cg", 0)
        assert (wide.sectors, wide.lines) == (16, 4)
        (at,) = [i for i, one in enumerate(trace.sites) if one.space == "shared"]
        assert trace.addresses[trace.site == at].tolist() == [[16 * lane for lane in range(32)]]
        assert trace.partner[trace.site == at].tolist() == [
            [0x7E0000000400 + 16 * lane for lane in range(32)]
        ]
    path.write_text(path.read_text().replace(f"-shmem base_addr = {base:#x}\n", ""))
    unknown = analyze_trace(Trace.load(path))
    assert "2 accesses could not be analyzed" in unknown.verdict
    assert "which of its two addresses" in render(unknown)


@pytest.mark.parametrize(("pending", "of_each"), [(1, 0), (2, 0), (3, 0), (1, 1)])
def test_however_few_requests_are_pending_the_counts_are_the_same(
    pending: int, of_each: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, base = tmp_path / "copies.traceg", 0x7F0E8E000000
    lines = [
        f"0010 ffffffff 0 LDGSTS.E.BYPASS.128 2 R2 R4 16 1 {at} 16" for at in (f"{base:#x}", "0x7e0000000000")
    ]
    lines = ([*lines, f"0020 ffffffff 1 R2 LDS 1 R3 4 1 {base + 64:#x} 8"]) * 3
    lines += [f"0030 ffffffff 1 R2 LD.E 1 R4 4 1 {at:#x} 4" for at in (base, 0x7E0000000000, 0x7F0E8C000000)]
    path.write_text(
        f"-kernel name = k\n-grid dim = (1,1,1)\n-block dim = (32,1,1)\n-shmem base_addr = {base:#x}\n"
        "-local mem base_addr = 0x7f0e8c000000\n#BEGIN_TB\nthread block = 0,0,0\nwarp = 0\n"
        + "\n".join(lines)
        + "\n#END_TB\n"
    )
    whole = Trace.load(path)
    assert [site.requests for site in analyze_trace(whole).sites] == [3, 3, 3, 1, 1]
    assert whole.uncounted == {"local memory request": 1}
    monkeypatch.setattr("memsim.trace.foreign.collect.BATCH", pending)
    monkeypatch.setattr("memsim.trace.foreign.collect.OF_EACH", of_each)
    parted = Trace.load(path)
    assert parted.uncounted == whole.uncounted
    assert [*map(repr, analyze_trace(parted).sites)] == [*map(repr, analyze_trace(whole).sites)]


@pytest.mark.parametrize(("mask", "lanes"), [(0, 0), (1, 1), (0x80000001, 2)])
def test_a_line_without_lanes_is_executed_and_makes_no_request(mask: int, lanes: int, tmp_path: Path) -> None:
    path, base = tmp_path / "masked.traceg", 0x7F0E8E000000
    line = f"1 R2 LDS 1 R3 4 1 {base + 64:#x} 8"
    path.write_text(
        f"-kernel name = k\n-grid dim = (1,1,1)\n-block dim = (32,1,1)\n-shmem base_addr = {base:#x}\n"
        "-local mem base_addr = 0x7f0e8c000000\n#BEGIN_TB\nthread block = 0,0,0\nwarp = 0\n"
        f"0020 ffffffff {line}\n0020 {mask:08x} {line}\n#END_TB\n"
    )
    trace = Trace.load(path)
    assert trace.active.sum(1).tolist() == [32, lanes][: 1 + bool(lanes)]
    (row,) = analyze_trace(trace).sites
    assert (row.requests, row.instructions) == (1 + bool(lanes), 2)


def test_generic_accesses_of_an_unknown_space_are_not_guessed() -> None:
    analysis = analyze_trace(Trace.load(NVBIT, "add"))
    stores, generic = sorted(analysis.sites, key=lambda s: s.op, reverse=True)
    assert (stores.requests, stores.sectors, stores.width) == (1, 16, 16)
    assert generic.unresolved is not None
    assert "1 access could not be analyzed" in analysis.verdict


def test_an_nvbit_trace() -> None:
    trace = Trace.load(NVBIT, "scale")
    assert trace.kernel == "scale(float*, int)"
    assert (trace.launch.grid, trace.launch.block, trace.launch.shared_bytes) == ((2, 1, 1), (48, 1, 1), 256)
    load, store = analyze_trace(trace).sites
    assert (load.source, load.requests, load.sectors) == ("LDG.E", 4, 2 * 8 + 2 * 4)
    assert (store.source, store.wavefronts, store.conflicts, store.max_ways) == ("STS", 6, 2, 2)
    assert trace.warp.max() == 1
    assert Trace.load(NVBIT, "0").kernel == trace.kernel


def test_one_launch_of_several_is_to_be_chosen() -> None:
    with pytest.raises(memsim.MemsimError, match="2 launches") as caught:
        Trace.load(NVBIT)
    assert caught.value.hint == (
        "choose one by --kernel, its name or number: 0: scale(float*, int), 1: add(float*)"
    )
    with pytest.raises(memsim.MemsimError, match="no launch of nothing"):
        Trace.load(NVBIT, "nothing")
    with pytest.raises(memsim.MemsimError, match="has one kernel"):
        Trace.load(ACCELSIM, "transpose")


def test_a_version_that_numbers_launches_one_ahead(tmp_path: Path) -> None:
    path = tmp_path / "ahead.txt"
    text = NVBIT.read_text()
    path.write_text(text.replace("launch id 1 -", "launch id 2 -").replace("launch id 0 -", "launch id 1 -"))
    assert Trace.load(path, "add").kernel == "add(float*)"
    assert rows(Trace.load(path, "add")) == rows(Trace.load(NVBIT, "add"))


def test_without_launches_the_shape_is_taken_from_what_was_seen(tmp_path: Path) -> None:
    path = tmp_path / "bare.log"
    lines = [line for line in NVBIT.read_text().splitlines() if "id 0 - CTA" in line]
    path.write_text("\n".join(line.replace("grid_launch_id 0 - ", "") for line in lines))
    trace = Trace.load(path)
    assert (trace.launch.grid, trace.launch.block) == ((2, 1, 1), (64, 1, 1))
    assert rows(trace) == rows(Trace.load(NVBIT, "scale"))
    assert trace.origin is not None
    assert any("grid and block" in lack for lack in trace.origin.lacks)


@pytest.mark.parametrize(("suffix", "opener"), [(".gz", gzip.open), (".xz", lzma.open)])
def test_compressed_files(tmp_path: Path, suffix: str, opener: Any) -> None:
    path = tmp_path / f"t.traceg{suffix}"
    with opener(path, "wt") as file:
        file.write(ACCELSIM.read_text())
    assert is_foreign(path)
    assert rows(Trace.load(path)) == rows(Trace.load(ACCELSIM))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(memsim.MemsimError, match="damaged or truncated"):
        Trace.load(path)


@pytest.mark.slow
def test_a_catalogue_kernel_goes_out_and_comes_back(tmp_path: Path) -> None:
    for name, size in (("transpose_naive", "64,96"), ("sgemm_128x128x8", "128,128,16")):
        trace = memsim.catalog()[name].trace(size=size)
        trace.save(tmp_path / f"{name}.traceg.xz")
        again = Trace.load(tmp_path / f"{name}.traceg.xz")
        assert (again.launch.grid, again.launch.block) == (trace.launch.grid, trace.launch.block)
        assert again.kernel == trace.kernel
        before, after = analyze_trace(trace), analyze_trace(again)
        assert after.totals == before.totals
        assert sum(s.requests or 0 for s in after.sites) == sum(s.requests or 0 for s in before.sites)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trace=traces())
def test_any_trace_that_is_whole_comes_back(trace: Trace, tmp_path: Path) -> None:
    small = np.minimum(trace.count, 3)
    keep = [
        i for i, s in enumerate(trace.sites)
        if s.unresolved is None and ((s.space, s.op) in NAMES or s.op in MATRICES)
        and not s.op.startswith("cp_async")
    ]  # fmt: skip
    chosen = np.isin(trace.site, keep)
    trace = make_trace(
        *(
            (
                trace.sites[i],
                [
                    Request(trace.addresses[r], int(small[r]), trace.active[r])
                    for r in np.flatnonzero(chosen & (trace.site == i))
                ],
            )
            for i in keep
        ),
        sources={},
    )
    matrices = np.array([trace.sites[i].op in ("ldmatrix", "stmatrix") for i in trace.site], bool)
    trace.active[matrices] = 8 * (1 + trace.count[matrices][:, None] % 2) > LANES
    if not trace.active.any():
        return
    path = tmp_path / "t.traceg"
    write_accelsim(trace, path)
    again = Trace.load(path)
    alike = {"reduction": "atomic"}  # ATOMS is both

    def summed(of: Trace) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for space, op, width, *counts in rows(of):
            key = space, alike.get(op, op) if space == "shared" else op, width
            before = found.get(key, [0] * len(counts))
            found[key] = [(a or 0) + (b or 0) for a, b in zip(before, counts)]
            found[key][4] = max(before[4] or 0, counts[4] or 0)
        return {key: counts for key, counts in found.items() if counts[0]}

    assert summed(again) == summed(trace)


def test_addresses_are_written_as_a_stride_or_as_differences(tmp_path: Path) -> None:
    requests = [
        Request(LANES * 4 + 256),
        Request(LANES * 0 + 512, 2, LANES == 3),
        Request(LANES * 7 % 32 * 4 + 1024, 1, LANES < 3),
        Request(LANES * 8 + 4096, 1, (LANES < 4) | (LANES == 9)),
    ]
    one = site(space="global", array="A")
    trace = make_trace((one, requests), launch=Launch((2, 3, 4), (32, 1, 1)), blocks_replayed=1)
    write_accelsim(trace, tmp_path / "t.traceg")
    written = (tmp_path / "t.traceg").read_text().splitlines()
    assert "-grid dim = (2,3,4)" in written and "thread block = 0,0,0" in written
    assert [line for line in written if "LDG" in line] == [
        "0000 ffffffff 0 LDG.E 0 4 1 0x100 4",
        *["0000 00000008 0 LDG.E 0 4 1 0x200 0"] * 2,
        "0000 00000007 0 LDG.E 0 4 1 0x400 28",
        "0000 0000020f 0 LDG.E 0 4 2 0x1000 8 8 8 48",
    ]


WRITTEN = """\
-kernel name = kernel
-kernel id = 1
-grid dim = (2,2,1)
-block dim = (64,1,1)
-shmem = 640
-nregs = 32
-binary version = 90
-cuda stream id = 0
-shmem base_addr = 0x00007f0000000000
-local mem base_addr = 0x00007f0002000000
-nvbit version = none
-accelsim tracer version = 4
-enable lineinfo = 0

#traces format = PC mask dest_num [reg_dests] opcode src_num [reg_srcs] mem_width [adrrescompress?] \
[mem_addresses]

#BEGIN_TB

thread block = 0,0,0

warp = 1
insts = 5
0000 ffffffff 0 LDGSTS.E.64 0 8 1 0x7f0000000040 8
0000 0000000f 0 LDGSTS.E.64 0 8 1 0x0 8
0000 ffffffff 0 LDGSTS.E.64 0 8 1 0x7f0000000040 8
0000 0000000f 0 LDGSTS.E.64 0 8 1 0x0 8
0010 00000000 0 STS.U8 0 1 1 0x0 0

#END_TB

#BEGIN_TB

thread block = 1,1,0

warp = 0
insts = 1
0010 ffffffff 0 STS.U8 0 1 1 0x7f0000000010 1

#END_TB
"""


def test_the_whole_of_a_written_trace(tmp_path: Path) -> None:
    """A copy is a pair of lines, its destination and its source, and its other side is no line of its own."""
    copied = Request(LANES * 8 + 64, 2, partner=np.where(LANES < 4, LANES * 8, -1))
    trace = make_trace(
        (site(space="shared", op="cp_async", width=8), [copied]),
        (site(space="global", op="cp_async", width=8), [Request(LANES * 8)]),
        (site(op="store", width=1), [Request(LANES, active=False), Request(LANES + 16)]),
        launch=Launch((2, 2, 1), (64, 1, 1), 512),
        arrays=(("s", "shared", 128, 512), ("a", "global", 0, 4096)),
        block=np.array([0, 0, 0, 3]),
        warp=np.array([1, 1, 1, 0], np.int32),
    )
    path = tmp_path / "t.traceg"
    write_accelsim(trace, path)
    assert path.read_text() == WRITTEN
    again = Trace.load(path)
    (at,) = [i for i, one in enumerate(again.sites) if one.op == "cp_async" and one.space == "shared"]
    row = again.site == at
    assert again.count[row].tolist() == [2]
    assert again.addresses[row].tolist() == [(LANES * 8 + 64).tolist()]
    assert again.partner[row].tolist() == [np.where(LANES < 4, LANES * 8, -1).tolist()]


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize(
    ("space", "op"),
    [key for key in NAMES if not key[1].startswith("cp_async") and key != ("shared", "reduction")],
)
def test_an_access_of_any_width_comes_back(space: Any, op: str, width: int, tmp_path: Path) -> None:
    trace = make_trace((site(space=space, op=op, width=width), [Request(LANES * width + 0x1000)]))
    write_accelsim(trace, tmp_path / "t.traceg")
    (found,) = Trace.load(tmp_path / "t.traceg").sites
    assert (found.space, found.op, found.width) == (space, op, width)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    unknown = make_trace((site(op="atomic_loop"), [Request(LANES * 4)]))
    with pytest.raises(memsim.MemsimError, match="no instruction for a shared atomic_loop"):
        write_accelsim(unknown, tmp_path / "t.traceg")
    lost = make_trace((site(unresolved="depends on a call"), []))
    with pytest.raises(memsim.MemsimError, match="could not be analyzed"):
        write_accelsim(lost, tmp_path / "t.traceg")
    whole = make_trace((site(), [Request(LANES * 4)]))
    with pytest.raises(memsim.MemsimError, match="Accel-Sim's format"):
        whole.save(tmp_path / "t.txt")
    with pytest.raises(memsim.MemsimError, match="cannot write the trace"):
        whole.save(tmp_path / "none" / "t.traceg")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("change", "message", "line"),
    [
        (("-grid dim = (2,1,1)\n", ""), "no -grid dim", 16),
        (("#BEGIN_TB", ""), "no #BEGIN_TB before", 19),
        (("thread block = 0,0,0", "thread block = 0"), "not a line of an Accel-Sim trace", 19),
        (("warp = 0", "warp = x"), "not a line of an Accel-Sim trace", 21),
        (("LDG.E.SYS 1 R2 4 1 0x", "LDG.E.SYS 1 R2 4 7 0x"), "not a line of an Accel-Sim trace", 24),
        (("LDG.E.SYS 1 R2 4 1 0x", "LDG.E.SYS 9 R2 4 1 0x"), "not a line of an Accel-Sim trace", 24),
        (("-grid dim = (2,1,1)", "-grid dim = (0,1,1)"), "grid must be positive", 17),
        (
            ("-grid dim = (2,1,1)", "-grid dim = (1,1,1)"),
            "a thread block (1,0,0) outside of the grid (1, 1, 1)",
            49,
        ),
        (("shmem base_addr = 0x", "shmem base_addr = no"), "not a line of an Accel-Sim trace", 17),
        (("1 0x7efe7b600000 4", f"1 0x{2**64:x} 4"), "an address is outside of memory", 24),
        (("ffffffff 1 R4 LDG", "1ffffffff 1 R4 LDG"), "not a line of an Accel-Sim trace", 24),
        (("warp = 0", f"warp = {'9' * 5000}"), "not a line of an Accel-Sim trace", 21),
        (("LDS.U 1 R7 4 0 ", "LDS.U 1 R7 4 0 0x0 "), None, 0),
    ],
)
def test_damaged_lines_are_named(
    tmp_path: Path, change: tuple[str, str], message: str | None, line: int | None
) -> None:
    text = ACCELSIM.read_text()
    assert change[0] in text
    path = tmp_path / "t.traceg"
    path.write_text(text.replace(*change, 1))
    if message is None:  # more addresses than lanes: what stands behind them is passed over
        Trace.load(path)
        return
    with pytest.raises(memsim.MemsimError) as caught:
        Trace.load(path)
    assert message in caught.value.message
    assert caught.value.line == line


def test_what_is_compressed_and_damaged_inside(tmp_path: Path) -> None:
    content = bytearray(gzip.compress(ACCELSIM.read_bytes() * 9))
    for at in range(60, len(content) - 60, 7):
        content[at] ^= 0x55
    (tmp_path / "t.traceg.gz").write_bytes(content)
    with pytest.raises(memsim.MemsimError, match=r"damaged or truncated|no text|no line of"):
        Trace.load(tmp_path / "t.traceg.gz")


def test_files_that_are_none(tmp_path: Path) -> None:
    listing = tmp_path / "kernelslist.traceg"
    listing.write_text("kernel-1.traceg\n")
    with pytest.raises(memsim.MemsimError, match="a list of kernels"):
        Trace.load(listing)
    header = ACCELSIM.read_text().partition("thread block")[0]
    for name, text in (("a.traceg", ""), ("a.traceg", "hello\n"), ("a.traceg", header), ("a.txt", "hello\n")):
        (tmp_path / name).write_text(text)
        with pytest.raises(memsim.MemsimError):
            Trace.load(tmp_path / name)
    (tmp_path / "b.txt").write_text(NVBIT.read_text().replace(" 0x00007f0e40000000", " zero", 1))
    with pytest.raises(memsim.MemsimError, match="32 addresses"):
        Trace.load(tmp_path / "b.txt", "scale")
    with pytest.raises(memsim.MemsimError, match="no such file"):
        Trace.load(tmp_path / "c.traceg")
    (tmp_path / "d.traceg").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(memsim.MemsimError, match="not text"):
        Trace.load(tmp_path / "d.traceg")


@pytest.mark.parametrize(
    ("text", "op", "space", "width"),
    [
        ("LDG.E.128.CONSTANT.SYS", "load", "global", 16),
        ("LDG.E.U8", "load", "global", 1),
        ("LDS.S16", "load", "shared", 2),
        ("STS.64", "store", "shared", 8),
        ("LDSM.16.M88.4", "ldmatrix", "shared", 16),
        ("STSM.16.MT88.2", "stmatrix", "shared", 16),
        ("ATOMS.POPC.INC.32", "atomic_inc", "shared", 4),
        ("ATOMS.CAS.64", "atomic_cas", "shared", 8),
        ("ATOMS.CAST.SPIN", "atomic_loop", "shared", 4),
        ("ATOMG.E.ADD.F32.FTZ.RN.STRONG.GPU", "atomic", "global", 4),
        ("RED.E.ADD.F64.RN.STRONG.GPU", "reduction", "global", 8),
        ("RED.E.ADD.F16x2.RN", "reduction", "global", 4),
        ("REDG.E.ADD.F32x4.FTZ.RN.STRONG.GPU", "reduction", "global", 16),
        ("REDG.E.ADD.F16x8.RN.STRONG.GPU", "reduction", "global", 16),
        ("LDGSTS.E.BYPASS.LTC128B.128", "cp_async_cg", "copy", 16),
        ("LDGSTS.E", "cp_async", "copy", 4),
    ],
)
def test_opcodes(text: str, op: str, space: str, width: int) -> None:
    found = read_opcode(text)
    assert isinstance(found, Opcode)
    assert (found.access, found.space, found.width) == (op, space, width)


def test_what_is_no_counted_access() -> None:
    assert read_opcode("LDL.64") == "local memory"
    assert read_opcode("UTMALDG.2D") == "bulk copy"
    assert read_opcode("FFMA") is None


def test_what_is_not_counted_of_an_nvbit_trace_is_named(tmp_path: Path) -> None:
    path, line = tmp_path / "t.txt", next(line for line in NVBIT.read_text().splitlines() if "LDG.E" in line)
    path.write_text(
        "".join(line.replace("LDG.E", name) + "\n" for name in ("TEX.SCR", "QUX", "QUX", "LDG.E"))
    )
    trace = Trace.load(path)
    assert trace.uncounted == {"texture request": 1, "QUX request": 2}
    assert [one.instruction for one in trace.sites] == ["LDG.E"]


def test_a_block_that_the_grid_of_an_nvbit_trace_has_not(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text(NVBIT.read_text().replace("CTA 1,0,0", "CTA 2,0,0", 1))
    with pytest.raises(memsim.MemsimError, match=r"a thread block \(2,0,0\) outside of the grid") as caught:
        Trace.load(path, "scale")
    assert caught.value.file == str(path)
    assert "CTA 2,0,0" in path.read_text().splitlines()[(caught.value.line or 0) - 1]


def test_a_shape_that_is_seen_is_the_one_that_blocks_are_numbered_by(tmp_path: Path) -> None:
    """A trace whose blocks lie outside of its grid could not be read again."""
    line = next(line for line in NVBIT.read_text().splitlines() if "CTA 0,0,0" in line)
    places = [(x, y, z) for z in range(2) for y in range(3) for x in range(2)]
    path, saved = tmp_path / "t.txt", tmp_path / "t.npz"
    path.write_text("".join(line.replace("CTA 0,0,0", f"CTA {x},{y},{z}") + "\n" for x, y, z in places))
    trace = Trace.load(path)
    assert (trace.launch.grid, trace.blocks_replayed) == ((2, 3, 2), 12)
    trace.save(saved)
    assert Trace.load(saved).blocks_replayed == 12


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["t.traceg.gz", "t.txt.xz"])
def test_a_line_without_end_is_not_held(name: str, tmp_path: Path) -> None:
    good = (ACCELSIM if ".traceg" in name else NVBIT).read_text()
    opener = gzip.open if name.endswith(".gz") else lzma.open
    path, launch = tmp_path / name, "0" if ".txt" in name else None
    with opener(path, "wt") as file:
        file.write(good)
    assert Trace.load(path, launch).count.sum()
    with opener(path, "wt") as file:
        file.write(good + "0 " * (16 << 20))
    tracemalloc.start()
    with pytest.raises(memsim.MemsimError, match="1,048,576 characters or more") as caught:
        Trace.load(path, launch)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert caught.value.line == good.count("\n") + 1
    assert most < 16 << 20


def test_requests_are_expanded_with_zeros_where_no_lane_is_active() -> None:
    batch = Batch()
    batch.add_steps(0x80000005, 100, -4)
    batch.add_full(0b110, [7, 9])
    batch.add_steps(0, 5, 5)
    batch.add_full(0, [])
    for addresses in ([1], [1, 2, 3]):
        with pytest.raises(ValueError, match="differ"):
            batch.add_full(0b11, addresses)
    batch.add_full(1 << 31, [8])
    batch.blocks.extend(range(5))
    batch.warps.extend(range(5))
    wanted = [{0: 100, 2: 96, 31: 92}, {1: 7, 2: 9}, {}, {}, {31: 8}]
    found = batch.requests()
    assert found.addresses.tolist() == [[row.get(lane, 0) for lane in range(32)] for row in wanted]
    assert found.active.tolist() == [[lane in row for lane in range(32)] for row in wanted]
    assert found.block.tolist() == found.warp.tolist() == list(range(5))


def test_blocks_are_counted_once() -> None:
    blocks = BlocksSeen((1 << 20, 4, 1))
    numbers = [blocks.add(x, x % 3, 0) for x in [*range(100_000), *range(50_000)]]
    assert numbers[1] == (1 << 20) + 1
    assert len(blocks) == 100_000


@pytest.mark.slow
def test_a_long_trace_takes_no_more_memory_than_a_short_one(tmp_path: Path) -> None:
    """The most that is held at a time, for five times as many of the same requests."""
    body = "".join(f"0010 ffffffff 1 R1 LDG.E 1 R2 4 1 {0x1000 + 4 * i:#x} 4\n" for i in range(1000))
    held = []
    for times in (18, 90):
        path = tmp_path / f"{times}.traceg"
        path.write_text(ONE_WARP + body * times + "#END_TB\n")
        tracemalloc.start()
        trace = Trace.load(path)
        held.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert trace.count.sum() == 1000 * times
    assert held[1] < 1.05 * held[0]


HEAD = (
    "-kernel name = k\n-grid dim = (1,1,1)\n-block dim = (64,1,1)\n-shmem base_addr = 0x7f0000000000\n"
    "-local mem base_addr = 0x7f0002000000\n"
)


def loaded(tmp_path: Path, *lines: str, head: str = HEAD, warp: int = 0) -> Trace:
    path, saved = tmp_path / "t.traceg", tmp_path / "t.npz"
    instructions = "".join(f"0010 {line}\n" for line in lines)
    path.write_text(f"{head}#BEGIN_TB\nthread block = 0,0,0\nwarp = {warp}\n{instructions}#END_TB\n")
    trace = Trace.load(path)
    trace.save(saved)
    assert Trace.load(saved).sites == trace.sites
    return trace


COPY = "LDGSTS.E.BYPASS.128 0 16 1"


@pytest.mark.parametrize("masks", [("00000000", "00000000"), ("00000000", "0000000f"), ("0000000f",) * 2])
def test_a_copy_of_no_lane_takes_nothing_from_the_others(masks: tuple[str, str], tmp_path: Path) -> None:
    whole = f"ffffffff 0 {COPY} 0x7f0000000000 16", f"ffffffff 0 {COPY} 0x1000 16"
    second = f"{masks[0]} 0 {COPY} 0x1000 16", f"{masks[1]} 0 {COPY} 0x7f0000000000 16"
    sites = analyze_trace(loaded(tmp_path, *whole, *second)).sites
    assert [site.unresolved for site in sites] == [None, None]
    outside = next(site for site in sites if site.space == "global")
    assert (outside.sectors, outside.instructions) == (16 + masks[0].count("f") * 2, 2)


@pytest.mark.parametrize(("opcode", "is_counted"), [("LDG.E.128", True), ("LDG.E.ENL2.256", False)])
def test_an_access_of_a_width_without_a_rule_is_not_counted(
    opcode: str, is_counted: bool, tmp_path: Path
) -> None:
    (site,) = analyze_trace(loaded(tmp_path, f"ffffffff 0 {opcode} 0 16 1 0x1000 32")).sites
    assert (site.sectors is not None) == is_counted


@pytest.mark.parametrize(
    ("said", "counted"),
    [
        # the pair rule merges the first and not the second
        ("LDS.64 0 8", [("load", 1)]),
        ("LD.E.64 0 8", [("load_generic", 2)]),
        ("ATOM.E.ADD 0 4", [("atomic", 2)]),
        ("ATOM.E.CAS 0 4", [("atomic_cas", 4)]),
        ("ATOM.E.ADD.F32.FTZ.RN 0 4", [("atomic_generic", None)]),
        ("ATOM.E.CAS.64 0 8", [("atomic_generic", None)]),
    ],
)
def test_generic_accesses_to_shared_memory(
    said: str, counted: list[tuple[str, int | None]], tmp_path: Path
) -> None:
    pairs = " ".join(f"{0x7F0000000000 + lane // 2 * 8:#x}" for lane in range(32))
    sites = analyze_trace(loaded(tmp_path, f"ffffffff 0 {said} 0 {pairs}")).sites
    assert [(site.op, site.wavefronts) for site in sites] == counted


@pytest.mark.parametrize(("said", "unmade"), [("ATOM.E.ADD 0 4", 1), ("ATOM.E.CAS.64 0 8", 4)])
def test_a_generic_atomic_on_global_memory_takes_wavefronts_of_shared_memory(
    said: str, unmade: int, tmp_path: Path
) -> None:
    outside = f"ffffffff 0 {said} 1 0x1000 8"
    analysis = analyze_trace(loaded(tmp_path, outside))
    assert {site.space: site.wavefronts for site in analysis.sites}["shared"] == unmade
    assert len(analyze_trace(loaded(tmp_path, outside.replace("ATOM.", "ATOMG."))).sites) == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ffffffff 0 LDG.E 0 4 1 0x100 -8", None),
        ("ffffffff 0 LDG.E 0 4 1 0x10 -8", "outside of memory"),
        ("ffffffff 0 LDG.E 0 4 1 0x7fffffffffffff00 64", "outside of memory"),
        ("00000003 0 LDG.E 0 4 2 0x10 -32", "outside of memory"),
        ("00000003 0 LDG.E 0 4 0 0x10 -0x10", "outside of memory"),
        (f"00000003 0 LDG.E.{'A' * 200} 0 4 0 0x10 0x20", None),
        (f"00000003 0 LDG.E.{'A' * 300} 0 4 0 0x10 0x20", "not a line"),
        ("00000003 0 \x1b[31mQUX 0 4 0 0x10 0x20", "not a line"),
    ],
)
def test_what_is_read_of_a_line_can_be_saved(line: str, message: str | None, tmp_path: Path) -> None:
    if message is None:
        loaded(tmp_path, line)
        return
    with pytest.raises(memsim.MemsimError, match=message) as caught:
        loaded(tmp_path, line)
    assert caught.value.line == 9


@pytest.mark.parametrize(("warp", "is_there"), [(0, True), (1, True), (2, False), (-1, False)])
def test_a_warp_that_the_block_has_not(warp: int, is_there: bool, tmp_path: Path) -> None:
    load = "ffffffff 0 LDG.E 0 4 1 0x100 4"
    if is_there:
        assert loaded(tmp_path, load, warp=warp).warp.tolist() == [warp]
        return
    with pytest.raises(memsim.MemsimError, match=f"a block of 64 threads has no warp {warp}"):
        loaded(tmp_path, load, warp=warp)


def test_shared_memory_of_a_header_that_no_chip_has(tmp_path: Path) -> None:
    load = "ffffffff 0 LDG.E 0 4 1 0x100 4"
    for said, bytes in (("4096", 4096), ("9" * 30, 0)):
        assert loaded(tmp_path, load, head=f"{HEAD}-shmem = {said}\n").launch.shared_bytes == bytes


@pytest.mark.parametrize(("seen", "most"), [(3, 4), (5, 4)])
def test_the_instructions_of_a_trace_are_limited(
    seen: int, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes memory, and a compressed file names a million of them in a few bytes."""
    monkeypatch.setattr("memsim.trace.foreign.collect.MOST_INSTRUCTIONS", most)
    path = tmp_path / "t.traceg"
    lines = "".join(f"00{number}0 ffffffff 0 LDG.E 0 4 1 0x1000 4\n" for number in range(seen))
    path.write_text(f"{HEAD}#BEGIN_TB\nthread block = 0,0,0\nwarp = 0\n{lines}")
    if seen <= most:
        assert len(Trace.load(path).sites) == seen
        return
    with pytest.raises(memsim.MemsimError, match="more than 4 different instructions"):
        Trace.load(path)


def test_a_header_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "t.traceg"
    path.write_text(
        "".join(f"-k{number} = {'a' * 100_000}\n" for number in range(400)) + ACCELSIM.read_text()
    )
    tracemalloc.start()
    assert rows(Trace.load(path)) == rows(Trace.load(ACCELSIM))
    assert tracemalloc.get_traced_memory()[1] < 30_000_000
    tracemalloc.stop()


def nvbit_lines(number: int, *, numbered: bool = True) -> list[str]:
    """The line that announces a launch, and one request of it."""
    lines = NVBIT.read_text().splitlines()
    announced = next(line for line in lines if f"launch id {number} -" in line)
    request = next(line for line in lines if f"grid_launch_id {number} - CTA" in line and "- ST" in line)
    return [announced, request if numbered else request.replace(f"grid_launch_id {number} - ", "")]


def test_runs_in_one_file_are_not_added_up(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("\n".join(nvbit_lines(0)))
    (once,) = analyze_trace(Trace.load(path)).sites
    assert once.requests == 1
    path.write_text("\n".join(nvbit_lines(0) * 2))
    with pytest.raises(memsim.MemsimError, match="several launches have the number 0"):
        Trace.load(path)


def test_requests_without_a_number_are_those_of_the_only_launch(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("\n".join(nvbit_lines(0, numbered=False) + nvbit_lines(1)[:1]))
    assert Trace.load(path).kernel == "scale(float*, int)"
    path.write_text("\n".join(nvbit_lines(0, numbered=False) + nvbit_lines(1, numbered=False)))
    with pytest.raises(memsim.MemsimError, match="does not tell which of the launches") as caught:
        Trace.load(path)
    assert caught.value.line == 4


def test_a_warp_has_any_place_on_its_multiprocessor(tmp_path: Path) -> None:
    path, saved = tmp_path / "t.txt", tmp_path / "t.npz"
    announced, request = nvbit_lines(0)
    path.write_text(f"{announced}\n{request.replace('warp 0', 'warp 63')}\n")
    Trace.load(path).save(saved)
    assert Trace.load(saved).warp.tolist() == [1]
    path.write_text(f"{request.replace('warp 0', 'warp 63')}\n")
    assert Trace.load(path).launch.block == (1024, 1, 1)


def test_a_line_that_announces_often_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("LAUNCH - Kernel pc x - Kernel name " * 10_000 + "\n" + "\n".join(nvbit_lines(0)))
    started = process_time()
    assert Trace.load(path).kernel == "scale(float*, int)"
    assert process_time() - started < 5  # rather than thirty


def test_the_launches_of_a_file_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.txt"
    path.write_text("\n".join(nvbit_lines(0) + nvbit_lines(1)))
    assert Trace.load(path, "0").kernel == "scale(float*, int)"
    monkeypatch.setattr("memsim.trace.foreign.nvbit.MOST_LAUNCHES", 1)
    with pytest.raises(memsim.MemsimError, match="more than 1 launches"):
        Trace.load(path, "0")
