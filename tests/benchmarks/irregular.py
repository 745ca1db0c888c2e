"""Launches of kernels whose requests do not repeat, at any size: `python -m tests.benchmarks.irregular NAME`
analyzes one and prints requests, seconds of processor time and peak memory.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import memsim

SOURCE = Path(__file__).with_name("kernels") / "irregular.cu"
BLOCK = 256
#: Elements, rows, vertices or queries of a launch that is measured.
SIZES = {
    "gather": 1 << 22,
    "histogram": 1 << 22,
    "lookup": 1 << 22,
    "spmv": 200_000,
    "sort": 1 << 20,
    "bfs": 400_000,
    "join": 1 << 21,
    "attention": 40_000,
}


@dataclass(frozen=True)
class Case:
    """A launch: blocks, threads of each, arguments."""

    grid: int
    block: int
    arguments: tuple[Any, ...]


def blocks(n: int, threads: int = BLOCK) -> int:
    return -(-n // threads)


def gather(n: int, random: np.random.Generator) -> Case:
    idx = random.integers(0, n, n, dtype=np.int32)
    return Case(blocks(n), BLOCK, (idx, np.zeros(n, np.float32), np.zeros(n, np.float32), n))


def histogram(n: int, random: np.random.Generator) -> Case:
    data = random.integers(0, 256, n, dtype=np.uint8)
    return Case(min(264, blocks(n)), BLOCK, (data, np.zeros(256, np.int32), n))


def lookup(n: int, random: np.random.Generator) -> Case:
    idx = random.integers(0, 1024, n, dtype=np.int32)
    return Case(min(264, blocks(n)), BLOCK, (np.zeros(1024, np.float32), idx, np.zeros(n, np.float32), n))


def lists(n: int, most: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Where the list of each of n begins, and what is in them: lengths are geometric, 16 in the mean."""
    starts = np.zeros(n + 1, np.int32)
    starts[1:] = np.minimum(random.geometric(1 / 16, n), 400).cumsum()
    return starts, random.integers(0, most, int(starts[-1]), dtype=np.int32)


def spmv(rows: int, random: np.random.Generator) -> Case:
    starts, columns = lists(rows, rows, random)
    values = np.zeros(len(columns), np.float32)
    vectors = np.zeros(rows, np.float32), np.zeros(rows, np.float32)
    return Case(blocks(rows), BLOCK, (starts, columns, values, *vectors, rows))


def sort(n: int, random: np.random.Generator) -> Case:
    return Case(max(1, n // 1024), 512, (random.integers(0, 1 << 30, max(n, 1024), dtype=np.int32),))


def bfs(vertices: int, random: np.random.Generator) -> Case:
    starts, neighbours = lists(vertices, vertices, random)
    level = np.where(random.random(vertices) < 0.3, 3, np.where(random.random(vertices) < 0.5, -1, 2))
    arrays = starts, neighbours, level.astype(np.int32), np.zeros(1, np.int32)
    return Case(blocks(vertices), BLOCK, (*arrays, 3, vertices))


def join(n: int, random: np.random.Generator) -> Case:
    size = 1 << max(4, (n // 4).bit_length())
    rows = (
        random.choice(1 << 30, size // 2, replace=False)
        if size < 1 << 16
        else np.unique(random.integers(0, 1 << 30, size // 2))
    )
    table, taken = np.full(size, 0xFFFFFFFF, np.uint32), np.zeros(size, bool)
    left = rows.astype(np.uint64)
    slots = left * 2654435761 % size
    while len(left):  # all take their slot or wait for the next one
        _, first = np.unique(slots, return_index=True)
        wins = np.zeros(len(left), bool)
        wins[first] = True
        wins &= ~taken[slots]
        table[slots[wins]], taken[slots[wins]] = left[wins], True
        left, slots = left[~wins], (slots[~wins] + 1) % size
    keys = np.where(random.random(n) < 0.7, random.choice(rows, n), random.integers(0, 1 << 30, n))
    arrays = keys.astype(np.uint32), table, np.zeros(size, np.int32), np.zeros(n, np.int32)
    return Case(blocks(n), BLOCK, (*arrays, n, size - 1))


def attention(queries: int, random: np.random.Generator) -> Case:
    starts, keys = lists(queries, queries, random)
    numbers = [random.standard_normal((queries, 64), np.float32) for _ in range(3)]
    out = np.zeros((queries, 64), np.float32)
    return Case(blocks(queries * 32), BLOCK, (*numbers, starts, keys, out, queries))


MAKERS: dict[str, Callable[[int, np.random.Generator], Case]] = {
    maker.__name__: maker for maker in (gather, histogram, lookup, spmv, sort, bfs, join, attention)
}


def case(name: str, size: int | None = None, seed: int = 0) -> Case:
    """A launch of one of the kernels."""
    return MAKERS[name](size or SIZES[name], np.random.default_rng(seed))


def peak() -> int:
    """Most memory that this process has had, in MiB. What getrusage has of it begins with its parent's."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) // 1024


def main() -> None:
    name, *rest = sys.argv[1:]
    made = case(name, int(rest[0]) if rest else None)
    kernel = memsim.load(SOURCE)[name]
    small = case(name, 1024)
    memsim.analyze(kernel, grid=small.grid, block=small.block, args=small.arguments)
    before = peak()
    start = time.process_time()
    analysis = memsim.analyze(kernel, grid=made.grid, block=made.block, args=made.arguments)
    seconds = time.process_time() - start
    requests = sum(row.requests for row in analysis.sites)
    print(
        f"{name}: {requests:,} requests in {seconds:.2f} s: {requests / seconds / 1e6:.3f} M/s,"
        f" {peak()} MiB ({before} MiB before)"
    )


if __name__ == "__main__":
    main()
