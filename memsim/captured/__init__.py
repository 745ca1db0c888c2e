"""Kernels written in Python: captures launches of Triton, Warp and CuTe DSL, and
kernels of CuPy.

Works without a driver. Each launch is a `Launched` record, to be analyzed, run and saved. No package is
imported that the caller has not imported.
"""
