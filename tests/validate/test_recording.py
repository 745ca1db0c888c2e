"""Recordings: whole, as the schema says, and never overwritten."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from memsim.errors import MemsimError
from memsim.kernels import Spec, catalog
from memsim.validate import documents
from memsim.validate.recording import Recording, load_recording
from memsim.validate.recordings import new_path, newest_of_each, newest_recording, recording_paths
from tests.few import few
from tests.validate.conftest import H100, TRACES, recorded

PATHS = recording_paths(TRACES)
KEPT = (f"{H100}/kernel_v4", f"{H100}/sgemm_tuned", "nvidia-h200/guide_v11.331x269x147")
SCHEMA = msgspec.json.schema(documents.RecordingDocument)


def kernel_v4() -> Spec:
    spec = catalog()["kernel_v4"]
    assert isinstance(spec, Spec)
    return spec


@pytest.mark.parametrize("path", few(PATHS, KEPT, name=lambda path: f"{path.parent.name}/{path.stem}"))
def test_every_recording_that_ships_is_whole(path: Path) -> None:
    text = path.read_text("utf-8")
    jsonschema.validate(json.loads(text), SCHEMA)
    recording = load_recording(path)
    assert json.loads(json.dumps(recording.to_dict())) == json.loads(text)
    assert path.name.startswith(f"{recording.kernel}.") and path.parent.name == recording.device.slug
    assert recording.profiles[0].with_line == recording.profiles[0].instructions > 0
    copies = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum"
    assert all(profile.passes == 1 or copies in profile.counters for profile in recording.profiles[1:])


def test_a_file_holds_what_was_saved_and_nothing_is_written_over(tmp_path: Path) -> None:
    recording = recorded("kernel_v4")
    path = tmp_path / "gpu" / "kernel_v4.json"
    recording.save(path)
    assert load_recording(path) == recording
    assert [file.name for file in path.parent.iterdir()] == ["kernel_v4.json"]
    before = path.read_bytes()
    with pytest.raises(MemsimError, match="never overwritten"):
        replace(recording, date="2030-01-01T00:00:00Z").save(path)
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "gpu").write_text("a file")
    with pytest.raises(MemsimError, match="cannot write the recording"):
        recorded("kernel_v4").save(tmp_path / "gpu" / "kernel_v4.json")


def changed(*keys: str | int, value: Any = None) -> dict[str, Any]:
    """A recording's record with one item replaced, or taken out if there is no value."""
    record: Any = json.loads(json.dumps(recorded("transpose_naive").to_dict()))
    inner = record
    for key in keys[:-1]:
        inner = inner[key]
    if value is None:
        del inner[keys[-1]]
    else:
        inner[keys[-1]] = value
    result: dict[str, Any] = record
    return result


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (changed("schema", value=2), "schema 2; this memsim reads schema 1"),
        (changed("schema"), "schema None"),
        ([], "schema None"),
        (changed("device", "driver"), "missing required field `driver`"),
        (changed("date", value="yesterday"), "matching regex .*date"),
        (changed("ptx", value="abc"), "matching regex .*ptx"),
        (changed("launch", "grid", value=[8, 8]), "length 3, got 2.*grid"),
        (changed("result", "right", value=False), "the result is not right"),
        (changed("profiles", value=[]), "length >= 1.*profiles"),
        (changed("profiles", 0, "rows", 0, 4, value=-1), r">= 0.*rows\[0\]\[4\]"),
        (changed("profiles", 0, "columns", 4, value="cycles"), "columns must be offset, file"),
        (changed("surprise", value=1), "unknown field `surprise`"),
    ],
)
def test_what_is_no_recording(record: Any, says: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(record))
    with pytest.raises(MemsimError, match=says) as caught:
        load_recording(path)
    assert caught.value.file == str(path) and caught.value.exit_code == 2


def test_the_good_twin_of_all_these() -> None:
    recording = recorded("transpose_naive")
    assert Recording.from_dict(changed("ncu", value=recording.ncu)) == recording


def test_no_file_and_no_json(tmp_path: Path) -> None:
    with pytest.raises(MemsimError, match="No such file"):
        load_recording(tmp_path / "nothing.json")
    (tmp_path / "half.json").write_text('{"schema": 1, ')
    with pytest.raises(MemsimError, match="not valid JSON"):
        load_recording(tmp_path / "half.json")


def test_half_of_a_surrogate_pair_is_no_text(tmp_path: Path) -> None:
    record = changed("ncu", value="2025 \U0001f600")
    whole, half = json.dumps(record), json.dumps(record).replace("\\ude00", "")
    assert whole != half
    (tmp_path / "whole.json").write_text(whole)
    assert load_recording(tmp_path / "whole.json").ncu == "2025 \U0001f600"
    (tmp_path / "half.json").write_text(half)
    with pytest.raises(MemsimError, match="not valid JSON"):
        load_recording(tmp_path / "half.json")


def test_names_of_new_recordings(tmp_path: Path) -> None:
    recording = recorded("kernel_v4")
    default, home = (1024, 1024, 1024), tmp_path / H100
    first = new_path(tmp_path, recording, default)
    assert first == home / "kernel_v4.json"
    recording.save(first)
    second = new_path(tmp_path, recording, default)
    assert second == home / "kernel_v4.run2.json"
    recording.save(second)
    assert new_path(tmp_path, recording, default) == home / "kernel_v4.run3.json"
    ragged = recorded("kernel_v4", ragged=True)
    assert new_path(tmp_path, ragged, default) == home / "kernel_v4.331x269x147.json"


def test_the_newest_is_taken_by_date_and_not_by_name(tmp_path: Path) -> None:
    old = recorded("kernel_v4")
    new = replace(old, date="2030-01-01T00:00:00Z", ncu="2030.1")
    other = replace(old, date="2031-01-01T00:00:00Z", device=replace(old.device, gpu="Another GPU"))
    for recording in (new, old, other):
        recording.save(new_path(tmp_path, recording, (1024, 1024, 1024)))
    size = (1024, 1024, 1024)
    assert newest_recording(tmp_path, kernel_v4(), size, H100) == new
    assert newest_recording(tmp_path, kernel_v4(), size) == other
    assert newest_recording(tmp_path, kernel_v4(), size, "another-gpu") == other
    assert list(newest_of_each(tmp_path, H100)) == [new]
    assert len(list(newest_of_each(tmp_path))) == 2


def test_a_missing_recording_says_which_there_are(tmp_path: Path) -> None:
    with pytest.raises(MemsimError, match="no recording of kernel_v4 at 8,8,8") as caught:
        newest_recording(tmp_path, kernel_v4(), (8, 8, 8))
    assert "--live --record" in str(caught.value)
    recording = recorded("kernel_v4")
    recording.save(new_path(tmp_path, recording, (1024, 1024, 1024)))
    with pytest.raises(MemsimError, match="on nvidia-h200") as caught:
        newest_recording(tmp_path, kernel_v4(), (1024, 1024, 1024), "nvidia-h200")
    assert caught.value.hint == f"there are: {H100} at 1024,1024,1024"
