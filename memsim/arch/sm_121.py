"""Blackwell: GB10 of DGX Spark. Nothing was measured on it here."""

from __future__ import annotations

from memsim.arch.chip import Arch, DataSheet
from memsim.arch.elsewhere import BLACKWELL_FRONT, as_on_sm_90

# Sizes: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", 12.x; resident
# blocks, portions and barriers: cuda_occupancy.h of CUDA 13.0. In front of the parameters: code that
# nvcc 13.0 makes for the chip, the same as for sm_120. Multiprocessors and DRAM: NVIDIA's page of DGX Spark
# (6,144 CUDA cores, 273 GB/s). Clock and L2 cache are not on it: as its users report them.
SM_121 = Arch(
    name="sm_121",
    chip="NVIDIA GB10",
    rules=as_on_sm_90(without=("wgmma",)),
    front=BLACKWELL_FRONT,
    sheet=DataSheet("NVIDIA DGX Spark", dram=273e9, clock=2_418e6, l2=24 << 20),
    shared_block_bytes=101_376,
    shared_multiprocessor_bytes=102_400,
    resident_blocks=24,
    resident_warps=48,
    resident_barriers=24,
    multiprocessors=48,
)
