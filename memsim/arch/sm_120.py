"""Blackwell: RTX 50. Nothing was measured on it here."""

from __future__ import annotations

from memsim.arch.chip import Arch, DataSheet
from memsim.arch.elsewhere import BLACKWELL_FRONT, as_on_sm_90

# Sizes: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", 12.0; resident
# blocks, portions and barriers: cuda_occupancy.h of CUDA 13.0. In front of the parameters: code that
# nvcc 13.0 makes for the chip.
SM_120 = Arch(
    name="sm_120",
    chip="NVIDIA GeForce RTX 5090",
    rules=as_on_sm_90(without=("wgmma",)),
    front=BLACKWELL_FRONT,
    sheet=DataSheet("NVIDIA GeForce RTX 5090", dram=1_792e9, clock=2_407e6, l2=96 << 20),
    shared_block_bytes=101_376,
    shared_multiprocessor_bytes=102_400,
    resident_blocks=24,
    resident_warps=48,
    resident_barriers=24,
    multiprocessors=170,
)
