"""Sweeps: one kernel, or a function in Python, in many variants, each analyzed, all in one table.

In: a target and its launch as texts, some of which stand for several values. Out: a row for each variant,
kept in a file that a later sweep goes on with. Left out on purpose: which variant is good.
"""
