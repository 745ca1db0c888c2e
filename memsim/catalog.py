"""Shim for the rename; goes away."""
from memsim.kernels import *  # noqa: F403
from memsim.kernels import catalog  # noqa: F401
