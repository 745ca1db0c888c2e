"""The microbenchmark behind the model: one instruction, one warp, thousands of address patterns.

In: the GPU of this machine, or a recording of such a run. Out: for which instructions the model's rules
hold there. Left out on purpose: time, and several warps at once (`memsim.validate.live` has whole kernels).
"""
