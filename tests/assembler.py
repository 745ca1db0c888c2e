"""What needs an assembler of PTX: the test extra brings ptxas where NVIDIA has a wheel of it."""

from __future__ import annotations

import pytest

from memsim.compile.toolkit import find_tool

needs_assembler = pytest.mark.skipif(find_tool("ptxas") is None, reason="no assembler of PTX is installed")
