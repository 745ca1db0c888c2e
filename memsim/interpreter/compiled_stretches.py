"""Stretches of a kernel's operations as C functions, for kernels that run long: what an operation leaves for
the next one stays in the processor's registers.

A stretch is in the code for whole warps, of operations that compute on each lane by itself. Constants that a
launch decides are read where its operations have them, so that one function is that of other launches, too.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from memsim.interpreter.lowered_kernel import PLACE_BITS, CompiledStretches, LoweredKernel, known_of
from memsim.interpreter.scratch_vectors import scratch
from memsim.interpreter.vector_operations import (
    ConstantPlace,
    Place,
    RegisterPlace,
    ScratchPlace,
    VectorOperation,
)

#: Operations of one lane that processors do not do on vectors: one of them would make a whole loop slow.
SLOW = frozenset("nextafter_h fmod_d popc_W I_to_d W_to_d I_to_f W_to_f d_to_W f_to_I".split())
#: Those that read a table, and what of them says how long it is.
TABLES = {"table_h": "c", "polynomial": "k"}
#: Operations of a stretch: fewer gain nothing, and more cost the compiler too much time.
FEWEST, MOST = 2, 120
#: Seconds for each of its operations that a kernel has run in all when it is compiled: about what that takes.
WORTH_COMPILING = 0.0007
#: Seconds of launches in the mean that are worth looking for its stretches each time that others are passed.
WORTH_LOOKING = 0.05


class LaneStretch(NamedTuple):
    """Where it begins in a kernel's operations, how many they are, and the body of its function."""

    at: int
    length: int
    text: str


class StretchCompiler:
    """Compiles the stretches of kernels that run long. compile: makes a library of functions in C, None if it
    cannot.
    """

    def __init__(self, compile: Callable[[str], bytes | None]) -> None:
        self._compile = compile
        self._addresses: dict[str, list[int] | None] = {}
        self._libraries: list[ctypes.CDLL] = []

    def begin(self, kernel: LoweredKernel) -> None:
        """A launch begins: it uses what was compiled for one before it of the same form."""
        known = known_of(kernel.code.dataflow)
        before = known.stretches.get(kernel.form) if known.stretches else None
        if before is not None:
            _use(kernel, before.rows, before.addresses)
        elif known.seconds >= WORTH_LOOKING * known.launches and _is_worth_it(kernel, known.seconds):
            self._hasten(kernel)

    def has_hastened(self, kernel: LoweredKernel, seconds: float) -> bool:
        """A launch has run for so many seconds: whether that was long enough to compile its stretches."""
        if kernel.is_hastened:
            return True
        is_long = _is_worth_it(kernel, known_of(kernel.code.dataflow).seconds + seconds)
        if is_long:
            self._hasten(kernel, is_running=True)
        return is_long

    def end(self, kernel: LoweredKernel, seconds: float) -> None:
        """A launch has ended, after so many seconds."""
        known = known_of(kernel.code.dataflow)
        known.seconds, known.launches = known.seconds + seconds, known.launches + 1

    def _hasten(self, kernel: LoweredKernel, is_running: bool = False) -> None:
        stretches = list(stretches_of(kernel))
        text = functions_of(stretches)
        if text not in self._addresses:
            self._addresses[text] = self._addresses_of(text, len(numbers_of(stretches)))
        functions = self._addresses[text]
        if functions:
            numbers = numbers_of(stretches)
            addresses = [functions[numbers[one.text]] for one in stretches]
            rows = np.array([(one.at, one.at + one.length) for one in stretches], np.int64)
            compiled = CompiledStretches(rows, np.array(addresses, np.int64))
            known_of(kernel.code.dataflow).stretches[kernel.form] = compiled
            # A thread that is at a guard still needs the number that would be written over.
            is_guard = kernel.operations["code"][rows[:, 0]] == kernel.names.numbers["guard"]
            usable = ~(is_guard & is_running)
            _use(kernel, rows[usable], compiled.addresses[usable])

    def _addresses_of(self, text: str, count: int) -> list[int] | None:
        library = self._compile(text)
        if library is None:
            return None
        with suppress(OSError), TemporaryDirectory(prefix="memsim") as folder:
            path = Path(folder, "stretches.so")
            path.write_bytes(library)
            loaded = ctypes.CDLL(str(path))
            self._libraries.append(loaded)
            functions = (getattr(loaded, f"stretch_{number}") for number in range(count))
            return [ctypes.cast(one, ctypes.c_void_p).value or 0 for one in functions]
        return None


def _is_worth_it(kernel: LoweredKernel, seconds: float) -> bool:
    return seconds >= WORTH_COMPILING * len(kernel.operations)


def _use(kernel: LoweredKernel, rows: np.ndarray, addresses: np.ndarray) -> None:
    """Each stretch's first operation becomes its function; a warp may be amid the others."""
    starts, ends = rows.T
    kernel.operations["n"][starts] = addresses
    kernel.operations["next"][starts] = ends
    kernel.operations["code"][starts] = kernel.names.numbers["stretch"]
    kernel.is_hastened = True


def numbers_of(stretches: list[LaneStretch]) -> dict[str, int]:
    """The functions by their bodies; many stretches are alike."""
    return {text: number for number, text in enumerate(dict.fromkeys(one.text for one in stretches))}


def functions_of(stretches: list[LaneStretch]) -> str:
    """The functions of stretches, `stretch_0` and so on, in C."""
    made = (f"STRETCH(stretch_{number}) {{\n{text}}}\n" for text, number in numbers_of(stretches).items())
    return '#include "lane_functions.h"\n' + "".join(made)


def stretches_of(kernel: LoweredKernel) -> Iterator[LaneStretch]:
    """The stretches of a kernel's code, for whole warps and for some of their lanes."""
    for start, end in kernel.code.dataflow.basic_blocks.items():
        made = kernel.instructions[start:end]
        yield from _of_block(
            _Loop(kernel, kernel.of_blocks[start]), [(one.whole, one.is_fixed) for one in made]
        )
        behind_leader = _Loop(kernel, kernel.where[start] + 1, is_masked=True)
        yield from _of_block(behind_leader, [(one.some, one.is_fixed) for one in made])


def _of_block(loop: _Loop, instructions: list[tuple[list[VectorOperation], bool]]) -> Iterator[LaneStretch]:
    """The stretches of a basic block, whose operations begin where the loop does."""
    names = loop.kernel.names
    for operations, is_fixed in instructions:
        wide = dict[Place, bool]()
        fits = [
            one.name in ("guard", "all", *TABLES) or (names.is_of_lanes(one.name) and one.name not in SLOW)
            for one in operations
        ]
        if any(one.name == "guard" for one in operations) and not all(fits):
            fits = [False] * len(fits)
        if any(map(loop.would_overwrite, operations)):  # not amid those that a guard holds together
            yield from loop.made(set())
            loop = loop.behind()
        for number, one in enumerate(operations):
            if not loop.length and one.name in TABLES:  # a stretch's first operation is written over
                fits[number] = False
            if not fits[number] or loop.would_overwrite(one):
                yield from loop.made({place for later in operations[number:] for place in scratch(later)})
                loop = loop.behind(int(not fits[number]))
            if fits[number]:
                loop.add(one, wide, is_fixed)
            if isinstance(one.d, ScratchPlace):
                wide[one.d] = one.name not in names.words
        loop.forget_scratch()
        if loop.length > MOST:
            yield from loop.made(set())
            loop = loop.behind()
    yield from loop.made(set())


class _Loop:
    """A loop over the lanes of a warp that does a stretch of operations. is_masked: for some of them."""

    def __init__(self, kernel: LoweredKernel, at: int, is_masked: bool = False) -> None:
        self.kernel, self.at, self.length, self.is_masked = kernel, at, 0, is_masked
        self._before: list[str] = []
        self._lines: list[str] = []
        self._values: dict[Place, str] = {}
        self._changed: dict[Place, bool] = {}
        self._words: set[Place] = set()
        self._held = ""

    def behind(self, others: int = 0) -> _Loop:
        """The loop that begins behind it and so many other operations."""
        return _Loop(self.kernel, self.at + self.length + others, self.is_masked)

    def would_overwrite(self, one: VectorOperation) -> bool:
        """Whether a result of 64 bits lies where later lanes still read words."""
        return one.d in self._words and one.name not in self.kernel.names.words

    def add(self, one: VectorOperation, wide: Mapping[Place, bool], is_fixed: bool) -> None:
        """An operation. wide: whether scratch vectors have 64 bits; is_fixed: constants are those of all
        launches.
        """
        number, self.length = self.length, self.length + 1
        if one.name == "all":
            self._held = ""
            return
        sources = [
            self._read(place, f"o[{number}].{field}", wide, is_fixed)
            for field, place in zip("abc", (one.a, one.b, one.c))
            if place is not None
        ]
        if one.name == "guard":
            self._held = f"{'!' if one.k else ''}({sources[0]} & 1)"
            return
        assert one.d is not None
        value = sources[0]
        is_wide = one.name not in self.kernel.names.words and one.name != "write"
        if one.name in TABLES:
            self._before.append(f"  const void *t{number} = (const void *)o[{number}].n;\n")
            self._before.append(f"  const Word m{number} = o[{number}].{TABLES[one.name]};\n")
            sources = [f"t{number}", f"m{number}", *sources]
        if one.name != "write":
            value = self._new(f"lane_{one.name}({', '.join(sources)})", is_wide)
        elif self._held:
            value = self._new(f"{self._held} ? {value} : {self._read(one.d, '', wide, is_fixed)}", False)
        self._values[one.d], self._changed[one.d] = value, is_wide

    def _new(self, expression: str, is_wide: bool) -> str:
        name = f"v{len(self._lines)}"
        self._lines.append(f"    const {_TYPES[is_wide]} {name} = {expression};\n")
        return name

    def _read(self, place: Place, field: str, wide: Mapping[Place, bool], is_fixed: bool) -> str:
        if place not in self._values:
            if isinstance(place, ConstantPlace):
                if is_fixed:
                    return f"{place.bits}ull" if place.size == 8 else f"{place.bits}u"
                name, kind = f"c{len(self._before)}", _TYPES[place.size == 8]
                self._before.append(f"  const {kind} {name} = CONSTANT({kind}, {field});\n")
                return name
            is_wide = wide.get(place, False)
            if isinstance(place, ScratchPlace) and not is_wide:
                self._words.add(place)
            self._values[place] = self._new(self._at(place, is_wide), is_wide)
        return self._values[place]

    def _at(self, place: Place, is_wide: bool) -> str:
        base = "registers" if isinstance(place, RegisterPlace) else "scratch"
        return f"IN({base}, {_TYPES[is_wide]}, {self.kernel.place(place) & (1 << PLACE_BITS) - 1})"

    def forget_scratch(self) -> None:
        """An instruction ends, and with it the use of its intermediate results."""
        for values in (self._values, self._changed):
            for place in [one for one in values if isinstance(one, ScratchPlace)]:
                del values[place]

    def made(self, later: set[ScratchPlace]) -> Iterator[LaneStretch]:
        """The stretch, if it is one. later: what is read of intermediate results behind it."""
        if self.length < FEWEST or not self._lines:
            return
        stores = []
        for place, is_wide in self._changed.items():
            if isinstance(place, RegisterPlace) or place in later:
                to, value = self._at(place, is_wide), self._values[place]
                if self.is_masked and isinstance(place, RegisterPlace):
                    value = f"mask >> l & 1 ? {value} : {to}"
                stores.append(f"    {to} = {value};\n")
        body = "".join((*self._before, "  EACH_LANE {\n", *self._lines, *stores, "  }\n"))
        yield LaneStretch(self.at, self.length, body)


_TYPES = ("Word", "Long")
