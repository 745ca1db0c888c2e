"""The kernels that a project guards: where they are described, how they are launched and analyzed.

In: `memsim.toml`, or `[tool.memsim]` of `pyproject.toml`. Out: an `Analysis` for each target, in parallel
and from a cache. Left out on purpose: what the analyses must keep to (`memsim.guard`).
"""
