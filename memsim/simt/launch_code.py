"""A kernel's code for one launch: its parameters and constant banks filled in, and only what is needed of it.

What is needed depends on the launch, because its arguments tell which addresses may be in the same array.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, reduce
from operator import or_

from memsim.arch import ARCHS, MEASURED, Front, arch_of_code, plain_name
from memsim.argument_types import TensorMap, Texture
from memsim.argument_types.argument import argument_of
from memsim.argument_types.array_tables import ALIGN, BYTES, decode_tensor_map
from memsim.errors import MemsimError
from memsim.isa.program import Executable
from memsim.isa.readers import Binder
from memsim.launch import Launch
from memsim.simt.bounds import Origins
from memsim.simt.code import Code, KnownSteps
from memsim.simt.dataflow import Dataflow
from memsim.simt.faults import cluster_of
from memsim.simt.memory_layout import workspace_of, workspace_roots
from memsim.simt.pointer_roots import (
    ANYWHERE,
    PARAMETER_BITS,
    SHARED_WINDOW_ROOT,
    VARIABLE_BITS,
    roots_of_symbols,
)
from memsim.simt.unused_parts import with_unused_bytes, without_unused_halves
from memsim.state.address_spaces import CONSTANT_WINDOW, LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW, Buffer
from memsim.state.launch_memory import Memory
from memsim.state.poison import Poison
from memsim.state.tensors import bits_of_tensor, tensor_of, tensor_of_bits


def code_of_launch(
    kernel: Executable,
    launch: Launch,
    arguments: Sequence[object],
    names: Sequence[str],
    memory: Memory,
    everything: bool,
    every_branch: bool = False,
    looked_at: Mapping[int, int] | None = None,
) -> tuple[Code, Origins]:
    """The kernel as steps with the launch's constants, and the origins of its addresses.

    The arguments are checked, and have their places in `memory`, which gets their textures and tensor maps.
    everything, every_branch, looked_at: as in `PreparedLaunch`.
    """
    dataflow = _dataflow_of(kernel)
    parameters, pointers, numbers = _parameters(kernel, arguments, names, memory)
    banks, holes, externals = constant_banks(kernel, launch, parameters, memory)
    pointers |= _variables(kernel, memory)
    needed = None
    if not everything:
        spaces = _spaces_of_roots(kernel, pointers)
        roots = reduce(or_, pointers, ANYWHERE)
        needed = dataflow.needed(roots, _same(pointers), spaces, every_branch, looked_at)
    symbols = {name: address for name, (_, address) in memory.symbols.items()}
    of_groups = arch_of_code(kernel.made_for).front.of_groups
    binder = Binder(banks, symbols | dict(kernel.functions), holes, parameters, of_groups)
    cluster = cluster_of(kernel, launch) or (1, 1, 1)
    code = Code(dataflow, binder, needed, externals, cluster, _steps_of(dataflow), frozenset(looked_at or ()))
    return code, Origins(dataflow, pointers, numbers)


@lru_cache(maxsize=256)
def _dataflow_of(kernel: Executable) -> Dataflow:
    chip = ARCHS.get(plain_name(kernel.made_for))
    measured = chip is not None and chip.functions == MEASURED
    return Dataflow(with_unused_bytes(without_unused_halves(kernel.program)), measured)


@lru_cache(maxsize=256)
def _steps_of(dataflow: Dataflow) -> KnownSteps:
    """The steps of all launches of a kernel; none yet."""
    return {}


def _parameters(
    kernel: Executable, arguments: Sequence[object], names: Sequence[str], memory: Memory
) -> tuple[bytes, dict[int, Buffer], dict[int, tuple[str, int]]]:
    """The parameters as bytes; by root, the arrays that they point to, and names and values of other numbers
    of 8 bytes.
    """
    places = EmulatedPlaces(memory)
    content = bytearray(kernel.parameter_size)
    pointers: dict[int, Buffer] = {}
    numbers: dict[int, tuple[str, int]] = {}
    for parameter, argument, name in zip(kernel.parameters, arguments, names):
        offset, places.name = parameter.offset, name
        raw = argument_of(argument).encode(parameter, places, PARAMETER_WINDOW + offset)
        content[offset : offset + len(raw)] = raw
        places.find_maps(raw, PARAMETER_WINDOW + offset)
        for at in range(-(-offset // 8) * 8, offset + len(raw) - 7, 8):
            value = int.from_bytes(content[at : at + 8], "little")
            bit = 1 << (PARAMETER_BITS + (kernel.parameter_base + at) // 8)
            buffer = memory.layouts["global"].find(value, value + 1)
            if buffer is not None:
                pointers[bit] = buffer
            elif len(raw) == 8:
                numbers[bit] = name, value
    return bytes(content), pointers, numbers


def _variables(kernel: Executable, memory: Memory) -> dict[int, Buffer]:
    """By root, the module's variables that bank 4 or the code points to, and the grid's workspace."""
    roots = {1 << (VARIABLE_BITS + one.offset // 8): one.symbol for one in kernel.pointers.get(4, ())}
    roots |= {bit: symbol for symbol, bit in roots_of_symbols(kernel.program).items()}
    places = {bit: memory.symbols[symbol][1] for bit, symbol in roots.items() if symbol in memory.symbols}
    places |= dict.fromkeys(workspace_roots(kernel), workspace_of(memory))
    layout = memory.layouts["global"]
    return {bit: buffer for bit, place in places.items() if (buffer := layout.at(place)) is not None}


def _spaces_of_roots(kernel: Executable, pointers: Mapping[int, Buffer]) -> dict[int, str]:
    """The state space of the memory that each root points to, "" for numbers, as far as it is known."""
    front = arch_of_code(kernel.made_for).front
    found = {SHARED_WINDOW_ROOT: "shared"}
    for parameter in kernel.parameters:
        if parameter.size <= 8:
            found |= dict.fromkeys(_words(kernel.parameter_base + parameter.offset, parameter.size), "")
    for place, size in ((front.block, 12), (front.grid, 12), (front.stack, 4)):
        found |= dict.fromkeys(_words(place, size), "")
    found |= dict.fromkeys(_words(front.local_base, 8), "local")
    if front.shared_window is not None:
        found |= dict.fromkeys(_words(front.shared_window, 8), "shared")
    return found | dict.fromkeys(pointers, "global")


def _words(offset: int, size: int) -> Iterator[int]:
    """The roots of so many bytes of constant bank 0."""
    words = range(offset // 8, -(-(offset + size) // 8))
    return (1 << (PARAMETER_BITS + word) for word in words)


def _same(pointers: dict[int, Buffer]) -> dict[int, int]:
    """Which roots refer to the same or overlapping memory."""
    found: dict[int, int] = {}
    for bit, buffer in pointers.items():
        others = 0
        for other, its in pointers.items():
            if other != bit and buffer.start < its.end and its.start < buffer.end:
                others |= other
        if others:
            found[bit] = others
    return found


class EmulatedPlaces:
    """Tells addresses in a launch's memory, and registers there what only handles or addresses name.

    Tensor copies refer to a map by its generic address: in the parameters, where the emulator identifies it
    by its address, or in global memory, where a kernel may change it.

    name: the parameter's whose argument is encoded.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory, self.name = memory, ""
        self._addresses = iter(memory.argument_addresses)

    def address(self) -> int:
        """Of the next array."""
        return next(self._addresses)

    def texture(self, texture: Texture) -> int:
        """Its handle."""
        return self.memory.bind(texture, self.name)

    def find_maps(self, raw: bytes, at: int) -> None:
        """Notes the tensor maps in an argument that is given as bytes, as a program does: what may be one."""
        for start in range(0, len(raw) - BYTES + 1, ALIGN):
            encoded = decode_tensor_map(raw[start : start + BYTES])
            if encoded is None or at + start in self.memory.tensors:
                continue
            if self.memory.layouts["global"].find(encoded.address, encoded.address + 1) is not None:
                with suppress(MemsimError):
                    self.memory.tensors[at + start] = tensor_of_bits(encoded)

    def tensor_map(self, one: TensorMap, array: int, at: int) -> bytes:
        """Its bytes; zeros if it has no box. By its address is known the tensor, or why it is unknown.

        Raises:
            MemsimError: an invalid tensor map.
        """
        try:
            known = tensor_of(one, array) if one.box else None
        except MemsimError as error:
            raise MemsimError(f"argument {self.name}: {error.message}", hint=error.hint) from None
        self.memory.tensors[at] = known or Poison(f"the tensor map {self.name} has no box", None)
        bits = bits_of_tensor(known) if known else bytes(one.nbytes)
        if self.memory.layouts["global"].find(at, at + one.nbytes) is not None:
            self.memory.contents.append((at, bits))
        return bits


# --- constant banks --------------------------------------------------------------------------

#: Addresses of system functions such as vprintf; they have no code.
SYSTEM_FUNCTIONS = 0x7FFF_0000_0000


def constant_banks(
    kernel: Executable, launch: Launch, parameters: bytes, memory: Memory
) -> tuple[dict[int, bytes], tuple[range, ...], dict[int, str]]:
    """The constant banks of a launch, the unknown ranges of bank 0, and addresses of system functions."""
    front, holes = _front(kernel, launch, memory)
    banks = {bank: bytes(content) for bank, content in {**kernel.constants, **memory.constants}.items()}
    banks[0] = front + parameters
    externals: dict[int, str] = {}
    for bank, pointers in kernel.pointers.items():
        content = bytearray(banks.get(bank, b""))
        for pointer in pointers:
            if pointer.symbol in memory.symbols:
                value = memory.symbols[pointer.symbol][1] + pointer.addend
            elif pointer.symbol in kernel.functions:
                value = kernel.functions[pointer.symbol] + pointer.addend
            else:
                value = SYSTEM_FUNCTIONS + 16 * len(externals)
                externals[value] = pointer.symbol
            end = pointer.offset + 8
            content.extend(bytes(max(0, end - len(content))))
            content[pointer.offset : end] = value.to_bytes(8, "little")
        banks[bank] = bytes(content)
    return banks, holes, externals


def _front(kernel: Executable, launch: Launch, memory: Memory) -> tuple[bytes, tuple[range, ...]]:
    """What the driver writes before the parameters: (the bytes, the ranges that are unknown).

    ptxas reads the size of dynamic shared memory (%dynamic_smem_size) there.
    """
    front, size = arch_of_code(kernel.made_for).front, kernel.parameter_base
    workspace, clusters = workspace_of(memory), cluster_of(kernel, launch)
    cluster = clusters or (1, 1, 1)
    counts = (-(-extent // width) for extent, width in zip(launch.grid, cluster))
    in_cluster = clusters is not None, *cluster, *(1 / extent for extent in cluster), *counts
    fields: list[tuple[int | None, str, tuple[float, ...]]] = [
        (front.block, "<3I", launch.block),
        (front.grid, "<3I", launch.grid),
        (front.shared_window, "<Q", (SHARED_WINDOW,)),
        (front.local_base, "<Q", (LOCAL_WINDOW,)),
        (front.stack, "<I", (memory.layouts["local"].end,)),
        (_of_cluster(front, front.dynamic, cluster), "<I", (launch.shared_bytes,)),
        (front.constants, "<Q", (CONSTANT_WINDOW,)),
        (front.in_cluster, "<4I3f3I", in_cluster),
        (front.parameters, "<Q", (PARAMETER_WINDOW,)),
        (front.cluster, "<I", (math.prod(cluster),)),
        (front.descriptor, "<Q", (0,)),  # no address depends on it
        (_of_cluster(front, front.workspace, cluster), "<2I", (workspace >> 32, workspace & 0xFFFFFFFF)),
    ]
    content = bytearray(size)
    known: list[range] = []
    for place, form, values in fields:
        if place is not None and place >= 0 and place + struct.calcsize(form) <= size:
            struct.pack_into(form, content, place, *values)
            known.append(range(place, place + struct.calcsize(form)))
    return bytes(content), _between(known, size)


def _of_cluster(front: Front, place: int | None, cluster: tuple[int, int, int]) -> int | None:
    return None if place is None else place - front.by_cluster * math.prod(cluster)


def _between(known: list[range], size: int) -> tuple[range, ...]:
    """The gaps between the ranges."""
    holes, at = [], 0
    for each in sorted(known, key=lambda each: each.start):
        if at < each.start:
            holes.append(range(at, each.start))
        at = max(at, each.stop)
    return (*holes, range(at, size)) if at < size else tuple(holes)
