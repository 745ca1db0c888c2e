"""What the approximations of a launch move, on a chip whose unit was not measured (`margin_steps.py`)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

#: The lowest and the highest that a register may hold, float32 (B, T); None if they are not known.
Limits = tuple[np.ndarray, np.ndarray] | None


@dataclass
class Margins:
    """What the approximations of a launch move.

    limits: those of registers of the running basic block, by slot. met, moved: the instructions that were
    looked at, and those of them whose results may differ between chips; the others' are certain.
    """

    limits: dict[int, Limits] = field(default_factory=dict)
    met: set[int] = field(default_factory=set)
    moved: set[int] = field(default_factory=set)
