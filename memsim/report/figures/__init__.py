"""Pictures as matplotlib figures, one module for each kind.

In: records of `memsim.inspect`. Out: figures. matplotlib is the extra `plot`, loaded when a picture is made.
"""
