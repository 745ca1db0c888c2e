"""Sweeps: analyzes many variants of a kernel or Python function and tabulates them.

Results are kept in a file, with which a later sweep continues.
"""
