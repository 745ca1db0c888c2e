"""Pictures in a terminal, one module for each kind, from the same records as the figures.

In: records of `memsim.inspect`. Out: text on a stream; colours only where somebody is watching, and nothing
that is said by colour alone.
"""
