"""The parameters of a launch as the bytes that the driver gets, given the GPU addresses of arrays and
textures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memsim.argument_types import Texture
from memsim.isa.executable import Parameter
from memsim.simt.launch_arguments import MapEncoder, arrays_of, check_arguments, encode, opaque

__all__ = ["arrays_of", "parameter_bytes"]


def parameter_bytes(
    kernel: str,
    parameters: Sequence[Parameter],
    args: Sequence[Any],
    arrays: Sequence[int],
    textures: Sequence[int] = (),
    encode_map: MapEncoder = opaque,
) -> list[bytes]:
    """The bytes of every parameter.

    Args:
        kernel: its name in errors.
        parameters: in the kernel's order, as the arguments `args`.
        arrays: addresses of the arrays of `arrays_of`, in that order.
        textures: handles of the textures, in order.
        encode_map: the bytes of a tensor map over an array at an address.

    Raises:
        MemsimError: arguments that do not match.
    """
    check_arguments(kernel, parameters, args, [f"arg{i}" for i in range(len(parameters))])
    places, handles = iter(arrays), iter(textures)
    found = []
    for parameter, value in zip(parameters, args, strict=True):
        if isinstance(value, Texture):
            value = next(handles)
        found.append(encode(parameter, value, places, encode_map))
    return found
