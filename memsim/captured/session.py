"""`memsim.capture`: captures the launches of every supported package that has been imported.

Each package's own `capture_launches` replaces some of its attributes for as long as a capture lasts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from inspect import getattr_static
from typing import Any

from memsim.arch import get_arch, plain_name
from memsim.captured.launched import Launched
from memsim.errors import MemsimError

#: Packages whose launches can be captured, and the modules that do so.
PACKAGES = {
    "triton": "memsim.captured.triton",
    "numba": "memsim.captured.numba",
    "warp": "memsim.captured.warp",
    "cutlass": "memsim.captured.cute",
    "tilelang": "memsim.captured.tilelang",
}


@contextmanager
def replaced_attributes(*changes: tuple[Any, Mapping[str, Any]]) -> Iterator[None]:
    """Within the context, each of these modules, classes and objects has these attributes."""
    before = [(owner, name, getattr_static(owner, name)) for owner, names in changes for name in names]
    try:
        for owner, attributes in changes:
            for name, value in attributes.items():
                setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


@contextmanager
def capture(arch: str = "sm_90", keep: Callable[[Launched], None] | None = None) -> Iterator[list[Launched]]:
    """Captures launches of Triton, Numba, Warp, CuTe DSL and TileLang in the block, with or without a GPU.

    Without a GPU only Warp, which runs on the CPU, executes anything: kernels of the others read memory that
    no kernel has written. Arrays are copied when a launch is made.

    Args:
        arch: the chip to compile for.
        keep: called with each launch instead of adding it to the list.

    Raises:
        MemsimError: none of the packages has been imported.
    """
    chip = get_arch(plain_name(arch)).name
    found: list[Launched] = []
    here = [module for package, module in PACKAGES.items() if package in sys.modules]
    if not here:
        raise MemsimError(
            f"none of {', '.join(PACKAGES)} has been imported: there is nothing to capture",
            hint="import the package before `with memsim.capture()`",
        )
    with ExitStack() as stack:
        for module in here:
            stack.enter_context(import_module(module).capture_launches(keep or found.append, chip))
        yield found
