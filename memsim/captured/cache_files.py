"""Recognizes folders of Triton's cache and the kernel metadata in them, without reading file contents."""

from __future__ import annotations

from pathlib import Path

from memsim.files import folder_exists


def is_cache(path: Path) -> bool:
    """Is it a folder with a kernel that Triton compiled?"""
    return folder_exists(path) and bool(descriptions(path))


def descriptions(folder: Path) -> list[Path]:
    """The metadata files of its kernels."""
    described = sorted(path for path in folder.glob("*.json") if not path.name.startswith("__grp__"))
    return [path for path in described if path.with_suffix(".cubin").is_file()]
