"""Times instructions, caches and launches of a multiprocessor: what the constants of `memsim.time` come from.

The programs (`*.cu`) need nvcc and no profiler, and print a line for each measurement.
"""
