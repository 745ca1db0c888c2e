"""Kernels written in Python: their launches as they are made, and what memsim needs of each.

In: launches of Triton and Numba, kernels of Numba and CuPy, on machines without a GPU or a driver. Out:
`Launched` records, which are analyzed, run and saved. Nothing is imported that the caller has not imported.
"""
