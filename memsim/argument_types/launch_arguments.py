"""The arguments of a launch and the parameters of its kernel.

What the caller leaves open is filled in: which arrays without dimensions are pointers, the types of plain
numbers in a struct, and the struct that an accessor of PyTorch is. Then all are checked, and encoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, product
from math import prod
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from memsim.argument_types.argument import POINTER_BYTES, ArgumentPlaces, Parameter, argument_of
from memsim.argument_types.array_arg import ArrayArg, c_strides, element_type, with_a_dimension
from memsim.argument_types.array_tables import ArrayTable
from memsim.argument_types.given_values import StructFields, lay_out
from memsim.errors import MemsimError

#: The types that a plain number in a struct may have, of each size those that are tried in turn.
_TYPES: dict[type, tuple[tuple[type[np.generic], ...], ...]] = {
    bool: ((np.bool_,),),
    int: ((np.int32, np.uint32), (np.int64, np.uint64)),
    float: ((np.float32,), (np.float64,)),
}
_MOST_WAYS = 4096
_Accessors: TypeAlias = frozenset[tuple[int, int]]
# In the mangled name of a kernel that takes accessors: the dimensions and the index type of each.
_ACCESSOR_NAME = "PackedTensorAccessor"
_ACCESSOR = re.compile(r"L[mj](\d+)E(?:S[0-9A-Z]*_|\w*?PtrTraitsE)([ilx])E")
_INDEX_BYTES = {"i": 4, "l": 8, "x": 8}


def fit_arguments(parameters: Sequence[Parameter], arguments: Sequence[object], kernel: str) -> list[object]:
    """The arguments of `kernel`, its mangled name, completed; those that fit no parameter as they are.

    Raises:
        MemsimError: plain numbers in a struct that its size leaves undecided, or an array that an accessor
            cannot be of.
    """
    if len(parameters) != len(arguments):
        return list(arguments)
    accessors = accessors_of(kernel)
    return [_fit(parameter, argument, accessors) for parameter, argument in zip(parameters, arguments)]


def _fit(parameter: Parameter, argument: object, accessors: _Accessors) -> object:
    if parameter.is_struct:
        if isinstance(argument, (list, tuple)):
            return _with_types(parameter, argument)
        if accessors and isinstance(argument, (np.ndarray, ArrayArg)):
            return _accessor(parameter, argument, accessors)
    elif parameter.is_pointer and _has_no_dimensions(argument):
        return with_a_dimension(argument)
    return argument


def _has_no_dimensions(argument: object) -> TypeGuard[np.ndarray | ArrayArg]:
    """Is it an array of numbers of one element, without dimensions?"""
    is_record = isinstance(argument, np.ndarray) and argument.dtype.names is not None
    return isinstance(argument, (np.ndarray, ArrayArg)) and argument.shape == () and not is_record


# --- an accessor of PyTorch


def accessors_of(kernel: str) -> _Accessors:
    """(dimensions, bytes of an index) of the accessors that a kernel of this mangled name takes.

    `at::GenericPackedTensorAccessor<float, 2, at::RestrictPtrTraits, int>`, in
    torch/headeronly/core/TensorAccessor.h, is a pointer, two sizes, and two strides in elements.
    """
    if _ACCESSOR_NAME not in kernel:
        return frozenset()
    return frozenset((int(count), _INDEX_BYTES[index]) for count, index in _ACCESSOR.findall(kernel))


def _accessor(parameter: Parameter, array: np.ndarray | ArrayArg, accessors: _Accessors) -> StructFields:
    """The struct that the accessor of an array is.

    Raises:
        MemsimError: the accessor has another number of dimensions, or the kernel takes two of this size.
    """
    fit = {count: size for count, size in accessors if parameter.size == POINTER_BYTES + 2 * count * size}
    count = len(array.shape)
    if count not in fit or len(fit) > 1:
        wanted = " or ".join(map(str, sorted(fit))) or "other"
        raise MemsimError(
            f"an accessor of {parameter.size} bytes takes an array of {wanted} dimensions, not {array.shape}",
            hint="the name of the kernel leaves open which: pass the parts, as 'f32[4096]+i32(64,64,64,1)'"
            if len(fit) > 1
            else "pass such an array, or pointer, sizes and strides: 'f32[4096]+i32(64,64,64,1)'",
        )
    dtype = element_type(array)
    strides = array.strides or c_strides(array.shape, dtype.itemsize)
    index = np.int32 if fit[count] == 4 else np.int64
    numbers = map(index, (*array.shape, *(step // dtype.itemsize for step in strides)))
    return StructFields((array, *numbers), ("", *[""] * (2 * count)))


# --- plain numbers in a struct


def _with_types(parameter: Parameter, given: Sequence[Any]) -> Sequence[object]:
    """The parts with a type for each plain number, as the struct's size decides; None is a null pointer.

    Of two sizes of an integer that both fit, the larger: its upper half lies where the smaller has padding.
    """
    parts = [np.uint64(0) if part is None else part for part in given]
    choices = [list(_typed_numbers(part)) if type(part) in _TYPES else [part] for part in parts]
    ways = prod(map(len, choices))
    is_known = all(argument_of(one).as_part() is not None for one in chain(*choices))
    if 0 < ways <= _MOST_WAYS and is_known:
        found = list(_of_size(parameter.size, choices))
        if len({(tuple(starts), _floats(way)) for starts, way in found}) > 1:
            plain = ", ".join(str(part) for part in parts if type(part) in _TYPES)
            raise MemsimError(
                f"a struct of {parameter.size} bytes leaves open how large {plain} in it is",
                hint="give the type, as in np.int32(3), np.int64(3) or np.float32(3)",
            )
        parts = max((way for _, way in found), key=_bytes_of_numbers, default=parts)
    return StructFields(parts, given.names) if isinstance(given, StructFields) else parts


def _typed_numbers(number: bool | int | float) -> Iterator[np.generic]:
    """A plain number in each size that holds it."""
    for kinds in _TYPES[type(number)]:
        for kind in kinds:
            with suppress(OverflowError), np.errstate(over="ignore"):
                yield kind(number)
                break


def _of_size(size: int, choices: Sequence[Sequence[object]]) -> Iterator[tuple[list[int], list[object]]]:
    """(where each part begins, the parts) of every choice that makes a struct of this size: as C lays it out,
    or without gaps if none does so.
    """
    for packed in (False, True):
        found = False
        for way in map(list, product(*choices)):
            starts, end = lay_out(way, packed)
            if end == size:
                found = True
                yield starts, way
        if found:
            return


def _floats(way: Sequence[object]) -> tuple[int, ...]:
    return tuple(part.nbytes for part in way if isinstance(part, np.floating))


def _bytes_of_numbers(way: Sequence[object]) -> int:
    return sum(part.nbytes for part in way if isinstance(part, np.generic))


def arrays_of(
    names: Sequence[str], arguments: Sequence[object]
) -> Iterator[tuple[str, np.ndarray | ArrayArg | ArrayTable]]:
    """(name, array) for every pointer, in order; the third part of a struct v is v.2, or has its own name.

    A table of pointers is followed by the arrays that it points to, v[0], v[1] and so on.
    """
    for name, argument in zip(names, arguments):
        yield from ((f"{name}{more}", array) for more, array in argument_of(argument).pointees())


def check_arguments(
    kernel: str, parameters: Sequence[Parameter], arguments: Sequence[object], names: Sequence[str]
) -> None:
    """Raise a MemsimError unless number and types of the arguments match the parameters of `kernel`, its name
    in errors.
    """
    if not isinstance(arguments, Sequence):
        given = argument_of(arguments).in_errors()
        raise MemsimError(f"the arguments must be a list with one for each parameter, not {given}")
    wanted = ", ".join(f"{name}: {parameter.in_words()}" for name, parameter in zip(names, parameters))
    if len(arguments) != len(parameters):
        raise MemsimError(
            f"{kernel} takes {len(parameters)} arguments, but {len(arguments)} were given",
            hint=f"its parameters: {wanted}" if wanted else None,
        )
    for name, parameter, argument in zip(names, parameters, map(argument_of, arguments)):
        if not argument.fits(parameter, name):
            raise MemsimError(
                f"argument {name} of {kernel} must be {parameter.in_words()}, not {argument.in_errors()}",
                hint=argument.hint(parameter),
            )


def parameter_bytes(
    kernel: str, parameters: Sequence[Parameter], arguments: Sequence[object], places: ArgumentPlaces
) -> list[bytes]:
    """The bytes of every parameter, as the driver gets them.

    kernel: its name in errors.

    Raises:
        MemsimError: arguments that do not match.
    """
    check_arguments(kernel, parameters, arguments, [f"arg{i}" for i in range(len(parameters))])
    given = zip(parameters, map(argument_of, arguments), strict=True)
    return [argument.encode(parameter, places, 0) for parameter, argument in given]
