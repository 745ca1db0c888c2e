"""A saved trace is the same trace again, or an error; never another trace."""

from __future__ import annotations

import dataclasses
import io
import json
import zipfile
from pathlib import Path
from typing import IO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsim.analysis import analyze_trace
from memsim.errors import MemsimError
from memsim.layout import Layout
from memsim.trace import storage
from memsim.trace.footprint import Footprint
from memsim.trace.storage import MOST_HEADER, MOST_INSTRUCTIONS, MOST_ROWS, MOST_SHARED
from memsim.trace.trace import Trace
from memsim.trace.trace_data import ArrayLayout, Origin, Resources, SeenRace
from tests.traces import LANES, Request, make_trace, site, traces

TRACE = make_trace((site(), [Request(LANES * 8, count=7)]), (site(op="store", line=2), [Request(LANES * 4)]))


def same(one: Trace, other: Trace) -> bool:
    """Equal in every field, columns with their types."""
    for field in dataclasses.fields(Trace):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, np.ndarray):
            if a.dtype != b.dtype or not np.array_equal(a, b):
                return False
        elif a != b:
            return False
    return True


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "trace.npz"
    TRACE.save(path)
    return path


@given(trace=traces())
def test_a_loaded_trace_and_its_analysis_are_the_same(
    trace: Trace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "property.npz"
    trace.save(path)
    loaded = Trace.load(path)
    assert same(loaded, trace)
    assert analyze_trace(loaded).to_dict() == analyze_trace(trace).to_dict()


def test_numpy_numbers_in_a_site_are_saved(tmp_path: Path) -> None:
    trace = make_trace((site(instructions=np.int64(5)), [Request(LANES * 4)]))
    trace.save(tmp_path / "t.npz")
    assert Trace.load(tmp_path / "t.npz").sites[0].instructions == 5


LISTING = (
    (0, "S2R R0, SR_TID.X", "kernel.cu", 3),
    (16, "@!P0 LDG.E R2, [R4.64]", "ü/<b>.cuh", 70),
    (32, "EXIT", "", 0),
    (48, "BRA `(.L_x_0)", "kernel.cu", 3),
)


def test_a_listing_is_saved_with_each_file_named_once(tmp_path: Path) -> None:
    trace = dataclasses.replace(TRACE, listing=LISTING)
    trace.save(tmp_path / "t.npz")
    assert same(Trace.load(tmp_path / "t.npz"), trace)
    with np.load(tmp_path / "t.npz") as file:
        header = json.loads(file["header"].tobytes())
    assert (header["format"], header["schema"]) == ("memsim trace", 4)  # what files have that exist
    assert header["listing"]["files"] == ["kernel.cu", "ü/<b>.cuh", ""]


def test_a_damaged_listing_is_an_error(saved: Path, tmp_path: Path) -> None:
    with np.load(saved) as file:
        columns = {name: file[name] for name in file.files}
    header = json.loads(columns.pop("header").tobytes())
    path = tmp_path / "t.npz"
    for damaged in (
        {"files": []},
        {"files": [], "rows": [[0, "EXIT", 5, 0]]},
        {"files": ["a"], "rows": [[0]]},
        7,
    ):
        text = json.dumps(header | {"listing": damaged}).encode()
        path.write_bytes(npz(header=np.frombuffer(text, np.uint8), **columns))
        with pytest.raises(MemsimError, match="damaged"):
            Trace.load(path)


def test_a_file_cut_short_anywhere_is_an_error(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    for end in range(0, len(whole), 97):
        cut = tmp_path / "cut.npz"
        cut.write_bytes(whole[:end])
        with pytest.raises(MemsimError, match="not a complete memsim trace"):
            Trace.load(cut)
    assert same(Trace.load(saved), TRACE)


@given(position=st.integers(0), change=st.integers(1, 255))
def test_a_damaged_byte_is_an_error_or_changes_nothing(
    saved: Path, tmp_path_factory: pytest.TempPathFactory, position: int, change: int
) -> None:
    data = bytearray(saved.read_bytes())
    data[position % len(data)] ^= change
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    path.write_bytes(data)
    try:
        loaded = Trace.load(path)
    except MemsimError:
        return
    assert same(loaded, TRACE)


def npz(**columns: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, **columns)
    return file.getvalue()


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"__global__ void k() {}",
        npy(LANES),
        npy(np.array([{}], object)),
        npz(x=LANES),
        npz(header=LANES),
        npz(header=np.frombuffer(b"[1]", np.uint8)),
        npz(header=np.frombuffer(b'{"format": "other", "schema": 1}', np.uint8)),
    ],
)
def test_another_file_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.npz"
    path.write_bytes(content)
    with pytest.raises(MemsimError, match="not a complete memsim trace") as caught:
        Trace.load(path)
    assert caught.value.file == str(path)


ONE_INSTRUCTION = {"files": ["a"], "rows": [[0, "EXIT", 0, 1]]}


def rewritten(saved: Path, path: Path, **changes: object) -> Path:
    """The saved file with other header fields or columns (None drops a column)."""
    with np.load(saved) as file:
        stored = dict(file)
    header = json.loads(stored["header"].tobytes())
    for name, value in changes.items():
        if name not in stored:
            header[name] = value
        elif value is None:
            del stored[name]
        else:
            stored[name] = np.asarray(value)
    stored["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(path, **stored)
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": 2}, "schema 2"),
        ({"schema": None}, "schema None"),
        ({"count": None}, "no item named 'count.npy'"),
        ({"partner": None}, "no item named 'partner.npy'"),
        ({"executed": None}, "no item named 'executed.npy'"),
        ({"count": np.ones(2, np.int32)}, "column count is int32"),
        ({"addresses": np.zeros((2, 31), np.int64)}, "column addresses"),
        ({"warp": np.zeros(3, np.int32)}, "columns differ in length"),
        ({"site": np.array([0, 2], np.int32)}, "site is out of range"),
        ({"site": np.array([-1, 0], np.int32)}, "site is out of range"),
        ({"count": np.array([1, -1])}, "count is out of range"),
        ({"count": np.array([1, 2**60])}, "count is out of range"),
        ({"partner": np.full((2, 32), -2)}, "partner is out of range"),
        ({"block": np.array([0, 10**9])}, "block is out of range"),
        ({"block": np.array([0, -1])}, "block is out of range"),
        ({"warp": np.array([0, 32], np.int32)}, "warp is out of range"),
        ({"addresses": np.full((2, 32), -128)}, "addresses is out of range"),
        ({"writers": np.array([5000], np.int32)}, "writers is out of range"),
        ({"writers": np.zeros((1, 1), np.int32)}, "column writers"),
        ({"executed": np.array([-1]), "listing": ONE_INSTRUCTION}, "executed is out of range"),
        ({"executed": np.array([1])}, "not one for each instruction"),
        ({"blocks_replayed": 0}, "damaged"),
        ({"blocks_replayed": 10**6}, "more blocks were replayed"),
        ({"arrays": [["tile", "shared", 0, 2**40]]}, "too large"),
        ({"kernel": 3}, "damaged"),
        ({"notes": "text"}, "damaged"),
        ({"sources": {"a": 1}}, "damaged"),
        ({"sites": [{"file": "kernel.cu"}]}, "damaged"),
        ({"launch": {"grid": [1, 1, 1]}}, "damaged"),
        ({"layouts": {"tile": ["(" * 9999, 4]}}, "damaged"),
        ({"layouts": {"tile": [f"(8):({'9' * 5000})", 4]}}, "damaged"),
    ],
)
def test_a_trace_that_does_not_fit_together_is_an_error(
    saved: Path, tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(MemsimError, match=message):
        Trace.load(rewritten(saved, tmp_path / "bad.npz", **changes))
    assert same(Trace.load(rewritten(saved, tmp_path / "good.npz")), TRACE)


def test_a_file_is_not_unpacked_beyond_what_it_may_hold(tmp_path: Path, saved: Path) -> None:
    """3 MB that would be 3 GB: refused before they are unpacked."""
    with np.load(saved) as file:
        stored = dict(file)
    for name, count in (
        ("count", MOST_ROWS + 1),
        ("header", MOST_HEADER + 1),
        ("writers", MOST_SHARED // 4 + 1),
        ("executed", MOST_INSTRUCTIONS + 1),
    ):
        path = tmp_path / f"{name}.npz"
        np.savez_compressed(path, **{**stored, name: np.zeros(count, stored[name].dtype)})
        assert path.stat().st_size < 1_000_000
        with pytest.raises(MemsimError, match=rf"{name} has [\d,]+ (bytes|rows)"):
            Trace.load(path)


def test_a_column_may_be_as_long_as_it_may_be(tmp_path: Path) -> None:
    whole = dataclasses.replace(TRACE, writers=np.full(MOST_SHARED // 4, -1, np.int32))
    whole.save(tmp_path / "t.npz")
    assert same(Trace.load(tmp_path / "t.npz"), whole)


@pytest.mark.parametrize(
    "shape", ["(99999999999999,)", "(-1,)", "(2, 32, 1)", "'x'", "()", "(2,)" + " " * 99999]
)
def test_a_column_whose_own_header_lies_is_an_error(tmp_path: Path, saved: Path, shape: str) -> None:
    path = tmp_path / "lies.npz"
    head = f"{{'descr': '<i8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(path, "w") as new:
        for entry in old.namelist():
            if entry != "count.npy":
                new.writestr(entry, old.read(entry))
        column = b"\x93NUMPY\x02\x00" + len(head).to_bytes(4, "little") + head + bytes(16)
        new.writestr("count.npy", column)
    with pytest.raises(MemsimError, match="not a complete memsim trace"):
        Trace.load(path)


def test_a_missing_file_or_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MemsimError, match="no such file"):
        Trace.load(tmp_path / "none.npz")
    with pytest.raises(MemsimError, match="cannot read"):
        Trace.load(tmp_path)
    with pytest.raises(MemsimError, match="cannot write"):
        TRACE.save(tmp_path / "none" / "trace.npz")


def test_a_failed_save_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(file: IO[bytes], column: np.ndarray, **how: object) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    path = tmp_path / "trace.npz"
    TRACE.save(path)
    before = path.read_bytes()
    monkeypatch.setattr(storage.np.lib.format, "write_array", half)
    with pytest.raises(MemsimError, match="No space left"):
        TRACE.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_file_does_not_say_of_a_site(saved: Path, tmp_path: Path) -> None:
    with np.load(saved) as file:
        sites = json.loads(file["header"].tobytes())["sites"]
    later = ("unresolved", "unresolved_requests", "address", "lanes", "apart")
    short = [{name: value for name, value in one.items() if name not in later} for one in sites]
    for one in Trace.load(rewritten(saved, tmp_path / "t.npz", sites=short)).sites:
        assert [getattr(one, name) for name in later] == [None, 0, -1, 0, False]


def test_all_that_is_said_of_a_launch_is_saved(tmp_path: Path) -> None:
    said = dataclasses.replace(
        TRACE,
        layouts={"a": ArrayLayout(Layout.parse("(4,8):(8,1)"), 2)},
        origin=Origin("machine code", "sm_90", "NVRTC", "ab", ("lines",), (("k.cubin", "cd"),), ("k.cu",)),
        uncertain=("why",),
        resources=Resources(32, 1024, 2),
        blocks_alike=True,
        footprint=Footprint(3, 4),
        races=(SeenRace("k.cu", 3, "s", "both", ("s[t] = t;", "o = s[t];"), "s[0]", ("stores", "loads")),),
        listing=LISTING,
        executed=np.array([1, 2, 0, 5]),
        writers=np.array([-1, 0, 31], np.int32),
    )
    said.save(tmp_path / "t.npz")
    assert same(Trace.load(tmp_path / "t.npz"), said)


def test_a_damaged_column_is_an_error(saved: Path, tmp_path: Path) -> None:
    """One that is shorter than it says, and truths that are neither."""
    for name, change, message in (
        ("count", lambda content: content[:-1], "count is truncated"),
        ("active", lambda content: content[:-1] + b"\2", "active is not true or false"),
        ("active", lambda content: content[:-1] + b"\1", None),
    ):
        path = tmp_path / "t.npz"
        with zipfile.ZipFile(saved) as old, zipfile.ZipFile(path, "w") as new:
            for entry in old.namelist():
                content = old.read(entry)
                new.writestr(entry, change(content) if entry == f"{name}.npy" else content)
        if message is None:
            assert same(Trace.load(path), TRACE)
            continue
        with pytest.raises(MemsimError, match=message):
            Trace.load(path)


def test_a_trace_in_words() -> None:
    assert repr(TRACE) == "<Trace of kernel: 2 sites, 2 distinct requests, 2 of 2 blocks>"
    ends = dataclasses.replace(
        TRACE, arrays=(("a", "global", 0, 99), ("s", "shared", 8, 16), ("t", "shared", 0, 4))
    )
    assert (TRACE.shared_end, ends.shared_end) == (0, 24)
    for uncounted, text in (
        ({}, ""),
        ({"texture request": 1}, "1 texture request is not counted"),
        ({"texture request": 1200}, "1,200 texture requests are not counted"),
        ({"a": 1, "b": 2}, "1 a and 2 bs are not counted"),
        ({"a": 1, "b": 1}, "1 a and 1 b are not counted"),
    ):
        assert dataclasses.replace(TRACE, uncounted=uncounted).not_counted == text


def test_an_origin_and_a_race_in_words() -> None:
    made = Origin("machine code", "sm_90", "NVRTC 12", "", files=(("k.cubin", "ab"), ("k.cu", "cd")))
    assert str(made) == "machine code of sm_90, made by NVRTC 12" and made.doubt == ""
    assert str(Origin("index math in Python", "", "", "")) == "index math in Python"
    for newer, text in ((("k.cu",), "k.cu is"), (("k.cu", "k.cuh"), "k.cu, k.cuh are")):
        doubt = dataclasses.replace(made, newer=newer).doubt
        assert doubt == f"{text} newer than k.cubin, which may be out of date"
    race = SeenRace("k.cu", 3, "s", "", ("s[t] = t;", "o = s[t];"), does=("stores", "loads"))
    assert race.key == "s: s[t] = t; / o = s[t];"
    does = ("loads", "stores"), ("copies from", "multiplies"), ("", "copies to")
    assert race.takes == (False, True)
    assert [dataclasses.replace(race, does=one).takes for one in does] == [
        (True, False),
        (True, True),
        (False, False),
    ]


def test_whether_requests_were_kept_apart_is_saved(tmp_path: Path) -> None:
    for apart in (True, False):
        make_trace((site(), [Request(LANES * 4)]), apart=apart).save(tmp_path / "t.npz")
        assert Trace.load(tmp_path / "t.npz").apart is apart
