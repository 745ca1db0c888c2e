"""Ampere: RTX 30, A10, A40. Nothing was measured on it here."""

from __future__ import annotations

from memsim.arch.chip import Arch, DataSheet, Front
from memsim.arch.elsewhere import ONLY_SM_90, as_on_sm_90

# Sizes: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", 8.6; resident
# blocks, portions and barriers: cuda_occupancy.h of CUDA 13.0. In front of the parameters: code that
# nvcc 13.0 makes for the chip.
SM_86 = Arch(
    name="sm_86",
    chip="NVIDIA GeForce RTX 3090",
    rules=as_on_sm_90(without=ONLY_SM_90),
    front=Front(),
    sheet=DataSheet("NVIDIA GeForce RTX 3090", dram=936e9, clock=1_695e6, l2=6 << 20),
    shared_block_bytes=101_376,
    shared_multiprocessor_bytes=102_400,
    resident_blocks=16,
    resident_warps=48,
    resident_barriers=256,
    multiprocessors=82,
)
