"""The recording of 26 instructions on an H100, and how far a model is from it.

`traces/nvidia-h100-80gb-hbm3/README.md` says what the arrays are and what the harness adds.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from memsim.model import coalescing, shared

FOLDER = Path(__file__).parents[1] / "traces" / "nvidia-h100-80gb-hbm3"
FILE = FOLDER / "access_patterns.npz"
DATA: dict[str, np.ndarray] = dict(np.load(FILE))
LAUNCHES = (2, 256)

WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"
LINES = "l1tex__t_set_accesses_pipe_lsu_mem_global_op_ld.sum"
SUFFIX = {"load": "ld", "ldmatrix": "ld", "store": "st", "stmatrix": "st", "atomic": "atom"}

# What the harness itself does in each launch, counter by counter.
HARNESS = {
    WAVEFRONTS.format("ld"): 1,
    WAVEFRONTS.format("st"): 288,
    REQUESTS.format("ld"): 256,
    SECTORS.format("ld"): 1024,
    LINES: 256,
    REQUESTS.format("st"): 1,
    SECTORS.format("st"): 4,
}


@dataclass(frozen=True)
class Recorded:
    """512 patterns of one instruction, and what was counted for them."""

    name: str
    op: str
    width: int
    space: str

    @property
    def addresses(self) -> np.ndarray:
        return DATA[f"{self.name}_addresses"]

    @property
    def active(self) -> np.ndarray:
        return DATA[f"{self.name}_active"]

    def source(self, column: str) -> tuple[np.ndarray, np.ndarray]:
        """A Source page column, and where it could be read."""
        values = DATA[f"{self.name}_source"][:, list(DATA["source_columns"]).index(column)]
        return values, values >= 0

    def hardware(self, metric: str) -> np.ndarray:
        """A counter of each launch, without what the harness adds."""
        counted = DATA[f"{self.name}_hw"][:, list(DATA["hw_metrics"]).index(metric)]
        return np.asarray(counted - HARNESS.get(metric, 0))


def _recorded() -> list[Recorded]:
    rows = [str(row).split(":") for row in DATA["ops"]]
    return [Recorded(name, op, int(width), space) for name, op, width, space in rows]


SHARED = [r for r in _recorded() if r.space == "shared"]
GLOBAL = [r for r in _recorded() if r.space == "global"]


def shared_errors(recorded: Recorded) -> dict[str, int]:
    """Counter -> in how many launches (or patterns) the shared model is not equal to it."""
    cost = shared.shared_access(recorded.addresses, recorded.width, recorded.op, recorded.active)
    suffix = SUFFIX[recorded.op]
    pairs = {WAVEFRONTS.format(suffix): cost.wavefronts, CONFLICTS.format(suffix): cost.conflicts}
    errors = {metric: _launch_errors(recorded, metric, values) for metric, values in pairs.items()}
    if not (recorded.op == "load" and recorded.width >= 8):  # there the Source page is not the hardware
        errors |= _pattern_errors(recorded, {"memory_l1_wavefronts_shared": cost.wavefronts})
    return errors


def global_errors(recorded: Recorded) -> dict[str, int]:
    """Counter -> in how many launches (or patterns) the global model is not equal to it."""
    cost = coalescing.global_access(recorded.addresses, recorded.width, recorded.op, recorded.active)
    errors = _pattern_errors(
        recorded,
        {"memory_l2_theoretical_sectors_global": cost.sectors, "memory_l1_tag_requests_global": cost.lines},
    )
    if recorded.op == "atomic":  # its hardware counters were not recorded
        return errors
    suffix = SUFFIX[recorded.op]
    requests = np.asarray(recorded.active.any(axis=1))
    pairs = {SECTORS.format(suffix): cost.sectors, REQUESTS.format(suffix): requests}
    if recorded.op == "load":
        pairs[LINES] = cost.lines
    return errors | {metric: _launch_errors(recorded, metric, values) for metric, values in pairs.items()}


def _launch_errors(recorded: Recorded, metric: str, values: np.ndarray) -> int:
    predicted = values.reshape(LAUNCHES).sum(axis=1)
    return int(np.count_nonzero(predicted != recorded.hardware(metric)))


def _pattern_errors(recorded: Recorded, columns: dict[str, np.ndarray]) -> dict[str, int]:
    errors = {}
    for column, values in columns.items():
        measured, readable = recorded.source(column)
        assert np.count_nonzero(readable) >= 510
        errors[column] = int(np.count_nonzero((values != measured) & readable))
    return errors
