"""What needs an assembler of PTX: the test extra brings nvJitLink where NVIDIA has a wheel of it."""

from __future__ import annotations

import pytest

from memsim.compile.libraries import NVJITLINK
from memsim.compile.toolkit import find_tool

needs_assembler = pytest.mark.skipif(
    find_tool("ptxas") is None and NVJITLINK.path() is None, reason="no assembler of PTX is installed"
)
