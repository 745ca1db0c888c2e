"""docs/tuning.md, every size: the recording is of what `sgemm` picks now, and so are the bounds."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from pathlib import Path

import pytest

from memsim.kernels import catalog
from memsim.kernels.shipped import digest
from studies.bench.recording import CUBLAS, BenchRecording, Rest
from studies.bench.table import speed_of
from studies.dispatch import dispatchers
from studies.kernel_ptx import ptx_of
from studies.sizes import (
    CUBES,
    DISPATCHER,
    FOLDER,
    GPU,
    HELD_OUT,
    LARGEST,
    MOST_PRODUCTS,
    SEEN,
    SIZES,
    SMALLEST,
    bounds,
    page,
    random_sizes,
)
from studies.sizes.recordings import recordings, slower, timings_at

SMALL = (512, 512, 512)
EVERY = (*SIZES, *SEEN, *HELD_OUT)


def recorded() -> BenchRecording:
    (found,) = (recording for recording in recordings() if recording.device.gpu == GPU)
    return found


@pytest.mark.some(1)
@pytest.mark.parametrize("recording", recordings(), ids=lambda recording: recording.device.slug)
def test_every_size_was_recorded_with_what_is_picked_now(recording: BenchRecording) -> None:
    assert recording.sizes == EVERY
    picked = {timing.size: timing for timing in recording.timings if timing.kernel != CUBLAS}
    for size in EVERY:
        first, *others = dispatchers()[DISPATCHER].pieces(size)
        assert (picked[size].kernel, picked[size].parts) == (first.spec.name, first.parts)
        rest = [Rest(piece.spec.name, piece.size[0], piece.parts) for piece in others]
        assert rest == [picked[size].rest] * len(rest) and bool(rest) == bool(picked[size].rest)
    assert {name: code.ptx for name, code in recording.kernels.items()} == {
        name: digest(ptx_of(catalog()[name])) for name in recording.kernels
    }


def test_it_was_as_fast_as_cublas_at_every_cube() -> None:
    shares = {timing.size: speed_of(timing).of_cublas for timing in recorded().timings}
    assert min(shares[size] for size in CUBES) >= 1.0


@pytest.mark.slow
def test_the_bounds_are_of_what_was_recorded() -> None:
    kept = bounds.kept()
    assert list(kept) == bounds.needed()
    for size, limits in kept.items():
        assert [(limit.kernel, limit.ptx, limit.grid) for limit in limits] == bounds.launched(size)
    assert kept[SMALL] == bounds.limits_of(SMALL)


@pytest.mark.parametrize("recording", recordings(), ids=lambda recording: recording.device.slug)
def test_nothing_was_faster_than_its_bound(recording: BenchRecording) -> None:
    kept = bounds.kept()
    for timing in timings_at(recording, kept):
        assert min(timing.times_ms) * 1000 > page.microseconds(recording, kept[timing.size])


def test_random_sizes_are_the_same_each_time_and_of_every_kind() -> None:
    assert random_sizes(14) == SEEN and random_sizes(14, 3) == SEEN[:3]
    assert len({*SEEN, *HELD_OUT} - {*SIZES}) == 80
    for sizes in (SEEN, HELD_OUT):
        assert all(SMALLEST <= n <= LARGEST and n % 2 for size in sizes[::2] for n in size)
        assert all(prod(size) <= MOST_PRODUCTS for size in sizes)
        assert all(n % 128 == 0 for size in sizes[5::8] for n in size)


def test_the_page_has_a_row_for_each_size_and_says_where_it_falls_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [line for line in page.every_size().splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + len(SIZES) and rows[1].startswith("| 512 x 512 x 512 | `tile_32x64x32` |  | ")
    recording = recorded()
    fast, slow = (
        replace(
            recording,
            timings=(replace(recording.timings[0]), replace(recording.timings[1], times_ms=(time,))),
        )
        for time in (1e-6, 1.0)
    )
    monkeypatch.setattr(page, "recordings", lambda: [fast])
    assert page.shortfall() == "On NVIDIA H200 it is at least as fast as cuBLAS at 1 of 1 sizes.\n"
    assert not slower(fast, SIZES) and [timing.size for timing in slower(slow, SIZES)] == [SMALL]
    monkeypatch.setattr(page, "recordings", lambda: [slow])
    first, second = page.shortfall().splitlines()
    assert "at 0 of 1 sizes" in first and second.startswith("- 512 cubed: ") and "It is bound by " in second


def test_the_newest_recording_of_a_gpu_is_shown(tmp_path: Path) -> None:
    old = recorded()
    replace(old, date="2020-01-01T00:00:00Z").save(tmp_path, FOLDER)
    old.save(tmp_path, FOLDER)
    assert [recording.date for recording in recordings(tmp_path)] == [old.date]


def test_the_page_counts_how_many_of_each_set_are_how_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = recorded()
    monkeypatch.setattr(page, "recordings", lambda: [recording])
    rows = [line.split(" | ") for line in page.beyond().splitlines() if line.startswith("| NVIDIA")]
    assert [int(row[2]) for row in rows] == [len(SIZES), len(SEEN), len(HELD_OUT)]
    for row, sizes in zip(rows, (SIZES, SEEN, HELD_OUT), strict=True):
        assert int(row[3]) == len(sizes) - len(slower(recording, sizes)) <= int(row[4]) <= int(row[5])
