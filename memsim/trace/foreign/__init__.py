"""Traces from and for other tools: NVBit's `mem_trace`, Accel-Sim's `.traceg` (docs/traces.md).

In: a file, compressed or not, read line by line. Out: a `Trace`; and an Accel-Sim trace of one.
"""
