"""The driver's functions that kernels call and that are in no file: `printf`, `malloc` and `free`.

Arguments and results are in R4 to R7, as the compiler's code has them. `vprintf` gets the format and the
place of the values, each aligned to its size, as the CUDA C++ Programming Guide describes ("Formatted
Output").
"""

from __future__ import annotations

import ctypes
import os
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from memsim.driver.program_memory import OutOfDeviceMemory, ProgramMemory
from memsim.isa.number_formats import join_words
from memsim.isa.program import Op
from memsim.state.address_spaces import GLOBAL_BASE, LOCAL_WINDOW, SHARED_WINDOW, WINDOW_SIZE
from memsim.state.parts import Mask
from memsim.state.poison import Poisoned
from memsim.state.registers import ints, to_array

if TYPE_CHECKING:
    from memsim.simt.machine import Machine

MOST_TEXT = 1 << 16

_CONVERSION = re.compile(rb"%%|%([-+ #0]*)(\d+|\*)?(?:\.(\d*|\*))?(hh|h|ll|l|z|j|t)?([diouxXeEfFgGaAcsp])")


class KernelCalls:
    """Executes them on a program's memory. output: the file that kernels print to."""

    def __init__(self, memory: ProgramMemory, output: int) -> None:
        self.memory, self.output = memory, output

    def call(self, name: str, machine: Machine, op: Op, active: Mask) -> np.ndarray | None:
        """What a function returns in each lane, int64 [B, T]; None: it is not known."""
        function = {"vprintf": self._print, "malloc": self._allocate, "free": self._free}.get(name)
        if function is None:
            return None
        lanes = machine.full(active)
        try:
            return function(machine, op, active, lanes)
        except Poisoned:
            return None

    def _pair(self, machine: Machine, op: Op, active: Mask, slot: int) -> np.ndarray:
        """A 64-bit argument of each lane, int64 [B, T]."""
        pair = machine.known_value(
            op, lambda r: join_words(ints(r[slot]), ints(r[slot + 1])), active, (slot, slot + 1)
        )
        return np.broadcast_to(to_array(pair), machine.shape)

    # --- malloc

    def _allocate(self, machine: Machine, op: Op, active: Mask, lanes: np.ndarray) -> np.ndarray:
        sizes = self._pair(machine, op, active, 4)
        found: np.ndarray = np.zeros(machine.shape, np.int64)
        for lane in zip(*np.nonzero(lanes)):
            with suppress(OutOfDeviceMemory):
                found[lane] = self.memory.allocate_on_heap(int(sizes[lane]))
        return found

    def _free(self, machine: Machine, op: Op, active: Mask, lanes: np.ndarray) -> np.ndarray:
        for address in self._pair(machine, op, active, 4)[lanes]:
            self.memory.free_on_heap(int(address))
        return np.zeros(machine.shape, np.int64)

    # --- printf

    def _print(self, machine: Machine, op: Op, active: Mask, lanes: np.ndarray) -> np.ndarray:
        formats, values = (self._pair(machine, op, active, slot) for slot in (4, 6))
        printed: list[bytes] = []
        counts: np.ndarray = np.zeros(machine.shape, np.int64)
        for lane in zip(*np.nonzero(lanes)):
            read = _Values(machine, int(lane[0]), int(lane[1]), int(values[lane]))
            text = self._text(int(formats[lane]), read)
            printed.append(b"".join(self._formatted(text, read)))
            counts[lane] = read.count
        with suppress(BrokenPipeError):  # nobody reads it any more; the program hears of that itself
            os.write(self.output, b"".join(printed))
        return counts

    def _text(self, address: int, values: _Values) -> bytes:
        """The string at a generic address of the lane."""
        start = address - GLOBAL_BASE
        if 0 <= start < self.memory.extent:
            content = self.memory.bytes[start : start + MOST_TEXT]
        elif (own := values.own_bytes(address)) is not None:
            content = own[:MOST_TEXT]
        else:
            return b"(null)" if not address else b"(a string that is in no memory)"
        return content.tobytes().partition(b"\0")[0]

    def _formatted(self, text: bytes, values: _Values) -> Iterator[bytes]:
        at = 0
        for match in _CONVERSION.finditer(text):
            yield text[at : match.start()]
            at = match.end()
            yield self._conversion(match, values)
        yield text[at:]

    def _conversion(self, match: re.Match[bytes], values: _Values) -> bytes:
        if match[0] == b"%%":
            return b"%"
        flags, width, precision, length, kind = match.groups()
        width, precision = (b"%d" % values.take("i") if one == b"*" else one for one in (width, precision))
        form = b"%" + flags + (width or b"") + (b"" if precision is None else b"." + precision)
        if kind == b"s":
            return _as_c(form + kind, ctypes.c_char_p(self._text(values.take("Q"), values)))
        if kind == b"p":
            return _as_c(form + kind, ctypes.c_void_p(values.take("Q")))
        if kind == b"c":
            return _as_c(form + kind, ctypes.c_int(values.take("I")))
        if kind in b"eEfFgGaA":
            return _as_c(form + kind, ctypes.c_double(values.take("d")))
        wide = length in (b"l", b"ll", b"z", b"j", b"t")
        signed = kind in b"di"
        number = values.take(("q" if signed else "Q") if wide else ("i" if signed else "I"))
        bits = {b"h": 16, b"hh": 8}.get(length or b"", 64)
        number = number & (1 << bits) - 1 if bits < 64 else number
        number -= 1 << bits if signed and bits < 64 and number >> bits - 1 else 0
        return _as_c(form + b"ll" + kind, ctypes.c_longlong(number))


@cache
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _as_c(form: bytes, value: object) -> bytes:
    """A value as the C library writes it, whose `printf` a GPU's is formatted by."""
    room = ctypes.create_string_buffer(MOST_TEXT)
    size = _c_library().snprintf(room, len(room), form, value)
    return room.raw[: min(max(size, 0), len(room) - 1)]


class _Values:
    """The values of a lane's `printf`, one after the other. count: how many were taken."""

    def __init__(self, machine: Machine, block: int, thread: int, address: int) -> None:
        self.machine, self.block, self.address, self.count = machine, block, address, 0
        self.row = block * machine.threads + thread

    def own_bytes(self, address: int) -> np.ndarray | None:
        """The bytes of local or shared memory from a generic address on; None: it is in neither."""
        for name, window, row in (
            ("local", LOCAL_WINDOW, self.row),
            ("shared", SHARED_WINDOW, self.block),
        ):
            if 0 <= address - window < WINDOW_SIZE:
                space = self.machine.memory.space(name)
                return space.data[row, max(0, address - window - space.base) :]
        return None

    def take(self, form: str) -> Any:
        """The next value."""
        size = struct.calcsize(form)
        self.address = -(-self.address // size) * size
        own = self.address - LOCAL_WINDOW
        memory = self.machine.memory
        if 0 <= own < WINDOW_SIZE:
            content, _ = memory.space("local").get(self.row, np.arange(own, own + size))
        else:
            content, _ = memory.space("global").get(0, np.arange(self.address, self.address + size))
        self.address += size
        self.count += 1
        return struct.unpack(f"<{form}", content.tobytes())[0]
