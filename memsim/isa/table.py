"""The complete table of opcodes: importing this registers all of them."""

from __future__ import annotations

import memsim.isa.async_copy
import memsim.isa.async_stores
import memsim.isa.atomics
import memsim.isa.bits
import memsim.isa.bulk_copy
import memsim.isa.bulk_reductions
import memsim.isa.comparisons
import memsim.isa.constants
import memsim.isa.control
import memsim.isa.convert
import memsim.isa.double
import memsim.isa.functions
import memsim.isa.half
import memsim.isa.integer
import memsim.isa.lanes
import memsim.isa.logic
import memsim.isa.matrix
import memsim.isa.matrix_memory
import memsim.isa.mbarrier
import memsim.isa.memory
import memsim.isa.minima
import memsim.isa.moves
import memsim.isa.single
import memsim.isa.small_integers
import memsim.isa.special_reads
import memsim.isa.tensor_copy
import memsim.isa.texture
import memsim.isa.unexecuted
import memsim.isa.warpgroup  # noqa: F401
from memsim.isa.definitions import DEFINITIONS

__all__ = ["DEFINITIONS"]
