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
from memsim.isa.op import Effect
from memsim.isa.registry import RECORDS, OpcodeRecord

#: All state spaces.
ANY_ACCESS = tuple((access, space) for access in ("load", "store") for space in ("shared", "global", "local"))

#: The record of an unknown opcode: it may do anything to all memory and to all registers that it names.
STRANGER = OpcodeRecord("?", None, "P?R?P?", {0: 4, 1: 4}, Effect.MEMORY, touches=ANY_ACCESS, known=False)

__all__ = ["ANY_ACCESS", "RECORDS", "STRANGER"]
