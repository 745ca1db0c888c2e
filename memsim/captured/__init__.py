"""Kernels written in Python: their launches as they are made, and what memsim needs of each.

In: launches of Triton, Numba, Warp and CuTe DSL, kernels of Numba and CuPy, where there is no driver. Out:
`Launched` records, which are analyzed, run and saved. Nothing is imported that the caller has not imported.
"""
