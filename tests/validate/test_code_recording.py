"""Recordings of machine code: whole, as the schema says, and never overwritten."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memsim.errors import MemsimError
from memsim.kernels import catalog
from memsim.validate.code_recording import (
    CodeRecording,
    code_paths,
    load_code_recording,
    new_code_path,
    newest_code,
    newest_code_of_each,
)
from memsim.validate.live import opcodes
from memsim.validate.profiles import SOURCE_METRICS
from tests.few import few
from tests.schema import changed
from tests.validate.conftest import H200, TRACES
from tests.validate.profiles import profiled

ATOMICS = (
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum"  # with arbitration they can take two passes
)
OWN = sorted(TRACES.glob("*/own/*.json"))
PATHS = [*code_paths(TRACES), *OWN]
KEPT = ("guide_v11", "kernel_v4.331x269x147", "mem_ldmatrix", "sgemm_tuned")
SPEC = catalog()["transpose_xor"]
LAUNCH = SPEC.job((64, 64))


def recorded() -> CodeRecording:
    return newest_code(TRACES, SPEC, (1024, 1024), H200)


@pytest.mark.parametrize("path", few(PATHS, KEPT, name=lambda path: path.stem))
def test_every_recording_that_ships_is_whole(path: Path) -> None:
    text = path.read_text("utf-8")
    recording = load_code_recording(path)
    assert json.loads(json.dumps(recording.to_dict())) == json.loads(text)
    assert path.name.startswith(f"{recording.name}.") and path.parents[1].name == recording.device.slug
    first, *others = recording.profiles
    assert [name for name in first.figures if name in SOURCE_METRICS] == list(SOURCE_METRICS)
    assert first.addresses[0] == 0
    assert len(first.addresses) == len(first.sass) == len(set(first.addresses))
    assert not any(profile.figures for profile in others)
    assert all(profile.passes == 1 or ATOMICS in profile.counters for profile in others)
    assert len(text) < 200_000


def test_code_is_known_by_its_instructions() -> None:
    profile, mine = profiled(LAUNCH), opcodes(LAUNCH.loaded.machine)
    assert profile.starting_at(mine) == profile
    moved = replace(
        profile,
        addresses=(0, 16, *(address + 48 for address in profile.addresses)),
        sass=("MOV R0, R1", "RET.REL.NODEC R2 0x0", *profile.sass),
        figures={name: (0, 0, *column) for name, column in profile.figures.items()},
    )
    assert moved.starting_at(mine) == profile  # a function in front of it
    assert profile.starting_at(opcodes(catalog()["kernel_v4"].job((8, 8, 8)).loaded.machine)) is None
    short = replace(
        profile,
        addresses=profile.addresses[:-1],
        sass=profile.sass[:-1],
        figures={name: column[:-1] for name, column in profile.figures.items()},
    )
    assert short.starting_at(mine) is None


def test_a_file_holds_what_was_saved_and_nothing_is_written_over(tmp_path: Path) -> None:
    recording = recorded()
    path = new_code_path(tmp_path, recording, (1024, 1024))
    assert path == tmp_path / "nvidia-h200" / "code" / "transpose_xor.json"
    recording.save(path)
    assert load_code_recording(path) == recording
    before = path.read_bytes()
    with pytest.raises(MemsimError, match="never overwritten"):
        replace(recording, date="2030-01-01T00:00:00Z").save(path)
    assert path.read_bytes() == before
    assert new_code_path(tmp_path, recording, (1024, 1024)).name == "transpose_xor.run2.json"
    assert new_code_path(tmp_path, recording, (64, 64)).name == "transpose_xor.1024x1024.json"


def test_the_newest_recording_of_the_code_as_it_is(tmp_path: Path) -> None:
    recording = recorded()
    later = replace(recording, date="2030-01-01T00:00:00Z")
    other = replace(later, date="2031-01-01T00:00:00Z", code=replace(recording.code, digest="0" * 64))
    for one in (recording, later, other):
        one.save(new_code_path(tmp_path, one, (1024, 1024)))
    assert newest_code(tmp_path, SPEC, (1024, 1024)) == later
    assert newest_code(tmp_path, SPEC, (1024, 1024), "nvidia-h200") == later
    assert list(newest_code_of_each(tmp_path)) == [other]


def test_a_missing_recording_says_which_there_are(tmp_path: Path) -> None:
    with pytest.raises(MemsimError, match="no recording of transpose_xor at 8,8") as caught:
        newest_code(tmp_path, SPEC, (8, 8))
    assert "--live --record" in str(caught.value)
    recorded().save(new_code_path(tmp_path, recorded(), (1024, 1024)))
    with pytest.raises(MemsimError, match="at 1024,1024 on nvidia-a100") as caught:
        newest_code(tmp_path, SPEC, (1024, 1024), "nvidia-a100")
    assert caught.value.hint == "there are: nvidia-h200 at 1024,1024"


GOOD = recorded().to_dict()
N = len(GOOD["profiles"][0]["sass"])


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (changed(GOOD, "schema", value=2), "schema 2; this memsim reads schema 1"),
        ([], "schema None"),
        (changed(GOOD, "device", "driver"), "missing required field `driver`"),
        (changed(GOOD, "code", "digest", value="abc"), "matching regex .*code.digest"),
        (changed(GOOD, "launch", "grid", value=[8, 8]), "length 3, got 2.*grid"),
        (changed(GOOD, "result", "right", value=False), "the result is not right"),
        (changed(GOOD, "profiles", value=[]), "length >= 1.*profiles"),
        (changed(GOOD, "profiles", 0, "collected", value=["cycles"]), "'cycles' is not a metric"),
        (changed(GOOD, "profiles", 0, "accesses", "rows", value=[-1]), ">= 0.*accesses"),
        (changed(GOOD, "profiles", 0, "instructions", "inst_executed"), "inst_executed missing"),
        (changed(GOOD, "profiles", 0, "distances", value=[1, None]), "got `null`.*distances"),
        (changed(GOOD, "profiles", 0, "distances", value=[1, 16]), "not of .* instructions.*profiles"),
        (changed(GOOD, "profiles", 0, "distances", value=[1]), "not of .* instructions"),
        (changed(GOOD, "profiles", 0, "distances", value=[N + 1, 16, -1, 16]), ">= 0.*distances"),
        (changed(GOOD, "profiles", 0, "instructions", "inst_executed", value=[N, 1, None, 1]), "not of .*"),
        (changed(GOOD, "profiles", 0, "sass", value=["NOP"]), "not of 1 instructions"),
        (changed(GOOD, "profiles", 0, "instructions", "inst_executed", value=[9, 1]), "not of .* instr"),
        (changed(GOOD, "surprise", value=1), "unknown field `surprise`"),
    ],
)
def test_what_is_no_recording(record: Any, says: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(record))
    with pytest.raises(MemsimError, match=says):
        load_code_recording(path)
    path.write_text(json.dumps(recorded().to_dict()))
    assert load_code_recording(path) == recorded()
