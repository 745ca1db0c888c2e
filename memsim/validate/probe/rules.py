"""Writes the rules that a probe found to hold to `rules.json` beside the recording, which
`memsim.arch.contributed` reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memsim.validate.probe.judge_rules import Held
from memsim.validate.probe.probe_recording import ProbeRecording
from memsim.validate.recording_files import free_path, write_record

SCHEMA = 1
STEM = "rules"


def write_rules(recording: ProbeRecording, found: Sequence[Held], home: Path) -> Path:
    """Write a new file in the folder `home`; returns its path.

    Raises:
        MemsimError: it cannot be written.
    """
    held: dict[tuple[str, str, int], list[Held]] = {}
    for each in found:
        if _compared(each):
            held.setdefault((each.space, each.op, each.width), []).append(each)
    path = free_path(home, STEM)
    rules = [
        {
            "space": space,
            "op": op,
            "width": width,
            "holds": all(each.holds for each in alike),
            "compared": sum(map(_compared, alike)),
        }
        for (space, op, width), alike in held.items()
    ]
    device = recording.device
    record = {"schema": SCHEMA, "arch": device.arch, "gpu": device.gpu, "driver": device.driver}
    write_record({**record, "ncu": recording.ncu, "date": recording.date, "rules": rules}, path)
    return path


def _compared(held: Held) -> int:
    """The number of values and counters compared."""
    return sum(compared for _, compared in (*held.figures.values(), *held.counters.values()))
