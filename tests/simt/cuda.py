"""CUDA text to a kernel, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memsim.api.loading import load
from memsim.kernel import Kernel


def kernel(folder: Path, text: str, name: str = "k", **defines: Any) -> Kernel:
    """Compile `text` and give its kernel; lines in errors are lines of `text`."""
    path = folder / "test.cu"
    path.write_text(text)
    return load(path, [f"-D{key}={value}" for key, value in defines.items()], code="ptx")[name]
