"""CUDA text to a kernel, for tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from memsim.api.loading import load
from memsim.api.module import Module
from memsim.kernel import Kernel


def kernel(folder: Path, text: str, name: str = "k", **defines: Any) -> Kernel:
    """Compile `text` and give its kernel; lines in errors are lines of `text`."""
    path = folder / "test.cu"
    path.write_text(text)
    return _compiled(path, text, tuple(f"-D{key}={value}" for key, value in defines.items()))[name]


@cache
def _compiled(path: Path, text: str, options: tuple[str, ...]) -> Module:
    """The module in the file, which holds `text`: compiled once for all tests."""
    return load(path, list(options), code="ptx")
