"""A CUDA driver whose chip needs the cycles that the model predicts, for the probe by clock."""

# ruff: noqa: N802 (the driver's own names)

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from lab.clock.clock_programs import ACCESSES, PIPES, data
from lab.clock.judge_clock import cycles_of_a_pipe
from memsim.model import shared_access
from memsim.validate.standalone import text_of

#: What a measurement takes that no instruction does.
ONCE = 531
UNSUPPORTED, ABSENT = 222, 100


class FakeDriver:
    """The functions that the probe calls. `wavefront`: cycles of one; `slower`: more cycles of an instruction
    in each round; `refuses`: instructions that it cannot compile.
    """

    def __init__(
        self,
        name: str = "NVIDIA A100",
        chip: tuple[int, int] = (8, 0),
        wavefront: int = 1,
        slower: dict[str, int] | None = None,
        refuses: tuple[str, ...] = (),
        devices: int = 1,
    ) -> None:
        self.name, self.chip, self.wavefront, self.devices = name, chip, wavefront, devices
        self.slower, self.refuses = slower or {}, refuses
        self.memory: dict[int, bytes] = {}
        self.programs = {text_of(program): program for program in data()["programs"]}
        self.loaded: list[dict[str, Any]] = []
        self.ran: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., int]:
        """Functions with nothing to do here succeed."""
        if not name.startswith("cu"):
            raise AttributeError(name)
        return lambda *arguments: 0

    def cuInit(self, flags: int) -> int:
        return 0 if self.devices else ABSENT

    def cuGetErrorName(self, code: int, name: Any) -> int:
        names = {UNSUPPORTED: b"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", ABSENT: b"CUDA_ERROR_NO_DEVICE"}
        name._obj.value = names[code]
        return 0

    def cuDeviceGetName(self, name: Any, size: int, device: Any) -> int:
        name.value = self.name.encode()
        return 0

    def cuDeviceGetAttribute(self, value: Any, number: int, device: Any) -> int:
        value._obj.value = self.chip[number - 75]
        return 0

    def cuDriverGetVersion(self, value: Any) -> int:
        value._obj.value = 13_010
        return 0

    def cuModuleLoadData(self, module: Any, ptx: bytes) -> int:
        program = self.programs[ptx.rstrip(b"\0").decode()]
        if program["name"] in self.refuses:
            return UNSUPPORTED
        self.loaded.append(program)
        return 0

    def cuMemAlloc_v2(self, address: Any, size: ctypes.c_size_t) -> int:
        address._obj.value = 4096 * (len(self.memory) + 1)
        self.memory[address._obj.value] = bytes(size.value)
        return 0

    def cuMemFree_v2(self, address: ctypes.c_uint64) -> int:
        del self.memory[address.value]
        return 0

    def cuMemcpyHtoD_v2(self, to: ctypes.c_uint64, what: Any, size: ctypes.c_size_t) -> int:
        self.memory[to.value] = bytes(what)[: size.value]
        return 0

    def cuMemcpyDtoH_v2(self, to: Any, what: ctypes.c_uint64, size: ctypes.c_size_t) -> int:
        ctypes.memmove(to, self.memory[what.value], size.value)
        return 0

    def cuLaunchKernel(self, function: Any, *rest: Any) -> int:
        *shape, _, arguments, _ = rest
        assert [number.value for number in shape] == [1, 1, 1, 1024, 1, 1, 0]
        table, cycles = (ctypes.c_uint64.from_address(arguments[i]).value for i in (0, 1))
        patterns, rounds, zero = (ctypes.c_uint32.from_address(arguments[i]).value for i in (2, 3, 4))
        assert zero == 0 and len(self.memory[cycles]) == 8 * patterns
        program = self.loaded[-1]
        words = np.frombuffer(self.memory[table], np.uint32).reshape(patterns, 32).astype(np.int64)
        each = self.each(program["name"], words) + self.slower.get(program["name"], 0)
        self.ran.append(program["name"])
        total = ONCE + len(self.ran) % 3 + rounds * program["repeats"] * 32 * each
        self.memory[cycles] = total.astype(np.uint64).tobytes()
        return 0

    def each(self, name: str, words: np.ndarray) -> np.ndarray:
        """Cycles of one execution of one warp, for each pattern."""
        if name in PIPES:
            return np.full(len(words), cycles_of_a_pipe(PIPES[name]) / 4)
        one = ACCESSES[name]
        cost = shared_access(words & 0x7FFF_FFFF, one.width, one.op, words >> 31 > 0)
        return np.asarray(self.wavefront * cost.wavefronts)
