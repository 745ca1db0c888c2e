"""What needs an assembler of PTX: the test extra brings nvJitLink where NVIDIA has a wheel of it."""

from __future__ import annotations

import pytest

from memsim.compile.libraries import NVJITLINK
from memsim.compile.toolkit import find_tool

with NVJITLINK.loaded() as library:
    IS_THERE = library is not None or find_tool("ptxas") is not None

needs_assembler = pytest.mark.skipif(not IS_THERE, reason="no assembler of PTX is installed")
