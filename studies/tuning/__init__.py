"""docs/tuning.md: how `sgemm_tuned` came about, and what each of its decisions is worth.

In: the kernel's variants, what memsim counts of them, and recordings of their speed. Out: the generated parts
of the page.
"""

from __future__ import annotations

from studies.tuning.page import PARTS

__all__ = ["PARTS"]
