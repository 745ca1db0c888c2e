"""A launch as measured by ncu: counters of the launch, and metrics of every instruction.

Instructions are identified by address; their source lines are in the cubin's listing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from memsim.errors import MemsimError
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
MOST_INSTRUCTIONS = 1 << 20
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

    def to_dict(self) -> dict[str, Any]:
        """Plain values in columns: addresses as differences; metrics of accesses only where they
        have values.
        """
        rows = [row for row in range(len(self.sass)) if self._is_access(row)]
        return {
            "kernel": self.kernel,
            "grid": None if self.grid is None else list(self.grid),
            "block": None if self.block is None else list(self.block),
            "passes": self.passes,
            "counters": {name: [counted.value, counted.unit] for name, counted in self.counters.items()},
            "distances": _runs([b - a for a, b in zip((0, *self.addresses), self.addresses, strict=False)]),
            "sass": list(self.sass),
            "collected": list(self.figures),
            "instructions": {name: _runs(self.figures[name]) for name in EVERYWHERE if name in self.figures},
            "accesses": {
                "rows": rows,
                **{
                    name: [column[row] for row in rows]
                    for name, column in self.figures.items()
                    if name not in EVERYWHERE and any(value is not None for value in column)
                },
            },
            **({"lines": list(self.lines)} if self.lines else {}),
        }

    def _is_access(self, row: int) -> bool:
        return any(self.figure(name, row) is not None for name in CODE_METRICS[len(EVERYWHERE) :])

    @staticmethod
    def from_dict(record: dict[str, Any]) -> CodeProfile:
        """The inverse of `to_dict`."""
        rows = record["accesses"]["rows"]
        figures: dict[str, Column] = {}
        for name in record["collected"]:
            if name in EVERYWHERE:
                figures[name] = tuple(_unrolled(record["instructions"][name]))
            else:
                found = dict(zip(rows, record["accesses"].get(name, ()), strict=False))
                figures[name] = tuple(found.get(row) for row in range(len(record["sass"])))
        return CodeProfile(
            kernel=record["kernel"],
            grid=None if record["grid"] is None else tuple(record["grid"]),
            block=None if record["block"] is None else tuple(record["block"]),
            passes=record["passes"],
            counters={name: Counted(*pair) for name, pair in record["counters"].items()},
            addresses=tuple(accumulate(_unrolled(record["distances"]))),
            sass=tuple(record["sass"]),
            figures=figures,
            lines=tuple(record.get("lines", ())),
        )


def _base(text: str) -> str:
    return opcode(text).partition(".")[0]


def _runs(values: Sequence[int | None]) -> list[int | None]:
    """Run-length encoding: 16 16 16 4 as 3 16 1 4."""
    runs: list[int | None] = []
    for value in values:
        if runs and runs[-1] == value:
            runs[-2] += 1  # type: ignore[operator]
        else:
            runs += [1, value]
    return runs


def _unrolled(runs: Sequence[Any]) -> list[Any]:
    """The inverse of `_runs`.

    Raises:
        MemsimError: more instructions than a kernel can have.
    """
    each = runs[::2]
    is_right = all(type(times) is int and 0 <= times <= MOST_INSTRUCTIONS for times in each)
    if len(runs) % 2 or not is_right or sum(each) > MOST_INSTRUCTIONS:
        raise MemsimError("not a recording: it has more instructions than a kernel can have")
    return [value for times, value in zip(runs[::2], runs[1::2], strict=True) for _ in range(times)]


def opcode(sass: str) -> str:
    """`@!P0 LDG.E.128 R4, desc[UR4][R2.64]` -> `LDG.E.128`."""
    words = sass.split()
    return words[1] if words[0].startswith("@") else words[0]


def access_of(sass: str) -> str | None:
    """The kind of access, such as "shared load"; None if it is not a memory access."""
    name = opcode(sass).partition(".")[0]
    return None if name == "LDC" and not INDEXED.search(sass) else ACCESSES.get(name)
