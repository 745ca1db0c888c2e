"""The tiles that `sgemm` could launch at each of the sizes that studies/sizes lists."""

from __future__ import annotations

from memsim.kernels.shipped import digest
from studies.bench.recording import Size
from studies.choices.choice import TILES, Choice
from studies.dispatch import PARTS, Piece, dispatchers
from studies.kernel_ptx import ptx_of
from studies.sizes import DISPATCHER


def tiles_at(size: Size) -> tuple[Piece, ...]:
    """All, each with the kernel that adds its parts of K."""
    return dispatchers()[DISPATCHER].alternatives(size)


def choice_of(size: Size, piece: Piece) -> Choice:
    """A tile's name and code."""
    told = f"{piece.spec.name}, {PARTS} {piece.parts}"
    return Choice(TILES, "x".join(map(str, size)), told, digest(ptx_of(piece.spec)))
