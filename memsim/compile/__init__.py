"""Compiles CUDA C++ to machine code or PTX with NVRTC, after removing host code if necessary, or with `nvcc`;
assembles PTX.

Everything here works without a GPU and a driver. The results have line information.
"""
