"""The section on the speed of the kernels: none without a recording, and all that a recording says with one.

What is shown here is made up, in a folder of the test's own.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from docs import generate
from studies.bench import page as speed
from studies.bench.recording import CUBLAS
from studies.bench.table import PREDICTED_AT
from studies.counted import shipped
from studies.tests.benches import made_up

PAGE = "Before.\n\n<!-- begin generated: speed of the kernels -->\n<!-- end generated -->\n"


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(speed, "TRACES", tmp_path)
    return tmp_path


def test_without_a_recording_there_is_no_section(traces: Path) -> None:
    assert speed.section() == "" and generate.filled(PAGE) == PAGE


def test_every_gpu_has_its_table_and_its_picture(traces: Path) -> None:
    made_up(date="2020-01-01T00:00:00Z").save(traces)
    made_up().save(traces)
    made_up(gpu="Another").save(traces)
    text = speed.section()
    assert text.startswith("## How fast the kernels are\n") and text.endswith("\n")
    assert re.findall(r"^### (.*)$", text, re.MULTILINE) == ["Another", "Made Up GPU"]
    assert re.findall(r"\(pictures/(.*)\.png\)", text) == ["speed_another", "speed_made_up_gpu"]
    assert "2026-11-20T00:00:00Z" in text and "2020" not in text and "Changed" not in text
    assert [line for line in text.splitlines() if line.startswith("|")][:5] == [
        "| kernel | wavefronts per 1000 FLOP | 1000 cubed | 2000 cubed |",
        "|---|---:|---:|---:|",
        "| cuBLAS | - | 2.0 (100.0 %) | 2.0 (100.0 %) |",
        "| `kernel_v4` | 3.17 | 1.0 (50 %) | 1.0 (50 %) |",
        "| `guide_v2` | 0.00 | 0.2 (10 %) | 0.2 (10 %) |",
    ]
    assert generate.filled(PAGE) == PAGE.replace("-->\n<!-- end", f"-->\n{text}<!-- end")


def test_a_kernel_that_has_changed_is_named(traces: Path) -> None:
    old = made_up()
    kernels = {**old.kernels, "kernel_v4": replace(old.kernels["kernel_v4"], ptx="0" * 64)}
    replace(old, kernels=kernels).save(traces)
    text = speed.section()
    assert "Changed since the recording: kernel_v4." in text
    assert "| `kernel_v4` | - | 1.0 (50 %) | 1.0 (50 %) |" in text


def test_the_predictions_are_those_of_the_catalogue_at_the_size_that_is_said() -> None:
    for name in ("kernel_v4", "guide_v2"):
        launch = shipped().analysis(name).trace.launch
        assert launch == shipped().at(PREDICTED_AT).analysis(name).trace.launch


def test_the_picture_shows_the_numbers() -> None:
    recording = made_up()
    figure = speed.draw(recording)
    (axes,) = figure.axes
    points = [sorted(map(tuple, dots.get_offsets().tolist())) for dots in axes.collections]
    v4 = 6_815_744 / 2_147_483.648
    assert points == [[(speed.NONE_AT, pytest.approx(0.2)), (pytest.approx(v4), pytest.approx(1.0))]] * 2
    assert [text.get_text() for text in axes.texts] == [f"{CUBLAS} (dashed)", "kernel_v4", "guide_v2"]
    # 100 multiprocessors at 1 GHz serve 10^11 wavefronts a second
    assert speed.wavefronts_per_second(recording) == 1e11
    entries = [text.get_text() for text in axes.get_legend().get_texts()]
    assert entries == ["1000 cubed", "2000 cubed"]  # 30 TFLOP/s at 3.17: nobody is near the limit
    fast = replace(recording, max_clock_mhz=100)
    (limit,) = [
        line for line in speed.draw(fast).axes[0].lines if line.get_label() == "one wavefront a cycle"
    ]
    assert all(x * y == pytest.approx(10.0) for x, y in limit.get_xydata())


def test_other_numbers_are_another_picture() -> None:
    recording = made_up()
    one = speed.numbers(recording)
    assert one == speed.numbers(made_up(date="2030-01-01T00:00:00Z"))
    slower = replace(recording.timings[1], times_ms=(11.0,))
    assert one != speed.numbers(
        replace(recording, timings=(recording.timings[0], slower, *recording.timings[2:]))
    )
    assert "the fastest at 2000 cubed is kernel_v4" in speed.alt(recording)
