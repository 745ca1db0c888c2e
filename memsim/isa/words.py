"""Opcodes that are functions of words, and numbers packed in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from memsim.isa.definitions import BoundForm, Compute, executes
from memsim.isa.readers import IntReader
from memsim.state.registers import fit, from_array, to_array, unsigned
from memsim.state.sums import Int, u64


def computes(
    names: str, signature: str, modifiers: str = ""
) -> Callable[[Callable[..., Int]], Callable[..., Int]]:
    """Register instructions by a function of modifiers and signed words, whose result may overflow."""

    def register(work: Callable[..., Int]) -> Callable[..., Int]:
        @executes(names, signature, modifiers)
        def build(form: BoundForm, *reads: IntReader) -> Compute:
            given = form.given
            if len(reads) == 1:
                only = reads[0]
                return lambda r: fit(work(given, fit(only(r), 32)), 32)
            return lambda r: fit(work(given, *(fit(read(r), 32) for read in reads)), 32)

        return work

    return register


def readings(x: Int, y: Int, signed: bool, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Two integers as arrays that numpy compares and divides as the type requires."""
    if bits == 64 and not signed:
        return u64(to_array(x)), u64(to_array(y))
    p, q = (x, y) if signed else (unsigned(x, bits), unsigned(y, bits))
    return to_array(p), to_array(q)


def fields(value: Int, signed: bool, size: int) -> list[np.ndarray]:
    """The numbers packed in a word, lowest first."""
    array = to_array(value)
    picked = [(array >> shift) & ((1 << size) - 1) for shift in range(0, 32, size)]
    sign = 1 << (size - 1)
    return [(field ^ sign) - sign if signed else field for field in picked]


def packed(numbers: Sequence[np.ndarray], size: int) -> Int:
    """The opposite: numbers, modulo 2**size, in one word."""
    total = np.zeros((1, 1), np.int64)
    for place, number in enumerate(numbers):
        total = total | (number & ((1 << size) - 1)) << size * place
    return fit(from_array(total), 32)
