"""Turing: T4, RTX 20. Nothing was measured on it here."""

from __future__ import annotations

from memsim.arch.chip import Arch, DataSheet, Front
from memsim.arch.elsewhere import ONLY_SM_90, as_on_sm_90

# Sizes: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", 7.5; resident
# blocks, portions and barriers: cuda_occupancy.h of CUDA 13.0. In front of the parameters: code that
# nvcc 13.0 makes for the chip.
SM_75 = Arch(
    name="sm_75",
    chip="NVIDIA T4",
    rules=as_on_sm_90(without=("cp_async", "cp_async_cg", *ONLY_SM_90)),
    front=Front(descriptor=None, of_groups=None),
    sheet=DataSheet("NVIDIA GeForce RTX 2080 Ti", dram=616e9, clock=1_545e6, l2=6 << 20),
    shared_block_bytes=65_536,
    shared_multiprocessor_bytes=65_536,
    shared_reserved_bytes=0,
    shared_granule_bytes=256,
    resident_blocks=16,
    resident_warps=32,
    resident_barriers=256,
    multiprocessors=40,
)
