"""The guard: budgets, baselines, and the comparison of two analyses.

Which kernels a project guards is in `memsim.targets`, printing in `memsim.views`.
"""
