"""memsim counts the cost of a CUDA kernel's memory accesses from its compiled code, without a GPU.

It analyzes kernels (`load`, `catalog`) and launches (`analyze`, `run`), index math in Python (`SharedArray`,
`GlobalArray`) and plain addresses (`shared_access`, `global_access`), and counts wavefronts, bank conflicts
and sectors exactly as the hardware does. Names are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memsim.api.loading import load
    from memsim.api.running import run
    from memsim.argument_types import ArrayArg, Pointers, TensorMap, TensorMaps, Texture
    from memsim.captured.analyze_any import analyze, sanitize
    from memsim.captured.session import capture
    from memsim.driver.own_device import device
    from memsim.errors import MemsimError
    from memsim.kernels import catalog
    from memsim.layout import Layout, Swizzle
    from memsim.plain_addresses import global_access, shared_access
    from memsim.shown import ShownAnalysis as Analysis
    from memsim.sketch import GlobalArray, SharedArray
    from memsim.trace.trace import Trace
    from memsim.version import __version__

__all__ = [
    "Analysis",
    "ArrayArg",
    "GlobalArray",
    "Layout",
    "MemsimError",
    "Pointers",
    "SharedArray",
    "Swizzle",
    "TensorMap",
    "TensorMaps",
    "Texture",
    "Trace",
    "__version__",
    "analyze",
    "capture",
    "catalog",
    "device",
    "global_access",
    "load",
    "run",
    "sanitize",
    "shared_access",
]

_HOMES = {
    "Analysis": "memsim.shown:ShownAnalysis",
    "ArrayArg": "memsim.argument_types",
    "GlobalArray": "memsim.sketch",
    "Layout": "memsim.layout",
    "MemsimError": "memsim.errors",
    "Pointers": "memsim.argument_types",
    "SharedArray": "memsim.sketch",
    "Swizzle": "memsim.layout",
    "TensorMap": "memsim.argument_types",
    "TensorMaps": "memsim.argument_types",
    "Texture": "memsim.argument_types",
    "Trace": "memsim.trace.trace",
    "__version__": "memsim.version",
    "analyze": "memsim.captured.analyze_any",
    "capture": "memsim.captured.session",
    "catalog": "memsim.kernels",
    "device": "memsim.driver.own_device",
    "global_access": "memsim.plain_addresses",
    "load": "memsim.api.loading",
    "run": "memsim.api.running",
    "sanitize": "memsim.captured.analyze_any",
    "shared_access": "memsim.plain_addresses",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, _, called = _HOMES[name].partition(":")
    value = getattr(import_module(home), called or name)
    globals()[name] = value  # cached for the next access
    return value


def __dir__() -> list[str]:
    """All public names, including those not yet imported."""
    return sorted(__all__)
