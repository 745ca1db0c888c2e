"""What the models know of a chip: sizes, and which rules hold on it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from memsim.arch.units import BANKS, LINE, SECTOR, WARP, WORD

#: How well a rule is supported on a chip.
MEASURED, BY_CLOCK, PUBLISHED, ASSUMED = "measured", "measured by clock", "published", "assumed"


@dataclass(frozen=True, slots=True)
class Rule:
    """The cost of one kind of access is known for these widths, in bytes per lane.

    basis: MEASURED, by counters; BY_CLOCK, where there are none; PUBLISHED, with its source in `where`;
    ASSUMED to be as on sm_90.
    """

    space: str
    op: str
    widths: tuple[int, ...]
    where: str
    basis: str = MEASURED


@dataclass(frozen=True, slots=True)
class Front:
    """The part of constant bank 0 before a kernel's parameters, by byte offset; None if the chip has no such
    entry.

    block, grid: three words each. shared_window, local_base, constants: 8-byte addresses of shared and local
    memory and of the user's constant variables. stack: end of a thread's stack. dynamic: bytes of dynamic
    shared memory. in_cluster: whether there are clusters, blocks of a cluster in each dimension, their
    reciprocals as floats, and the number of clusters in each dimension. cluster: blocks of a cluster.
    parameters: their generic address. descriptor: of global memory; no address depends on it. workspace: of
    a cooperative launch (%envreg1, %envreg2), the upper half of its address first. by_cluster: how much
    earlier `dynamic` and `workspace` are for each block of a cluster, by SR_CgaSize. of_groups: where in
    shared memory groups of several warps meet (%reserved_smem_offset_1); unknown.
    """

    block: int = 0x0
    grid: int = 0xC
    shared_window: int | None = 0x18
    local_base: int = 0x20
    stack: int = 0x28
    dynamic: int | None = 0x2C
    constants: int = 0x50
    in_cluster: int | None = None
    cluster: int | None = None
    parameters: int | None = None
    descriptor: int | None = 0x118
    workspace: int | None = 0x8C
    of_groups: int | None = 0x124
    by_cluster: int = 0


@dataclass(frozen=True, slots=True)
class DataSheet:
    """What a vendor says of a product, and nobody measured here.

    dram: the most bytes that DRAM moves in a second. clock: of the multiprocessors, in Hz, the boost clock.
    l2: bytes of the L2 cache.
    """

    product: str
    dram: float
    clock: float
    l2: int


@dataclass(frozen=True, slots=True)
class MemoryRates:
    """The fastest that the L2 cache and DRAM of one product were seen, by kernels that only move data.

    product: its name, as the driver gives it. l2_read, l2_written: sectors that all multiprocessors read
    from and write to the L2 cache, in a cycle at their boost clock; l2_read_of_one, l2_written_of_one: that
    one of them does. dram: bytes a second, in both directions.
    """

    product: str
    l2_read: float
    l2_written: float
    l2_read_of_one: float
    l2_written_of_one: float
    dram: float


@dataclass(frozen=True, slots=True, repr=False)
class Arch:
    """A chip as the models see it; sizes in bytes.

    `shared_block_bytes` is the most shared memory a block may use (dynamic, after opting in with
    `cudaFuncAttributeMaxDynamicSharedMemorySize`), `static_shared_bytes` the most it may declare.
    `shared_multiprocessor_bytes` is shared by the resident blocks of a multiprocessor and allocated in units
    of `shared_granule_bytes`; `shared_reserved_bytes` of each block's are reserved for the system.
    `registers` counts the 32-bit registers of a multiprocessor, allocated to each warp in whole granules of
    its partition. `resident_*` are the most that can be resident on a multiprocessor. `multiprocessors` are
    those of `chip`.
    `sheet` describes the product whose DRAM moves most bytes a cycle, so its bandwidth bounds the others too.
    `rates`: how well the rates of the pipes are supported, as for a rule. `clocked`: (machine instruction,
    cycles for which it occupies its pipe), where a contributed clock measured them. `boards`: products with
    this chip whose memory was measured; the rates of the pipes are the chip's, those of memory the product's.
    """

    name: str
    chip: str
    rules: tuple[Rule, ...]
    front: Front
    sheet: DataSheet
    warp: int = WARP
    banks: int = BANKS
    bank_bytes: int = WORD
    line_bytes: int = LINE
    sector_bytes: int = SECTOR
    shared_block_bytes: int = 232_448
    static_shared_bytes: int = 49_152
    shared_multiprocessor_bytes: int = 233_472
    shared_reserved_bytes: int = 1_024
    shared_granule_bytes: int = 128
    resident_blocks: int = 32
    resident_warps: int = 64
    resident_barriers: int = 64
    registers: int = 65_536
    register_granule: int = 256
    partitions: int = 4
    multiprocessors: int = 132
    rates: str = ASSUMED
    functions: str = ASSUMED
    clocked: tuple[tuple[str, int], ...] = ()
    boards: tuple[MemoryRates, ...] = ()

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        """Not all its rules."""
        return f"<Arch {self.name}>"

    def ops(self, space: str) -> tuple[str, ...]:
        """The operations with a rule in `space`, such as "shared"."""
        return tuple(dict.fromkeys(entry.op for entry in self.rules if entry.space == space))

    def widths(self, space: str, op: str) -> tuple[int, ...]:
        """Widths in bytes per lane with a rule for `op` in `space`; empty if there are none."""
        return tuple(width for e in self.rules if (e.space, e.op) == (space, op) for width in e.widths)

    def basis(self, space: str, op: str, width: int) -> str:
        """How well the rule for an access is supported: MEASURED, BY_CLOCK, PUBLISHED or ASSUMED.

        An access without a rule of its own, which has limits, is served by the others.
        """
        found = (e.basis for e in self.rules if (e.space, e.op) == (space, op) and width in e.widths)
        return next(found, MEASURED if self.is_measured else ASSUMED)

    @property
    def memory(self) -> MemoryRates | None:
        """The product with the fastest DRAM, with the highest of each rate, so that a bound holds on all
        `boards`; None if there are none.
        """
        if not self.boards:
            return None
        return replace(
            max(self.boards, key=lambda board: board.dram),
            l2_read=max(board.l2_read for board in self.boards),
            l2_written=max(board.l2_written for board in self.boards),
            l2_read_of_one=max(board.l2_read_of_one for board in self.boards),
            l2_written_of_one=max(board.l2_written_of_one for board in self.boards),
        )

    def on(self, product: str) -> Arch:
        """The chip with the memory of one product, whose rates are unknown if it is not in `boards`."""
        return replace(self, boards=tuple(board for board in self.boards if board.product == product))

    @property
    def dram_bytes_a_cycle(self) -> float:
        """Bytes that DRAM moves in a cycle of the multiprocessors at their boost clock, at most."""
        return (self.memory or self.sheet).dram / self.sheet.clock

    @property
    def is_measured(self) -> bool:
        """Whether all its rules and the rates of its pipes were measured by counters."""
        return self.rates == MEASURED and all(rule.basis == MEASURED for rule in self.rules)

    def runs(self, made_for: str) -> bool:
        """Whether machine code compiled for a chip (`sm_90a`) runs on this one: same generation, not newer.

        https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/, "Binary code compatibility".
        """
        if not made_for:
            return True
        own, its = chip_number(self.name), chip_number(made_for)
        exact = made_for != plain_name(made_for)
        return its == own if exact else its // 10 == own // 10 and its <= own


def plain_name(made_for: str) -> str:
    """`sm_90` for `sm_90a`, which has extra instructions but is the same chip."""
    return made_for.rstrip("af")


def exact_names(name: str) -> tuple[str, ...]:
    """What code with a chip's own instructions is made for: `sm_90a` for `sm_90`, and `sm_100f` for a family.

    https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/, "GPU Feature List".
    """
    number = chip_number(name)
    return tuple(f"{name}{kind}" for kind, first in (("a", 90), ("f", 100)) if number >= first)


def chip_number(name: str) -> int:
    """90 of `sm_90a`."""
    return int(plain_name(name).removeprefix("sm_"))
