"""Facts about chips that the models use, and how well each rule is supported on each chip.

A chip is a frozen `Arch`, defined in a data file of its own, which is found by its name. On sm_90 every rule
was measured; on other chips rules are published, assumed to hold as on sm_90, or measured by whoever
contributed a recording; reports say which.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules

from memsim.arch.chip import (
    ASSUMED,
    BY_CLOCK,
    MEASURED,
    PUBLISHED,
    Arch,
    Front,
    Rule,
    chip_number,
    exact_names,
    plain_name,
)
from memsim.arch.contributed import with_contributed
from memsim.arch.sm_90 import SM_90
from memsim.errors import MemsimError

__all__ = [
    "ARCHS",
    "ASSUMED",
    "BY_CLOCK",
    "MEASURED",
    "PUBLISHED",
    "SM_90",
    "Arch",
    "Front",
    "Rule",
    "arch_of_code",
    "get_arch",
    "plain_name",
]

_NAMES = sorted((one.name for one in iter_modules(__path__) if one.name.startswith("sm_")), key=chip_number)
#: Every chip by its name, oldest first: `SM_90` of `sm_90.py`, and so on for each such file here.
ARCHS: dict[str, Arch] = {name: getattr(import_module(f"{__name__}.{name}"), name.upper()) for name in _NAMES}


def get_arch(name: str | Arch) -> Arch:
    """The chip called `name`, such as "sm_90" (or "sm_90a"); an `Arch` is returned as it is.

    Raises:
        MemsimError: unknown architecture.
    """
    if isinstance(name, Arch):
        return name
    plain = plain_name(name)
    if plain in ARCHS and name in (plain, *exact_names(plain)):
        chip = ARCHS[plain]
        return chip if chip.is_measured else _with_contributed(chip)
    raise MemsimError(f"no rules for architecture {name!r}", hint=f"known: {', '.join(ARCHS)}")


def arch_of_code(made_for: str) -> Arch:
    """The chip that code was compiled for (`sm_90a`); sm_90 if it names none, or one that memsim does not
    know.
    """
    name = plain_name(made_for)
    return get_arch(name) if name in ARCHS else SM_90


@lru_cache(maxsize=16)
def _with_contributed(chip: Arch) -> Arch:
    return with_contributed(chip)
