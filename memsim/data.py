"""The locations of the folders that ship with memsim, `kernels/`, `native/` and `traces/`, in a wheel or a
checkout.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parent


def data_folder(name: str) -> Path:
    """The folder `name`: inside the package in a wheel (see `pyproject.toml`), beside it in a checkout."""
    installed = PACKAGE / "_data" / name
    return installed if installed.is_dir() else PACKAGE.parent / name
