"""Where the words of each shared array lie, and which thread wrote each.

Machine code does not know the types of elements, nor the arrays inside dynamic shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memsim.analysis import Analysis
from memsim.arch.units import BANKS, WORD
from memsim.layout.notation import leaves
from memsim.source.kernels import template_constants
from memsim.source.values import ArrayShape, array_shape
from memsim.trace.trace import Trace
from memsim.trace.trace_data import ArrayLayout


@dataclass(frozen=True, slots=True, eq=False)
class WordLayout:
    """A shared array as rows of 4-byte words; int64 arrays [rows, words in a row].

    name: the variable. first: the address of its first byte. declared: whether rows are those of the source
    (`s_a[8][132]` has 8 rows of 132 words) or of the array's layout; else a row is the 32 words of a line,
    one in each bank.
    word: the word's number in shared memory; bank: the bank it lies in, -1 past the end of the array.
    writer: the thread of the first replayed block that first stored to it (linear number), -1 for none.
    """

    name: str
    first: int
    declared: bool
    word: NDArray[np.int64]
    bank: NDArray[np.int64]
    writer: NDArray[np.int64]


def layouts(analysis: Analysis) -> tuple[WordLayout, ...]:
    """The layout of each shared array that a row of the analysis names, in order of address."""
    named = {name for site in analysis.sites if site.space == "shared" for name in site.array.split("|")}
    arrays = [entry for entry in analysis.trace.arrays if entry[1] == "shared" and entry[0] in named]
    return tuple(_layout(analysis, name, first, size) for name, _, first, size in arrays if size > 0)


def _layout(analysis: Analysis, name: str, first: int, size: int) -> WordLayout:
    words, columns = -(-size // WORD), _words_in_a_row(analysis, name, size)
    index = np.arange(-(-words // (columns or BANKS)) * (columns or BANKS))
    word = first // WORD + index
    inside = index < words
    writers = np.full(len(index), -1, np.int64)
    known = word < len(analysis.trace.writers)
    writers[known] = analysis.trace.writers[word[known]]
    shape = (-1, columns or BANKS)
    return WordLayout(
        name=name,
        first=first,
        declared=columns is not None,
        word=word.reshape(shape),
        bank=np.where(inside, word % BANKS, -1).reshape(shape),
        writer=np.where(inside, writers, -1).reshape(shape),
    )


def _words_in_a_row(analysis: Analysis, name: str, size: int) -> int | None:
    """Words in a row by the array's layout, or as some source file declares it.

    None if neither is known, or if a row is not of whole words.
    """
    known = analysis.trace.layouts.get(name)
    if known is not None:
        return _words_apart(known)
    shape = declared_shape(analysis.trace, name, size)
    if shape is None or len(shape.extents) < 2:
        return None
    row = shape.extents[-1] * shape.element
    return row // WORD if row % WORD == 0 else None


def _words_apart(array: ArrayLayout) -> int | None:
    """Words from one row of memory to the next, where one axis of a plain array is contiguous."""
    stride = array.layout.stride
    if not isinstance(stride, tuple) or not all(isinstance(step, int) for step in stride):
        return None
    steps = sorted(step for step in leaves(stride) if step > 0)
    if len(steps) < 2 or steps[0] != 1:
        return None
    row = steps[1] * array.element
    return row // WORD if row % WORD == 0 else None


def declared_shape(trace: Trace, name: str, size: int) -> ArrayShape | None:
    """The shape of the shared array `name` of `size` bytes; None where no source file declares it so.

    Extents may be constants of the source, and of a template the parameters of the instance that is launched.
    """
    for text in trace.sources.values():
        shape = array_shape(text, name, size, template_constants(text, trace.kernel))
        if shape is not None:
            return shape
    return None
