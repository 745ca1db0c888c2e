"""The microbenchmark behind bounds in cycles: loops of one instruction that keep one unit busy in all warps.

In: the GPU of this machine, or a recording of such a run. Out: whether instructions take the pipes, and for
the cycles, that `memsim.model.pipes` says. Left out on purpose: latencies.
"""
