"""What was found out with memsim: speed beside cuBLAS, a kernel tuned by its counts, what articles claim.

Nothing in `memsim/` needs it, and the wheel leaves it out. From the checkout: `python -m studies.bench`.
"""
