"""Ranges of addresses that a program reserves, and memory that it maps in them (native/virtual_memory.h)."""

from __future__ import annotations

from memsim.driver.program_memory import OutOfDeviceMemory, ProgramMemory
from memsim.state.address_spaces import Buffer

GRANULARITY = 2 << 20


class VirtualMemory:
    """Reserved ranges, their ends by their starts. What is mapped side by side in one of them is one
    allocation, because arrays lie across.
    """

    def __init__(self, memory: ProgramMemory) -> None:
        self.memory = memory
        self.reserved: dict[int, int] = {}
        self._given_up: dict[int, list[int]] = {}

    def step(self, number: int, at: int, size: int) -> int | None:
        """Does a step (`enum virtual_step` of native/channel.h) at an address, and returns it; None if it
        makes no sense.

        Raises:
            OutOfDeviceMemory: there is not so much memory, or there are not so many addresses.
        """
        steps = self._reserve, self._give_up, self._take, self._give_back, self._map, self._unmap
        if not size or size % GRANULARITY or at % GRANULARITY or number >= len(steps):
            return None
        return steps[number](at, size)

    def _reserve(self, _: int, size: int) -> int:
        again = self._given_up.get(size)
        start = again.pop() if again else self.memory.reserve(size, GRANULARITY)
        self.reserved[start] = start + size
        return start

    def _give_up(self, at: int, size: int) -> int | None:
        if self.reserved.get(at) != at + size or self._inside(at, at + size):
            return None
        del self.reserved[at]
        self._given_up.setdefault(size, []).append(at)
        return at

    def _take(self, at: int, size: int) -> int:
        if size > self.memory.size - self.memory.used:
            raise OutOfDeviceMemory
        self.memory.used += size
        return at

    def _give_back(self, at: int, size: int) -> int | None:
        if size > self.memory.used:
            return None
        self.memory.used -= size
        return at

    def _map(self, at: int, size: int) -> int | None:
        end = at + size
        start = max((one for one in self.reserved if one <= at), default=at)
        last = self.reserved.get(start, 0)
        if end > last or self._inside(at, end):
            return None
        beside = [one for one in self._inside(start, last) if one.end == at or one.start == end]
        for one in beside:
            self._remove(one)
        self._add(min([at, *(one.start for one in beside)]), max([end, *(one.end for one in beside)]))
        return at

    def _unmap(self, at: int, size: int) -> int | None:
        whole = self.memory.find(at)
        if whole is None or whole.start not in self.memory.mapped or whole.end < at + size:
            return None
        self._remove(whole)
        for start, end in ((whole.start, at), (at + size, whole.end)):
            if start < end:
                self._add(start, end)
        self.memory.forget_pages(at, size)
        return at

    def _inside(self, start: int, end: int) -> list[Buffer]:
        """What is mapped, in part at least, between two addresses."""
        return self.memory.layout.between(start, end)

    def _add(self, start: int, end: int) -> None:
        self.memory.add(start, end - start)
        self.memory.mapped.add(start)

    def _remove(self, buffer: Buffer) -> None:
        self.memory.remove(buffer)
        self.memory.mapped.remove(buffer.start)
