"""The guard: budgets, baselines, and the comparison of two analyses.

In: `Analysis` records, budgets as text, the rows of a baseline. Out: what holds, what is broken, and where.
Left out on purpose: how an analysis was made, which kernels a project guards (`memsim.targets`), and how a
result is printed (`memsim.views`).
"""
