"""Matches the arguments of a launch with the kernel's parameters, and encodes them as bytes.

A struct is passed as bytes, as a numpy scalar, or as a list of its parts: typed numbers, and arrays, of which
it holds the addresses.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from memsim.argument_types import ArrayArg, ArrayTable, StructFields, TensorMap, Texture
from memsim.errors import MemsimError, shown
from memsim.names.demangle import demangle

if TYPE_CHECKING:
    from memsim.isa.executable import Parameter

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


#: The bytes of a tensor map over an array at an address.
MapEncoder = Callable[[TensorMap, int], bytes]

POINTERS = ("u64", "b64", "s64")
POINTER_BYTES = 8
UNTYPED = ("b16", "b32", "b64")  # of a cubin, which only has sizes
VALUES = "biufcV"  # kinds of numpy scalars that can be passed as bytes


def is_array(argument: Any) -> bool:
    """Is the argument memory to which the kernel gets a pointer?"""
    return isinstance(argument, (np.ndarray, ArrayArg, ArrayTable)) and getattr(argument, "shape", ()) != ()


def is_parts(argument: Any) -> bool:
    """Is the argument a struct given by its parts?"""
    return isinstance(argument, (list, tuple))


def is_struct(parameter: Parameter) -> bool:
    """Is the parameter passed as bytes rather than as a number?"""
    return struct.calcsize(_SCALARS.get(parameter.type, "0s")) != parameter.size


def arrays_of(names: Sequence[str], arguments: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """(name, array) for every pointer, in order; the third part of a struct v is v.2, or has its own name.

    A table of pointers is followed by the arrays that it points to, v[0], v[1] and so on.
    """
    for name, argument in zip(names, arguments):
        if isinstance(argument, TensorMap):
            yield name, argument.array
        elif is_array(argument):
            yield from _with_pointees(name, argument)
        elif is_parts(argument):
            for i, part in enumerate(argument):
                if is_array(part):
                    yield from _with_pointees(_part_name(name, argument, i), part)
                elif isinstance(part, TensorMap):
                    yield _part_name(name, argument, i), part.array


def _part_name(name: str, parts: Sequence[Any], place: int) -> str:
    called = parts.names[place] if isinstance(parts, StructFields) else str(place)
    return f"{name}.{called}" if called else name


def _with_pointees(name: str, array: Any) -> Iterator[tuple[str, Any]]:
    yield name, array
    if isinstance(array, ArrayTable):
        yield from ((f"{name}[{i}]", one) for i, one in enumerate(array.arrays) if one is not None)


def next_address(array: Any, addresses: Iterator[int]) -> int:
    """An array's address, from the `addresses` of all that `arrays_of` lists; skips those after a table."""
    address = next(addresses)
    for one in array.arrays if isinstance(array, ArrayTable) else ():
        if one is not None:
            next(addresses)
    return address


def lay_out(parts: Sequence[Any], packed: bool = False) -> tuple[list[int], int]:
    """The offset of each part of a struct, and the struct's size, in bytes.

    As in C: each part at a multiple of its own size, and the whole a multiple of the largest of them. packed:
    without gaps.
    """
    starts, end, widest = [], 0, 1
    for part in parts:
        size, natural = _size_and_alignment(part)
        alignment = 1 if packed else natural
        starts.append(-(-end // alignment) * alignment)
        end, widest = starts[-1] + size, max(widest, alignment)
    return starts, -(-end // widest) * widest


def _size_and_alignment(part: Any) -> tuple[int, int]:
    """Bytes of a part of a struct, and what it lies at a multiple of."""
    if is_array(part):
        return POINTER_BYTES, POINTER_BYTES
    if isinstance(part, TensorMap):
        return part.nbytes, part.alignment
    size: int = part.dtype.itemsize
    return size, part.dtype.alignment if part.dtype.kind == "V" else size


def check_parts(parts: Sequence[Any], name: str, parameter: Parameter) -> None:
    """Raise a MemsimError unless the parts make up the struct and all have a size."""
    for part in parts:
        is_value = isinstance(part, np.generic) and part.dtype.kind in VALUES
        if not (is_array(part) or is_value or isinstance(part, TensorMap)):
            raise MemsimError(
                f"a part of the struct {name} is {part!r}, which has no size",
                hint="parts are arrays and typed numbers such as np.int32(3); np.uint64(0) is a null pointer",
            )
    sizes = lay_out(parts, packed=True)[1], lay_out(parts)[1]
    if parameter.size not in sizes:
        apart = "" if sizes[0] == sizes[1] else f" packed, {sizes[1]} aligned"
        kind = "a struct" if is_struct(parameter) else parameter.type
        raise MemsimError(f"{name} is {kind} of {parameter.size} bytes, but its parts have {sizes[0]}{apart}")


def describe(parameter: Parameter) -> str:
    """A parameter's type in words."""
    if parameter.type in POINTERS:
        return "an array (pointer), None (a null pointer) or a 64-bit integer"
    if parameter.type.startswith("f"):
        return f"a float ({parameter.type})"
    if is_struct(parameter):
        return f"a struct of {parameter.size} bytes (bytes, a numpy scalar of that size, or a list of parts)"
    return f"an integer ({parameter.type})"


def check_arguments(
    kernel: str, parameters: Sequence[Parameter], arguments: Sequence[Any], names: Sequence[str]
) -> None:
    """Raise a MemsimError unless number and types of the arguments match the parameters."""
    if not isinstance(arguments, Sequence):
        raise MemsimError(f"the arguments must be a list with one for each parameter, not {_say(arguments)}")
    wanted = ", ".join(f"{name}: {describe(p)}" for name, p in zip(names, parameters))
    if len(arguments) != len(parameters):
        raise MemsimError(
            f"{demangle(kernel)} takes {len(parameters)} arguments, but {len(arguments)} were given",
            hint=f"its parameters: {wanted}" if wanted else None,
        )
    for name, parameter, argument in zip(names, parameters, arguments):
        if is_parts(argument) and is_struct(parameter):
            check_parts(argument, name, parameter)
        elif not _fits(parameter, argument):
            raise MemsimError(
                f"argument {name} of {demangle(kernel)} must be {describe(parameter)}, not {_say(argument)}",
                hint=_advice(parameter, argument),
            )


def _advice(parameter: Parameter, argument: Any) -> str | None:
    if isinstance(argument, TensorMap) and parameter.type in POINTERS:
        return "memsim.TensorMaps([...]) lies in global memory, and is pointed to"
    if is_array(argument) and is_struct(parameter):
        return "a pointer in a struct is one of its parts: [array, np.int32(3), ...], or 'f32[64]+i32(3)'"
    return None


def _say(argument: Any) -> str:
    if is_array(argument):
        return f"an array {argument.dtype}{list(argument.shape)}"
    return shown(argument)


def _fits(parameter: Parameter, argument: Any) -> bool:
    """Can the argument be passed for the parameter?"""
    scalar = not is_struct(parameter)
    if argument is None or is_array(argument) or isinstance(argument, Texture):
        return scalar and parameter.type in POINTERS
    if isinstance(argument, TensorMap):
        return parameter.size == argument.nbytes
    if isinstance(argument, (bytes, bytearray)):
        return len(argument) == parameter.size
    argument = _scalar(argument)
    if _is_bytes(parameter, argument):
        return bool(argument.nbytes == parameter.size)
    if isinstance(argument, np.generic):
        argument = argument.item()
    if not scalar or not isinstance(argument, (int, float)):
        return False
    if parameter.type.startswith("f") or (isinstance(argument, float) and parameter.type in UNTYPED):
        return True
    bits = parameter.size * 8
    return isinstance(argument, int) and -(1 << (bits - 1)) <= argument < 1 << bits


def _scalar(argument: Any) -> Any:
    """The value of a numpy array without dimensions; anything else unchanged."""
    return argument[()] if isinstance(argument, np.ndarray) and argument.shape == () else argument


def _is_bytes(parameter: Parameter, argument: Any) -> bool:
    """Is it a numpy scalar that is passed as its bytes, such as a `np.float16` for a `__half`?"""
    return isinstance(argument, np.void) or (isinstance(argument, np.generic) and is_struct(parameter))


def opaque(one: TensorMap, address: int) -> bytes:
    """A tensor map's bytes as the emulator has them: zeros."""
    return bytes(one.nbytes)


def encode(
    parameter: Parameter, argument: Any, addresses: Iterator[int], encode_map: MapEncoder = opaque
) -> bytes:
    """A checked argument as the parameter's bytes; its arrays are at the next `addresses`."""
    if is_array(argument):
        argument = next_address(argument, addresses)
    if is_parts(argument):
        return encode_parts(parameter, argument, addresses, encode_map)
    if isinstance(argument, TensorMap):
        return encode_map(argument, next(addresses))
    if argument is None:
        return bytes(parameter.size)
    argument = _scalar(argument)
    if _is_bytes(parameter, argument):
        return bytes(argument.tobytes())
    if isinstance(argument, (bytes, bytearray)):
        return bytes(argument)
    if isinstance(argument, np.generic):
        argument = argument.item()
    is_float = isinstance(argument, float) and parameter.type in UNTYPED
    code = _SCALARS[f"f{parameter.type[1:]}" if is_float else parameter.type]
    if code in "efd":
        return struct.pack(f"<{code}", float(argument))
    return (int(argument) & ((1 << parameter.size * 8) - 1)).to_bytes(parameter.size, "little")


def encode_parts(
    parameter: Parameter, parts: Sequence[Any], addresses: Iterator[int], encode_map: MapEncoder = opaque
) -> bytes:
    """A checked struct; gaps between its parts are zero."""
    packed = bytearray(parameter.size)
    for start, part in zip(starts_of(parameter, parts), parts):
        if isinstance(part, TensorMap):
            raw = encode_map(part, next(addresses))
        else:
            raw = next_address(part, addresses).to_bytes(8, "little") if is_array(part) else part.tobytes()
        packed[start : start + len(raw)] = raw
    return bytes(packed)


def starts_of(parameter: Parameter, parts: Sequence[Any]) -> list[int]:
    """Where the parts of a checked struct begin."""
    layouts = lay_out(parts, packed=True), lay_out(parts)
    return next(starts for starts, size in layouts if size == parameter.size)
