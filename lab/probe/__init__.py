"""The microbenchmark behind the model: one instruction, one warp, thousands of address patterns.

Tests for which instructions the model's rules hold, on this machine's GPU or in a recording. Time and several
warps are not probed (`memsim.validate.live` measures whole kernels).
"""
