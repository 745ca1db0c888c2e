"""Writes what a probe found of a chip's rules beside its recording, for `memsim.arch.contributed`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lab.clock.judge_clock import SHUFFLE, ByClock, ClockRecording
from lab.probe.judge_probe import Held
from lab.probe.run_probe import ProbeRecording
from memsim.arch.contributed import CLOCK
from memsim.validate.device import free_path, write_record

SCHEMA = 1
#: Cycles by which a clock may show an instruction faster than it is.
OFF = 0.05


def write_rules(recording: ProbeRecording, found: Iterable[Held], home: Path) -> Path:
    """Write a new `rules.json` in the folder `home`; returns its path.

    Raises:
        MemsimError: it cannot be written.
    """
    device = recording.device
    about = {"arch": device.arch, "gpu": device.gpu, "driver": device.driver, "ncu": recording.ncu}
    return _write({**about, "date": recording.date, "rules": _rules(found)}, home, "rules")


def write_clock_rules(recording: ClockRecording, found: Sequence[ByClock], home: Path) -> Path:
    """Write a new `rules.clock.json` in the folder `home`; returns its path.

    Raises:
        MemsimError: it cannot be written.
    """
    rates = [held for held in found if held.key is None]
    moves = [held.holds for held in rates if held.what == SHUFFLE]
    about = {"by": CLOCK, "arch": recording.arch, "gpu": recording.gpu, "driver": recording.driver}
    record = {
        **about,
        "date": recording.date,
        "rules": _rules(found),
        "rates": {
            "hold": bool(rates) and all(held.holds for held in rates),
            "compared": len(rates),
            "cycles": fastest_of_each(rates) if all(moves) else {},
        },
    }
    return _write(record, home, "rules.clock")


def fastest_of_each(rates: Iterable[ByClock]) -> dict[str, int]:
    """Machine instruction -> whole cycles for which it occupies its pipe at least, as a clock showed them.

    Shuffles occupy none. A loop may take less than its rate by what a clock is off.
    """
    cycles: dict[str, int] = {}
    for held in rates:
        if held.what != SHUFFLE:
            each = max(1, int(min(held.exact) + OFF))
            cycles[held.what] = min(each, cycles.get(held.what, each))
    return cycles


def _rules(found: Iterable[Held | ByClock]) -> list[dict[str, Any]]:
    """One for each access: several instructions may access memory in the same way."""
    by_access: dict[tuple[str, str, int], list[Held | ByClock]] = {}
    for held in found:
        if held.key is not None and held.compared:
            by_access.setdefault(held.key, []).append(held)
    return [
        {
            **dict(zip(("space", "op", "width"), key)),
            "holds": all(held.holds for held in alike),
            "compared": sum(held.compared for held in alike),
        }
        for key, alike in by_access.items()
    ]


def _write(record: dict[str, Any], home: Path, stem: str) -> Path:
    path = free_path(home, stem)
    write_record({"schema": SCHEMA, **record}, path)
    return path
