"""One PTX instruction on many operands, on the emulator and on a GPU: the kernel, its results, a comparison.

Every instruction runs in several columns, which differ in how the operands vary: by thread and block, by
thread, by block, not at all, as a constant, or as a sum of a block's and a thread's part. The emulator
represents each of these differently.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from memsim.api.running import run
from tests.ptx_front.loading import load_ptx
from tests.simt.columns import (
    BLOCKS,
    COLUMNS,
    THREADS,
    Column,
    edge_values,
    is_integer,
    literal,
    random_values,
    register,
    small_parts,
    store,
)
from tests.simt.reference import decode, decoder, encoder, same, width

HEADER = """
.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 k_in, .param .u64 k_out)
{
.reg .b64 %in, %out, %by_thread, %by_block, %by_both;
.reg .b32 %thread, %block, %size, %index;
ld.param.u64 %in, [k_in];
ld.param.u64 %out, [k_out];
mov.u32 %thread, %tid.x;
mov.u32 %block, %ctaid.x;
mov.u32 %size, %ntid.x;
mad.lo.u32 %index, %block, %size, %thread;
mad.wide.u32 %by_thread, %thread, 8, %in;
mad.wide.u32 %by_block, %block, 8, %in;
mad.wide.u32 %by_both, %index, 8, %in;
mad.wide.u32 %out, %index, 8, %out;
"""

Values = dict[int, Sequence[int]]


def on_emulator(ptx: str, given: np.ndarray, results: int, threads: int) -> np.ndarray:
    """Run kernel `k(in, out)`; `out` has `results` rows of a word for each thread."""
    out = np.zeros((results, BLOCKS * threads), np.uint64)
    run(load_ptx(ptx)["k"], BLOCKS, threads, [given, out])
    return out


def on_chip(ptx: str, given: np.ndarray, results: int, threads: int) -> np.ndarray:
    """The same on a GPU."""
    import cupy

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.ptx"
        path.write_text(ptx)
        kernel = cupy.RawModule(path=str(path)).get_function("k")
        out = cupy.zeros((results, BLOCKS * threads), np.uint64)
        kernel((BLOCKS,), (threads,), (cupy.asarray(given), out))
        return np.asarray(out.get())


@dataclass(frozen=True)
class Case:
    """An instruction, or some lines of them, with operands `{a} {b} {c} {d}` and results `{p} {q}`.

    `gives` computes the results from decoded operands; None where the ISA leaves them open.
    `values` narrows what an operand may be to some raw bits. `registers` says how many bits an
    operand's or result's register has, where not as many as its type. `near` compares results
    of the chip and the emulator where the ISA allows several; with `exact` the emulator still
    gives the one that is nearest.
    """

    text: str
    results: tuple[str, ...]
    operands: tuple[str, ...]
    gives: Callable[..., Any]
    values: Values = field(default_factory=dict)
    registers: dict[str, int] = field(default_factory=dict)
    near: Callable[[int, int], bool] | None = None
    exact: bool = True
    immediates: bool = True
    threads: int = THREADS

    @property
    def count(self) -> int:
        """Threads of all blocks."""
        return BLOCKS * self.threads

    @cached_property
    def columns(self) -> list[list[Column]]:
        """The operands of every column."""
        rng = np.random.default_rng(list(self.text.encode()))
        found = []
        for row in COLUMNS[len(self.operands)]:
            ways = row.split()
            operands = [self.column(rng, how, i) for i, how in enumerate(ways)]
            if set(ways) == {"full"}:
                operands = self.edges_first(operands)
            found.append(operands)
        return found

    def column(self, rng: np.random.Generator, how: str, i: int) -> Column:
        """Values for operand i, half of them edges."""
        kind = self.operands[i]
        if how == "sum" and (i in self.values or not is_integer(kind)):
            how = "full"
        if how == "immediate" and not (self.immediates and (is_integer(kind) or kind in ("f32", "f64"))):
            how = "uniform"
        if how == "sum":
            return Column(kind, how, small_parts(rng, kind, self.threads), self.threads)
        count = {"full": self.count, "thread": self.threads, "block": BLOCKS, "uniform": 1, "immediate": 1}[
            how
        ]
        edges = rng.choice(self.edges(i), count)
        if i in self.values:
            return Column(kind, how, edges, self.threads)
        values = np.where(rng.random(count) < 0.5, edges, random_values(rng, kind, count))
        return Column(kind, how, values, self.threads)

    def edges(self, i: int) -> np.ndarray:
        """The values where operand i may go wrong."""
        return np.array(self.values.get(i) or edge_values(self.operands[i]), np.uint64)

    def edges_first(self, operands: list[Column]) -> list[Column]:
        """The same, but begun with every edge against every other, if there is room for that."""
        edges = [self.edges(i) for i in range(len(operands))]
        count = math.prod(map(len, edges))
        if count > self.count:
            return operands
        crossed = np.meshgrid(*edges, indexing="ij")
        return [
            replace(c, raws=np.concatenate([grid.reshape(-1), c.raws[count:]]))
            for c, grid in zip(operands, crossed)
        ]

    @cached_property
    def given(self) -> np.ndarray:
        """All operands, one after the other."""
        return np.concatenate([c.raws for row in self.columns for c in row])

    @cached_property
    def ptx(self) -> str:
        """The kernel."""
        lines, at = [HEADER], 0
        for number, row in enumerate(self.columns):
            names = {}
            for letter, column in zip("abcd", row):
                names[letter] = f"%{letter}{number}"
                if column.how == "immediate":
                    names[letter] = literal(column.kind, int(column.raws[0]))
                else:
                    lines += column.load(names[letter], at, self.registers.get(letter))
                at += len(column.raws)
            for letter, kind in zip("pq", self.results):
                names[letter] = f"%{letter}{number}"
                lines.append(f".reg {register(kind, self.registers.get(letter))} {names[letter]};")
            lines += ["{", self.text.format(**names), "}"]
            for i, (letter, kind) in enumerate(zip("pq", self.results)):
                where = (number * len(self.results) + i) * self.count * 8
                lines += store(kind, names[letter], where, self.registers.get(letter))
        return "\n".join([*lines, "ret;", "}"])

    @property
    def rows(self) -> int:
        """How many results each thread stores."""
        return len(self.columns) * len(self.results)

    def expected(self) -> list[list[int | None]]:
        """What every thread should store, row by row."""
        decoders = [decoder(kind) for kind in self.operands]
        encoders = [self.encoder(letter, kind) for letter, kind in zip("pq", self.results)]
        found: list[list[int | None]] = []
        for row in self.columns:
            columns = [map(decode, column.spread().tolist()) for decode, column in zip(decoders, row)]
            answers = self.answers(list(zip(*columns)))
            for i, to_bits in enumerate(encoders):
                one = answers if len(encoders) == 1 else [a if a is None else a[i] for a in answers]
                found.append([None if value is None else to_bits(value) for value in one])
        return found

    def answers(self, operands: list[tuple[Any, ...]]) -> list[Any]:
        """The results of every thread."""
        return [self.gives(*numbers) for numbers in operands]

    def encoder(self, letter: str, kind: str) -> Callable[[Any], int]:
        """A result as it is stored: a signed one is extended to its register with the sign."""
        to_bits, size = encoder(kind), self.registers.get(letter, max(width(kind), 16))
        if not (is_integer(kind) and kind[0] == "s" and size > width(kind)):
            return to_bits
        return lambda value: decode(kind, to_bits(value)) & ((1 << size) - 1)

    def describe(self, row: int, thread: int) -> str:
        """The instruction and its operands, for a result in `row` of `thread`."""
        columns = self.columns[row // len(self.results)]
        shown = (f"{c.how} {c.kind} {int(c.spread()[thread]):#x}" for c in columns)
        return f"{self.text}: {', '.join(shown)}"


@dataclass(frozen=True)
class WarpCase(Case):
    """A case where lanes see each other: `gives` maps the operands of a warp's lanes to their results.

    The last warp of a block is not full.
    """

    threads: int = 72

    def answers(self, operands: list[tuple[Any, ...]]) -> list[Any]:
        """The results of every thread."""
        found = []
        for first in range(0, self.count, self.threads):
            for lane in range(0, self.threads, 32):
                found += self.gives(operands[first + lane : first + min(lane + 32, self.threads)])
        return found


# --- comparison -----------------------------------------------------------------------------

#: Checks a case.
Verify = Callable[[Case], None]


def verify_on_emulator(case: Case) -> None:
    """The emulator gives what the reference gives, bit for bit."""
    found, wanted = on_emulator(case.ptx, case.given, case.rows, case.threads).tolist(), case.expected()
    for row, thread, x, y in differences(found, wanted):
        kind = case.results[row % len(case.results)]
        agreed = y is None or same(kind, x, y) or (not case.exact and case.near and case.near(x, y))
        assert agreed, f"{case.describe(row, thread)} gives {x:#x}, not {y:#x}"


def verify_on_chip(case: Case) -> None:
    """The emulator gives what the chip gives, wherever the ISA says what that is; in more threads."""
    if not isinstance(case, WarpCase):
        case = replace(case, threads=256)
    found = on_emulator(case.ptx, case.given, case.rows, case.threads).tolist()
    measured = on_chip(case.ptx, case.given, case.rows, case.threads).tolist()
    if found == measured:
        return
    wanted = case.expected()
    for row, thread, x, y in differences(found, measured):
        kind = case.results[row % len(case.results)]
        agreed = wanted[row][thread] is None or same(kind, x, y) or (case.near and case.near(x, y))
        assert agreed, f"{case.describe(row, thread)} gives {x:#x}, on the chip {y:#x}"


def differences(
    found: list[list[int]], wanted: Sequence[Sequence[int | None]]
) -> Iterator[tuple[int, int, int, Any]]:
    """(row, thread, found, wanted) wherever the bits differ."""
    for row, (xs, ys) in enumerate(zip(found, wanted)):
        if xs != ys:
            yield from ((row, thread, x, y) for thread, (x, y) in enumerate(zip(xs, ys)) if x != y)


def case(
    name: str,
    results: str,
    operands: str,
    gives: Callable[..., Any],
    **more: Any,
) -> Case:
    """A case of one instruction `name`; types are separated by blanks."""
    outs, sources = tuple(results.split()), tuple(operands.split())
    target = "|".join(f"{{{letter}}}" for letter in "pq"[: len(outs)])
    text = f"{name} {', '.join([target, *(f'{{{letter}}}' for letter in 'abcd'[: len(sources)])])};"
    return Case(text, outs, sources, gives, **more)
