"""docs/tuning.md, every size: the recording is of what `sgemm` picks now, and so are the bounds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memsim.kernels import Dispatcher, catalog, compiled
from memsim.kernels.shipped import digest
from studies.bench.recording import CUBLAS, BenchRecording, Rest
from studies.bench.table import speed_of
from studies.sizes import CUBES, DISPATCHER, FOLDER, SIZES, bounds, page

SMALL = (512, 512, 512)


def recorded() -> BenchRecording:
    (found,) = page.recordings()
    return found


def test_every_size_was_recorded_with_what_is_picked_now() -> None:
    recording = recorded()
    assert recording.sizes == SIZES and recording.device.gpu == "NVIDIA H200"
    picked = {timing.size: timing for timing in recording.timings if timing.kernel != CUBLAS}
    for size in SIZES:
        sgemm = catalog()[DISPATCHER]
        assert isinstance(sgemm, Dispatcher)
        first, *others = sgemm.pieces(size)
        assert (picked[size].kernel, picked[size].parts) == (first.spec.name, first.parts)
        rest = [Rest(piece.spec.name, piece.size[0], piece.parts) for piece in others]
        assert rest == [picked[size].rest] * len(rest) and bool(rest) == bool(picked[size].rest)
    assert {name: code.ptx for name, code in recording.kernels.items()} == {
        name: digest(compiled()[name].ptx()) for name in recording.kernels
    }


def test_it_was_as_fast_as_cublas_at_every_cube() -> None:
    shares = {timing.size: speed_of(timing).of_cublas for timing in recorded().timings}
    assert min(shares[size] for size in CUBES) >= 1.0


def test_the_bounds_are_of_what_was_recorded() -> None:
    kept = bounds.kept()
    assert set(kept) == set(SIZES)
    for size, limits in kept.items():
        launched = [spec for spec, _ in bounds.launches(size)]
        assert [limit.kernel for limit in limits] == [spec.name for spec in launched]
        assert [limit.ptx for limit in limits] == [digest(spec.ptx()) for spec in launched]
    assert kept[SMALL] == bounds.limits_of(SMALL)


def test_nothing_was_faster_than_its_bound() -> None:
    recording = recorded()
    for timing in recording.timings:
        if timing.kernel != CUBLAS:
            least = page.microseconds(recording, bounds.kept()[timing.size])
            assert min(timing.times_ms) * 1000 > least


def test_the_page_has_a_row_for_each_size_and_says_where_it_falls_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [line for line in page.table().splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + len(SIZES) and rows[1].startswith("| 512 x 512 x 512 | `tile_32x32x32` |  | ")
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
    monkeypatch.setattr(page, "recordings", lambda: [slow])
    first, second = page.shortfall().splitlines()
    assert "at 0 of 1 sizes" in first and second.startswith("- 512 cubed: ") and "It is bound by " in second


def test_the_newest_recording_of_a_gpu_is_shown(tmp_path: Path) -> None:
    old = recorded()
    replace(old, date="2020-01-01T00:00:00Z").save(tmp_path, FOLDER)
    old.save(tmp_path, FOLDER)
    assert [recording.date for recording in page.recordings(tmp_path)] == [old.date]
