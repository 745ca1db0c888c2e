"""Writes what a recording by clock says of a chip's rules beside it, for `memsim.arch.contributed`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memsim.arch.contributed import CLOCK
from memsim.validate.clock.clock_recording import ClockRecording
from memsim.validate.clock.judge_clock import ByClock
from memsim.validate.recording_files import free_path, write_record

SCHEMA = 1
STEM = "rules.clock"


def write_clock_rules(recording: ClockRecording, found: Sequence[ByClock], home: Path) -> Path:
    """Write a new file in the folder `home`; returns its path.

    Raises:
        MemsimError: it cannot be written.
    """
    by_access: dict[tuple[str, str, int], list[ByClock]] = {}
    for held in found:
        if held.key is not None:
            by_access.setdefault(held.key, []).append(held)
    rates = [held for held in found if held.key is None]
    record = {
        "schema": SCHEMA,
        "by": CLOCK,
        "arch": recording.arch,
        "gpu": recording.gpu,
        "driver": recording.driver,
        "date": recording.date,
        "rules": [
            {
                "space": space,
                "op": op,
                "width": width,
                "holds": all(held.holds for held in alike),
                "compared": sum(len(held.predicted) for held in alike),
            }
            for (space, op, width), alike in by_access.items()
        ],
        "rates": {"hold": bool(rates) and all(held.holds for held in rates), "compared": len(rates)},
    }
    path = free_path(home, STEM)
    write_record(record, path)
    return path
