"""The microbenchmark behind bounds in cycles: loops of one instruction that keep one unit busy in all warps.

Tests whether instructions use the pipes, and for the cycles, of `memsim.model.pipes`. Latencies are not
measured.
"""
