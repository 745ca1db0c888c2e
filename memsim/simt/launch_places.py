"""The addresses that a launch hands to its kernel or that it loads, and what depends on where they are."""

from __future__ import annotations

from collections.abc import Collection, Container, Hashable, Iterable, Mapping
from dataclasses import replace

import numpy as np

from memsim.arch import arch_of_code
from memsim.isa.op import Effect
from memsim.isa.program import Executable, Op
from memsim.launch import GLOBAL_ALIGN
from memsim.simt.bounds import Origins
from memsim.simt.placed_arithmetic import PlacedSources
from memsim.simt.placed_values import decided_by_places
from memsim.simt.placed_words import CODE, NAMES, STACK, STACK_POINTER, Value, first_byte
from memsim.simt.pointer_roots import PARAMETER_BITS, SYMBOL_BITS, VARIABLE_BITS, roots_of_symbols
from memsim.state.address_spaces import LOCAL_WINDOW, WINDOW_SIZE, SpaceLayout
from memsim.state.launch_memory import Memory

#: So many of the lowest bits of the addresses of functions and of the stack are known.
OF_CODE = OF_STACK = 4


def reasons_of_places(
    kernel: Executable,
    origins: Origins,
    memory: Memory,
    constants: Mapping[int, Iterable[int]],
    pointers: Mapping[tuple[int, int], Mapping[Hashable, str]],
    reached: Container[int],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Why counts depend on where arrays, functions or the stack lie in memory, and why they may; call it
    after the launch.

    constants, pointers: what was read, as `LoadedValues`. reached: the instructions that warps came to.
    """
    sources = replace(sources_of(kernel, origins, memory), indexed=constants, loaded=pointers)
    perhaps = decided_by_places(origins.dataflow, sources, reached, cautious=True)
    found = decided_by_places(origins.dataflow, sources, reached) if perhaps else []
    certain = {op.index for op, _ in found}
    doubts = [(op, names) for op, names in perhaps if op.index not in certain]
    return tuple(map(_reason, found)), tuple(map(_reason, doubts))


def _reason(decided: tuple[Op, frozenset[str]]) -> str:
    op, names = decided
    what = "the branch" if op.effect is Effect.CONTROL else "the address"
    verb = "lie" if len(names) > 1 else "lies"
    return f"where {' and '.join(sorted(names))} {verb} in memory decides {what} at {op.where}"


def sources_of(kernel: Executable, origins: Origins, memory: Memory) -> PlacedSources:
    """The words of constant banks that are parts of addresses, and the addresses in the code."""
    constants: dict[tuple[int, int], Value] = {}

    def enter(bank: int, offset: int, words: tuple[Value, Value]) -> None:
        constants[bank, offset], constants[bank, offset + 4] = words

    code = first_byte(CODE, NAMES[CODE], OF_CODE)
    shared = {name for name, _, _ in kernel.shared}
    for bank, pointers in kernel.pointers.items():
        for pointer in pointers:
            if pointer.symbol not in memory.symbols and pointer.symbol not in shared:
                enter(bank, pointer.offset, code)
    front = arch_of_code(kernel.made_for).front
    constants[0, front.stack] = first_byte(STACK_POINTER, NAMES[STACK], OF_STACK)[0]
    enter(0, front.local_base, first_byte(STACK, NAMES[STACK], OF_STACK))
    named = {bit: symbol for symbol, bit in roots_of_symbols(kernel.program).items()}
    symbols: dict[str, tuple[Value, Value]] = {
        name: code for name in named.values() if name in kernel.functions
    }
    for bit, buffer in origins.pointers.items():
        root, words = bit.bit_length() - 1, first_byte(buffer, buffer.name)
        if root >= SYMBOL_BITS:
            symbols[named[bit]] = words
        elif root >= VARIABLE_BITS:
            enter(4, 8 * (root - VARIABLE_BITS), words)
        else:
            enter(0, 8 * (root - PARAMETER_BITS), words)
    return PlacedSources(constants, symbols, code)


# --- what is loaded --------------------------------------------------------------------------

#: A pointer this far before or behind an array is still one into it; the gaps between arrays are larger.
AROUND = GLOBAL_ALIGN // 2


class LoadedValues:
    """What the loads of a launch read, as far as `placed_values.py` asks for it.

    constants: by load of a constant at an index, where in the bank it read. pointers: by load and pair of
    words, what those point to, with its name: arrays, the stack, functions.
    """

    def __init__(self, arrays: SpaceLayout, functions: Collection[int]) -> None:
        self.constants: dict[int, set[int]] = {}
        self.pointers: dict[tuple[int, int], dict[Hashable, str]] = {}
        self._arrays = arrays
        self._functions = np.array(sorted(functions), np.int64)

    def constant(self, instruction: int, places: np.ndarray) -> None:
        """Words of a constant bank were read, from so many places."""
        self.constants.setdefault(instruction, set()).update(np.unique(places).tolist())

    def pair(self, instruction: int, number: int, values: np.ndarray) -> None:
        """The two words of `number` were read, together int64."""
        lowest, highest = int(values.min()), int(values.max())
        found: dict[Hashable, str] = {}
        arrays = self._arrays
        if highest >= arrays.base - AROUND and lowest < arrays.end + AROUND:
            inside = values[(values >= arrays.base - AROUND) & (values < arrays.end + AROUND)]
            owners = np.searchsorted(np.array(arrays.starts, np.int64) - AROUND, inside, side="right") - 1
            for owner in np.unique(owners[owners >= 0]).tolist():
                found[arrays.buffers[owner]] = arrays.buffers[owner].name
        if highest >= LOCAL_WINDOW and lowest < LOCAL_WINDOW + WINDOW_SIZE:
            found[STACK] = NAMES[STACK]
        if len(self._functions) and np.isin(values, self._functions).any():
            found[CODE] = NAMES[CODE]
        if found:
            self.pointers.setdefault((instruction, number), {}).update(found)
