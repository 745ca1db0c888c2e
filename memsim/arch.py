"""Facts about a chip that the models use, and which instructions were measured on it.

In: an architecture's name. Out: a frozen `Arch`. Left out on purpose: kernels, and every chip
on which the rules were not measured: a rule that holds on one chip is a guess on another.
"""

from __future__ import annotations

from dataclasses import dataclass

from memsim.errors import MemsimError


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

    def ops(self, space: str) -> tuple[str, ...]:
        """The operations measured in `space` ("shared" or "global")."""
        return tuple(entry.op for entry in self.measured if entry.space == space)

    def widths(self, space: str, op: str) -> tuple[int, ...]:
        """The widths, bytes a lane, measured for `op` in `space`; empty if there are none."""
        return next((e.widths for e in self.measured if (e.space, e.op) == (space, op)), ())


# Where in the recordings: docs/model.md.
_PATTERNS = "512 address patterns or more of each width, one warp"
_DIRECTED = "directed patterns, one warp"
_LANES_1_TO_16 = (1, 2, 4, 8, 16)

# Sizes: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", 9.0.
# Banks: the same guide, "Shared Memory" of compute capability 5.x and later.
SM_90 = Arch(
    name="sm_90",
    chip="NVIDIA H100 80GB HBM3",
    measured=(
        Measured("shared", "load", _LANES_1_TO_16, _PATTERNS),
        Measured("shared", "store", _LANES_1_TO_16, _PATTERNS),
        Measured("shared", "atomic", (4, 8), f"{_PATTERNS}; 8 bytes: exchange, {_DIRECTED}"),
        Measured("shared", "reduction", (4,), _PATTERNS),
        Measured("shared", "atomic_inc", (4,), _PATTERNS),
        Measured("shared", "atomic_cas", (4, 8), _DIRECTED),
        Measured("shared", "ldmatrix", (16,), _PATTERNS),
        Measured("shared", "stmatrix", (16,), _PATTERNS),
        Measured("shared", "cp_async", (4, 8, 16), f"{_PATTERNS}; of data in the cache 4 bytes, {_DIRECTED}"),
        Measured("global", "load", _LANES_1_TO_16, _PATTERNS),
        Measured("global", "store", _LANES_1_TO_16, _PATTERNS),
        Measured("global", "atomic", _LANES_1_TO_16, f"{_PATTERNS}; only 4 and 8 bytes in the recordings"),
        Measured("global", "reduction", _LANES_1_TO_16, f"{_PATTERNS}; only 4 and 8 bytes in the recordings"),
        Measured("global", "cp_async", (4, 8, 16), _PATTERNS),
        Measured("global", "cp_async_cg", (16,), f"{_DIRECTED}; lines: {_PATTERNS}"),
    ),
)

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
