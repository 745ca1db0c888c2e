"""Blackwell: B200, GB200. Nothing was measured on it here."""

from __future__ import annotations

from memsim.arch.chip import Arch, DataSheet
from memsim.arch.elsewhere import BLACKWELL_FRONT, as_on_sm_90

# Sizes: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", 10.0; resident
# blocks, portions and barriers: cuda_occupancy.h of CUDA 13.0. In front of the parameters: code that
# nvcc 13.0 makes for the chip.
SM_100 = Arch(
    name="sm_100",
    chip="NVIDIA B200",
    rules=as_on_sm_90(without=("wgmma",)),
    front=BLACKWELL_FRONT,
    sheet=DataSheet("NVIDIA B200", dram=8_000e9, clock=1_965e6, l2=126 << 20),
    multiprocessors=148,
)
