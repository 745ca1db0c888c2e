"""The other end of native/channel.c: the questions of a program, each checked before it is answered.

A question is {u32 operation, u32 bytes} and its bytes; an answer is {i32 CUresult, u32 bytes} and its bytes.
What comes from the program is not trusted: sizes and handles are looked at, and a question that makes no
sense is refused. What the device says of itself are the attributes of `cuDeviceGetAttribute`, by their
numbers in cuda.h.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

from memsim.arch import Arch
from memsim.arch.chip import chip_number
from memsim.arch.units import WARP
from memsim.driver.execute_launches import Launches, LaunchShape, resident_blocks
from memsim.driver.matrix_products import NotSupported, multiply, read_product
from memsim.driver.program_code import ProgramModule
from memsim.driver.program_memory import MemoryKind, OutOfDeviceMemory, ProgramMemory
from memsim.driver.program_textures import UnsupportedMap, encode_tensor_map, read_texture
from memsim.driver.virtual_memory import VirtualMemory
from memsim.errors import MemsimError
from memsim.kernel import Kernel
from memsim.launch import MAX_BLOCK, MAX_CLUSTER, MAX_GRID, MAX_THREADS, PORTABLE_CLUSTER, Launch
from memsim.state.address_spaces import GLOBAL_BASE, align

INVALID_VALUE, OUT_OF_MEMORY, INVALID_IMAGE, NO_BINARY, INVALID_HANDLE, NOT_FOUND = 1, 2, 200, 209, 400, 500
NOT_SUPPORTED = 801
HEAD, ANSWER = struct.Struct("<II"), struct.Struct("<iI")
HELLO, LAUNCH = struct.Struct("<QQ64sII"), struct.Struct("<12I8Q")
#: The largest question: the fat binary of a large library.
MOST_BYTES = 1 << 31
MOST_NAME = 1 << 16
MOST_ALLOCATIONS = 1 << 20
#: Attributes of a function that native/channel.h has room for.
FUNCTION_ATTRIBUTES = 14
#: `enum launch_flag` of native/channel.h.
COOPERATIVE, LARGE_CLUSTERS = 1, 2

Answer = tuple[int, bytes]


class BadQuestion(Exception):
    """What a program sent makes no sense."""


class Client:
    """One program, or one process of it: its connection, its memory, its modules and functions."""

    def __init__(self, connection: socket.socket, memory: ProgramMemory, launches: Launches) -> None:
        self.connection, self.memory, self.launches = connection, memory, launches
        self.virtual = VirtualMemory(memory)
        self.modules: dict[int, ProgramModule] = {}
        self.functions: dict[int, tuple[ProgramModule, Kernel]] = {}
        self.refused: dict[str, None] = {}
        self._made = 0
        self._answers: dict[int, Callable[[bytes], Answer]] = dict(
            enumerate(
                (
                    self._hello,
                    self._module,
                    self._unload,
                    self._function,
                    self._variable,
                    self._allocate,
                    self._free,
                    self._range,
                    self._launch,
                    self._occupancy,
                    self._refused,
                    self._memory,
                    self._product,
                    self._texture,
                    self._forget,
                    self._virtual,
                    self._tensor_map,
                    self._heap,
                    self._reset,
                ),
                1,
            )
        )
        socket.send_fds(connection, [b"m"], [memory.file])

    @property
    def chip(self) -> Arch:
        """The chip that the program sees."""
        return self.launches.chip

    def close(self) -> None:
        """The program is done."""
        self.connection.close()
        self.memory.close()

    def serve(self) -> bool:
        """Takes one question and answers it; False if the program has gone, or sent what makes no sense."""
        try:
            head = self._take(HEAD.size)
            operation, size = HEAD.unpack(head)
            if operation not in self._answers or size > MOST_BYTES:
                raise BadQuestion(f"operation {operation} with {size:,} bytes")
            data = self._take(size)
            result, answer = self._answers[operation](data)
        except EOFError:
            return False
        except (BadQuestion, struct.error) as why:
            self.launches.say(f"the program sent what is no question, and is left alone: {why}")
            return False
        except OutOfDeviceMemory:
            result, answer = OUT_OF_MEMORY, b""
        try:
            self.connection.sendall(ANSWER.pack(result, len(answer)) + answer)
        except OSError:
            return False
        return True

    def _take(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            try:
                more = self.connection.recv(min(size - len(found), 1 << 20))
            except OSError:
                more = b""
            if not more:
                raise EOFError
            found += more
        return bytes(found)

    # --- answers

    def _hello(self, data: bytes) -> Answer:
        pairs = sorted(device_attributes(self.chip).items())
        head = HELLO.pack(GLOBAL_BASE, self.memory.extent, device_name(self.chip).encode(), len(pairs), 0)
        return 0, head + b"".join(struct.pack("<Ii", *pair) for pair in pairs)

    def _module(self, data: bytes) -> Answer:
        try:
            module = ProgramModule(data, self.memory, self.chip)
        except MemsimError as error:
            self.launches.say(str(error))
            return (NO_BINARY if "no code for" in error.message else INVALID_IMAGE), b""
        self._made += 1
        self.modules[self._made] = module
        return 0, struct.pack("<I", self._made)

    def _unload(self, data: bytes) -> Answer:
        (number,) = struct.unpack("<I", data)
        module = self.modules.pop(number, None)
        if module is None:
            return INVALID_HANDLE, b""
        module.release()
        return 0, b""

    def _named(self, data: bytes) -> tuple[ProgramModule | None, str]:
        (number,) = struct.unpack_from("<I", data)
        if len(data) > MOST_NAME:
            raise BadQuestion(f"a name of {len(data):,} bytes")
        return self.modules.get(number), data[4:].decode(errors="replace")

    def _function(self, data: bytes) -> Answer:
        module, name = self._named(data)
        if module is None:
            return INVALID_HANDLE, b""
        try:
            kernel = module.kernel(name)
            if kernel is None:
                return NOT_FOUND, b""
            attributes = self._attributes(kernel)
        except MemsimError as error:
            self.launches.say(f"{name}: {error}")
            return INVALID_IMAGE, b""
        self._made += 1
        self.functions[self._made] = module, kernel
        count, size = len(kernel.parameters), kernel.machine.image.parameter_size
        head = struct.pack(f"<3I{FUNCTION_ATTRIBUTES}i", self._made, count, size, *attributes)
        return 0, head + b"".join(struct.pack("<II", one.offset, one.size) for one in kernel.parameters)

    def _attributes(self, kernel: Kernel) -> list[int]:
        """CUfunction_attribute 0 to 13."""
        image, registers = kernel.machine.image, kernel.machine.registers
        by_registers = self.chip.registers // align(max(registers, 1), 8) // WARP * WARP
        bound = image.max_threads
        threads = min(1024, by_registers, bound[0] * bound[1] * bound[2] if bound else 1024)
        constant = sum(one.size for one in kernel.machine.module.cubin.constants)
        version = int(self.chip.name.removeprefix("sm_"))
        dynamic = max(0, self.chip.static_shared_bytes - kernel.static_shared)
        return [
            threads,
            kernel.static_shared,
            constant,
            image.local_bytes,
            registers,
            version,
            version,
            0,
            dynamic,
            -1,
            int(image.cluster is not None),
            *(image.cluster or (0, 0, 0)),
        ]

    def _variable(self, data: bytes) -> Answer:
        module, name = self._named(data)
        if module is None:
            return INVALID_HANDLE, b""
        found = module.variables.get(name)
        return (NOT_FOUND, b"") if found is None else (0, struct.pack("<QQ", *found))

    def _allocate(self, data: bytes) -> Answer:
        size, kind, _ = struct.unpack("<QII", data)
        if not size or kind not in set(MemoryKind):
            return INVALID_VALUE, b""
        if len(self.memory.kinds) >= MOST_ALLOCATIONS:
            return OUT_OF_MEMORY, b""
        return 0, struct.pack("<Q", self.memory.allocate(size, MemoryKind(kind)))

    def _free(self, data: bytes) -> Answer:
        address, kinds = struct.unpack("<QQ", data)
        kind = self.memory.kinds.get(address)
        is_freed = kind is not None and kinds >> kind & 1 and self.memory.release(address)
        return (0 if is_freed else INVALID_VALUE), b""

    def _range(self, data: bytes) -> Answer:
        (address,) = struct.unpack("<Q", data)
        found = self.memory.find(address)
        if found is None or found.start not in self.memory.kinds:
            return INVALID_VALUE, b""
        kind = self.memory.kinds[found.start]
        return 0, struct.pack("<QQII", found.start, found.end - found.start, kind, 0)

    def _launch(self, data: bytes) -> Answer:
        number, *numbers = LAUNCH.unpack_from(data)
        parameters = data[LAUNCH.size :]
        if number not in self.functions:
            return INVALID_HANDLE, b""
        module, kernel = self.functions[number]
        if len(parameters) != kernel.machine.image.parameter_size:
            raise BadQuestion(f"{len(parameters)} bytes of parameters for {kernel.name}")
        grid, block, cluster = (tuple(numbers[i : i + 3]) for i in (0, 3, 7))
        if 0 in grid or 0 in block:
            return INVALID_VALUE, b""
        flags = numbers[10]
        shape = LaunchShape(
            grid, block, numbers[6], cluster if any(cluster) else None, bool(flags & COOPERATIVE)
        )
        most = MAX_CLUSTER if flags & LARGE_CLUSTERS else PORTABLE_CLUSTER
        for start, end in zip(numbers[11::2], numbers[12::2]):
            self.memory.lose_range(start, end)
        return self.launches.launch(module, kernel, shape, parameters, self.memory, most), b""

    def _occupancy(self, data: bytes) -> Answer:
        number, threads, shared = struct.unpack("<IIQ", data)
        if number not in self.functions or not 0 < threads <= 1024:
            return INVALID_VALUE, b""
        launch = Launch((1, 1, 1), (threads, 1, 1), shared)
        return 0, struct.pack("<I", resident_blocks(self.functions[number][1], launch, self.chip))

    def _refused(self, data: bytes) -> Answer:
        name = data[:200].decode(errors="replace")
        if name == "cuGetExportTable":
            self.launches.asked_for_tables = True
            return 0, b""
        if name not in self.refused and len(self.refused) < 1000:
            self.refused[name] = None
            self.launches.say(f"{name} is not implemented; the program is told so (801, not supported)")
        return 0, b""

    def _memory(self, data: bytes) -> Answer:
        return 0, struct.pack("<QQ", self.memory.size - self.memory.used, self.memory.size)

    def _heap(self, data: bytes) -> Answer:
        (size,) = struct.unpack("<Q", data)
        return (0 if self.memory.set_heap(size) else INVALID_VALUE), b""

    def _reset(self, data: bytes) -> Answer:
        """Functions and modules stay, because programs keep their handles."""
        variables = {at for module in self.modules.values() for at, _ in module.variables.values()}
        self.memory.reset(variables)
        for module in self.modules.values():
            module.write_first_contents()
        return 0, b""

    def _product(self, data: bytes) -> Answer:
        product = read_product(data)
        try:
            self.memory.lose()
            found = multiply(product, self.memory)
        except MemsimError as error:
            self.launches.say(str(error))
            return (NOT_SUPPORTED if isinstance(error, NotSupported) else INVALID_VALUE), b""
        self.launches.not_modelled[product.name] += 1
        return 0, found

    def _texture(self, data: bytes) -> Answer:
        try:
            made = self.memory.textures.add(read_texture(data, self.memory.bytes, self.memory.layout))
        except MemsimError as error:
            self.launches.say(str(error))
            return (NOT_SUPPORTED if "not modelled" in error.message else INVALID_VALUE), b""
        return 0, struct.pack("<Q", made)

    def _forget(self, data: bytes) -> Answer:
        (handle,) = struct.unpack("<Q", data)
        found = self.memory.textures.objects.pop(handle, None)
        return (INVALID_HANDLE if found is None else 0), b""

    def _tensor_map(self, data: bytes) -> Answer:
        try:
            found = encode_tensor_map(data)
        except UnsupportedMap as why:
            self.launches.say(str(why))
            return NOT_SUPPORTED, b""
        return (INVALID_VALUE, b"") if found is None else (0, found)

    def _virtual(self, data: bytes) -> Answer:
        step, at, size = struct.unpack("<3Q", data)
        if len(self.memory.kinds) + len(self.virtual.reserved) >= MOST_ALLOCATIONS:
            return OUT_OF_MEMORY, b""
        found = self.virtual.step(step, at, size)
        return (INVALID_VALUE, b"") if found is None else (0, struct.pack("<Q", found))


def device_name(chip: Arch) -> str:
    """The name that programs print."""
    return f"memsim {chip.name} (no GPU)"


def device_attributes(chip: Arch) -> dict[int, int]:
    """Attribute -> value; what is not here is 0.

    Sizes of the chip are `chip`'s, others those of the CUDA C++ Programming Guide ("Technical Specifications
    per Compute Capability"). Clocks and buses are of no machine: 1 GHz, which no time is made of, and 1,024
    bits.
    """
    major, minor = divmod(chip_number(chip.name), 10)
    textures = {21: 131_072, 22: 131_072, 23: 65_536, 24: 16_384, 25: 16_384, 26: 16_384}
    textures |= {27: 32_768, 28: 32_768, 29: 2_048, 42: 32_768, 43: 2_048}  # layered
    textures |= {52: 32_768, 53: 32_768, 54: 2_046}  # cube maps
    textures |= {69: 1 << 28, 70: 131_072, 71: 65_000, 72: 2_097_120}  # linear and pitched memory
    return textures | {
        1: MAX_THREADS,
        **dict(zip((2, 3, 4), MAX_BLOCK)),
        **dict(zip((5, 6, 7), MAX_GRID)),
        8: chip.static_shared_bytes,
        9: 65_536,  # constant memory
        10: chip.warp,
        11: 2**31 - 1,  # pitch
        12: chip.registers,
        13: 1_000_000,  # kHz
        14: 512,  # alignment of textures
        15: 1,  # copies beside kernels
        16: chip.multiprocessors,
        19: 1,  # host memory is mapped
        30: 512,  # alignment of surfaces
        31: 1,  # concurrent kernels
        36: 1_000_000,  # kHz
        37: 1_024,  # bits
        38: chip.sheet.l2,
        39: chip.resident_warps * chip.warp,
        40: 1,  # copy engines
        41: 1,  # unified addressing
        51: 32,  # alignment of a texture's rows
        75: major,
        76: minor,
        78: 1,  # priorities of streams
        79: 1,  # global memory in L1
        80: 1,  # local memory in L1
        81: chip.shared_multiprocessor_bytes,
        82: chip.registers,
        83: 1,  # managed memory
        87: 2,  # float to double
        89: 1,  # managed memory beside kernels
        90: 1,  # preemption
        95: 1,  # cooperative launches
        97: chip.shared_block_bytes,
        102: 1,  # virtual memory management
        106: chip.resident_blocks,
        107: 1,  # compressible memory, which is as any other here
        111: chip.shared_reserved_bytes,
        115: 1,  # pools of memory
        120: int(chip.front.in_cluster is not None),
    }
