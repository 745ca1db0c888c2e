"""docs/tuning.md: how `sgemm_tuned` came about, and what each of its decisions is worth."""

from __future__ import annotations

from studies.tuning.page import PARTS

__all__ = ["PARTS"]
