"""Hopper: H100 and H200."""

from __future__ import annotations

from memsim.arch.chip import Arch, Measured

# Where in the recordings: docs/model.md.
_PATTERNS = "512 address patterns or more of each width, one warp"
_DIRECTED = "directed patterns, one warp"
_LANES_1_TO_16 = (1, 2, 4, 8, 16)

# Sizes: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", 9.0.
# What the system reserves: the same guide, "Shared Memory" of 9.0; portions: CUDA Occupancy Calculator.
# Banks: the same guide, "Shared Memory" of compute capability 5.x and later.
SM_90 = Arch(
    name="sm_90",
    chip="NVIDIA H100 80GB HBM3",
    measured=(
        Measured("shared", "load", _LANES_1_TO_16, _PATTERNS),
        Measured("shared", "store", _LANES_1_TO_16, _PATTERNS),
        Measured("shared", "atomic", (4, 8), f"{_PATTERNS}; 8 bytes: exchange, {_DIRECTED}"),
        Measured("shared", "reduction", (4,), _PATTERNS),
        Measured("shared", "atomic_inc", (4,), _PATTERNS),
        Measured("shared", "atomic_cas", (4, 8), _DIRECTED),
        Measured("shared", "ldmatrix", (16,), _PATTERNS),
        Measured("shared", "stmatrix", (16,), _PATTERNS),
        Measured("shared", "cp_async", (4, 8, 16), f"{_PATTERNS}; of data in the cache 4 bytes, {_DIRECTED}"),
        Measured("global", "load", _LANES_1_TO_16, _PATTERNS),
        Measured("global", "store", _LANES_1_TO_16, _PATTERNS),
        Measured("global", "atomic", _LANES_1_TO_16, f"{_PATTERNS}; only 4 and 8 bytes in the recordings"),
        Measured("global", "reduction", _LANES_1_TO_16, f"{_PATTERNS}; only 4 and 8 bytes in the recordings"),
        Measured("global", "cp_async", (4, 8, 16), _PATTERNS),
        Measured("global", "cp_async_cg", (16,), f"{_DIRECTED}; lines: {_PATTERNS}"),
    ),
)
