"""Reading a report: real values of an H100, through the calls that Nsight Compute's module has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memsim.errors import MemsimError
from memsim.validate import profiler, report
from memsim.validate.report import SOURCE_METRICS, Profile, profile_of, read_report
from tests.validate import fakes

HERE = Path(__file__)


def profiles() -> list[Profile]:
    return [profile_of(action) for action in fakes.load_report("").scope.actions]


def test_the_rows_are_the_instructions_that_touch_memory() -> None:
    naive, xor = profiles()
    assert (naive.kernel, naive.passes, naive.instructions, naive.with_line) == (
        "transpose_naive",
        12,
        38,
        38,
    )
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
