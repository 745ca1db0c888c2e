"""`memsim validate`: comparisons, recordings, and exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from memsim.kernels import Spec
from memsim.report import validation
from memsim.validate import gaps
from memsim.validate.recording import Recording, load_recording
from memsim.validate.replay import replay
from memsim.validate.shelf import new_path
from tests.cli.conftest import Done
from tests.validate.conftest import H100, recorded

Run = Callable[..., Done]
DEFAULT = (1024, 1024, 1024)


def shelf(folder: Path, *recordings: Recording) -> Path:
    for recording in recordings:
        recording.save(new_path(folder, recording, DEFAULT))
    return folder


def test_the_newest_recording(memsim: Run) -> None:
    done = memsim("validate", "kernel_v4", "--gpu", H100)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert (
        lines[0]
        == "kernel_v4 1024,1024,1024 on NVIDIA H100 80GB HBM3: as predicted (63 exact, 2 arbitration)"
    )
    assert lines[2].split()[:3] == ["where", "figure", "of"]
    row = next(line.split() for line in lines if "kernel_v4.cu:53 shared load" in line)
    assert row[3:] == ["inst_executed", "524,288", "524,288", "exact"]
    assert any(line.startswith("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum ") for line in lines)
    assert lines[-1].startswith("Result: right; largest error 7.26e-05")


def test_whose_ideal_it_is_is_said_where_one_is_shown(memsim: Run) -> None:
    done = memsim("validate", "kernel_v4", "--gpu", H100)
    lines = done.out.splitlines()
    (said,) = (number for number, line in enumerate(lines) if "The ideal of memsim analyze" in line)
    assert "memory_l1_tag_requests_global" in lines[said - 1]  # the table's last row
    assert lines[said + 1] == ""
    assert "_ideal" in "".join(lines[:said])

    found = replay(recorded("kernel_v4"))
    lines_without = tuple(
        replace(line, figures=tuple(figure for figure in line.figures if "ideal" not in figure.metric))
        for line in found.lines
    )
    stream = StringIO()
    validation.write(replace(found, lines=lines_without), gaps.judge(found, []), stream)
    assert "memory_l1_wavefronts_shared " in stream.getvalue()
    assert "ideal" not in stream.getvalue()


def test_a_size_and_its_known_differences(memsim: Run) -> None:
    done = memsim("validate", "kernel_v4", "--size", "ragged", "--gpu", H100)
    assert done.code == 0
    assert "as predicted, but for 4 known differences" in done.out
    assert "Known: edge.cuh:25 global store: The four stores at an edge" in done.out
    assert memsim("validate", "kernel_v4", "--size", "331,269,147", "--gpu", H100).out == done.out


def test_json(memsim: Run) -> None:
    record = json.loads(memsim("validate", "kernel_v4", "--json", "--gpu", H100).out)
    assert record["passed"] and record["kernel"] == "kernel_v4" and record["device"]["driver"] == "580.159.04"
    assert {figure["verdict"] for figure in record["totals"]} == {"exact", "arbitration"}
    (line,) = (line for line in record["lines"] if line["where"] == "kernels/kernel_v4.cu:53 shared load")
    assert line["hardware_wavefronts"] == 1_048_576
    assert line["figures"][0] == {
        **{"metric": "inst_executed", "predicted": 524_288, "compiled": 524_288, "measured": 524_288},
        **{"arbitration": 0, "verdict": "exact"},
    }


def test_a_difference_fails(memsim: Run, tmp_path: Path) -> None:
    recording = recorded("kernel_v4")
    profile = recording.profiles[0]
    rows = (replace(profile.rows[0], counts=(1, 32, None, None, 1, 1, 1)), *profile.rows[1:])
    wrong = replace(recording, profiles=(replace(profile, rows=rows), *recording.profiles[1:]))
    done = memsim("validate", "kernel_v4", "--traces", shelf(tmp_path, wrong))
    assert done.code == 1
    assert "different from the prediction: kernels/" in done.out.splitlines()[0]
    good = memsim("validate", "kernel_v4", "--traces", shelf(tmp_path / "good", recording))
    assert good.code == 0


def test_a_changed_counter_fails(memsim: Run, tmp_path: Path) -> None:
    metric = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
    recording = recorded("transpose_xor")
    assert recording.counter(metric) == 131_072
    (first, *others) = recording.profiles
    counters = {**first.counters, metric: replace(first.counters[metric], value=131_073)}
    wrong = replace(recording, profiles=(replace(first, counters=counters), *others))
    done = memsim("validate", "transpose_xor", "--traces", shelf(tmp_path, wrong))
    assert done.code == 1
    assert done.out.splitlines()[0].startswith(
        f"transpose_xor 1024,1024 on NVIDIA H100 80GB HBM3: different from the prediction: {metric} ("
    )
    (row,) = (line.split() for line in done.out.splitlines() if line.startswith(metric))
    assert row[1:3] == ["131,072", "131,073"] and row[-1] == "difference"
    assert memsim("validate", "transpose_xor", "--traces", shelf(tmp_path / "good", recording)).code == 0


def test_a_known_difference_that_is_gone_fails(memsim: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("validate", "kernel_v4", "--gpu", H100)
    assert memsim(*arguments).code == 0
    stale = gaps.Gap(("kernel_v4",), (), ("kernels/kernel_v4.cu:53 shared load",), "merged", "because")
    monkeypatch.setattr(gaps, "read_gaps", lambda path: [stale])
    done = memsim(*arguments)
    assert done.code == 1
    assert ": a known difference is gone: kernels/kernel_v4.cu:53 shared load (" in done.out.splitlines()[0]


def test_everything(memsim: Run, tmp_path: Path) -> None:
    folder = shelf(
        tmp_path, recorded("transpose_xor"), recorded("kernel_v4"), recorded("kernel_v4", ragged=True)
    )
    done = memsim("validate", "--all", "--traces", folder)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1].startswith("3 of 3 launches as predicted or with known differences: ")
    assert len(memsim("validate", "--all", "--size", "ragged", "--traces", folder).out.splitlines()) == 2
    assert len(json.loads(memsim("validate", "--all", "--json", "--traces", folder).out)) == 3
    changed = replace(recorded("kernel_v4"), ptx="0" * 64, date="2030-01-01T00:00:00Z")
    done = memsim("validate", "--all", "--traces", shelf(folder, changed))
    assert done.code == 2 and "kernel_v4 has changed since it was recorded" in done.err
    assert done.out.splitlines()[-1].startswith("2 of 2 launches")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "name one kernel, or give --all"),
        (("kernel_v4", "--all"), "name one kernel, or give --all"),
        (("kernel_v4", "--record"), "--record makes no sense without --live"),
        (("kernel_v4", "--live", "--gpu", "x"), "--gpu chooses among recordings"),
        (("kernel_v4", "--gpu", "nvidia-a100"), "no recording of kernel_v4 at 1024,1024,1024 on nvidia-a100"),
        (("kernel_v4", "--size", "8,8,8"), "no recording of kernel_v4 at 8,8,8"),
        (("kernel_v4", "--size", "8,8"), "takes a size M,N,K"),
        (("kernel_v44",), "did you mean"),
        (("--all", "--gpu", "nvidia-a100"), "there is no recording in"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], says: str, memsim: Run) -> None:
    done = memsim("validate", *arguments)
    assert (done.code, done.out) == (2, "")
    assert says in done.err


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A machine that measures what was recorded."""
    settings: dict[str, Any] = {"right": True, "launches": []}

    def measure(launches: Sequence[tuple[Spec, tuple[int, ...]]], progress: Any) -> list[Recording]:
        settings["launches"] = [(spec.name, size) for spec, size in launches]
        found = [recorded(spec.name, size != DEFAULT[: len(size)]) for spec, size in launches]
        return [replace(one, result=replace(one.result, right=settings["right"])) for one in found]

    from memsim.cli import validate

    monkeypatch.setattr(validate, "measure", measure)
    return settings


def test_live_and_record(memsim: Run, measured: dict[str, Any], tmp_path: Path) -> None:
    assert memsim("validate", "kernel_v4", "--live", "--traces", tmp_path).code == 0
    assert not list(tmp_path.iterdir())  # without --record, nothing is kept
    first = memsim("validate", "kernel_v4", "--live", "--record", "--traces", tmp_path)
    second = memsim("validate", "kernel_v4", "--live", "--record", "--traces", tmp_path)
    home = tmp_path / H100
    assert first.err == f"recorded: {home / 'kernel_v4.json'}\n"
    assert second.err == f"recorded: {home / 'kernel_v4.run2.json'}\n"
    assert load_recording(home / "kernel_v4.run2.json") == recorded("kernel_v4")
    memsim("validate", "kernel_v4", "--live", "--record", "--size", "ragged", "--traces", tmp_path)
    assert (home / "kernel_v4.331x269x147.json").is_file()
    assert measured["launches"] == [("kernel_v4", (331, 269, 147))]


def test_a_wrong_result_is_not_recorded(memsim: Run, measured: dict[str, Any], tmp_path: Path) -> None:
    measured["right"] = False
    done = memsim("validate", "kernel_v4", "--live", "--record", "--traces", tmp_path)
    assert done.code == 1 and "the result is wrong: kernel_v4" in done.err
    assert not list(tmp_path.iterdir())
