"""Arguments of a launch, matched with the kernel's parameters.

In: what the user passed. Out: the bytes of every parameter and the arrays behind the pointers.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from memsim.errors import MemsimError
from memsim.launch import ArrayArg, Texture1D
from memsim.ptx.demangle import demangle
from memsim.ptx.program import Function, Parameter

_SCALARS = {
    **{f"{kind}8": "b" for kind in "sb"},
    **{f"{kind}16": "h" for kind in "sb"},
    **{f"{kind}32": "i" for kind in "sb"},
    **{f"{kind}64": "q" for kind in "sb"},
    "u8": "B",
    "u16": "H",
    "u32": "I",
    "u64": "Q",
    "f16": "e",
    "f32": "f",
    "f64": "d",
}


def is_array(argument: Any) -> bool:
    """Is the argument memory that the kernel gets a pointer to?"""
    return isinstance(argument, (np.ndarray, ArrayArg)) and getattr(argument, "shape", ()) != ()


def describe(parameter: Parameter) -> str:
    """A parameter's type in words."""
    if parameter.type in ("u64", "b64", "s64"):
        return "an array (pointer) or a 64-bit integer"
    if parameter.type.startswith("f"):
        return f"a float ({parameter.type})"
    if parameter.size != struct.calcsize(_SCALARS.get(parameter.type, "0s")):
        return f"a struct of {parameter.size} bytes (bytes)"
    return f"an integer ({parameter.type})"


def check(function: Function, arguments: Sequence[Any], names: Sequence[str]) -> None:
    """Does every argument fit its parameter?

    Raises:
        MemsimError: wrong count or type, or an array that is not C-contiguous.
    """
    wanted = ", ".join(f"{name}: {describe(p)}" for name, p in zip(names, function.parameters))
    if len(arguments) != len(function.parameters):
        raise MemsimError(
            f"{demangle(function.name)} takes {len(function.parameters)} arguments, {len(arguments)} given",
            hint=f"it wants {wanted}" if wanted else None,
        )
    for name, parameter, argument in zip(names, function.parameters, arguments):
        if not _fits(parameter, argument):
            raise MemsimError(
                f"argument {name} of {demangle(function.name)} is {describe(parameter)}, not {_say(argument)}"
            )
        if isinstance(argument, np.ndarray) and is_array(argument) and not argument.flags.c_contiguous:
            raise MemsimError(f"argument {name} is not C-contiguous", hint="pass np.ascontiguousarray(...)")


def _say(argument: Any) -> str:
    if is_array(argument):
        return f"an array {argument.dtype}{list(argument.shape)}"
    return f"{argument!r}"


def _fits(parameter: Parameter, argument: Any) -> bool:
    """Can the argument be passed for the parameter?"""
    scalar = struct.calcsize(_SCALARS.get(parameter.type, "0s")) == parameter.size
    if is_array(argument) or isinstance(argument, Texture1D):
        return scalar and parameter.type in ("u64", "b64", "s64")
    if isinstance(argument, (bytes, bytearray)):
        return len(argument) == parameter.size
    if isinstance(argument, np.generic):
        argument = argument.item()
    if not scalar or not isinstance(argument, (int, float)):
        return False
    if parameter.type.startswith("f"):
        return True
    bits = parameter.size * 8
    return isinstance(argument, int) and -(1 << (bits - 1)) <= argument < 1 << bits


def encode(parameter: Parameter, argument: Any) -> bytes:
    """A checked argument (an array by its address) as the parameter's bytes."""
    if isinstance(argument, (bytes, bytearray)):
        return bytes(argument)
    if isinstance(argument, np.generic):
        argument = argument.item()
    code = _SCALARS[parameter.type]
    if code in "efd":
        return struct.pack(f"<{code}", float(argument))
    return (int(argument) & ((1 << parameter.size * 8) - 1)).to_bytes(parameter.size, "little")
