"""The addresses of a launch's tensor maps: parameters, parts of structs, and tables in global memory.

Tensor copies refer to a map by its generic address. Its bytes are opaque; the emulator identifies the map by
its address.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from memsim.argument_types import TensorMap, TensorMaps
from memsim.errors import MemsimError
from memsim.isa.executable import Parameter
from memsim.simt.launch_arguments import is_array, is_parts, next_address, starts_of
from memsim.state.address_spaces import PARAMETER_WINDOW
from memsim.state.launch_memory import Memory
from memsim.state.poison import Poison
from memsim.state.tensors import Tensor, tensor_of


def place_tensor_maps(
    parameters: Sequence[Parameter], arguments: Sequence[Any], names: Sequence[str], memory: Memory
) -> None:
    """Register every tensor map in checked arguments with memory.

    Raises:
        MemsimError: an invalid tensor map.
    """
    addresses = iter(memory.argument_addresses)
    for parameter, argument, name in zip(parameters, arguments, names):
        for place, one, array in _maps(parameter, argument, PARAMETER_WINDOW + parameter.offset, addresses):
            memory.tensors[place] = _tensor(one, array, name)


def _maps(
    parameter: Parameter, value: Any, place: int, addresses: Iterator[int]
) -> Iterator[tuple[int, TensorMap, int]]:
    """(address of a map, the map, address of its array) in an argument at address `place`.

    addresses: those of its arrays come next.
    """
    if isinstance(value, TensorMap):
        yield place, value, next(addresses)
    elif isinstance(value, TensorMaps):
        table = next(addresses)
        for number, one in enumerate(value.maps):
            yield table + number * one.nbytes, one, next(addresses)
    elif is_array(value):
        next_address(value, addresses)
    elif is_parts(value):
        for start, part in zip(starts_of(parameter, value), value):
            yield from _maps(parameter, part, place + start, addresses)


def _tensor(argument: TensorMap, address: int, name: str) -> Tensor | Poison:
    """The tensor of a map; the reason it is unknown if the map has no box."""
    if not argument.box:
        return Poison(f"the tensor map {name} has no box", None)
    try:
        return tensor_of(argument, address)
    except MemsimError as error:
        raise MemsimError(f"argument {name}: {error.message}", hint=error.hint) from None
