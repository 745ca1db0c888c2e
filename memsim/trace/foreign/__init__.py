"""Traces of other tools: reads NVBit's `mem_trace` and Accel-Sim's `.traceg`, and writes the latter
(docs/traces.md).

Files may be compressed and are read line by line.
"""
