"""Work in other processes: results in order, errors as they are, and one more try for a process that dies."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import cast

import pytest

from memsim.errors import MemsimError
from memsim.isa.program import Op
from memsim.simt.faults import KernelFault, WrongLanes
from memsim.workers import Progress, WorkersError, in_processes


def squared(number: int, progress: Progress | None = None) -> int:
    if progress is not None:
        progress(0.5)
        progress(1.0)
    return number * number


def refused(number: int, _: Progress | None = None) -> int:
    if number == 2:
        raise MemsimError("no twos", file="k.cu", line=3, hint="use threes")
    return number


def faulty(_: int, __: Progress | None = None) -> int:
    raise KernelFault("out of bounds", "address", WrongLanes(cast("Op", lambda: None), 0, 0, 1), hint="look")


def test_results_come_in_order_and_progress_is_of_all() -> None:
    seen: list[float] = []
    assert in_processes(squared, range(5), 2, seen.append) == [0, 1, 4, 9, 16]
    assert in_processes(squared, [], 2) == []
    assert seen == sorted(seen) and seen[-1] == 1.0 and len(seen) == 10


def test_an_error_is_that_of_the_work() -> None:
    assert in_processes(refused, [1, 3], 2) == [1, 3]
    with pytest.raises(MemsimError, match="no twos") as error:
        in_processes(refused, [1, 2, 3], 2)
    assert (error.value.location, error.value.hint) == ("k.cu:3", "use threes")
    assert not isinstance(error.value, WorkersError)
    with pytest.raises(MemsimError, match="out of bounds") as error:  # without what cannot be sent
        in_processes(faulty, [1], 1)
    assert error.value.hint == "look"


@pytest.mark.parametrize("deaths", [1, 2])
def test_a_process_that_is_killed_is_replaced_once(deaths: int, tmp_path: Path) -> None:
    def killed(number: int, _: Progress | None = None) -> int:
        died = len(list(tmp_path.iterdir()))
        if number == 1 and died < deaths:
            (tmp_path / str(died)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    if deaths == 1:
        assert in_processes(killed, range(3), 2) == [0, 1, 2]
    else:
        with pytest.raises(WorkersError, match="died, twice"):
            in_processes(killed, range(3), 2)
    assert len(list(tmp_path.iterdir())) == deaths
