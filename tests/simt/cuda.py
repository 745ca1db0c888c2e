"""CUDA text to a kernel, for tests."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from memsim.api.loading import load
from memsim.api.module import Module
from memsim.kernel import Kernel


def kernel(folder: Path, text: str, name: str = "k", **defines: Any) -> Kernel:
    """Compile `text` and give its kernel as PTX; lines in errors are lines of `text`. folder: `tmp_path`."""
    options = tuple(f"-D{key}={value}" for key, value in defines.items())
    return _compiled(folder.parent, text, options, "ptx")[name]


def machine_kernel(folder: Path, text: str, name: str = "k") -> Kernel:
    """The same as machine code."""
    return _compiled(folder.parent, text, (), "sass")[name]


@cache
def _compiled(session: Path, text: str, options: tuple[str, ...], code: str) -> Module:
    """The module of a text, compiled once for all tests."""
    folder = session / sha256(text.encode()).hexdigest()[:16]
    folder.mkdir(exist_ok=True)
    path = folder / "test.cu"
    path.write_text(text)
    return load(path, list(options), code=code)
