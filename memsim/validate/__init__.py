"""Predictions beside what Nsight Compute counts on a GPU: live, or from a recording.

In: kernels of the catalogue. Out: recordings of hardware counters, and comparisons with them.
Left out on purpose: how a prediction is made (`memsim.analysis`, `memsim.model`) and how a
comparison is printed (`memsim.views`).
"""
