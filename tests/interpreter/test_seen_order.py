"""The blocks of a launch run in several threads, with the same results, where these depend on no order."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memsim.access import Listener
from memsim.api.loading import load
from memsim.api.running import job_of, prepared_launch
from memsim.driver.native_build import libraries
from memsim.errors import MemsimError
from memsim.interpreter import native_launch
from memsim.interpreter.native_launch import NativeInterpreter, TouchedAllocations
from memsim.interpreter.seen_order import sees_order
from memsim.job import Job
from memsim.programs import VARIABLE, within_time_limit
from memsim.simt.control_graph import ControlGraph

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc"), reason="needs Linux and a C compiler"
)
UPDATES: dict[str, tuple[Any, type]] = {
    "add_int": (np.add, np.int32),
    "add_u64": (np.add, np.uint64),
    "min_int": (np.minimum, np.int32),
    "max_u32": (np.maximum, np.uint32),
    "min_u64": (np.minimum, np.uint64),
    "max_s64": (np.maximum, np.int64),
    "and_u32": (np.bitwise_and, np.uint32),
    "or_u64": (np.bitwise_or, np.uint64),
    "xor_u32": (np.bitwise_xor, np.uint32),
}


class CountedInterpreter(NativeInterpreter):
    """Counts the threads that came to the first one."""

    joined = 0

    def _run_all(self, part: Any, turns: np.ndarray) -> None:
        self.joined += 1
        super()._run_all(part, turns)


@pytest.fixture(scope="module")
def kernels() -> Any:
    return load(Path(__file__).with_name("orders.cu"), ["-std=c++17"])


@pytest.fixture
def one() -> NativeInterpreter:
    return NativeInterpreter(libraries(), 1)


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> CountedInterpreter:
    """Three threads, from the first moment on, on however many processors there are."""
    monkeypatch.setattr(native_launch, "ALONE", 0.0)
    return CountedInterpreter(libraries(), 3)


def executed(
    job: Job, interpreter: NativeInterpreter
) -> tuple[np.ndarray, TouchedAllocations, MemsimError | None]:
    """Global memory after a launch, what it accessed, and its error."""
    launch, touched, error = prepared_launch(job, everything=True), TouchedAllocations(set(), set()), None
    try:
        interpreter.run(launch, Listener(), touched)
    except MemsimError as why:
        error = why
    return launch.memory.space("global").data.reshape(-1), touched, error


def job_for(kernels: Any, name: str) -> Job:
    blocks, threads = 60, 64
    rng = np.random.default_rng(5)
    if name in UPDATES or name in ("add_float", "add_double", "exchange", "wrap"):
        others = {"add_float": np.float32, "add_double": np.float64, "exchange": np.int32, "wrap": np.uint32}
        kind = UPDATES[name][1] if name in UPDATES else others[name]
        x: np.ndarray = rng.integers(0, 1 << 30, blocks * threads).astype(kind)
        where = rng.integers(0, 50, blocks * threads).astype(np.int32)
        return job_of(kernels[name], blocks, threads, [np.ones(64, kind), x, where])
    x = rng.integers(0, 1000, blocks * threads).astype(np.int32)
    y = np.zeros(blocks * threads + 1, np.int32)
    more = [np.zeros(64, np.int32), 59] if name == "touches" else []
    return job_of(kernels[name], blocks, threads, [y, x, *more])


# --- which kernels ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [*UPDATES, "fences_block", "old_value_in_block", "touches", "fails_from", "endless_later"]
)
def test_order_does_not_matter(name: str, kernels: Any) -> None:
    assert not sees_order(ControlGraph(kernels[name].executable.program))


@pytest.mark.parametrize(
    "name",
    [
        *("add_float", "add_double", "exchange", "wrap", "old_value", "add_and_max", "swap"),
        *("polls", "fences", "times", "waits_for_one_that_fails"),
    ],
)
def test_order_may_matter(name: str, kernels: Any) -> None:
    assert sees_order(ControlGraph(kernels[name].executable.program))


@pytest.mark.parametrize("name", ["add_float", "old_value", "add_and_max", "polls", "fences"])
def test_one_thread_runs_the_blocks_in_order(name: str, kernels: Any, many: CountedInterpreter) -> None:
    job = job_for(kernels, name)
    found, _, error = executed(job, many)
    assert error is None and many.joined == 0
    expected = prepared_launch(job, everything=True)
    expected.run(Listener())
    assert np.array_equal(found, expected.memory.space("global").data.reshape(-1))


# --- the same results ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*UPDATES, "fences_block", "old_value_in_block", "touches"])
def test_memory_and_what_was_accessed_are_the_same(
    name: str, kernels: Any, one: NativeInterpreter, many: CountedInterpreter
) -> None:
    job = job_for(kernels, name)
    expected, accessed, _ = executed(job, one)
    for _ in range(3):
        found, touched, error = executed(job, many)
        assert error is None and np.array_equal(found, expected) and touched == accessed
    assert many.joined == 6


@pytest.mark.parametrize("places", [1, 32])
def test_no_update_is_lost(places: int, kernels: Any, many: CountedInterpreter) -> None:
    blocks = 12_000
    x = np.ones(blocks * 256, np.int32)
    where = np.arange(len(x), dtype=np.int32) % places
    job = job_of(kernels["add_int"], blocks, 256, [np.zeros(64, np.int32), x, where])
    found, _, _ = executed(job, many)
    assert many.joined == 2
    assert (found.view(np.int32)[:places] == len(x) // places).all()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(sorted(UPDATES)),
    blocks=st.integers(1, 50),
    threads=st.integers(1, 96),
    places=st.integers(1, 40),
    seed=st.integers(0, 2**32 - 1),
)
def test_updates_are_those_of_numpy(
    name: str, blocks: int, threads: int, places: int, seed: int, kernels: Any, many: CountedInterpreter
) -> None:
    update, kind = UPDATES[name]
    rng, limits = np.random.default_rng(seed), np.iinfo(kind)
    y = rng.integers(limits.min, limits.max, places, kind, endpoint=True)
    x = rng.integers(limits.min, limits.max, blocks * threads, kind, endpoint=True)
    where = rng.integers(0, places, len(x)).astype(np.int32)
    expected = y.copy()
    update.at(expected, where, x)
    found, _, error = executed(job_of(kernels[name], blocks, threads, [y, x, where]), many)
    assert error is None
    assert np.array_equal(found[: y.nbytes].view(kind), expected)


# --- faults -------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [0, 7, 39])
@pytest.mark.parametrize("rounds", [1, 300])
def test_the_fault_of_the_first_block_is_told(
    first: int, rounds: int, kernels: Any, one: NativeInterpreter, many: CountedInterpreter
) -> None:
    """With 300 barriers the next blocks begin beside it on one processor, too."""
    job = job_of(kernels["fails_from"], 40, 32, [np.zeros(40 * 32, np.int32), first, rounds])
    launch = prepared_launch(job, everything=True)
    with pytest.raises(MemsimError) as error:
        launch.run(Listener(), np.array([first]))
    for interpreter in (one, many):
        memory, _, found = executed(job, interpreter)
        assert str(found) == str(error.value)
        assert (memory.view(np.int32)[: first * 32] != 0).all()
    assert many.joined == 2


def test_a_block_does_not_wait_for_one_that_failed(
    kernels: Any, one: NativeInterpreter, many: CountedInterpreter
) -> None:
    job = job_of(kernels["waits_for_one_that_fails"], 2, 32, [np.zeros(32, np.int32)])
    for interpreter in (one, many):
        assert "trap" in str(executed(job, interpreter)[2])


@pytest.mark.parametrize("steps", [2000, None])
def test_endless_blocks_end(
    steps: int | None, kernels: Any, many: CountedInterpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the limit of instructions, or else by that of time, in all threads."""
    if steps is None:
        monkeypatch.setenv(VARIABLE, "0.5")
    job = job_of(
        kernels["endless_later"], 30, 32, [np.zeros(30 * 32, np.int32), 8], max_steps=steps or 1 << 50
    )
    told = "instructions" if steps else r"did not finish within 0.5 s"
    with pytest.raises(MemsimError, match=told), within_time_limit("it"):
        if (error := executed(job, many)[2]) is not None:
            raise error
    assert many.joined == 2 or steps is None  # the time may be up before
