"""Traces from and for other tools: NVBit's `mem_trace`, Accel-Sim's `.traceg` (docs/traces.md).

In: a file, compressed or not, read line by line. Out: a `Trace`; and an Accel-Sim trace of one.
"""

from memsim.trace.foreign.read import is_foreign, read_foreign
from memsim.trace.foreign.write import is_accelsim, write_accelsim

__all__ = ["is_accelsim", "is_foreign", "read_foreign", "write_accelsim"]
