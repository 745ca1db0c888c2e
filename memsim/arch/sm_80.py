"""Ampere: A100. Nothing was measured on it here."""

from __future__ import annotations

from memsim.arch.chip import Arch, DataSheet, Front
from memsim.arch.elsewhere import ONLY_SM_90, as_on_sm_90

# Sizes: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", 8.0; resident
# blocks, portions and barriers: cuda_occupancy.h of CUDA 13.0. In front of the parameters: code that
# nvcc 13.0 makes for the chip.
SM_80 = Arch(
    name="sm_80",
    chip="NVIDIA A100-SXM4-80GB",
    rules=as_on_sm_90(without=ONLY_SM_90),
    front=Front(),
    sheet=DataSheet("NVIDIA A100-SXM4-80GB", dram=2_039e9, clock=1_410e6, l2=40 << 20),
    shared_block_bytes=166_912,
    shared_multiprocessor_bytes=167_936,
    resident_barriers=512,
    multiprocessors=108,
)
