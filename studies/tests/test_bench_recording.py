"""Recordings of speed: whole, as their schema says, never written over; and what their times say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsim.errors import MemsimError
from memsim.kernels import catalog
from studies.bench.plan import part_of
from studies.bench.recording import (
    CUBLAS,
    BenchRecording,
    Timing,
    bench_paths,
    load_bench,
    newest_bench,
    newest_of_each_gpu,
)
from studies.bench.table import Row, analyze_kernels, make_rows, unchanged, wavefronts_per_kflop
from studies.tests.benches import LARGE, SMALL, made_up
from tests.schema import changed
from tests.validate.conftest import TRACES


@pytest.mark.parametrize("path", bench_paths(TRACES), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_recording_that_ships_is_whole(path: Path) -> None:
    text = path.read_text("utf-8")
    recording = load_bench(path)
    assert (
        json.loads(json.dumps(recording.to_dict())) == json.loads(text)
        and path.parent.name == recording.device.slug
    )


def test_a_file_holds_what_was_saved_and_nothing_is_written_over(tmp_path: Path) -> None:
    recording = made_up()
    first, second = recording.save(tmp_path), recording.save(tmp_path)
    home = tmp_path / "made-up-gpu"
    assert [first, second] == [home / "bench.json", home / "bench.run2.json"]
    assert load_bench(first) == load_bench(second) == recording
    before = first.read_bytes()
    third = replace(recording, date="2030-01-01T00:00:00Z").save(tmp_path)
    assert third.name == "bench.run3.json" and first.read_bytes() == before
    assert sorted(home.iterdir()) == [first, second, third]


GOOD = made_up().to_dict()


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (changed(GOOD, "schema", value=2), "schema 2; this memsim reads schema 1"),
        ([], "schema None"),
        (changed(GOOD, "cublas"), "missing required field `cublas`"),
        (changed(GOOD, "cublas", value=130002), "Expected `str`, got `int`.*cublas"),
        (changed(GOOD, "date", value="yesterday"), "matching regex .*date"),
        (changed(GOOD, "max_clock_mhz", value=0), ">= 1.*max_clock_mhz"),
        (changed(GOOD, "device", "driver"), "missing required field `driver`"),
        (changed(GOOD, "kernels", "kernel_v4", "ptx", value="abc"), "matching regex .*ptx"),
        (changed(GOOD, "kernels", "kernel_v4", "sources", value={}), "length >= 1.*sources"),
        (changed(GOOD, "kernels", "kernel_v4"), "no code of kernel_v4"),
        (changed(GOOD, "timings", 0, "times_ms", value=[]), "length >= 1.*times_ms"),
        (changed(GOOD, "timings", 0, "times_ms", value=[1.0, 0]), r"> 0.*times_ms\[1\]"),
        (changed(GOOD, "timings", 0, "size", value=[64, 64]), "length 3.*size"),
        (changed(GOOD, "timings", 0), r"no time of cuBLAS beside guide_v2 at \(1000, 1000, 1000\)"),
        (changed(GOOD, "timings", 1, "beside_ms", value=[]), "no time of cuBLAS beside guide_v2 at"),
        (changed(GOOD, "timings", 1, "kernel", value="kernel_v4"), "a kernel twice at one size"),
        (changed(GOOD, "surprise", value=1), "unknown field `surprise`"),
    ],
)
def test_what_is_no_recording(record: Any, says: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(record))
    with pytest.raises(MemsimError, match=says) as caught:
        load_bench(path)
    assert caught.value.file == str(path) and caught.value.exit_code == 2


def test_the_good_twin_of_all_these() -> None:
    assert BenchRecording.from_dict(changed(GOOD, "seed", value=0)) == made_up()


def test_the_newest_is_taken_by_date(tmp_path: Path) -> None:
    old, new = made_up(), made_up(date="2030-01-01T00:00:00Z")
    other = made_up(gpu="Another", date="2029-01-01T00:00:00Z")
    for recording in (new, old, other):
        recording.save(tmp_path)
    assert newest_bench(tmp_path) == newest_bench(tmp_path, "made-up-gpu") == new
    assert newest_of_each_gpu(tmp_path) == [other, new]
    with pytest.raises(MemsimError, match="no recording of the bench on nvidia-a100") as caught:
        newest_bench(tmp_path, "nvidia-a100")
    assert caught.value.hint == "there are: another, made-up-gpu"


def rows_of(recording: BenchRecording, wavefronts: int | None = 6_442_451) -> dict[str, Row]:
    """Rows with analyses of two accesses to shared memory each, the second of so many wavefronts."""
    sites = [
        SimpleNamespace(space="shared", wavefronts=3),
        SimpleNamespace(space="shared", wavefronts=wavefronts),
        SimpleNamespace(space="global", wavefronts=None),
    ]
    analyses: Any = {name: SimpleNamespace(sites=sites) for name in unchanged(recording)}
    return {row.kernel: row for row in make_rows(recording, analyses)}


def test_what_the_times_say() -> None:
    rows = rows_of(made_up())
    assert list(rows) == [CUBLAS, "kernel_v4", "guide_v2"]  # the fastest first
    small, large = rows["kernel_v4"].speeds
    assert (small.size, small.launches, small.median_ms, small.of_cublas) == (SMALL, 5, 2.0, 0.5)
    assert small.tflops == pytest.approx(1.0, rel=1e-12)  # 2 * 1000^3 FLOP in 2 ms
    assert (large.size, large.median_ms, large.of_cublas) == (LARGE, 16.0, 0.5)
    assert small.spread == 0.0  # the middle three of five are equal
    assert rows["guide_v2"].speeds[0].spread is None and rows["guide_v2"].speeds[0].of_cublas == 0.1
    assert (rows[CUBLAS].wavefronts, rows[CUBLAS].changed) == (None, False)
    assert rows["kernel_v4"].at((8, 8, 8)) is None


def test_wavefronts_per_flop() -> None:
    assert rows_of(made_up())["kernel_v4"].wavefronts == 6_442_454 / 2_147_483.648
    assert rows_of(made_up(), wavefronts=None)["kernel_v4"].wavefronts is None
    real = analyze_kernels(["kernel_v4", "guide_v2"], None, jobs=1)
    # docs/catalog.md and the README: 6,815,744 wavefronts; guide_v2 has no shared memory
    assert [wavefronts_per_kflop(one) for one in real.values()] == [6_815_744 / 2_147_483.648, 0.0]


def test_wavefronts_a_flop_hardly_depend_on_the_size() -> None:
    spec = catalog()["opt_4_tile1d"]
    per_flop = [
        sum(site.wavefronts or 0 for site in spec.analyze((size,) * 3).sites) / size**3
        for size in (1024, 2048)
    ]
    assert per_flop[1] == pytest.approx(per_flop[0], rel=0.01)


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=60), st.floats(0.5, 2.0))
def test_ratio_and_spread_do_not_depend_on_the_unit(times: list[float], factor: float) -> None:
    def speed(scale: float) -> Any:
        timings = (
            Timing(CUBLAS, SMALL, (scale,)),
            Timing("kernel_v4", SMALL, tuple(scale * time for time in times), (scale,)),
        )
        return rows_of(replace(made_up(), timings=timings))["kernel_v4"].speeds[0]

    one, other = speed(1.0), speed(factor)
    assert min(times) <= one.median_ms <= max(times)
    assert one.of_cublas == pytest.approx(1 / one.median_ms)
    assert other.of_cublas == pytest.approx(one.of_cublas)
    assert one.spread == pytest.approx(other.spread, abs=1e-9)
    assert 0 <= one.spread <= (max(times) - min(times)) / one.median_ms + 1e-9


def test_a_kernel_that_has_changed_has_no_prediction() -> None:
    recording = made_up()
    gone = replace(recording.kernels["kernel_v4"], ptx="0" * 64)
    kernels = {"guide_v2": recording.kernels["guide_v2"], "kernel_v4": gone}
    rows = rows_of(replace(recording, kernels=kernels))
    assert (rows["kernel_v4"].changed, rows["kernel_v4"].wavefronts) == (True, None)
    assert not rows["guide_v2"].changed and rows["guide_v2"].wavefronts
    timings = tuple(replace(t, kernel=t.kernel.replace("kernel_v4", "kernel_v0")) for t in recording.timings)
    unknown = replace(recording, timings=timings, kernels={**kernels, "kernel_v0": gone})
    assert rows_of(unknown)["kernel_v0"].changed


def test_a_part_of_a_recording() -> None:
    recording = made_up()
    assert part_of(recording, [], []) == recording
    part = part_of(recording, ["kernel_v4"], [LARGE])
    assert [(t.kernel, t.size) for t in part.timings] == [(CUBLAS, LARGE), ("kernel_v4", LARGE)]
    assert list(part.kernels) == ["kernel_v4"]
    assert list(part_of(recording, [], [SMALL]).kernels) == ["guide_v2", "kernel_v4"]
    for names, sizes, says in (
        (["kernel_v5"], [], "no time of kernel_v5 at 1000,1000,1000"),
        ([], [(8, 8, 8)], "no time of cuBLAS at 8,8,8"),
        ([], [SMALL, (8, 8, 8)], "no time of cuBLAS at 8,8,8"),
        (["kernel_v44"], [], "there is no kernel 'kernel_v44'"),
    ):
        with pytest.raises(MemsimError, match=says):
            part_of(recording, names, sizes)
