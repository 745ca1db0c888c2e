"""Damaged inputs get an answer or a `MemsimError`: no traceback, no hang.

MEMSIM_FUZZ is how many inputs of each kind are tried, MEMSIM_FUZZ_SEED the first of their seeds.
"""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from memsim.errors import MemsimError
from tests.fuzz.subjects import SUBJECTS

COUNT = int(os.environ.get("MEMSIM_FUZZ", "15"))
FIRST = int(os.environ.get("MEMSIM_FUZZ_SEED", "0"))
LONGEST = 300  # seconds for one input on a machine that is busy
OF_A_PROGRAM = "100"  # seconds that a disassembler may take, which damaged code may keep busy for ever


@contextmanager
def alarm(seconds: int) -> Iterator[None]:
    """A hang is an error, too."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def late(*_: object) -> None:
        raise TimeoutError(f"no answer within {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("kind", SUBJECTS)
def test_a_damaged_input_gets_an_answer(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSIM_TIME_LIMIT", OF_A_PROGRAM)
    answered = refused = 0
    for seed in range(FIRST, FIRST + COUNT):
        try:
            with alarm(LONGEST), warnings.catch_warnings():
                warnings.simplefilter("error")
                SUBJECTS[kind](Random(f"{kind} {seed}"), tmp_path)
            answered += 1
        except MemsimError as error:
            assert error.exit_code in (1, 2)
            assert str(error)
            refused += 1
        except BaseException as error:
            error.add_note(f"{kind}, seed {seed}") if hasattr(error, "add_note") else None
            raise
    assert answered + refused == COUNT
    assert refused, "nothing was damaged"
