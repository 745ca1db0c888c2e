"""Facts about a chip that the models use, and which instructions were measured on it.

In: an architecture's name. Out: a frozen `Arch`, passed along to whoever needs a fact; each chip is one file
of data. Left out on purpose: kernels, and every chip on which the rules were not measured: a rule that holds
on one chip is a guess on another.
"""

from __future__ import annotations

from memsim.arch.chip import Arch, Measured
from memsim.arch.sm_90 import SM_90
from memsim.errors import MemsimError

__all__ = ["ARCHS", "SM_90", "Arch", "Measured", "get_arch"]

ARCHS = {arch.name: arch for arch in (SM_90,)}


def get_arch(name: str | Arch) -> Arch:
    """The chip called `name`, such as "sm_90"; a chip is itself.

    Raises:
        MemsimError: nothing was measured on a chip of that name.
    """
    if isinstance(name, Arch):
        return name
    if name in ARCHS:
        return ARCHS[name]
    known = ", ".join(ARCHS)
    raise MemsimError(
        f"no measured rules for architecture {name!r}",
        hint=f"known: {known}; others have not been measured, and a rule is not carried over unmeasured",
    )
