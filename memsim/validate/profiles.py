"""A launch as measured by ncu: counters of the launch, and metrics of every instruction.

Instructions are identified by address; their source lines are in the cubin's listing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from memsim.instruction import opcode_of
from memsim.model.operations import OPERATIONS

# Columns of a row: ncu's names of the metrics of each instruction in the section SourceCounters.
SOURCE_METRICS = (
    "inst_executed",
    "thread_inst_executed_true",
    "memory_l1_wavefronts_shared",
    "memory_l1_wavefronts_shared_ideal",
    "memory_l2_theoretical_sectors_global",
    "memory_l2_theoretical_sectors_global_ideal",
    "memory_l1_tag_requests_global",
)
# Of the instructions of a recording; no probed instruction accesses local memory.
CODE_METRICS = (*SOURCE_METRICS, "memory_l2_theoretical_sectors_local")
EVERYWHERE = CODE_METRICS[:2]  # metrics of every instruction; the others are of memory accesses only
PADDING = ("NOP", "BRA")  # after the last reachable instruction: a jump to itself, and NOPs
Column = tuple[int | None, ...]

WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared"
CONTENDED = "l1tex__data_bank_conflicts_type_arbitration.sum"

# Kinds of shared access, and the counters of one pass that distinguish conflicts from arbitration. ncu 2025.3
# does not collect arbitration in the same pass as the counters of atomics.
ONE_PASS = {
    ("shared load", "shared ldmatrix"): (f"{WAVEFRONTS}_op_ld.sum", f"{CONFLICTS}_op_ld.sum", CONTENDED),
    ("shared store", "shared stmatrix"): (f"{WAVEFRONTS}_op_st.sum", f"{CONFLICTS}_op_st.sum", CONTENDED),
    ("shared atomic",): (f"{WAVEFRONTS}_op_atom.sum", f"{CONFLICTS}_op_atom.sum"),
}
# Opcode as ncu prints it -> access, as far as it tells; textures are not recognized.
ACCESSES = {
    **{opcode: operation.access for operation in OPERATIONS.values() for opcode in operation.opcodes},
    **{"LD": "generic load", "ST": "generic store", "ATOM": "generic atomic"},
}
INDEXED = re.compile(r"\]\[R[0-9]")  # c[0x3][R4+0x10]


@dataclass(frozen=True, slots=True)
class Counted:
    """A counter's value, and its unit as in ncu ("" if it has none)."""

    value: int | float
    unit: str


@dataclass(frozen=True, slots=True)
class CodeProfile:
    """One launch as measured by ncu, in several passes over the kernel.

    kernel: the name in the code. grid, block: of the launch, None if not in the report. addresses: offsets
    from the first instruction, ascending. sass: the instructions as ncu prints them. figures: by the name in
    `CODE_METRICS`, a column as long as `addresses`; None where ncu has no value. A metric that was not
    collected has no column; without the section SourceCounters there are none. lines: of the source, 0 if ncu
    knows none; () unless they were asked for.
    """

    kernel: str
    grid: tuple[int, ...] | None
    block: tuple[int, ...] | None
    passes: int
    counters: dict[str, Counted]
    addresses: tuple[int, ...] = ()
    sass: tuple[str, ...] = ()
    figures: Mapping[str, Column] = field(default_factory=dict)
    lines: tuple[int, ...] = ()

    def figure(self, metric: str, row: int) -> int | None:
        """The value of a metric for an instruction; None if there is none."""
        column = self.figures.get(metric)
        return None if column is None else column[row]

    @property
    def accesses(self) -> set[str | None]:
        """Kinds of memory access in the code, by their names in `memsim.validate.profiles`."""
        return {access_of(text) for text in self.sass}

    def starting_at(self, opcodes: Mapping[int, str]) -> CodeProfile | None:
        """A copy with addresses relative to the kernel's first instruction; None if it is of other code.

        `opcodes`: the code's, without modifiers, by address. ncu lists reachable instructions without the
        padding after them; a function that the kernel calls may precede the kernel.
        """
        padded = [address for address, name in sorted(opcodes.items()) if name not in PADDING]
        needed = padded[-1] if padded else 0
        names = {address: _base(text) for address, text in zip(self.addresses, self.sass, strict=True)}
        for start in self.addresses:
            if all(
                names.get(start + address) == name for address, name in opcodes.items() if address <= needed
            ):
                rows = [row for row, address in enumerate(self.addresses) if address - start in opcodes]
                return self._cut(rows, start)
        return None

    def _cut(self, rows: Sequence[int], start: int) -> CodeProfile:
        return replace(
            self,
            addresses=tuple(self.addresses[row] - start for row in rows),
            sass=tuple(self.sass[row] for row in rows),
            figures={name: tuple(column[row] for row in rows) for name, column in self.figures.items()},
            lines=tuple(self.lines[row] for row in rows) if self.lines else (),
        )


def _base(text: str) -> str:
    return opcode_of(text).partition(".")[0]


def access_of(sass: str) -> str | None:
    """The kind of access, such as "shared load"; None if it is not a memory access."""
    name = _base(sass)
    return None if name == "LDC" and not INDEXED.search(sass) else ACCESSES.get(name)
