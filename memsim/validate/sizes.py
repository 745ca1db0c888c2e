"""The size at which a kernel is validated: its default, one that the user names, or a ragged one."""

from __future__ import annotations

from memsim.kernels import Spec

RAGGED = "ragged"
ODD = (331, 269, 147, 3)  # not a multiple of any tile; K in three parts, if a kernel splits it


def size_of(spec: Spec, wanted: str | None) -> tuple[int, ...]:
    """`wanted` is `M,N,K`, "ragged" or None for the default.

    Raises:
        MemsimError: a size that the kernel does not support.
    """
    return tuple(spec.sizes(ragged_size(spec) if wanted == RAGGED else wanted).values())


def ragged_size(spec: Spec) -> tuple[int, ...]:
    """A size that is not a multiple of any tile, as far as the kernel allows."""
    divisors = dict(spec.requires)
    names = zip(spec.family.sizes, ODD, strict=False)
    return tuple(-(-extent // divisors.get(name, 1)) * divisors.get(name, 1) for name, extent in names)
