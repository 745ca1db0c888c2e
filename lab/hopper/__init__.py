"""Microbenchmarks of Hopper: `wgmma`, TMA copies, distributed shared memory, mbarriers, local memory.

Each launch runs one small kernel once, under ncu, in one configuration. A recording holds the kernels'
source, the launches and their counters; a run on another GPU repeats its launches.
"""
