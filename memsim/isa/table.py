"""The complete table of opcodes: importing this imports every module of this folder, which register them."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import memsim.isa
from memsim.isa.definitions import DEFINITIONS

__all__ = ["DEFINITIONS"]

for _module in iter_modules(memsim.isa.__path__):
    import_module(f"memsim.isa.{_module.name}")
