"""Counts from addresses: pure functions of (addresses, width, op, active lanes, chip). Rules and sources:
docs/model.md.
"""

from memsim.model.coalescing import GlobalCost, global_access
from memsim.model.counters import COUNTERS, Counter
from memsim.model.cp_async import bypass_access, copy_access
from memsim.model.shared import SharedCost, shared_access
from memsim.model.sourcepage import (
    bypass_source_page,
    copy_source_page,
    global_source_page,
    shared_source_page,
)

__all__ = [
    "COUNTERS",
    "Counter",
    "GlobalCost",
    "SharedCost",
    "bypass_access",
    "bypass_source_page",
    "copy_access",
    "copy_source_page",
    "global_access",
    "global_source_page",
    "shared_access",
    "shared_source_page",
]
