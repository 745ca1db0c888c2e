"""Hopper: H100 and H200."""

from __future__ import annotations

from memsim.arch.chip import MEASURED, Arch, DataSheet, Front, MemoryRates, Rule

# Where in the recordings: docs/model.md.
_PATTERNS = "512 address patterns or more of each width, one warp"
_DIRECTED = "directed patterns, one warp"
_KERNELS = "compiled kernels, instruction by instruction"
_GENERIC = "generic addresses, patterns of lanes in several spaces, one warp of an H200"
_PROBE = "the probe of Hopper's own instructions, on an H200"
_TEXTURES = "patterns of fetches, one launch of one warp of an H200 for each"
_LANES_1_TO_16 = (1, 2, 4, 8, 16)

# Sizes: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", 9.0.
# What the system reserves: the same guide, "Shared Memory" of 9.0; granularity: CUDA Occupancy Calculator.
# Banks: the same guide, "Shared Memory" of compute capability 5.x and later.
SM_90 = Arch(
    name="sm_90",
    chip="NVIDIA H100 80GB HBM3",
    rules=(
        Rule("shared", "load", _LANES_1_TO_16, _PATTERNS),
        Rule("shared", "store", _LANES_1_TO_16, _PATTERNS),
        Rule("shared", "atomic", (4, 8), f"{_PATTERNS}; 8 bytes: exchange, {_DIRECTED}"),
        Rule("shared", "reduction", (4,), _PATTERNS),
        Rule("shared", "atomic_inc", (4,), _PATTERNS),
        Rule("shared", "atomic_cas", (4, 8), _DIRECTED),
        Rule("shared", "ldmatrix", (16,), _PATTERNS),
        Rule("shared", "stmatrix", (16,), _PATTERNS),
        Rule("shared", "cp_async", (4, 8, 16), f"{_PATTERNS}; of data in the cache 4 bytes, {_DIRECTED}"),
        Rule("shared", "load_generic", _LANES_1_TO_16, _GENERIC),
        Rule("shared", "atomic_unmade", (4, 8), _GENERIC),
        Rule("shared", "atomic_cas_unmade", (4, 8), f"{_GENERIC}; 8 bytes: {_PROBE}"),
        Rule("shared", "wgmma", tuple(range(8, 328, 8)), _PROBE),
        Rule("shared", "cluster_load", _LANES_1_TO_16, _PROBE),
        Rule("shared", "cluster_store", _LANES_1_TO_16, _PROBE),
        Rule("shared", "cluster_atomic", (4, 8), _PROBE),
        Rule("shared", "cluster_atomic_cas", (4, 8), _PROBE),
        Rule("shared", "cluster_async_store", (4, 8, 16), _PROBE),
        Rule("shared", "cluster_async_reduction", (4, 8), _PROBE),
        Rule("shared", "async_reduction", (4, 8), _PROBE),
        Rule("shared", "async_store", (4, 8, 16), _PROBE),
        Rule("shared", "cluster_bulk_store", (16,), _PROBE),
        Rule("shared", "cluster_bulk_reduction", (16,), _PROBE),
        Rule("global", "bulk_load", (16,), _PROBE),
        Rule("global", "bulk_multicast", (16,), _PROBE),
        Rule("global", "bulk_store", (16,), _PROBE),
        Rule("global", "bulk_reduction", (16,), f"{_PROBE}; 8 launches"),
        Rule("global", "load", _LANES_1_TO_16, _PATTERNS),
        Rule("global", "store", _LANES_1_TO_16, _PATTERNS),
        Rule("global", "atomic", _LANES_1_TO_16, f"{_PATTERNS}; only 4 and 8 bytes in the recordings"),
        Rule("global", "reduction", _LANES_1_TO_16, f"{_PATTERNS}; only 4 and 8 bytes in the recordings"),
        Rule("global", "cp_async", (4, 8, 16), _PATTERNS),
        Rule("global", "cp_async_cg", (16,), f"{_DIRECTED}; lines: {_PATTERNS}"),
        Rule("local", "load", _LANES_1_TO_16, _KERNELS),
        Rule("local", "store", _LANES_1_TO_16, _KERNELS),
        Rule("local", "atomic", (4,), _PROBE),
        Rule("local", "reduction", (4,), _PROBE),
        Rule("constant", "load", (1, 2, 4, 8), _KERNELS),
        Rule("texture", "fetch", _LANES_1_TO_16, _TEXTURES),
        Rule("texture", "point", _LANES_1_TO_16, _TEXTURES),
        Rule("texture", "point_pitched", (1, 4, 8, 16), _TEXTURES),
        Rule("texture", "filtered", (1, 2, 4, 8), _TEXTURES),
        Rule("texture", "filtered_pitched", (1, 4, 8), _TEXTURES),
        Rule("texture", "gather", (4, 16), _TEXTURES),
    ),
    front=Front(
        shared_window=None,
        constants=0xD0,
        in_cluster=0x140,
        cluster=0x188,
        parameters=0x198,
        descriptor=0x208,
        workspace=0x44,
        of_groups=0x6C,
    ),
    sheet=DataSheet("NVIDIA H200", dram=4_800e9, clock=1_980e6, l2=50 << 20),
    rates=MEASURED,
    functions=MEASURED,  # traces/*/functions.npz
    # traces/*/rates/, the streams, rounded up by what their start and end cost; no recorded launch is faster.
    boards=(
        MemoryRates(
            "NVIDIA H200",
            l2_read=138,
            l2_written=73,
            l2_read_of_one=4,
            l2_written_of_one=1,
            dram=4_600e9,
        ),
        MemoryRates(
            "NVIDIA H100 80GB HBM3",
            l2_read=120,
            l2_written=63,
            l2_read_of_one=4,
            l2_written_of_one=1,
            dram=3_200e9,
        ),
    ),
)
