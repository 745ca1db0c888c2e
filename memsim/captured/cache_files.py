"""Which folders are those of Triton's cache, and what in them describes kernels. Reads no file's contents."""

from __future__ import annotations

from pathlib import Path

from memsim.files import folder_exists


def is_cache(path: Path) -> bool:
    """Is it a folder with a kernel that Triton compiled?"""
    return folder_exists(path) and bool(descriptions(path))


def descriptions(folder: Path) -> list[Path]:
    """The descriptions of its kernels."""
    described = sorted(path for path in folder.glob("*.json") if not path.name.startswith("__grp__"))
    return [path for path in described if path.with_suffix(".cubin").is_file()]
