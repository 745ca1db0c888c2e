"""The device memory of one program: a memory file that the program maps, too, at the same addresses.

So a device pointer is an address in the program and in the emulator at once: copies cost nothing, and
pointers within arrays and structs are right. So are address ranges that a program reserves, and what it maps
in them (native/virtual_memory.h).
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Container, Mapping
from contextlib import suppress
from enum import IntEnum
from typing import Any, Protocol

import numpy as np

from memsim.driver.program_textures import ProgramTextures
from memsim.errors import MemsimError
from memsim.interpreter.lane_operations import CLOCKS
from memsim.isa.program import Op
from memsim.simt.machine import Machine
from memsim.simt.memory_layout import WORKSPACE
from memsim.state.address_spaces import GLOBAL_BASE, Buffer, SpaceLayout, align
from memsim.state.launch_memory import Memory
from memsim.state.parts import Mask
from memsim.state.poison import Poison, Poisoned

#: Alignment of allocations: that of textures and of pitched rows, as a GPU's.
ALIGNMENT = 512
#: CUDA's default size of the heap of kernels (cudaLimitMallocHeapSize), in bytes, and its alignment.
HEAP, HEAP_ALIGNMENT = 8 << 20, 16
#: From so many bytes on, what is freed is given back to the system, once there are more than `MOST_FREE` of
#: it: a program that allocates as much again gets the pages that it had.
WORTH_GIVING_BACK, MOST_FREE = 1 << 20, 1 << 30
#: Addresses for each byte of the device, because programs reserve more than they map; at most so many.
ADDRESSES, MOST_ADDRESSES = 8, 512 << 30
NO_RESERVE = 0x4000  # MAP_NORESERVE of Linux, which Python has no name for


class MemoryKind(IntEnum):
    """Who may access an allocation; native/channel.h has the same numbers."""

    DEVICE, HOST, MANAGED = 0, 1, 2


class OutOfDeviceMemory(Exception):
    """An allocation does not fit."""


class ProgramMemory:
    """`size`: bytes of the device; `extent`: of its addresses. `layout`: what is allocated; `kinds`: by the
    start of an allocation; `mapped`: starts of those that a program has mapped itself.
    contents: of allocations that only calls and kernels write, by their start, what is known of their bytes:
    as long as it is the same object, these are the same.
    """

    def __init__(self, size: int) -> None:
        self.size, self.extent = size, min(size * ADDRESSES, max(size, MOST_ADDRESSES))
        self.file = os.memfd_create("memsim")
        os.ftruncate(self.file, self.extent)
        self._mapped = mmap.mmap(self.file, self.extent, flags=mmap.MAP_SHARED)
        self.bytes = np.frombuffer(self._mapped, np.uint8)
        self.layout = SpaceLayout("global", GLOBAL_BASE)
        self.kinds: dict[int, MemoryKind] = {}
        self.mapped: set[int] = set()
        self.contents: dict[int, object] = {}
        self.textures = ProgramTextures()
        self.used = 0
        self._count = 0
        self._free: dict[int, list[int]] = {}
        #: Bytes of what was freed and not given back, by its start, the oldest first.
        self._with_pages: dict[int, int] = {}
        self._heap = self._heap_next = 0
        self._heap_size = HEAP
        self._on_heap: dict[int, int] = {}
        self._heap_free: dict[int, list[int]] = {}

    def close(self) -> None:
        """Gives everything back."""
        os.close(self.file)
        self.bytes = np.zeros(0, np.uint8)
        with suppress(BufferError):
            self._mapped.close()

    def allocate(self, size: int, kind: MemoryKind = MemoryKind.DEVICE, name: str = "") -> int:
        """The address of so many new bytes.

        Raises:
            OutOfDeviceMemory: they do not fit.
        """
        taken = align(max(size, 1), ALIGNMENT)
        if taken > self.size - self.used:
            raise OutOfDeviceMemory
        place = self._free.get(taken)
        start = place.pop() if place else self.reserve(taken, ALIGNMENT)
        self._with_pages.pop(start, None)
        self.add(start, size, kind, name)
        self.used += taken
        return start

    def reserve(self, size: int, alignment: int) -> int:
        """The first of so many addresses that are in no allocation.

        Raises:
            OutOfDeviceMemory: there are not so many left.
        """
        end = self.layout.end
        start = self.layout.reserve(size, alignment, ALIGNMENT)
        if self.layout.end - GLOBAL_BASE > self.extent:
            self.layout.end = end
            raise OutOfDeviceMemory
        return start

    def add(self, start: int, size: int, kind: MemoryKind = MemoryKind.DEVICE, name: str = "") -> None:
        """An allocation at an address."""
        self.layout.add(name or f"allocation {self._count}", start, size)
        self._count += 1
        self.kinds[start] = kind
        if kind is MemoryKind.DEVICE and not name:  # a variable may be managed
            self.contents[start] = object()

    def remove(self, buffer: Buffer) -> None:
        """It is no allocation any more."""
        self.layout.remove(buffer)
        del self.kinds[buffer.start]
        self.contents.pop(buffer.start, None)

    def release(self, start: int) -> bool:
        """Frees what starts at an address; False if nothing does."""
        buffer = self.layout.at(start)
        if buffer is None or start not in self.kinds or start in self.mapped:
            return False
        self.remove(buffer)
        taken = align(max(buffer.end - buffer.start, 1), ALIGNMENT)
        self.used -= taken
        self._free.setdefault(taken, []).append(start)
        if taken >= WORTH_GIVING_BACK:
            self._with_pages[start] = taken
        while sum(self._with_pages.values()) > MOST_FREE:
            oldest = next(iter(self._with_pages))
            self.forget_pages(oldest, self._with_pages.pop(oldest))
        return True

    def forget_pages(self, start: int, size: int) -> None:
        """Gives the pages in these bytes back to the system; they are zero then."""
        page = mmap.PAGESIZE
        first, last = align(start - GLOBAL_BASE, page), (start - GLOBAL_BASE + size) // page * page
        with suppress(OSError):
            self._mapped.madvise(mmap.MADV_REMOVE, first, last - first)

    def allocate_on_heap(self, size: int) -> int:
        """The address of so many new bytes in the heap of kernels, which is allocated on first use.

        Raises:
            OutOfDeviceMemory: they do not fit.
        """
        if not self._heap:
            raise OutOfDeviceMemory
        taken = align(max(size, 1), HEAP_ALIGNMENT)
        place = self._heap_free.get(taken)
        if place:
            start = place.pop()
        elif self._heap_next + taken > self._heap + self._heap_size:
            raise OutOfDeviceMemory
        else:
            start = self._heap_next
            self._heap_next += taken
        self.layout.add(f"malloc of {size} bytes", start, size)
        self._on_heap[start] = taken
        return start

    def free_on_heap(self, address: int) -> None:
        """Frees what a kernel allocated."""
        taken = self._on_heap.pop(address, None)
        buffer = self.layout.at(address)
        if taken is not None and buffer is not None:
            self.layout.remove(buffer)
            self._heap_free.setdefault(taken, []).append(address)

    def make_heap(self) -> None:
        """Reserves the heap of kernels; its bytes are in no allocation until a kernel asks for them."""
        if not self._heap:
            with suppress(OutOfDeviceMemory):
                self._heap = self._heap_next = self.reserve(self._heap_size, ALIGNMENT)

    def set_heap(self, size: int) -> bool:
        """Decides the size of the heap of kernels, bytes; False once they have one, or if it is too much."""
        if self._heap or size > self.size - self.used:
            return size == self._heap_size
        self._heap_size = align(max(size, 1), ALIGNMENT)
        return True

    def reset(self, kept: Container[int]) -> None:
        """Frees everything but what starts at these addresses, and what the program has mapped itself."""
        for start in [one for one in self.kinds if one not in kept]:
            self.release(start)
        for address in [*self._on_heap]:
            self.free_on_heap(address)
        self.textures.objects.clear()

    def lose(self, names: Container[str] | None = None) -> None:
        """Allocations of these names, or all, have changed."""
        for start in self.contents:
            buffer = self.layout.at(start)
            if names is None or (buffer is not None and buffer.name in names):
                self.contents[start] = object()

    def lose_range(self, start: int, end: int) -> None:
        """Bytes between two addresses have changed."""
        for one in self.layout.between(start, end):
            if one.start in self.contents:
                self.contents[one.start] = object()

    def find(self, address: int) -> Buffer | None:
        """The allocation that an address is in."""
        return self.layout.find(address, address + 1)

    def view(self, address: int, size: int) -> np.ndarray:
        """Bytes from an address on, uint8, in place."""
        return self.bytes[address - GLOBAL_BASE : address - GLOBAL_BASE + size]

    def private(self, size: int) -> np.ndarray:
        """The first bytes as they are, uint8; what is written to them stays private."""
        mapped = mmap.mmap(self.file, size, flags=mmap.MAP_PRIVATE | NO_RESERVE)
        return np.frombuffer(mapped, np.uint8)


class SystemFunctions(Protocol):
    """Executes functions of the driver."""

    def call(self, name: str, machine: Machine, op: Op, active: Mask) -> np.ndarray | None:
        """As `Memory.call`."""


class MemoryOfLaunch(Memory):
    """A launch's memory whose global space is the device's.

    symbols: addresses of the module's variables. is_private: the launch's writes to global memory are seen by
    nobody else. unwritten: why a value is unknown that the launch has written, as it came from shared or
    local memory that nothing was written to.
    """

    def __init__(
        self,
        device: ProgramMemory,
        shared_base: int,
        symbols: Mapping[str, int],
        constants: Mapping[int, bytes],
        is_private: bool,
    ) -> None:
        super().__init__([], shared_base)
        self.device, self.is_private = device, is_private
        self.given = symbols
        self.layouts["global"] = device.layout
        self.symbols = {name: ("global", address) for name, address in symbols.items()}
        self.constants = constants
        self.unwritten: Poison | None = None
        if not is_private:  # a GPU runs it, with whatever is there
            self.unwritten_register = 0
        #: Executes functions of the driver; None: their results are unknown.
        self.functions: SystemFunctions | None = None
        self._end = device.layout.end
        self._began = time.perf_counter_ns()
        for handle, made in device.textures.objects.items():
            if not made.is_surface:
                self.textures[handle] = texture = made.over(device.bytes, as_documented=not is_private)
                self.texture_names[id(texture)] = "texture"

    def global_bytes(self, size: int) -> np.ndarray:
        """As `Memory`."""
        size = min(size, self.device.extent)
        found = self.device.private(size) if self.is_private else self.device.bytes[:size]
        return found.reshape(1, -1)

    def for_trial(self) -> Memory:
        """As `Memory`."""
        return MemoryOfLaunch(self.device, self.layouts["shared"].base, self.given, self.constants, True)

    def call(self, name: str, machine: Any, op: Any, active: Any) -> np.ndarray | None:
        """As `Memory`."""
        return None if self.functions is None else self.functions.call(name, machine, op, active)

    def clock(self, name: str) -> int | None:
        """As `Memory`: nanoseconds since the launch began, or of the machine's clock; a launch that is only
        counted has none.
        """
        if self.is_private or not name.startswith(CLOCKS):
            return None
        now = time.time_ns() if "TIMER" in name else time.perf_counter_ns() - self._began
        return now >> 32 if name.endswith("HI") else now & 0xFFFFFFFFFFFF

    def release(self) -> None:
        """Takes the workspace of a cooperative launch out of the device's memory."""
        place = self.symbols.get(WORKSPACE)
        workspace = self.device.layout.at(place[1]) if place else None
        if workspace is not None:
            self.device.layout.remove(workspace)
            self.device.layout.end = self._end

    def copy_back(self) -> None:
        """Nothing to copy.

        Raises:
            Poisoned: the kernel wrote something unknown, other than what it never wrote itself.
        """
        for poison in (self._spoiled.get("global"), self._global and self._global.poison):
            if poison:
                raise Poisoned(poison)
        if self._global is None or self._global.unknown is None or not self._global.unknown.any():
            return
        never = {one.reason for one in self.uninitialised.values()}
        for number in np.unique(self._global.unknown):
            if number:
                reason = self._global.reasons[number - 1]
                if reason.reason not in never:
                    raise Poisoned(reason)
                self.unwritten = reason


def memory_of_this_machine() -> int:
    """Bytes that a device has here: half of the machine's memory, and at most those of an H100.

    Raises:
        MemsimError: there is hardly any.
    """
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    size = min(pages // 2, 80 << 30) // (1 << 21) * (1 << 21)
    if size < 1 << 26:
        raise MemsimError("this machine has too little memory for a device")
    return int(size)
