"""What the probe recorded on an H100 for each instruction, and how far the model is from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lab.experiments import PROBE
from lab.probe.instructions import EMPTY, INSTRUCTIONS
from lab.probe.judge_probe import judge_probe
from memsim.data import data_folder
from memsim.validate.profiles import SOURCE_METRICS

RECORDING = PROBE.newest(data_folder("traces"), "nvidia-h100-80gb-hbm3")
#: Instructions of one address, which count in one space only.
NAMES = [name for name in RECORDING.probed if name in INSTRUCTIONS and not INSTRUCTIONS[name].copies]


def unequal(name: str) -> dict[str, int]:
    """Counter -> in how many launches the rules differ from it."""
    one = {key: RECORDING.probed[key] for key in (EMPTY.name, name)}
    (held,) = judge_probe(replace(RECORDING, probed=one))
    return {metric: compared - equal for metric, (equal, compared) in held.counters.items()}


def counted(name: str, launch: int) -> dict[str, int]:
    """The counters of a launch, without what the harness adds."""
    own, harness = RECORDING.probed[name].counters[launch], RECORDING.probed[EMPTY.name].counters[0]
    known = zip(RECORDING.metrics, own, harness, strict=True)
    return {metric: int(count - always) for metric, count, always in known if count >= 0}


def figures(name: str, metric: str) -> np.ndarray:
    """A column of the Source page, [launches, patterns]."""
    column: np.ndarray = RECORDING.probed[name].figures[..., SOURCE_METRICS.index(metric)]
    return column
