"""Reading a report: real values of an H100, through the calls that Nsight Compute's module has."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from memsim.errors import MemsimError
from memsim.validate import profiler as ncu
from memsim.validate.profiler import LINES, code_profile_of, read_code_report, unit_of
from memsim.validate.profiles import CodeProfile, access_of
from tests.validate import fakes

HERE = Path(__file__)


def profiles() -> list[CodeProfile]:
    return [code_profile_of(action, (LINES,)) for action in fakes.load_report("").scope.actions]


def test_every_instruction_has_its_line_and_figures() -> None:
    naive, xor = profiles()
    assert (naive.kernel, naive.passes, naive.addresses[:3]) == ("transpose_naive", 12, (0, 16, 32))
    assert naive.grid is None and len(naive.sass) == 38
    assert naive.accesses >= {"global load", "shared load", "shared store", "global store"}
    accesses = [access_of(sass) for sass in naive.sass]
    expected = ["global load", "shared store", "shared load", "global store"]
    assert [access for access in accesses if access] == expected
    load = accesses.index("global load")
    assert naive.figure("inst_executed", load) == naive.figure("memory_l1_tag_requests_global", load)
    assert naive.figure("memory_l1_wavefronts_shared", load) is None
    load = accesses.index("shared load")
    assert naive.lines[load] == 22
    executed = naive.figure("inst_executed", load)
    assert executed and naive.figure("memory_l1_wavefronts_shared", load) == 32 * executed
    assert naive.figure("memory_l2_theoretical_sectors_global", load) is None
    load = [access_of(sass) for sass in xor.sass].index("shared load")
    assert xor.figure("memory_l1_wavefronts_shared", load) == xor.figure("inst_executed", load)
    assert all(address % 16 == 0 for address in naive.addresses)
    assert code_profile_of(fakes.load_report("").scope.actions[0]).lines == ()


def test_counters_have_their_units_and_only_sums_are_kept() -> None:
    counters = profiles()[0].counters
    assert counters["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"].unit == "sector"
    assert counters["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"].value == 1015944
    assert isinstance(counters["inst_executed"].value, int)
    assert not any(name.endswith(".avg") or name.startswith("device__") for name in counters)


def test_a_profile_survives_the_way_through_json() -> None:
    for profile in profiles():
        assert msgspec.json.decode(msgspec.json.encode(profile), type=CodeProfile) == profile


def reader(folder: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes `code` the module ncu_report of the process that reads."""
    (folder / f"{ncu.MODULE}.py").write_text(code)
    environment = {**ncu.child_environment(), "PYTHONPATH": f"{folder}{os.pathsep}{HERE.parents[2]}"}
    monkeypatch.setattr(ncu, "child_environment", lambda: environment)


def test_a_process_of_its_own_reads_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader(tmp_path, "from tests.validate.fakes import load_report\n", monkeypatch)
    path = tmp_path / "report"
    path.touch()
    assert read_code_report(path, lines=True) == profiles()
    with pytest.raises(MemsimError, match="no such report"):
        read_code_report(tmp_path / "other.ncu-rep")


@pytest.mark.some(1)
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
    path = tmp_path / "report"
    path.touch()
    with pytest.raises(MemsimError, match=says) as caught:
        read_code_report(path)
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
