"""What a chip is to the models: sizes, and which accesses were measured on it.

In: nothing. Out: `Arch`, a frozen record that is passed along. Left out on purpose: any chip's own facts.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measured:
    """One kind of access whose cost was measured: widths in bytes a lane, and on what."""

    space: str
    op: str
    widths: tuple[int, ...]
    where: str


@dataclass(frozen=True, slots=True)
class Arch:
    """A chip as the models see it; sizes in bytes.

    `shared_block_bytes` is the most shared memory a block may ask for (dynamic, after opting in
    with `cudaFuncAttributeMaxDynamicSharedMemorySize`), `static_shared_bytes` the most it may declare.
    `shared_multiprocessor_bytes` is what the blocks of a multiprocessor share, in portions of
    `shared_granule_bytes`; of each block's the system keeps `shared_reserved_bytes` for itself.
    """

    name: str
    chip: str
    measured: tuple[Measured, ...]
    warp: int = 32
    banks: int = 32
    bank_bytes: int = 4
    line_bytes: int = 128
    sector_bytes: int = 32
    shared_block_bytes: int = 232_448
    static_shared_bytes: int = 49_152
    shared_multiprocessor_bytes: int = 233_472
    shared_reserved_bytes: int = 1_024
    shared_granule_bytes: int = 128
    resident_blocks: int = 32
    resident_warps: int = 64

    def __str__(self) -> str:
        return self.name

    def ops(self, space: str) -> tuple[str, ...]:
        """The operations measured in `space` ("shared" or "global")."""
        return tuple(entry.op for entry in self.measured if entry.space == space)

    def widths(self, space: str, op: str) -> tuple[int, ...]:
        """The widths, bytes a lane, measured for `op` in `space`; empty if there are none."""
        return next((e.widths for e in self.measured if (e.space, e.op) == (space, op)), ())
