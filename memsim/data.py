"""The locations of the folders that ship with memsim, `kernels/`, `native/`, `traces/` and a page of `docs/`,
in a wheel or a checkout; and the address of its documentation.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parent


def data_folder(name: str) -> Path:
    """The folder `name`: inside the package in a wheel (see `pyproject.toml`), beside it in a checkout."""
    installed = PACKAGE / "_data" / name
    return installed if installed.is_dir() else PACKAGE.parent / name


def documentation() -> str:
    """The address of the published documentation, which a release knows; "" without one."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        addresses = metadata("memsim").get_all("Project-URL") or []
    except PackageNotFoundError:  # it runs from a folder
        return ""
    named = dict(str(text).split(", ", 1) for text in addresses)
    return named.get("Documentation", "")
