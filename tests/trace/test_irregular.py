"""Kernels whose requests do not repeat: against brute force, and against executing everything."""

from __future__ import annotations

from typing import Any

import pytest

import memsim
from memsim.analysis import analyze_trace
from memsim.api.running import execute_job, job_of, trace
from memsim.kernel import Kernel
from memsim.trace import record, site_records
from tests.benchmarks.irregular import MAKERS, SOURCE, case
from tests.few import few
from tests.trace.test_whole_kernels import BruteForce, by_line, columns

NAMES = list(MAKERS)
#: What these read others write at the same time: who comes first is not said.
RACES = {"bfs"}
#: A row of 64 numbers is the same request wherever it lies.
REPEATS = {"attention"}


class Patient(BruteForce):
    """Brute force for kernels whose flow the chip may decide."""

    def uncertain(self, what: str) -> None:
        pass


@pytest.fixture(scope="module")
def module() -> memsim.api.loading.Module:
    return memsim.load(SOURCE)


def launched(
    module: memsim.api.loading.Module, name: str, size: int = 3000
) -> tuple[Kernel, tuple[Any, ...]]:
    made = case(name, size, seed=7)
    return module[name], (made.grid, made.block, made.arguments)


@pytest.mark.some(1)
@pytest.mark.parametrize("many", ["as many as ever", "few"])
@pytest.mark.parametrize("name", few(NAMES, sorted(NAMES)[:3]))
def test_the_trace_equals_brute_force(
    name: str, many: str, module: memsim.api.loading.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every access of the same run written out; and what hardly repeats costed at once."""
    if many == "few":
        monkeypatch.setattr(record, "MANY_ROWS", 64)
        monkeypatch.setattr(site_records, "MANY_OF_SITE", 16)
    kernel, (grid, block, arguments) = launched(module, name)
    found = trace(kernel, grid, block, arguments)
    if many == "few":
        assert ("if there are too many" in "".join(found.notes)) == (name not in REPEATS)
    brute = Patient()
    execute_job(job_of(kernel, grid, block, arguments), brute, None, everything=False, every_branch=True)
    assert by_line(found) == brute.counts


@pytest.mark.slow
@pytest.mark.parametrize("name", few(sorted(set(NAMES) - RACES), sorted(set(NAMES) - RACES)[:2]))
def test_both_ways_to_run_give_the_same_trace(name: str, module: memsim.api.loading.Module) -> None:
    kernel, (grid, block, arguments) = launched(module, name)
    slim = trace(kernel, grid, block, arguments)
    whole = trace(kernel, grid, block, arguments, everything=True)
    assert columns(slim) == columns(whole)
    assert (slim.executed == whole.executed).all()


@pytest.mark.some(1)
@pytest.mark.parametrize("name", sorted(set(NAMES) - RACES - REPEATS))
def test_costed_at_once_or_kept_no_count_is_another(
    name: str, module: memsim.api.loading.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, (grid, block, arguments) = launched(module, name)
    kept = analyze_trace(trace(kernel, grid, block, arguments))
    monkeypatch.setattr(record, "MANY_ROWS", 64)
    monkeypatch.setattr(site_records, "MANY_OF_SITE", 16)
    found = analyze_trace(trace(kernel, grid, block, arguments))
    assert len(found.trace.count) < len(kept.trace.count) / 2
    assert found.sites == kept.sites and found.totals == kept.totals
