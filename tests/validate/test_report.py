"""Reading a report: real values of an H100, through the calls that Nsight Compute's module has."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memsim.errors import MemsimError
from memsim.validate import profiler
from memsim.validate import profiles as report
from memsim.validate.profiles import SOURCE_METRICS, Profile, profile_of, read_report, unit_of
from tests.validate import fakes

HERE = Path(__file__)


def profiles() -> list[Profile]:
    return [profile_of(action) for action in fakes.load_report("").scope.actions]


def test_the_rows_are_the_instructions_that_touch_memory() -> None:
    naive, xor = profiles()
    assert (naive.kernel, naive.passes) == ("transpose_naive", 12)
    opcodes = [next(word for word in row.sass.split() if word[:2] in ("LD", "ST")) for row in naive.rows]
    assert opcodes == ["LDG.E", "STS", "LDS", "STG.E"]
    load = naive.rows[2]
    assert (load.file, load.line) == ("kernels/transpose_naive.cu", 22)
    assert load.count("memory_l1_wavefronts_shared") == 32 * load.count("inst_executed")
    assert load.count("memory_l2_theoretical_sectors_global") is None
    assert xor.rows[2].count("memory_l1_wavefronts_shared") == xor.rows[2].count("inst_executed")
    assert all(row.offset % 16 == 0 for row in naive.rows)


def test_counters_have_their_units_and_only_sums_are_kept() -> None:
    counters = profiles()[0].counters
    assert counters["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"].unit == "sector"
    assert counters["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"].value == 1015944
    assert isinstance(counters["inst_executed"].value, int)
    assert not any(name.endswith(".avg") or name.startswith("device__") for name in counters)


def test_a_profile_survives_the_way_through_json() -> None:
    for profile in profiles():
        assert Profile.from_dict(profile.to_dict()) == profile
        assert len(profile.rows[0].counts) == len(SOURCE_METRICS)


def reader(folder: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes `code` the module ncu_report of the process that reads."""
    (folder / f"{report.MODULE}.py").write_text(code)
    root = str(HERE.parents[2])
    monkeypatch.setattr(
        report,
        "child_environment",
        lambda: {**profiler.child_environment(), "PYTHONPATH": f"{folder}{os.pathsep}{root}"},
    )


def test_a_process_of_its_own_reads_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader(tmp_path, "from tests.validate.fakes import load_report\n", monkeypatch)
    assert read_report(tmp_path / "report") == profiles()


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import os\nos.abort()\n", "exit code -6"),
        ("raise ImportError('wrong ELF class')\n", "wrong ELF class"),
        ("def load_report(path):\n    raise RuntimeError('no such file')\n", "no such file"),
    ],
)
def test_a_reader_that_fails_is_one_error(
    code: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader(tmp_path, code, monkeypatch)
    with pytest.raises(MemsimError, match=says) as caught:
        read_report(tmp_path / "report")
    assert "extras/python" in str(caught.value)


def test_a_unit_is_the_one_that_ncu_gave() -> None:
    """Those of every recording were read from ncu, before its module crashed when it was asked for them."""

    def counters(value: object) -> Iterator[tuple[str, str]]:
        if isinstance(value, dict):
            for name, counted in value.get("counters", {}).items():
                if isinstance(counted, list) and len(counted) == 2:
                    yield name, counted[1]
            for inner in value.values():
                yield from counters(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from counters(inner)

    recordings = sorted((HERE.parents[2] / "traces").glob("nvidia-h*/code/*.json"))
    given = set().union(*(counters(json.loads(path.read_text("utf-8"))) for path in recordings))
    assert {"ns", "cycle", "inst", "sector", "sectors", ""} == {unit for _, unit in given}
    assert {(name, unit_of(name)) for name, _ in given} == given
