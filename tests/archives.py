"""Unpacking what the tests have packed, by Python 3.10.0 and newer."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Unpack it below the folder; paths that lead out of it are refused where Python can refuse them."""
    if hasattr(tarfile, "data_filter"):
        archive.extraction_filter = tarfile.data_filter
    archive.extractall(folder)
